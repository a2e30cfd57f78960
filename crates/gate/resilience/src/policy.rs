//! The policy of a call as data: deadline, attempts, hedge stages, retries, budget.

use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_retry::policy::{BudgetRule, RetryPolicy, RetryableMethodClass};

/// Policy of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Time from the call's start to its response at the latest; [`Nanos::NEVER`] for no limit.
    pub deadline: Nanos,
    /// Timeout of each attempt ([`FailureKind::Timeout`](weir_base::failure::FailureKind::Timeout)); [`Nanos::NEVER`] for none.
    pub attempt_timeout: Nanos,
    /// Hedge stages: further attempts beside the first one; each stage waits for the one before.
    pub stages: Vec<HedgeStage>,
    /// Retries: new attempts in place of failed ones, once no stage is left for that.
    pub retry: RetryPolicy,
    /// Methods of requests that may be sent more than once.
    pub retryable_methods: RetryableMethodClass,
    /// Bound on the extra attempts (hedges and retries) of all calls together; `None` for no limit.
    pub budget: Option<BudgetRule>,
}

impl Default for Policy {
    /// One attempt, without a deadline.
    fn default() -> Self {
        Self {
            deadline: Nanos::NEVER,
            attempt_timeout: Nanos::NEVER,
            stages: Vec::new(),
            retry: RetryPolicy::default(),
            retryable_methods: RetryableMethodClass::default(),
            budget: Some(BudgetRule::default()),
        }
    }
}

impl Policy {
    /// Maximum hedge stages per call; further ones are never launched.
    pub const MAX_STAGES: usize = 8;
    /// Maximum attempts per call: the attempts in flight are a bit set.
    pub const MAX_ATTEMPTS: u32 = u64::BITS;

    /// Whether a call can have a second attempt.
    pub fn allows_extra_attempts(&self) -> bool {
        !self.stages.is_empty() || self.retry.max_retries > 0
    }

    /// Fault of a policy with too many attempts.
    pub fn validation_error(&self) -> Option<Fault> {
        let attempts =
            self.stages.iter().fold(1 + u64::from(self.retry.max_retries), |sum, one| sum + u64::from(one.attempts));
        if self.stages.len() > Self::MAX_STAGES {
            let what = format!("{} stages are too many", self.stages.len());
            Some(Fault::new(what, format!("make it {} at most", Self::MAX_STAGES)))
        } else if attempts > u64::from(Self::MAX_ATTEMPTS) {
            let what = format!("{attempts} attempts per call (one, all copies, all retries) are too many");
            Some(Fault::new(what, format!("make it {} at most", Self::MAX_ATTEMPTS)))
        } else {
            None
        }
    }
}

/// Hedge stage: attempts that are launched together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeStage {
    /// Trigger, counted from the stage before (the first: from the call's start).
    pub after: StageTrigger,
    /// Whether the failure of an attempt launches the stage at once.
    pub on_failure: bool,
    /// Number of attempts; at least 1.
    pub attempts: u32,
}

/// Trigger of a hedge stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StageTrigger {
    /// A constant delay.
    Time(Nanos),
    /// A quantile of the response times of recent first attempts, in (0, 1); never with too few samples.
    Quantile(f64),
    /// The failure of an attempt.
    Failure,
}
