//! Sampling budget of expensive values.

use super::super::clock;
use weir_base::Nanos;

/// Minimum pause after a sample, as a multiple of its cost: each kind of sample takes 0.2% of a core at most.
const WAIT_PER_COST: u64 = 500;

/// Budget of a kind of sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SamplingBudget {
    next: Nanos,
}

impl SamplingBudget {
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    pub(super) fn spend(&mut self, now: Nanos, cost: Nanos) {
        self.next = now + Nanos(cost.0.saturating_mul(WAIT_PER_COST));
    }

    /// Takes a sample if one is due.
    pub(super) fn run_if_due<T>(&mut self, now: Nanos, look: impl FnOnce() -> T) -> Option<T> {
        self.is_due(now).then(|| {
            let (seen, cost) = measure_cost(look);
            self.spend(now, cost);
            seen
        })
    }
}

/// Result of a sample, and its CPU time.
pub(super) fn measure_cost<T>(look: impl FnOnce() -> T) -> (T, Nanos) {
    let before = clock::thread_cpu();
    let seen = look();
    (seen, clock::thread_cpu() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_is_looked_at_less_often() {
        let mut ration = SamplingBudget::default();
        assert!(ration.is_due(Nanos::ZERO), "the first look is free");
        ration.spend(Nanos::SECOND, Nanos(200_000));
        assert!(!ration.is_due(Nanos::SECOND + Nanos::from_millis(99)));
        assert!(ration.is_due(Nanos::SECOND + Nanos::from_millis(100)));
        ration.spend(Nanos::SECOND, Nanos::from_millis(10));
        assert!(!ration.is_due(Nanos::from_secs(5)) && ration.is_due(Nanos::from_secs(6)));
    }
}
