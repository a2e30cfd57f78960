//! Values of metrics on one thread, and the sum of all threads.

use std::sync::{Arc, Mutex};

use weir_machine::lock::lock;

use super::checks::{CheckOutcomes, CheckTable};
use super::registry::{BuiltIn, MetricFacts};
use super::selector::TagSelector;
use super::sink::Sink;

/// Metrics of a load: fixed once the script's file has run.
#[derive(Debug, Default)]
pub(crate) struct MetricPlan {
    pub(crate) facts: Vec<MetricFacts>,
    /// Metrics of some tags, by the numbers of their metrics.
    pub(crate) selectors: Vec<Vec<TagSelector>>,
}

impl MetricPlan {
    /// Metrics with those of some tags.
    ///
    /// # Errors
    /// One line, if a selector names no metric.
    pub(crate) fn new(facts: Vec<MetricFacts>, selectors: Vec<TagSelector>) -> Result<Self, String> {
        let mut by_metric = vec![Vec::new(); facts.len()];
        for selector in selectors {
            let place = facts.iter().position(|facts| facts.name == selector.metric);
            let place = place.ok_or_else(|| format!("no metric '{}', which a threshold names", selector.metric))?;
            if !selector.tags.is_empty() && !by_metric[place].contains(&selector) {
                by_metric[place].push(selector);
            }
        }
        Ok(Self { facts, selectors: by_metric })
    }
}

/// Tags of a value.
pub(crate) trait SampleTags {
    /// Whether a tag of this name has this value.
    fn has(&self, name: &str, value: &str) -> bool;
}

impl<F: Fn(&str, &str) -> bool> SampleTags for F {
    fn has(&self, name: &str, value: &str) -> bool {
        self(name, value)
    }
}

/// Values of all metrics, by the numbers of their metrics: in all, then for each selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricSums {
    pub(crate) sinks: Vec<Vec<Sink>>,
    pub(crate) checks: CheckTable,
}

impl MetricSums {
    /// Sums without a value.
    pub(crate) fn new(plan: &MetricPlan) -> Self {
        let sinks = plan.facts.iter().zip(&plan.selectors);
        let sinks = sinks.map(|(facts, selectors)| vec![Sink::of(facts.kind); selectors.len() + 1]).collect();
        Self { sinks, checks: CheckTable::default() }
    }

    /// Adds the values of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, other) in self.sinks.iter_mut().flatten().zip(other.sinks.iter().flatten()) {
            own.merge(other);
        }
        self.checks.merge(&other.checks);
    }
}

/// Values of metrics on one thread. Others look at them from time to time.
#[derive(Clone, Debug)]
pub(crate) struct ThreadMetrics {
    plan: Arc<MetricPlan>,
    sums: Arc<Mutex<MetricSums>>,
}

impl ThreadMetrics {
    /// Metrics of a thread without a value.
    pub(crate) fn new(plan: Arc<MetricPlan>) -> Self {
        let sums = Arc::new(Mutex::new(MetricSums::new(&plan)));
        Self { plan, sums }
    }

    /// The values, for other threads.
    pub(crate) fn shared(&self) -> Arc<Mutex<MetricSums>> {
        Arc::clone(&self.sums)
    }

    /// Adds values of several metrics that have the same tags.
    pub(crate) fn add_all(&self, values: &[(usize, f64)], tags: &impl SampleTags) {
        let mut sums = lock(&self.sums);
        for (metric, value) in values {
            let Some(sinks) = sums.sinks.get_mut(*metric) else { continue };
            let selectors = self.plan.selectors.get(*metric).map_or(&[][..], Vec::as_slice);
            let mut sinks = sinks.iter_mut();
            if let Some(all) = sinks.next() {
                all.add(*value);
            }
            for (selector, sink) in selectors.iter().zip(sinks) {
                if selector.matches(|name, value| tags.has(name, value)) {
                    sink.add(*value);
                }
            }
        }
    }

    /// Adds the result of a check, which is a value of the metric of checks as well.
    pub(crate) fn add_check(&self, group: &str, name: &str, has_passed: bool, tags: &impl SampleTags) {
        self.add_all(&[(BuiltIn::Checks as usize, f64::from(u8::from(has_passed)))], tags);
        let counts = CheckOutcomes { passed: u64::from(has_passed), failed: u64::from(!has_passed) };
        lock(&self.sums).checks.add(group, name, counts);
    }
}
