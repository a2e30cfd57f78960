//! Job of a store in memory.

use crate::job::{JobEntry, JobEvent, MAX_JOB_EVENTS, StoredAttempt, StoredResponse, UnixMs};
use crate::state::State;
use crate::store::{JobChange, JobStep};

/// Job with its response and history.
#[derive(Debug)]
pub(super) struct MemoryJob {
    pub(super) entry: JobEntry,
    pub(super) response: Option<StoredResponse>,
    pub(super) history: Vec<JobEvent>,
    pub(super) bytes: u64,
}

impl MemoryJob {
    pub(super) fn set_state(&mut self, state: State, at: UnixMs, reason: &str, note: bool) {
        let status = &mut self.entry.status;
        (status.state, status.changed_at, status.retry_at) = (state, at, None);
        reason.clone_into(&mut status.reason);
        if note {
            self.add_event(None);
        }
    }

    /// Appends the current state to the history.
    fn add_event(&mut self, attempt: Option<StoredAttempt>) {
        let status = &self.entry.status;
        let event = JobEvent { at: status.changed_at, state: status.state, reason: status.reason.clone(), attempt };
        if self.history.len() == MAX_JOB_EVENTS {
            self.history.remove(0);
        }
        self.history.push(event);
    }

    /// Requeues a job whose outcome is unknown.
    pub(super) fn requeue(&mut self, at: UnixMs, unsent: &str, sent: &str) {
        let was_sent = self.entry.status.last_attempt.is_some();
        self.entry.status.maybe_sent |= was_sent;
        self.entry.status.attempts += u32::from(was_sent);
        self.set_state(State::Queued, at, if was_sent { sent } else { unsent }, true);
    }

    pub(super) fn apply_change(&mut self, change: JobChange) {
        let status = &mut self.entry.status;
        if change.step == JobStep::Sent {
            status.last_attempt = Some(change.attempt.unwrap_or_else(|| StoredAttempt::at(change.at)));
            return;
        }
        status.attempts += u32::from(change.attempt.is_some());
        match &change.attempt {
            Some(attempt) => status.last_attempt = Some(attempt.clone()),
            None if change.step == JobStep::Released => status.last_attempt = None,
            None => {}
        }
        self.response = change.response.or(self.response.take());
        self.set_state(change.step.state(), change.at, &change.reason, false);
        if let JobStep::Retrying { retry_at } = change.step {
            self.entry.status.retry_at = Some(retry_at);
        }
        if change.step != JobStep::Done {
            self.add_event(change.attempt);
        }
    }
}
