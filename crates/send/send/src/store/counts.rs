//! Counts and bounds of jobs.

use crate::state::State;

/// Bounds of the open jobs of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Maximum number of jobs.
    pub jobs: u64,
    /// Maximum total size, in bytes as of [`Job::bytes`](crate::Job::bytes).
    pub bytes: u64,
}

impl Default for QueueBounds {
    fn default() -> Self {
        Self { jobs: u64::MAX, bytes: u64::MAX }
    }
}

/// Number and total size of jobs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub(super) jobs: [u64; State::ALL.len()],
    pub(super) bytes: [u64; State::ALL.len()],
}

impl JobCounts {
    /// Number of jobs in this state.
    pub const fn jobs_in(&self, state: State) -> u64 {
        self.jobs[state.index()]
    }

    /// Total size of jobs in this state, in bytes.
    pub const fn bytes_in(&self, state: State) -> u64 {
        self.bytes[state.index()]
    }

    /// Number of open jobs: queued, leased, retrying.
    pub fn open_jobs(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.is_open()).map(|state| self.jobs_in(state)).sum()
    }

    /// Total size of open jobs, in bytes.
    pub fn open_bytes(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.is_open()).map(|state| self.bytes_in(state)).sum()
    }

    pub(super) fn add(&mut self, state: State, bytes: u64) {
        self.jobs[state.index()] += 1;
        self.bytes[state.index()] += bytes;
    }

    pub(super) fn remove(&mut self, state: State, bytes: u64) {
        // Saturating: the file may have been edited by hand.
        self.jobs[state.index()] = self.jobs[state.index()].saturating_sub(1);
        self.bytes[state.index()] = self.bytes[state.index()].saturating_sub(bytes);
    }

    pub(super) fn shift(&mut self, from: State, to: State, bytes: u64) {
        self.remove(from, bytes);
        self.add(to, bytes);
    }

    pub(super) fn has_room(&self, bounds: QueueBounds, bytes: u64) -> bool {
        self.open_jobs() < bounds.jobs && self.open_bytes().saturating_add(bytes) <= bounds.bytes
    }
}
