//! Grants of retries: which failed attempt of a call is followed by another one, and when.
//!
//! One rule for calls with hedges and for plain loops around a function: a retry needs a failure that is retried, a
//! number that is not used up, time before the deadline, and budget.

use weir_base::Nanos;
use weir_base::rng::SeededRng;

use crate::backoff::BackoffDelays;
use crate::policy::{AttemptFailure, RetryPolicy};
use crate::retry_budget::Budget;

/// Retries of one call that were granted, and the delays before them.
#[derive(Clone, Copy, Debug)]
pub struct RetryGrants {
    granted: u32,
    delays: BackoffDelays,
}

/// Reason of a failed attempt without a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDenial {
    /// Failures of this kind are not retried.
    NotRetryable,
    /// All retries of the call are used up.
    NoneLeft,
    /// The delay, or Retry-After, ends after the deadline.
    Deadline,
    /// The budget is empty. The retry counts as one of the call's.
    Budget,
}

impl RetryGrants {
    /// The state before the first failure; `rng` is a stream of this call alone.
    pub fn new(policy: &RetryPolicy, rng: SeededRng) -> Self {
        Self { granted: 0, delays: BackoffDelays::new(policy.backoff, rng) }
    }

    /// Time of the retry of an attempt that failed now, or the reason for none.
    ///
    /// `min_delay` is the response's Retry-After. Nothing is withdrawn from the budget before the retry is launched; if
    /// it is empty now the retry is denied at once, since after the delay the same failure would only be later.
    ///
    /// # Errors
    /// There is no retry.
    pub fn grant(
        &mut self,
        policy: &RetryPolicy,
        now: Nanos,
        deadline: Nanos,
        failure: AttemptFailure,
        min_delay: Option<Nanos>,
        budget: &mut impl Budget,
    ) -> Result<Nanos, RetryDenial> {
        if !policy.on.covers(failure) {
            return Err(RetryDenial::NotRetryable);
        }
        if self.granted == policy.max_retries {
            return Err(RetryDenial::NoneLeft);
        }
        let min_delay = min_delay.filter(|_| policy.honor_retry_after).unwrap_or_default();
        let at = now + self.delays.next_delay(policy.backoff).max(min_delay);
        if at >= deadline {
            return Err(RetryDenial::Deadline);
        }
        self.granted = self.granted.saturating_add(1);
        if budget.can_withdraw(now) { Ok(at) } else { Err(RetryDenial::Budget) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_base::failure::FailureKind;

    use super::*;
    use crate::backoff::Backoff;
    use crate::policy::BudgetRule;
    use crate::retry_budget::{RetryBudget, Unlimited};

    const CLOSED: AttemptFailure = AttemptFailure::Kind(FailureKind::Closed);

    fn policy(max_retries: u32, min_ms: u64, max_ms: u64) -> RetryPolicy {
        let backoff = Backoff { min: Nanos::from_millis(min_ms), max: Nanos::from_millis(max_ms) };
        RetryPolicy { max_retries, backoff, ..RetryPolicy::default() }
    }

    #[test]
    fn a_denial_has_its_reason() {
        let policy = policy(1, 10, 10);
        let deadline = Nanos::from_millis(100);
        let grant = |grants: &mut RetryGrants, failure, min_delay| {
            grants.grant(&policy, Nanos::ZERO, deadline, failure, min_delay, &mut Unlimited)
        };
        let mut grants = RetryGrants::new(&policy, SeededRng::new(1, 1));
        let invalid = AttemptFailure::Kind(FailureKind::Request);
        assert_eq!(grant(&mut grants, invalid, None), Err(RetryDenial::NotRetryable));
        assert_eq!(grant(&mut grants, CLOSED, Some(deadline)), Err(RetryDenial::Deadline));
        assert_eq!(grant(&mut grants, CLOSED, None), Ok(Nanos::from_millis(10)));
        assert_eq!(grant(&mut grants, CLOSED, None), Err(RetryDenial::NoneLeft));
        let empty = BudgetRule { fraction: 0.0, min_per_window: 0, window: Nanos::from_secs(1) };
        let mut grants = RetryGrants::new(&policy, SeededRng::new(1, 1));
        let denied = grants.grant(&policy, Nanos::ZERO, deadline, CLOSED, None, &mut RetryBudget::new(empty));
        assert_eq!(denied, Err(RetryDenial::Budget));
    }

    proptest! {
        #[test]
        fn a_retry_is_within_its_bounds(
            max_retries in 0_u32..200, min_ms in 0_u64..50, more_ms in 0_u64..500, deadline_ms in 0_u64..5000,
            retry_after in proptest::option::of(0_u64..400), seed: u64
        ) {
            let policy = policy(max_retries, min_ms, min_ms + more_ms);
            let deadline = Nanos::from_millis(deadline_ms);
            let mut grants = RetryGrants::new(&policy, SeededRng::new(seed, 1));
            let mut now = Nanos::ZERO;
            let mut granted = 0;
            let min_delay = retry_after.map(Nanos::from_millis);
            while let Ok(at) = grants.grant(&policy, now, deadline, CLOSED, min_delay, &mut Unlimited) {
                granted += 1;
                let most = Nanos::from_millis(min_ms + more_ms).max(min_delay.unwrap_or_default());
                prop_assert!(at < deadline && at - now <= most);
                prop_assert!(at - now >= Nanos::from_millis(min_ms).max(min_delay.unwrap_or_default()));
                now = at;
                if granted > max_retries {
                    break;
                }
            }
            prop_assert!(granted <= max_retries);
        }
    }
}
