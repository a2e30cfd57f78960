//! What is the same for many calls.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderName;

use super::counts::CallCounts;
use super::places::PermitPool;
use super::success::Success;
use super::upstream::Upstream;
use crate::decide::Nanos;
use crate::decide::budget::RetryBudget;
use crate::decide::deadline::DeadlineFormat;
use crate::decide::policy::{Policy, StageTrigger};

/// What is the same for many calls. All event loops share it.
#[derive(Debug)]
pub struct CallPlan {
    /// What a call may do.
    pub policy: Policy,
    /// When an attempt has succeeded.
    pub success: Success,
    /// Where attempts go.
    pub upstream: Arc<Upstream>,
    /// The headers that tell the upstream how much time is left.
    pub deadline_headers: Vec<(HeaderName, DeadlineFormat)>,
    /// What extra attempts may cost; the calls of several plans may share one.
    pub budget: Option<Arc<Mutex<RetryBudget>>>,
    /// How many of its calls there may be at once, if that is limited.
    pub permits: Option<Arc<PermitPool>>,
    /// What is counted.
    pub counts: Arc<CallCounts>,
}

impl CallPlan {
    /// A plan with a budget and counts of its own, that tells the upstream nothing.
    pub fn new(policy: Policy, success: Success, upstream: Arc<Upstream>) -> Self {
        if policy.stages.iter().any(|stage| matches!(stage.after, StageTrigger::Quantile(_))) {
            upstream.record_latencies();
        }
        let budget = policy
            .budget
            .filter(|_| policy.allows_extra_attempts())
            .map(|terms| Arc::new(Mutex::new(RetryBudget::new(terms))));
        Self { policy, success, upstream, deadline_headers: Vec::new(), budget, permits: None, counts: Arc::default() }
    }

    /// A call begins.
    pub(super) fn count_call(&self, now: Nanos) {
        if let Some(ledger) = &self.budget {
            ledger.lock().unwrap_or_else(PoisonError::into_inner).deposit(now);
        }
    }
}
