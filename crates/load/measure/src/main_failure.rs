//! The failure that a line about a run or a step names: the most frequent one.

use std::collections::BTreeMap;

use super::failure_sample::FailureSample;
use super::failure_text::failure_name;
use super::run::Run;
use super::run_steps::RunStep;

/// Most frequent kind of failures; the first by name of several.
fn most_frequent(failures: &BTreeMap<String, u64>) -> Option<&str> {
    failures.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0))).map(|(kind, _)| kind.as_str())
}

impl Run {
    /// Most frequent kind of failures, and its first message; `None` if it has none. A run without failures may have a
    /// message as well.
    pub fn main_failure(&self) -> Option<(&str, &str)> {
        let details = &self.target.failure_details;
        match most_frequent(&self.failures) {
            Some(kind) => {
                let name = failure_name(kind, self.failed_statuses());
                details.get(name).filter(|words| !words.is_empty()).map(|words| (name, words.as_str()))
            }
            None => details.iter().next().map(|(kind, words)| (kind.as_str(), words.as_str())),
        }
    }
}

impl RunStep {
    /// Sample of the most frequent kind of failures: a failure without a check has the name of its kind. Without one of
    /// that kind it is the first, unless a message of the kind is to be shown in its place.
    pub fn main_sample(&self, has_message: impl Fn(&str) -> bool) -> Option<FailureSample> {
        let first = self.samples.first();
        let Some(kind) = most_frequent(&self.failures) else { return first.cloned() };
        if kind == CHECK {
            let of_check = self.samples.iter().find(|sample| !self.failures.contains_key(&sample.reason));
            return of_check.or(first).cloned();
        }
        if let Some(sample) = self.samples.iter().find(|sample| sample.reason == kind) {
            return Some(sample.clone());
        }
        let of_kind = has_message(kind).then(|| FailureSample { reason: kind.to_owned(), response: String::new() });
        of_kind.or_else(|| first.cloned())
    }
}

/// Kind of failures that a check has found.
const CHECK: &str = "check";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::run::Manifest;
    use crate::run_facts::RunFacts;
    use crate::series::RunSeries;

    fn sample(reason: &str) -> FailureSample {
        FailureSample { reason: reason.to_owned(), response: String::new() }
    }

    #[test]
    fn the_most_frequent_failure_is_named_and_not_the_first() {
        let (counts, series) = (Counts::default(), RunSeries::default());
        let mut run = Run::of(RunFacts::default(), &counts, &[], &series, Manifest::default());
        let details = [("timeout", "late"), ("UNAVAILABLE", "gone")];
        run.target.failure_details = details.map(|(kind, words)| (kind.to_owned(), words.to_owned())).into();
        assert_eq!(run.main_failure(), Some(("UNAVAILABLE", "gone")));
        run.failures = [("UNAVAILABLE", 2), ("timeout", 7)].map(|(kind, n)| (kind.to_owned(), n)).into();
        assert_eq!(run.main_failure(), Some(("timeout", "late")));
        run.failures.insert("5xx".to_owned(), 9);
        assert_eq!(run.main_failure(), None);
    }

    #[test]
    fn the_sample_of_a_step_is_of_its_most_frequent_failure() {
        let failures = [("UNAVAILABLE", 2), ("timeout", 7)].map(|(kind, n)| (kind.to_owned(), n)).into();
        let mut step = RunStep { failures, samples: vec![sample("reset"), sample("timeout")], ..RunStep::default() };
        assert_eq!(step.main_sample(|_| false), Some(sample("timeout")));
        step.failures.insert("UNAVAILABLE".to_owned(), 9);
        assert_eq!(step.main_sample(|_| false), Some(sample("reset")));
        assert_eq!(step.main_sample(|_| true), Some(sample("UNAVAILABLE")));
        step.failures.extend([("check".to_owned(), 10), ("reset".to_owned(), 1)]);
        step.samples.push(sample("status == 0: expected == 0, found 14"));
        assert_eq!(step.main_sample(|_| true), Some(sample("status == 0: expected == 0, found 14")));
    }
}
