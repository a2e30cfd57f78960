//! What has to be durable before a request's first byte: that its job is sent now, and its key's mark of nonces.
//!
//! A store that can mark a job at once ([`Store::mark`](super::Store::mark)) is told so at the send. One on another machine
//! cannot: there the mark is recorded, and the request waits until it is. So that few wait, the jobs that go next are marked
//! with the records before ([`Ahead`](crate::decide::marking::Ahead)); they are all that a crash leaves in doubt without cause.

use std::rc::Rc;

use super::super::sender::wall_ms;
use super::super::store::{Change, Lease, Step};
use super::attempt::Sending;
use super::{Edge, Event, Hand, JobId};

/// Whether the store has a job as sent, under the lease that we have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Unset,
    /// It is being recorded.
    Asked,
    Set,
}

impl Edge {
    /// Sends it, as soon as what has to be durable is.
    pub(super) fn send(self: &Rc<Self>, hand: &mut Hand, sending: Sending) {
        if let Some(waits) = self.go(hand, sending) {
            hand.ahead.turn(waits);
        }
    }

    /// Sends it or has it wait. Says whether it waits for its own mark; `None`: it waits for its key's.
    fn go(self: &Rc<Self>, hand: &mut Hand, sending: Sending) -> Option<bool> {
        let is_noted = hand.marks.get(sending.key).is_none_or(|(durable, _)| sending.nonce <= *durable);
        let waits = is_noted.then(|| !self.is_marked(hand, sending.job));
        if waits == Some(false) {
            self.launch(hand, sending);
        } else {
            hand.unmarked.push(sending);
            self.happened.notify_one();
        }
        waits
    }

    /// Whether the store has the job as sent; if not, it is asked for.
    fn is_marked(&self, hand: &mut Hand, job: JobId) -> bool {
        let Some(held) = hand.jobs.get_mut(&job) else { return true };
        if held.mark == Mark::Unset && self.store.mark(held.lease, wall_ms()) {
            held.mark = Mark::Set;
            return true;
        }
        let mark = held.mark;
        if mark == Mark::Unset {
            ask(hand, job);
        }
        mark == Mark::Set
    }

    /// Has the jobs marked that go next, if to mark them takes a while.
    pub(super) fn mark_ahead(&self, hand: &mut Hand) {
        hand.ahead.begin();
        let Some(most) = hand.ahead.most() else { return };
        let next: Vec<JobId> = hand.dispatch.next(most).collect();
        for job in next {
            if hand.jobs.get(&job).is_some_and(|held| held.mark == Mark::Unset) {
                ask(hand, job);
            }
        }
    }

    /// Jobs have come, some of which may be next.
    pub(super) fn look_ahead(&self) {
        if self.hand.borrow().ahead.most().is_some() {
            self.happened.notify_one();
        }
    }

    /// These marks are durable, of keys and of jobs, but not those of jobs whose leases were over: what has waited for them
    /// goes.
    pub(super) fn marked(self: &Rc<Self>, marks: &[u64], sent: &[Lease], stale: &[Lease]) {
        let mut lost = Vec::new();
        {
            let mut hand = self.hand.borrow_mut();
            for ((durable, _), mark) in hand.marks.iter_mut().zip(marks) {
                *durable = (*durable).max(*mark);
            }
            for lease in sent {
                let Some(held) = hand.jobs.get_mut(&lease.number).filter(|held| held.lease == *lease) else { continue };
                held.mark = if stale.contains(lease) { Mark::Unset } else { Mark::Set };
                if held.mark == Mark::Unset && held.flying.is_none() {
                    lost.push(lease.number);
                }
            }
        }
        for job in lost {
            self.forfeit(job);
        }
        if !self.hand.borrow().unmarked.is_empty() {
            // It may have taken long: what is to go by a key whose lease is over is called back first.
            self.tell(self.timer.now(), Event::Tick);
        }
        let mut hand = self.hand.borrow_mut();
        for sending in std::mem::take(&mut hand.unmarked) {
            let _ = self.go(&mut hand, sending);
        }
    }

    /// The store has given the job to another sender, or back to the queue, before it was sent.
    fn forfeit(self: &Rc<Self>, job: JobId) {
        let waits = {
            let mut hand = self.hand.borrow_mut();
            hand.jobs.remove(&job);
            let at = hand.unmarked.iter().position(|sending| sending.job == job);
            at.map(|at| hand.unmarked.swap_remove(at))
        };
        let now = self.timer.now();
        if let Some(sending) = waits {
            self.tell(now, Event::CalledBack(job, sending.attempt));
        }
        self.tell(now, Event::Withdrawn(job));
    }
}

/// Has the job recorded as sent.
fn ask(hand: &mut Hand, job: JobId) {
    let Some(held) = hand.jobs.get_mut(&job) else { return };
    held.mark = Mark::Asked;
    let (lease, at) = (held.lease, wall_ms());
    let reason = "it is sent".to_owned();
    hand.changes.push(Change { lease, at, reason, step: Step::Sent, attempt: None, answer: None });
}
