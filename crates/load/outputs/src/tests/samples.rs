//! A run of some intervals, with names that are hostile.

use std::sync::Arc;

use crate::interval_sample::{IntervalFrame, IntervalSample, StepName};
use crate::output_subject::OutputSubject;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::outcome_counts::OutcomeCounts;
use weir_measure::recorder::Interval;
use weir_measure::run_script::ScriptMetric;
use weir_measure::run_steps::StepFacts;
use weir_measure::step_counts::StepInterval;
use weir_measure::stream_interval::StreamInterval;
use weir_pace::live_load::LevelKind;

/// Start of the run, in nanoseconds since 1970.
pub(crate) const START_UNIX_NS: u64 = 1_700_000_000_000_000_000;

pub(crate) fn subject() -> OutputSubject {
    OutputSubject {
        method: "GET".to_owned(),
        url: "http://127.0.0.1:1/a\"b".to_owned(),
        objectives: vec!["p99<200ms".to_owned()],
        labels: vec![("run".to_owned(), "a b,c=d\"e\\".to_owned())],
        interval: Nanos::SECOND,
        warmup: Nanos::ZERO,
    }
}

/// Counts of an interval: ten successes in 1 to 10 ms, two timeouts, two steps.
pub(crate) fn interval() -> Interval {
    let mut interval =
        Interval { ok: 10, failed: 2, bytes_in: 1000, in_flight: 3, iterations: 5, ..Interval::default() };
    (1..=10).for_each(|ms| interval.response.record(Nanos::from_millis(ms)));
    (0..2).for_each(|_| interval.failed_response.record(Nanos::SECOND));
    let mut outcomes = OutcomeCounts::default();
    (0..10).for_each(|_| outcomes.statuses.record(200));
    outcomes.failures[FailureKind::Timeout as usize] = 2;
    interval.outcomes = Some(Box::new(outcomes));
    let mut step = StepInterval { requests: 6, failed: 1, checks_failed: 1, ..StepInterval::default() };
    (1..=5).for_each(|ms| step.times.record(Nanos::from_millis(ms)));
    interval.steps = vec![step.clone(), step];
    let mut streams = StreamInterval { events: 7, ..StreamInterval::default() };
    streams.first_event.record(Nanos::from_millis(3));
    streams.gaps.record(Nanos::from_millis(2));
    interval.streams = Some(Box::new(streams));
    interval
}

/// Interval number `number`, a second long.
pub(crate) fn sample(number: u64) -> IntervalSample {
    let facts = StepFacts { name: "log \"in\"".to_owned(), scenario: "shop".to_owned(), checks: Vec::new() };
    let names: Arc<[StepName]> = StepName::of_facts(&[facts]);
    let frame = IntervalFrame {
        number,
        start: Nanos::from_secs(number),
        end: Nanos::from_secs(number + 1),
        end_unix_ns: START_UNIX_NS + (number + 1) * 1_000_000_000,
        is_rest: false,
        level: Some((LevelKind::Rate, 12.0)),
    };
    IntervalSample { script: script().into(), ..IntervalSample::new(frame, &interval(), &names) }
}

/// Metrics of a script: a rate, and a trend for some tags.
fn script() -> Vec<ScriptMetric> {
    let metric = |name: &str, kind: &str, values: &[(&str, f64)]| ScriptMetric {
        name: name.to_owned(),
        kind: kind.to_owned(),
        unit: "milliseconds".to_owned(),
        custom: true,
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
    };
    vec![
        metric("checks", "rate", &[("rate", 0.5)]),
        metric("pay{step:a b}", "trend", &[("avg", 10.0), ("p(95)", 12.5)]),
    ]
}
