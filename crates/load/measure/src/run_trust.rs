//! Trust in single figures of a run.

use super::run::Run;
use super::trust::{MIN_DURATION_S, few_successes, too_short};

impl Run {
    /// Number of successes, if the only reason not to trust the run is that they are few for its high percentiles.
    pub fn only_few_successes(&self) -> Option<u64> {
        let few = few_successes(self.requests.ok).filter(|_| self.requests.ok > 0 && self.duration_s >= MIN_DURATION_S);
        (self.trust.reasons.first() == few.as_ref() && self.trust.reasons.len() == 1).then_some(self.requests.ok)
    }

    /// Whether the reasons not to trust the run doubt the digits of its figures, and none says that they are wrong: the run
    /// was short, or has few successes for its high percentiles.
    pub fn only_digits_in_doubt(&self) -> bool {
        let (few, short) = (few_successes(self.requests.ok), too_short(self.duration_s));
        let is_about_digits = |reason: &String| few.as_ref() == Some(reason) || short.as_ref() == Some(reason);
        self.requests.ok > 0 && !self.trust.reasons.is_empty() && self.trust.reasons.iter().all(is_about_digits)
    }

    /// Whether a figure over `count` of its times is trusted: a quantile, or another one. That successes are few is a
    /// reason against the quantiles alone beyond which there is not one time.
    pub fn is_trusted_at(&self, quantile: Option<f64>, count: u64) -> bool {
        // Of 10 times, 1 is beyond 0.9, and 0.9999999999999998 in floating point.
        let has_tail = |q: f64| count as f64 * (1.0 - q) > 1.0 - 1e-6;
        self.trust.reasons.is_empty() || self.only_few_successes().is_some() && quantile.is_none_or(has_tail)
    }
}

#[cfg(test)]
mod tests {
    use crate::run::{Manifest, Run};
    use crate::run_facts::RunFacts;
    use crate::series::RunSeries;
    use crate::trust::{few_successes, too_short};
    use weir_base::Nanos;

    fn run(ok: u64, seconds: u64, more: &[&str]) -> Run {
        let facts = RunFacts { end: Nanos::from_secs(seconds), ..RunFacts::default() };
        let mut run = Run::of(facts, &Default::default(), &[], &RunSeries::default(), Manifest::default());
        run.requests.ok = ok;
        run.trust.reasons = few_successes(ok).into_iter().chain(more.iter().map(|why| (*why).to_owned())).collect();
        run
    }

    #[test]
    fn few_successes_are_a_reason_against_the_percentiles_that_are_single_requests() {
        let trusted = |run: &Run| {
            [None, Some(0.5), Some(0.9), Some(0.99), Some(1.0)].map(|q| run.is_trusted_at(q, run.requests.ok))
        };
        assert_eq!(trusted(&run(100, 10, &[])), [true; 5]);
        assert_eq!(trusted(&run(60, 10, &[])), [true, true, true, false, false]);
        assert_eq!(trusted(&run(9, 10, &[])), [true, true, false, false, false]);
        assert_eq!(trusted(&run(60, 0, &[])), [false; 5], "it was too short as well");
        assert_eq!(trusted(&run(60, 10, &["weir itself sent late."])), [false; 5]);
        assert_eq!(trusted(&run(0, 10, &[])), [false; 5], "nothing was measured");
    }

    #[test]
    fn a_short_run_and_one_of_few_successes_doubt_digits_alone() {
        let doubts = |run: &Run| run.only_digits_in_doubt();
        assert!(doubts(&run(60, 10, &[])) && doubts(&run(60, 0, &[])));
        let mut short = run(5000, 0, &[]);
        short.duration_s = 0.4;
        short.trust.reasons = too_short(0.4).into_iter().collect();
        assert!(doubts(&short));
        assert!(
            !doubts(&run(60, 10, &["weir itself sent late."]))
                && !doubts(&run(0, 10, &[]))
                && !doubts(&run(500, 10, &[]))
        );
    }
}
