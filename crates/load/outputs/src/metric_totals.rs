//! Metrics of a run so far: the sum of its intervals, as points with labels.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_base::grpc_status::status_text;
use weir_base::terminal_text::is_steering;
use weir_measure::run_script::ScriptMetric;

use super::cumulative_times::CumulativeTimes;
use super::interval_sample::{IntervalSample, StepName, step_name};
use super::metrics::{self, MetricInfo};
use super::output_subject::OutputSubject;
use weir_pace::live_load::LevelKind;

/// Metrics of a run so far.
#[derive(Clone, Debug)]
pub(crate) struct MetricTotals {
    subject: Arc<OutputSubject>,
    ok: u64,
    failed: u64,
    bytes: u64,
    iterations: u64,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<&'static str, u64>,
    times: CumulativeTimes,
    failed_times: CumulativeTimes,
    steps: Vec<StepTotals>,
    step_names: Arc<[StepName]>,
    streams: Option<StreamTotals>,
    /// Values at the end of the last interval; none before it.
    latest: Option<LatestValues>,
    script: Arc<[ScriptMetric]>,
}

/// Values at the end of an interval.
#[derive(Clone, Copy, Debug)]
struct LatestValues {
    elapsed_s: f64,
    level: Option<(LevelKind, f64)>,
    in_flight: u64,
    backlog: u64,
}

#[derive(Clone, Debug, Default)]
struct StepTotals {
    ok: u64,
    failed: u64,
    failed_checks: u64,
    times: CumulativeTimes,
}

#[derive(Clone, Debug, Default)]
struct StreamTotals {
    events: u64,
    first: CumulativeTimes,
    gaps: CumulativeTimes,
}

/// A metric with its points.
#[derive(Debug)]
pub(crate) struct MetricFamily<'a> {
    pub(crate) info: &'static MetricInfo,
    pub(crate) points: Vec<MetricPoint<'a>>,
}

/// A point: values of the metric's labels, in their order, and its own.
#[derive(Debug)]
pub(crate) struct MetricPoint<'a> {
    pub(crate) labels: Vec<Cow<'a, str>>,
    pub(crate) value: MetricValue<'a>,
}

/// Value of a point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricValue<'a> {
    Count(u64),
    Number(f64),
    Times(&'a CumulativeTimes),
}

/// Values of the label `result`.
const OK: &str = "ok";
const FAILED: &str = "failed";

impl MetricTotals {
    /// Metrics of a run without an interval.
    pub(crate) fn new(subject: Arc<OutputSubject>) -> Self {
        Self {
            subject,
            ok: 0,
            failed: 0,
            bytes: 0,
            iterations: 0,
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            times: CumulativeTimes::default(),
            failed_times: CumulativeTimes::default(),
            steps: Vec::new(),
            step_names: Arc::default(),
            streams: None,
            latest: None,
            script: Arc::default(),
        }
    }

    /// Subject of the run.
    pub(crate) fn subject(&self) -> &OutputSubject {
        &self.subject
    }

    /// Adds an interval.
    pub(crate) fn add(&mut self, sample: &IntervalSample) {
        self.ok += sample.ok;
        self.failed += sample.failed;
        self.bytes += sample.bytes_in;
        self.iterations += sample.iterations;
        sample.statuses.iter().for_each(|(status, n)| *self.statuses.entry(*status).or_default() += n);
        sample.failures.iter().for_each(|(kind, n)| *self.failures.entry(kind).or_default() += n);
        self.times.add(&sample.times);
        self.failed_times.add(&sample.failed_times);
        if self.steps.len() < sample.steps.len() {
            self.steps.resize_with(sample.steps.len(), StepTotals::default);
        }
        for (total, step) in self.steps.iter_mut().zip(&sample.steps) {
            total.ok += step.requests.saturating_sub(step.failed);
            total.failed += step.failed;
            total.failed_checks += step.failed_checks;
            total.times.add(&step.times);
        }
        self.step_names = Arc::clone(&sample.step_names);
        if let Some(streams) = &sample.streams {
            let total = self.streams.get_or_insert_default();
            total.events += streams.events;
            total.first.add(&streams.first);
            total.gaps.add(&streams.gaps);
        }
        self.script = Arc::clone(&sample.script);
        self.latest = Some(LatestValues {
            elapsed_s: sample.frame.end.as_secs_f64(),
            level: sample.frame.level,
            in_flight: sample.in_flight,
            backlog: sample.backlog,
        });
    }

    /// All metrics that have a value, in the order of the table.
    pub(crate) fn families(&self) -> Vec<MetricFamily<'_>> {
        use MetricValue::{Count, Number, Times};
        let none = Vec::new;
        let one = |info, value| MetricFamily { info, points: vec![MetricPoint { labels: none(), value }] };
        let subject = &*self.subject;
        let about = vec![Cow::Borrowed(env!("CARGO_PKG_VERSION")), (&*subject.method).into(), (&*subject.url).into()];
        let about = MetricPoint { labels: about, value: Number(1.0) };
        let mut all = vec![MetricFamily { info: &metrics::INFO, points: vec![about] }];
        if let Some(latest) = &self.latest {
            all.push(one(&metrics::ELAPSED, Number(latest.elapsed_s)));
            all.extend(latest.level.map(|(kind, level)| match kind {
                LevelKind::Rate => one(&metrics::TARGET_RATE, Number(level)),
                LevelKind::Users => one(&metrics::TARGET_USERS, Number(level)),
            }));
            all.push(one(&metrics::IN_FLIGHT, Number(latest.in_flight as f64)));
            all.push(one(&metrics::BACKLOG, Number(latest.backlog as f64)));
        }
        let of_result = |result: &'static str, value| MetricPoint { labels: vec![result.into()], value };
        let requests = vec![of_result(OK, Count(self.ok)), of_result(FAILED, Count(self.failed))];
        all.push(MetricFamily { info: &metrics::REQUESTS, points: requests });
        let statuses = self.statuses.iter();
        let statuses = statuses.map(|(status, n)| MetricPoint {
            labels: vec![status_text(*status).into_owned().into()],
            value: Count(*n),
        });
        all.push(MetricFamily { info: &metrics::RESPONSES, points: statuses.collect() });
        let failures = self.failures.iter().map(|(kind, n)| of_result(kind, Count(*n)));
        all.push(MetricFamily { info: &metrics::FAILURES, points: failures.collect() });
        all.push(one(&metrics::RECEIVED, Count(self.bytes)));
        let times = vec![of_result(OK, Times(&self.times)), of_result(FAILED, Times(&self.failed_times))];
        all.push(MetricFamily { info: &metrics::RESPONSE, points: times });
        if !self.steps.is_empty() {
            all.push(one(&metrics::ITERATIONS, Count(self.iterations)));
            all.extend(self.step_families());
        }
        if let Some(streams) = &self.streams {
            all.push(one(&metrics::STREAM_EVENTS, Count(streams.events)));
            all.push(one(&metrics::FIRST_EVENT, Times(&streams.first)));
            all.push(one(&metrics::EVENT_GAP, Times(&streams.gaps)));
        }
        let of_script = |metric: &ScriptMetric| {
            let name = metric.name.replace(is_steering, " ");
            let value = |(statistic, value): (&String, &f64)| MetricPoint {
                labels: vec![name.clone().into(), statistic.clone().into()],
                value: Number(*value),
            };
            metric.values.iter().map(value).collect::<Vec<_>>()
        };
        all.push(MetricFamily { info: &metrics::SCRIPT, points: self.script.iter().flat_map(of_script).collect() });
        all.retain(|family| !family.points.is_empty());
        all
    }

    fn step_families(&self) -> [MetricFamily<'_>; 3] {
        let steps = || self.steps.iter().enumerate().map(|(index, step)| (step_name(&self.step_names, index), step));
        let point = |name: StepName, result: Option<&'static str>, value| {
            let names = [Cow::Owned(name.scenario), Cow::Owned(name.step)];
            MetricPoint { labels: names.into_iter().chain(result.map(Cow::Borrowed)).collect(), value }
        };
        let requests = steps().flat_map(|(name, step)| {
            [(OK, step.ok), (FAILED, step.failed)]
                .map(|(result, n)| point(name.clone(), Some(result), MetricValue::Count(n)))
        });
        let checks = steps().map(|(name, step)| point(name, None, MetricValue::Count(step.failed_checks)));
        let times = steps().map(|(name, step)| point(name, None, MetricValue::Times(&step.times)));
        [
            MetricFamily { info: &metrics::STEP_REQUESTS, points: requests.collect() },
            MetricFamily { info: &metrics::STEP_FAILED_CHECKS, points: checks.collect() },
            MetricFamily { info: &metrics::STEP_RESPONSE, points: times.collect() },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::{sample, subject};

    #[test]
    fn points_have_the_labels_of_their_metric_and_sum_up_the_intervals() {
        let mut totals = MetricTotals::new(Arc::new(subject()));
        (0..3).for_each(|number| totals.add(&sample(number)));
        let families = totals.families();
        for family in &families {
            assert!(family.points.iter().all(|point| point.labels.len() == family.info.labels.len()), "{family:?}");
        }
        let value = |name: &str, labels: &[&str]| {
            let family = families.iter().find(|family| family.info.name == name).expect("the metric");
            let point = family.points.iter().find(|point| point.labels == labels).expect("the point");
            match point.value {
                MetricValue::Count(n) => n as f64,
                MetricValue::Number(n) => n,
                MetricValue::Times(times) => times.count as f64,
            }
        };
        assert_eq!(value("weir_load_requests", &["ok"]), 30.0);
        assert_eq!(value("weir_load_responses", &["200"]), 30.0);
        assert_eq!(value("weir_load_failures", &["timeout"]), 6.0);
        assert_eq!(value("weir_load_response_seconds", &["ok"]), 30.0);
        assert_eq!(value("weir_load_step_requests", &["shop", "log \"in\"", "ok"]), 15.0);
        assert_eq!(value("weir_load_step_requests", &["", "step 2", "failed"]), 3.0);
        assert_eq!(value("weir_load_elapsed_seconds", &[]), 3.0);
        assert_eq!(value("weir_load_target_rate", &[]), 12.0);
        assert_eq!(value("weir_load_script", &["pay{step:a b}", "p(95)"]), 12.5);
    }
}
