//! End of a lease: events and records of a job's outcome.

use bytes::Bytes;

use super::super::job::{StoredAttempt, StoredResponse, UnixMs};
use super::super::sender::wall_ms;
use super::super::state::State;
use super::super::store::{JobChange, JobStep};
use super::{SenderRuntime, SenderState, attempt};
use crate::events::{FinishedJob, SenderEvent};
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::{DispatchAction, DispatchFailure, Event, JobId, ResponseClass};

/// Waits shorter than this are not written to the store.
const MIN_STORED_WAIT: Nanos = Nanos::from_millis(100);

impl SenderRuntime {
    /// Returns a retrying job to the store, with its time and attempts.
    pub(super) fn schedule_retry(
        &self,
        hand: &mut SenderState,
        job: JobId,
        until: Nanos,
        why: DispatchFailure,
        actions: &mut Vec<DispatchAction>,
    ) {
        // So short a wait is not worth a write.
        if until < self.timer.now() + MIN_STORED_WAIT {
            return;
        }
        let wait_ms = (until - self.timer.now()).0.div_ceil(Nanos::MILLI.0);
        let retry_at = wall_ms().plus_ms(wait_ms);
        let is_free = match why {
            DispatchFailure::NoResponse(kind) => kind.is_unsent(),
            DispatchFailure::Response(meaning) => {
                matches!(meaning, ResponseClass::Unauthorized | ResponseClass::Blocked)
            }
            _ => false,
        };
        if let Some(held) = hand.jobs.get_mut(&job).filter(|_| is_free) {
            // A record with an attempt counts it.
            held.last_attempt = None;
        }
        self.end_job(hand, job, JobStep::Retrying { retry_at }, attempt::reason_text(why));
        hand.dispatch.on(self.timer.now(), Event::Withdrawn(job), actions);
    }

    /// Ends the lease of a job.
    pub(super) fn end_job(&self, hand: &mut SenderState, job: JobId, step: JobStep, reason: String) {
        let Some(mut held) = hand.jobs.remove(&job) else { return };
        let at = wall_ms();
        let state = match step {
            JobStep::Done => State::Done,
            JobStep::DeadLettered => State::DeadLettered,
            JobStep::Expired => State::Expired,
            JobStep::Sent | JobStep::Retrying { .. } | JobStep::Released => State::Retrying,
        };
        let last = held.last_attempt.take();
        let attempt = last.as_ref().map(|last| StoredAttempt {
            key: self.options.keys.get(last.record.key).map(|key| key.name().to_owned()),
            sent_at: last.record.sent_at,
            status: last.record.outcome.as_ref().ok().copied(),
        });
        let response = last
            .as_ref()
            .filter(|_| self.options.keep_responses)
            .map(|last| StoredResponse { headers: last.headers.clone(), body: last.body.to_vec() });
        hand.changes.push(JobChange { lease: held.lease, at, reason: reason.clone(), step, attempt, response });
        self.changes_pending.notify_one();
        if state == State::Retrying {
            return;
        }
        if state == State::Expired
            && let Some(expires) = self.extended_expiry(hand, job, at)
        {
            hand.extended_jobs.push((job, expires));
            return;
        }
        hand.extension_counts.remove(&job);
        let (last, body) = last.map_or((None, Bytes::new()), |last| (Some(last.record), last.body));
        let ended = FinishedJob {
            entry: held.entry,
            state,
            reason,
            ended_at: at,
            last_attempt: last,
            body,
            attempts: held.attempts,
        };
        hand.events.push(SenderEvent::JobEnded(Box::new(ended)));
        self.events_pending.notify_one();
    }

    /// New end of the TTL of an expired job that continues; None if it does not.
    pub(super) fn extended_expiry(&self, hand: &mut SenderState, job: JobId, now: UnixMs) -> Option<UnixMs> {
        let renew = self.options.ttl_extension?;
        let used = hand.extension_counts.entry(job).or_default();
        (*used < renew.max_times).then(|| {
            *used += 1;
            now.plus_ms(renew.ttl_ms)
        })
    }
}
