//! Marks that must be durable before a request's first byte: of the job as sent, and of its key's nonces.
//!
//! A store with cheap marks ([`Store::mark_sent`](super::Store::mark_sent)) gets one at the send. On a server the mark
//! is recorded, and the request waits for it. To let few wait, the next jobs are marked with the records before
//! ([`MarkAhead`](weir_decide::delivery::mark_ahead::MarkAhead)); only these are in doubt without cause after a
//! crash.

use std::rc::Rc;

use super::super::sender::wall_ms;
use super::super::store::{JobChange, JobLease, JobStep};
use super::attempt::QueuedAttempt;
use super::{Event, JobId, SenderRuntime, SenderState};

/// State of the mark of a job under the current lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentMark {
    Unset,
    /// The mark is being recorded.
    Pending,
    Set,
}

impl SenderRuntime {
    /// Sends an attempt once its marks are durable.
    pub(super) fn send(self: &Rc<Self>, hand: &mut SenderState, sending: QueuedAttempt) {
        if let Some(waits) = self.try_send(hand, sending) {
            hand.mark_ahead.job_due(waits);
        }
    }

    /// Sends an attempt or queues it. Returns whether it waits for its own mark; `None` if it waits for its key's.
    fn try_send(self: &Rc<Self>, hand: &mut SenderState, sending: QueuedAttempt) -> Option<bool> {
        let is_noted = hand.high_water_marks.get(sending.key).is_none_or(|(durable, _)| sending.nonce <= *durable);
        let waits = is_noted.then(|| !self.is_marked(hand, sending.job));
        if waits == Some(false) {
            self.launch(hand, sending);
        } else {
            hand.awaiting_mark.push(sending);
            self.changes_pending.notify_one();
        }
        waits
    }

    /// Whether the job is marked; requests a mark otherwise.
    fn is_marked(&self, hand: &mut SenderState, job: JobId) -> bool {
        let Some(held) = hand.jobs.get_mut(&job) else { return true };
        if held.mark == SentMark::Unset && self.store.mark_sent(held.lease, wall_ms()) {
            held.mark = SentMark::Set;
            return true;
        }
        let mark = held.mark;
        if mark == SentMark::Unset {
            record_sent_mark(hand, job);
        }
        mark == SentMark::Set
    }

    /// Marks the next jobs ahead, if marking takes time.
    pub(super) fn mark_ahead(&self, hand: &mut SenderState) {
        hand.mark_ahead.begin_round_trip();
        let Some(most) = hand.mark_ahead.max_marked() else { return };
        let next: Vec<JobId> = hand.dispatch.next_jobs(most).collect();
        for job in next {
            if hand.jobs.get(&job).is_some_and(|held| held.mark == SentMark::Unset) {
                record_sent_mark(hand, job);
            }
        }
    }

    /// New jobs, some of which may be next.
    pub(super) fn request_marks_ahead(&self) {
        if self.state.borrow().mark_ahead.max_marked().is_some() {
            self.changes_pending.notify_one();
        }
    }

    /// Sends what waited for these durable marks of keys and jobs, except jobs whose leases had expired.
    pub(super) fn on_marked(self: &Rc<Self>, marks: &[u64], sent: &[JobLease], stale: &[JobLease]) {
        let mut lost = Vec::new();
        {
            let mut hand = self.state.borrow_mut();
            for ((durable, _), mark) in hand.high_water_marks.iter_mut().zip(marks) {
                *durable = (*durable).max(*mark);
            }
            for lease in sent {
                let Some(held) = hand.jobs.get_mut(&lease.number).filter(|held| held.lease == *lease) else { continue };
                held.mark = if stale.contains(lease) { SentMark::Unset } else { SentMark::Set };
                if held.mark == SentMark::Unset && held.in_flight.is_none() {
                    lost.push(lease.number);
                }
            }
        }
        for job in lost {
            self.drop_lost_job(job);
        }
        if !self.state.borrow().awaiting_mark.is_empty() {
            // The record may have taken long: attempts under expired key leases are withdrawn first.
            self.handle_event(self.timer.now(), Event::Tick);
        }
        let mut hand = self.state.borrow_mut();
        for sending in std::mem::take(&mut hand.awaiting_mark) {
            let _ = self.try_send(&mut hand, sending);
        }
    }

    /// Drops a job that the store has given to another sender or requeued.
    fn drop_lost_job(self: &Rc<Self>, job: JobId) {
        let waits = {
            let mut hand = self.state.borrow_mut();
            hand.jobs.remove(&job);
            let at = hand.awaiting_mark.iter().position(|sending| sending.job == job);
            at.map(|at| hand.awaiting_mark.swap_remove(at))
        };
        let now = self.timer.now();
        if let Some(sending) = waits {
            self.handle_event(now, Event::Recalled(job, sending.attempt));
        }
        self.handle_event(now, Event::Withdrawn(job));
    }
}

/// Records the mark of a job.
fn record_sent_mark(hand: &mut SenderState, job: JobId) {
    let Some(held) = hand.jobs.get_mut(&job) else { return };
    held.mark = SentMark::Pending;
    let (lease, at) = (held.lease, wall_ms());
    let reason = "being sent".to_owned();
    hand.changes.push(JobChange { lease, at, reason, step: JobStep::Sent, attempt: None, response: None });
}
