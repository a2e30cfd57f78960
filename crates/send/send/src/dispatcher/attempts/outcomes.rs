//! Outcomes of jobs and attempts, sent to the owner of reports, and through it to the store.

use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::super::channels::{RecordEvent, ReportEvent, post};
use super::super::context::SenderContext;
use super::leased_job::{LeasedJob, SentMark};
use crate::events::FinishedJob;
use crate::job::{JobEntry, StoredAttempt, StoredResponse};
use crate::state::State;
use crate::store::{JobChange, JobLease, JobStep};
use crate::wall_clock::wall_ms;
use weir_delivery::dispatch::{DispatchFailure, JobId};

/// Sender of outcomes.
#[derive(Debug)]
pub(super) struct Outcomes {
    context: Rc<SenderContext>,
    /// Changes and extensions that are not recorded yet.
    unrecorded: usize,
    /// Number of TTL extensions by job.
    extension_counts: FxHashMap<JobId, u32>,
}

impl Outcomes {
    pub(super) fn new(context: Rc<SenderContext>) -> Self {
        Self { context, unrecorded: 0, extension_counts: FxHashMap::default() }
    }

    /// Number of changes and extensions that are not recorded yet.
    pub(super) fn unrecorded(&self) -> usize {
        self.unrecorded
    }

    /// Counts recorded changes and extensions.
    pub(super) fn recorded(&mut self, count: usize) {
        self.unrecorded -= count;
    }

    pub(super) fn report(&self, event: ReportEvent) {
        post(&self.context.channels.reports, event);
    }

    /// Sends an event to the owner of records, after all reports before it.
    pub(super) fn record(&self, event: RecordEvent) {
        self.report(ReportEvent::Record(event));
    }

    /// Records a step of a leased job without an attempt.
    pub(super) fn change(&mut self, lease: JobLease, step: JobStep, reason: String) {
        self.record_change(JobChange { lease, at: wall_ms(), reason, step, attempt: None, response: None });
    }

    fn record_change(&mut self, change: JobChange) {
        self.unrecorded += 1;
        self.record(RecordEvent::Changed(change));
    }

    /// Records the mark of a job.
    pub(super) fn mark_sent(&mut self, leased: &mut LeasedJob) {
        leased.mark = SentMark::Pending;
        self.change(leased.lease, JobStep::Sent, "being sent".into());
    }

    /// Ends the lease of a job.
    pub(super) fn end_job(
        &mut self,
        mut leased: Box<LeasedJob>,
        step: JobStep,
        (reason, cause): (String, Option<DispatchFailure>),
    ) {
        let at = wall_ms();
        let state = match step {
            JobStep::Done => State::Done,
            JobStep::DeadLettered => State::DeadLettered,
            JobStep::Expired => State::Expired,
            JobStep::Sent | JobStep::Retrying { .. } | JobStep::Released => State::Retrying,
        };
        let options = &self.context.options;
        let last = leased.last_attempt.take();
        let attempt = last.as_ref().map(|last| StoredAttempt {
            key: options.keys.get(last.record.key).map(|key| key.name().to_owned()),
            sent_at: last.record.sent_at,
            status: last.record.outcome.as_ref().ok().copied(),
        });
        let response = last
            .as_ref()
            .filter(|_| options.keep_responses)
            .map(|last| StoredResponse { headers: last.headers.clone(), body: last.body.to_vec() });
        let (job, change) = (
            leased.entry.number,
            JobChange { lease: leased.lease, at, reason: reason.clone(), step, attempt, response },
        );
        let extended = (state == State::Expired).then(|| self.extension_ms(job)).flatten();
        if state != State::Retrying && extended.is_none() {
            let (last_attempt, body) = last.map_or((None, Bytes::new()), |last| (Some(last.record), last.body));
            let (entry, attempts) = (leased.entry, leased.attempts);
            self.finish_job(Box::new(FinishedJob {
                entry,
                state,
                reason,
                cause,
                ended_at: at,
                last_attempt,
                body,
                attempts,
            }));
        }
        self.record_change(change);
        extended.into_iter().for_each(|ttl_ms| self.extend(job, ttl_ms));
    }

    /// Ends a job that the store has expired.
    pub(super) fn expire(&mut self, entry: JobEntry) {
        if let Some(ttl_ms) = self.extension_ms(entry.number) {
            return self.extend(entry.number, ttl_ms);
        }
        let at = wall_ms();
        let (state, reason) = (State::Expired, "expired before it could be sent".to_owned());
        self.finish_job(Box::new(FinishedJob {
            attempts: entry.status.attempts,
            entry,
            state,
            reason,
            cause: None,
            ended_at: at,
            last_attempt: None,
            body: Bytes::new(),
        }));
    }

    fn finish_job(&mut self, job: Box<FinishedJob>) {
        self.extension_counts.remove(&job.entry.number);
        self.report(ReportEvent::JobEnded(job));
    }

    /// New TTL of an expired job that continues, in milliseconds; None if it does not.
    fn extension_ms(&mut self, job: JobId) -> Option<u64> {
        let extension = self.context.options.ttl_extension?;
        let used = self.extension_counts.entry(job).or_default();
        (*used < extension.max_times).then(|| {
            *used += 1;
            extension.ttl_ms
        })
    }

    pub(super) fn extend(&mut self, job: JobId, ttl_ms: u64) {
        self.unrecorded += 1;
        self.record(RecordEvent::Extended(job, ttl_ms));
    }
}
