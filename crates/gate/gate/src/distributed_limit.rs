//! A cluster-wide limit: a caller rate limit or a retry budget.

use std::sync::Mutex;

use super::caller::CallerPolicy;
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_resilience::ratelimit::split::{AllocationKey, Allocations};
use weir_retry::retry_budget::RetryBudget;

/// A limit, and its ID in the table.
#[derive(Debug)]
pub(super) enum DistributedLimit<'a> {
    /// Rate limit of each caller of a route.
    Rate(u64, &'a CallerPolicy),
    /// Budget of extra attempts.
    Budget(u64, &'a Mutex<RetryBudget>),
}

fn with_budget<T>(budget: &Mutex<RetryBudget>, work: impl FnOnce(&mut RetryBudget) -> T) -> T {
    work(&mut lock(budget))
}

impl DistributedLimit<'_> {
    /// Applies this gateway's allocation from now on.
    pub(super) fn apply_split(&self, now: Nanos, allocations: &Allocations) {
        match self {
            Self::Rate(limit, callers) => {
                callers.apply_split(now, allocations.default_fraction(), allocations.own_of_limit(*limit));
            }
            Self::Budget(limit, budget) => {
                let fraction = allocations.fraction_of(AllocationKey { limit: *limit, key: 0 });
                with_budget(budget, |budget| budget.apply_split(now, fraction));
            }
        }
    }

    /// Demand per allocation since the last call.
    pub(super) fn wanted(&self, now: Nanos) -> Vec<(AllocationKey, u32)> {
        match self {
            Self::Rate(limit, callers) => {
                let demand = callers.wanted(now).into_iter();
                demand.map(|(key, demand)| (AllocationKey { limit: *limit, key }, demand)).collect()
            }
            Self::Budget(limit, budget) => {
                let demand = with_budget(budget, |budget| budget.wanted(now));
                demand.map(|demand| (AllocationKey { limit: *limit, key: 0 }, demand)).into_iter().collect()
            }
        }
    }
}
