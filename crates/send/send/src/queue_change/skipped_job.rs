//! Jobs that were named, and stay as they are.

use serde_json::{Value, json};

use crate::store::JobSelector;

/// Job, or number of jobs, that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedJob {
    /// Job as it was named.
    pub job: String,
    /// Reason, in a few words.
    pub reason: String,
}

/// Jobs that a request has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueChange {
    /// Number of them.
    pub jobs: u64,
    /// Others that were asked for.
    pub skipped: Vec<SkippedJob>,
}

impl SkippedJob {
    pub(super) fn new(which: &JobSelector, reason: impl Into<String>) -> Self {
        Self { job: job_name(which), reason: reason.into() }
    }

    /// The job that a store does not have.
    pub fn missing(which: &JobSelector) -> Self {
        Self::new(which, "no such job")
    }
}

impl QueueChange {
    /// Skipped jobs as JSON.
    pub fn skipped_json(&self) -> Value {
        self.skipped.iter().map(|SkippedJob { job, reason }| json!({ "job": job, "reason": reason })).collect()
    }
}

/// Job as it was named.
pub fn job_name(which: &JobSelector) -> String {
    match which {
        JobSelector::Id(id) => format!("job '{id}'"),
        JobSelector::Number(number) => format!("job number {number}"),
    }
}
