//! What is the same for many calls.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderName;

use super::counts::CallCounts;
use super::places::Places;
use super::success::Success;
use super::upstream::Upstream;
use crate::decide::Nanos;
use crate::decide::budget::Ledger;
use crate::decide::deadline::Form;
use crate::decide::policy::{After, Policy};

/// What is the same for many calls. All event loops share it.
#[derive(Debug)]
pub struct Plan {
    /// What a call may do.
    pub policy: Policy,
    /// When an attempt has succeeded.
    pub success: Success,
    /// Where attempts go.
    pub upstream: Arc<Upstream>,
    /// The headers that tell the upstream how much time is left.
    pub deadline_headers: Vec<(HeaderName, Form)>,
    /// What extra attempts may cost; the calls of several plans may share one.
    pub ledger: Option<Arc<Mutex<Ledger>>>,
    /// How many of its calls there may be at once, if that is limited.
    pub places: Option<Arc<Places>>,
    /// What is counted.
    pub counts: Arc<CallCounts>,
}

impl Plan {
    /// A plan with a budget and counts of its own, that tells the upstream nothing.
    pub fn new(policy: Policy, success: Success, upstream: Arc<Upstream>) -> Self {
        if policy.stages.iter().any(|stage| matches!(stage.after, After::Quantile(_))) {
            upstream.watch();
        }
        let ledger = policy.budget.filter(|_| policy.repeats()).map(|terms| Arc::new(Mutex::new(Ledger::new(terms))));
        Self { policy, success, upstream, deadline_headers: Vec::new(), ledger, places: None, counts: Arc::default() }
    }

    /// A call begins.
    pub(super) fn began(&self, now: Nanos) {
        if let Some(ledger) = &self.ledger {
            ledger.lock().unwrap_or_else(PoisonError::into_inner).call(now);
        }
    }
}
