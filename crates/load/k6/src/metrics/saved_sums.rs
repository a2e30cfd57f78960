//! Values of metrics on their way from one process to another.

use serde::{Deserialize, Serialize};

use super::checks::CheckOutcomes;
use super::sink::{GaugeValues, Sink, TrendValues};
use super::thread_metrics::{MetricPlan, MetricSums};

/// Values of metrics, as text.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedSums {
    sinks: Vec<Vec<SavedSink>>,
    /// Group, name, and numbers of results that are true and false.
    checks: Vec<(String, String, u64, u64)>,
}

/// Values of one metric.
#[derive(Debug, Serialize, Deserialize)]
enum SavedSink {
    Counter(f64),
    Gauge(Option<[f64; 3]>),
    Rate(u64, u64),
    Trend(Box<TrendValues>),
}

impl SavedSums {
    /// Copy of these values.
    pub(crate) fn of(sums: &MetricSums) -> Self {
        let sink = |sink: &Sink| match sink {
            Sink::Counter(sum) => SavedSink::Counter(*sum),
            Sink::Gauge(values) => SavedSink::Gauge(values.map(|values| [values.last, values.min, values.max])),
            Sink::Rate { passed, all } => SavedSink::Rate(*passed, *all),
            Sink::Trend(values) => SavedSink::Trend(values.clone()),
        };
        let checks = sums.checks.results().iter();
        Self {
            sinks: sums.sinks.iter().map(|sinks| sinks.iter().map(sink).collect()).collect(),
            checks: checks
                .map(|check| (check.group.clone(), check.name.clone(), check.counts.passed, check.counts.failed))
                .collect(),
        }
    }

    /// The values; `None` if they are those of other metrics than `plan`'s.
    pub(crate) fn restored(self, plan: &MetricPlan) -> Option<MetricSums> {
        let mut sums = MetricSums::new(plan);
        if self.sinks.len() != sums.sinks.len() {
            return None;
        }
        for (own, saved) in sums.sinks.iter_mut().zip(self.sinks) {
            if own.len() != saved.len() {
                return None;
            }
            *own = saved.into_iter().map(SavedSink::restored).collect();
        }
        for (group, name, passed, failed) in self.checks {
            sums.checks.add(&group, &name, CheckOutcomes { passed, failed });
        }
        Some(sums)
    }
}

impl SavedSink {
    fn restored(self) -> Sink {
        match self {
            Self::Counter(sum) => Sink::Counter(sum),
            Self::Gauge(values) => Sink::Gauge(values.map(|[last, min, max]| GaugeValues { last, min, max })),
            Self::Rate(passed, all) => Sink::Rate { passed, all },
            Self::Trend(values) => Sink::Trend(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::registry::{BuiltIn, MetricRegistry};
    use crate::metrics::selector::TagSelector;

    #[test]
    fn values_survive_their_way() {
        let selector = TagSelector::parse("http_reqs{a:b}").expect("valid");
        let plan = MetricPlan::new(MetricRegistry::default().all(), vec![selector]).expect("known");
        let mut sums = MetricSums::new(&plan);
        for value in [1.0, 250.5, -3.0] {
            sums.sinks[BuiltIn::HttpReqDuration as usize][0].add(value);
            sums.sinks[BuiltIn::HttpReqs as usize][1].add(value);
        }
        sums.checks.add("::g", "ok", CheckOutcomes { passed: 1, failed: 2 });
        let text = serde_json::to_string(&SavedSums::of(&sums)).expect("it serialises");
        let saved: SavedSums = serde_json::from_str(&text).expect("own text");
        let back = saved.restored(&plan).expect("the same metrics");
        let Sink::Trend(values) = &back.sinks[BuiltIn::HttpReqDuration as usize][0] else { unreachable!() };
        assert_eq!((values.count, values.min, values.max, values.sum), (3, -3.0, 250.5, 248.5));
        assert!((values.quantile(1.0) - 250.5).abs() < 1e-9 && (values.quantile(0.1) + 3.0).abs() < 1e-9);
        assert!(matches!(back.sinks[BuiltIn::HttpReqs as usize][1], Sink::Counter(sum) if sum == 248.5));
        assert_eq!(back.checks.results(), sums.checks.results());
        let other = MetricPlan::new(Vec::new(), Vec::new()).expect("none");
        assert!(SavedSums::of(&sums).restored(&other).is_none());
    }
}
