//! Settings and state that many calls share.

use std::sync::{Arc, Mutex};

use http::HeaderName;

use super::counts::CallCounts;
use super::permits::PermitPool;
use super::success::Success;
use super::upstream::Upstream;
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_resilience::policy::{Policy, StageTrigger};
use weir_retry::deadline::DeadlineFormat;
use weir_retry::retry_budget::RetryBudget;

/// Policy, upstream, budget and counters of many calls, shared by all event loops.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// Deadlines, hedge stages and retries.
    pub policy: Arc<Policy>,
    /// Conditions of a successful response.
    pub success: Success,
    /// Hosts of the attempts.
    pub upstream: Arc<Upstream>,
    /// Headers that give the upstream the remaining time.
    pub deadline_headers: Vec<(HeaderName, DeadlineFormat)>,
    /// Budget of extra attempts; several plans may share one.
    pub budget: Option<Arc<Mutex<RetryBudget>>>,
    /// Concurrency limit of the plan's calls, if there is one.
    pub permits: Option<Arc<PermitPool>>,
    /// Counters of the plan's calls.
    pub counts: Arc<CallCounts>,
}

impl CallPlan {
    /// A plan with its own budget and counters, and without deadline headers.
    pub fn new(policy: Policy, success: Success, upstream: Arc<Upstream>) -> Self {
        if policy.stages.iter().any(|stage| matches!(stage.after, StageTrigger::Quantile(_))) {
            upstream.record_latencies();
        }
        let budget = policy
            .budget
            .filter(|_| policy.allows_extra_attempts())
            .map(|rule| Arc::new(Mutex::new(RetryBudget::new(rule))));
        Self {
            policy: Arc::new(policy),
            success,
            upstream,
            deadline_headers: Vec::new(),
            budget,
            permits: None,
            counts: Arc::default(),
        }
    }

    /// Counts the begin of a call in the budget.
    pub(super) fn count_call(&self, now: Nanos) {
        if let Some(budget) = &self.budget {
            lock(budget).deposit(now);
        }
    }
}
