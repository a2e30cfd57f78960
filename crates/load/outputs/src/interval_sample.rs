//! An interval of a run as receivers get it.

use std::sync::Arc;

use super::time_counts::TimeCounts;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::terminal_text::is_steering;
use weir_measure::recorder::Interval;
use weir_measure::run_script::ScriptMetric;
use weir_measure::run_steps::StepFacts;
use weir_pace::live_load::LevelKind;

/// Time and load of an interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IntervalFrame {
    /// Number, from 0.
    pub(crate) number: u64,
    /// Start, in time since the start of the run.
    pub(crate) start: Nanos,
    /// End, in time since the start of the run.
    pub(crate) end: Nanos,
    /// End, in nanoseconds since 1970.
    pub(crate) end_unix_ns: u64,
    /// Whether it is the rest behind the last whole interval.
    pub(crate) is_rest: bool,
    /// Rate or number of users that is set at the end, if it is known.
    pub(crate) level: Option<(LevelKind, f64)>,
}

/// An interval of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IntervalSample {
    pub(crate) frame: IntervalFrame,
    /// Successes.
    pub(crate) ok: u64,
    /// Failed requests.
    pub(crate) failed: u64,
    /// Bytes read.
    pub(crate) bytes_in: u64,
    /// Requests in flight at the end.
    pub(crate) in_flight: u64,
    /// Arrivals that wait for a connection at the end.
    pub(crate) backlog: u64,
    /// Iterations that ended.
    pub(crate) iterations: u64,
    /// Response times of successes.
    pub(crate) times: TimeCounts,
    /// Times of failures.
    pub(crate) failed_times: TimeCounts,
    /// Number of responses by status.
    pub(crate) statuses: Vec<(u16, u64)>,
    /// Requests without a response, by kind.
    pub(crate) failures: Vec<(&'static str, u64)>,
    /// Steps of scenarios, in order.
    pub(crate) steps: Vec<StepSample>,
    /// Names of the steps, in the same order; those of scripts may lack some.
    pub(crate) step_names: Arc<[StepName]>,
    /// Streamed responses; none if responses are not read as streams.
    pub(crate) streams: Option<StreamSample>,
    /// Metrics that a script has measured itself, since the start of the run.
    pub(crate) script: Arc<[ScriptMetric]>,
}

/// Name of a step, and of its scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepName {
    pub(crate) scenario: String,
    pub(crate) step: String,
}

/// Step of a scenario in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepSample {
    /// Requests.
    pub(crate) requests: u64,
    /// Of these, failed ones.
    pub(crate) failed: u64,
    /// Checks that failed.
    pub(crate) failed_checks: u64,
    /// Response times of successes.
    pub(crate) times: TimeCounts,
}

/// Streamed responses in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StreamSample {
    /// Events.
    pub(crate) events: u64,
    /// Time to the first event.
    pub(crate) first: TimeCounts,
    /// Gaps between events.
    pub(crate) gaps: TimeCounts,
}

impl StepName {
    /// Names of steps; control characters are blanks.
    pub(crate) fn of_facts(facts: &[StepFacts]) -> Arc<[Self]> {
        let line = |text: &str| text.replace(is_steering, " ");
        facts.iter().map(|facts| Self { scenario: line(&facts.scenario), step: line(&facts.name) }).collect()
    }
}

impl IntervalSample {
    /// Sample of an interval, with the names of its steps.
    pub(crate) fn new(frame: IntervalFrame, interval: &Interval, step_names: &Arc<[StepName]>) -> Self {
        let outcomes = interval.outcomes.as_deref();
        let kinds = outcomes.into_iter().flat_map(|outcomes| FailureKind::ALL.iter().zip(outcomes.failures));
        Self {
            frame,
            ok: interval.ok,
            failed: interval.failed,
            bytes_in: interval.bytes_in,
            in_flight: interval.in_flight,
            backlog: interval.backlog,
            iterations: interval.iterations,
            times: TimeCounts::of(&interval.response),
            failed_times: TimeCounts::of(&interval.failed_response),
            statuses: outcomes.map(|outcomes| outcomes.statuses.iter().collect()).unwrap_or_default(),
            failures: kinds.filter(|(_, n)| *n > 0).map(|(kind, n)| (kind.name(), n)).collect(),
            steps: interval
                .steps
                .iter()
                .map(|step| StepSample {
                    requests: step.requests,
                    failed: step.failed,
                    failed_checks: step.checks_failed,
                    times: TimeCounts::of(&step.times),
                })
                .collect(),
            step_names: Arc::clone(step_names),
            streams: interval.streams.as_deref().map(|streams| StreamSample {
                events: streams.events,
                first: TimeCounts::of(&streams.first_event),
                gaps: TimeCounts::of(&streams.gaps),
            }),
            script: Arc::default(),
        }
    }

    /// Length, in seconds.
    pub(crate) fn width_s(&self) -> f64 {
        (self.frame.end - self.frame.start).as_secs_f64()
    }

    /// Requests per second.
    pub(crate) fn rate_per_s(&self) -> f64 {
        let width_s = self.width_s();
        if width_s > 0.0 { (self.ok + self.failed) as f64 / width_s } else { 0.0 }
    }

    /// Steps that had requests, with their names.
    pub(crate) fn named_steps(&self) -> impl Iterator<Item = (StepName, &StepSample)> {
        self.steps.iter().enumerate().map(|(index, step)| (step_name(&self.step_names, index), step))
    }
}

/// Name of a step by its index; one that is not known has its number.
pub(crate) fn step_name(names: &[StepName], index: usize) -> StepName {
    let unknown = || StepName { scenario: String::new(), step: format!("step {}", index + 1) };
    names.get(index).cloned().unwrap_or_else(unknown)
}
