//! What becomes of a job whose attempt has ended.

use super::{Action, Dispatch, Feedback, Job, JobId, Kind, Meaning, Nanos, State, Why};
use crate::decide::backoff::Waits;
use crate::decide::policy::Failure;

/// What a failed attempt means for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is tried again, and that attempt has cost a try.
    Again,
    /// It is tried again at no cost.
    Free,
    /// Another try would not help.
    Buried,
}

impl Dispatch {
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        (id, attempt): (JobId, u32),
        meaning: Meaning,
        feedback: &Feedback,
        actions: &mut Vec<Action>,
    ) {
        let Some(State::Leased { key: number, slot, sent }) = self.lease(id, attempt) else { return };
        let Some(mut job) = self.queue.take(id) else { return };
        self.leased -= 1;
        let refused = matches!(meaning, Meaning::Refused | Meaning::Blocked);
        let to_blame = (refused || meaning == Meaning::Overtaken) && self.keys.way_in.refused(now, sent);
        let usual = self.keys.way_in.usual();
        let way_in = self.keys.with(number, |key| {
            key.windows.heard(slot, now, &feedback.quotas);
            match meaning {
                // What was learnt of the way in is taken back first; the limit is as it was said until that was in vain.
                Meaning::Refused => key.windows.refused(slot, now, feedback.retry_after, !to_blame),
                Meaning::Done => key.windows.accepted(slot, now),
                _ => {}
            }
            key.windows.arrived_by(slot, now, usual)
        });
        if let Some(round_trip) = way_in.flatten()
            && !refused
            && meaning != Meaning::Overtaken
        {
            self.keys.way_in.answered(round_trip);
        }
        let why = Why::Answer(meaning);
        let fate = match meaning {
            Meaning::Done => return actions.push(Action::Done(id)),
            Meaning::Refused | Meaning::Overtaken => Fate::Again,
            Meaning::Unauthorized | Meaning::Blocked => {
                if self.keys.with(number, |key| std::mem::replace(&mut key.usable, false)) == Some(true) {
                    actions.push(Action::Unusable { key: number, why });
                }
                Fate::Free
            }
            Meaning::Failed(status) if self.rules.retry.on.covers(Failure::Status(status)) => Fate::Again,
            Meaning::Failed(_) => Fate::Buried,
        };
        let heeded = feedback.retry_after.filter(|_| self.rules.retry.obey_retry_after).unwrap_or_default();
        let wait = match meaning {
            // It is about the key, not about the job.
            Meaning::Refused | Meaning::Blocked => Nanos::ZERO,
            Meaning::Failed(503) => {
                self.keys.all(|key| key.windows.hold_until(now + heeded));
                heeded
            }
            _ => heeded,
        };
        job.state = State::Queued;
        self.decide(now, id, job, fate, (wait, why), actions);
    }

    pub(super) fn failed(&mut self, now: Nanos, (id, attempt): (JobId, u32), kind: Kind, actions: &mut Vec<Action>) {
        let Some(State::Leased { key, slot, sent }) = self.lease(id, attempt) else { return };
        let Some(mut job) = self.queue.take(id) else { return };
        self.leased -= 1;
        let fate = if kind.is_unsent() {
            self.keys.with(key, |key| key.windows.unsent(slot, now));
            Fate::Free
        } else {
            self.keys.with(key, |key| key.windows.gave_up(slot, now));
            self.keys.way_in.out_for(now - sent);
            job.again = true;
            if self.rules.retry.on.covers(Failure::Kind(kind)) { Fate::Again } else { Fate::Buried }
        };
        job.state = State::Queued;
        self.decide(now, id, job, fate, (Nanos::ZERO, Why::Kind(kind)), actions);
    }

    fn decide(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: Job,
        fate: Fate,
        (wait, why): (Nanos, Why),
        actions: &mut Vec<Action>,
    ) {
        job.tries += u32::from(fate == Fate::Again);
        if fate == Fate::Buried || job.tries > self.rules.retry.times {
            return actions.push(Action::Bury { job: id, why });
        }
        // A key that is of no use says nothing about the job, which can go by another one at once.
        let of_the_key = matches!(why, Why::Answer(Meaning::Unauthorized | Meaning::Blocked));
        let backoff = if of_the_key { Nanos::ZERO } else { self.wait(id, &mut job) };
        let until = now + backoff.max(wait);
        job.state = State::Dead { until };
        job.died = why;
        if self.is_late(until, job.asked.expires) {
            return self.expire(now, id, job, actions);
        }
        actions.push(Action::Dead { job: id, until, why });
        self.queue.put(id, job);
    }

    fn wait(&self, id: JobId, job: &mut Job) -> Nanos {
        let backoff = self.rules.retry.backoff;
        job.waits.get_or_insert_with(|| Waits::new(backoff, self.dice(id))).draw(backoff)
    }

    /// A dead letter is due. A retry that costs a try has to be paid for; if that is not possible, it waits once more.
    pub(super) fn requeue(&mut self, now: Nanos, id: JobId, actions: &mut Vec<Action>) {
        let Some(mut job) = self.queue.take(id) else { return };
        if job.tries > 0 && self.ledger.as_mut().is_some_and(|ledger| !ledger.spend(now)) {
            // Not now, whatever the backoff says: time has to go on.
            let until = now + self.wait(id, &mut job).max(Nanos::MILLI);
            job.state = State::Dead { until };
            actions.push(Action::Dead { job: id, until, why: job.died });
        } else {
            job.state = State::Queued;
            actions.push(Action::Requeue(id));
        }
        self.queue.put(id, job);
    }

    /// A job, which is out of the queue, can't be sent in time.
    pub(super) fn expire(&mut self, now: Nanos, id: JobId, mut job: Job, actions: &mut Vec<Action>) {
        let expired = Action::Expire { job: id, why: job.died };
        let Some(renew) = self.rules.renew.filter(|renew| job.renewed < renew.times) else {
            return actions.push(expired);
        };
        let from = if let State::Dead { until } = job.state { until.max(now) } else { now };
        job.renewed += 1;
        job.asked.expires = from + renew.ttl;
        if self.is_late(from, job.asked.expires) {
            // The new TTL is shorter than the way in.
            return actions.push(expired);
        }
        job.take_place(&self.rules);
        actions.push(Action::Renew { job: id, expires: job.asked.expires });
        if let State::Dead { until } = job.state {
            actions.push(Action::Dead { job: id, until, why: job.died });
        }
        self.queue.put(id, job);
    }
}
