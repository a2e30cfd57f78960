//! Claim in progress: from the request until its last job is added. And whether another one is due.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ready_jobs::HostLaneClaim;
use crate::job::JobEntry;
use crate::state::State;
use crate::store::JobLease;
use weir_delivery::dispatch::JobId;

/// Claim in progress, and whether another one is due.
#[derive(Debug)]
pub(super) struct PendingClaim {
    /// Requested claims, by host and lane; `None` while no claim is in progress.
    requested: Option<Vec<HostLaneClaim>>,
    /// Claimed jobs that are not added yet.
    jobs: VecDeque<(JobLease, JobEntry)>,
    /// Final states of claimed jobs that were reported before a crash.
    reported: FxHashMap<JobId, State>,
    /// Whether there may be room for more jobs.
    is_wanted: bool,
    /// Whether the store may have jobs that are due or new.
    are_jobs_due: bool,
    /// Whether the store cannot claim for the moment.
    is_store_paused: bool,
}

impl PendingClaim {
    /// No claim yet, but one is due.
    pub(super) fn new() -> Self {
        Self {
            requested: None,
            jobs: VecDeque::new(),
            reported: FxHashMap::default(),
            is_wanted: true,
            are_jobs_due: true,
            is_store_paused: false,
        }
    }

    /// Whether a claim is in progress.
    pub(super) fn is_in_progress(&self) -> bool {
        self.requested.is_some()
    }

    /// Whether a claim is due, and none is in progress.
    pub(super) fn is_due(&self) -> bool {
        (self.is_wanted || self.are_jobs_due) && self.requested.is_none() && !self.is_store_paused
    }

    /// Makes a claim due: there may be room for more jobs.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Makes a claim due: the store may have jobs that are due or new.
    pub(super) fn jobs_due(&mut self) {
        (self.are_jobs_due, self.is_store_paused) = (true, false);
    }

    /// Resets what makes a claim due. Returns whether the store may have jobs that are due or new.
    pub(super) fn take_due(&mut self) -> bool {
        self.is_wanted = false;
        std::mem::take(&mut self.are_jobs_due)
    }

    pub(super) fn begin(&mut self, requested: Vec<HostLaneClaim>) {
        self.requested = Some(requested);
    }

    /// Requested claims, by host and lane; empty while no claim is in progress.
    pub(super) fn requested(&self) -> &[HostLaneClaim] {
        self.requested.as_deref().unwrap_or_default()
    }

    /// Ends a claim that failed; the next one follows [`Self::jobs_due`].
    pub(super) fn fail(&mut self) {
        (self.requested, self.is_store_paused) = (None, true);
    }

    /// Claimed jobs that are to be added, and the final states of those that were reported before a crash.
    pub(super) fn set_jobs(&mut self, jobs: Vec<(JobLease, JobEntry)>, reported: FxHashMap<JobId, State>) {
        (self.jobs, self.reported) = (jobs.into(), reported);
    }

    /// Whether claimed jobs are to be added.
    pub(super) fn has_jobs(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Next claimed job, and its final state if that was reported before a crash.
    pub(super) fn next_job(&mut self) -> Option<(JobLease, JobEntry, Option<State>)> {
        let (lease, entry) = self.jobs.pop_front()?;
        let reported = self.reported.remove(&entry.number);
        Some((lease, entry, reported))
    }

    /// Ends a claim whose jobs are added.
    pub(super) fn finish(&mut self) {
        self.requested = None;
    }
}
