//! A job leaves the sender's hands: what is to be told of it, and recorded.

use bytes::Bytes;

use super::super::job::{Answer, Attempt, UnixMs};
use super::super::news::{Ended, News};
use super::super::sender::wall_ms;
use super::super::state::State;
use super::super::store::{Change, Step};
use super::{Edge, Hand, attempt};
use crate::decide::Nanos;
use crate::decide::dispatch::{Action, Event, JobId, Meaning, Why};

/// Waits that are shorter are waited for in hand.
const SHORT: Nanos = Nanos::from_millis(100);

impl Edge {
    /// A dead letter goes to the store, with its time and its tries.
    pub(super) fn put_away(&self, hand: &mut Hand, job: JobId, until: Nanos, why: Why, actions: &mut Vec<Action>) {
        // So short a wait is no matter for a disk.
        if until < self.timer.now() + SHORT {
            return;
        }
        let wait_ms = (until - self.timer.now()).0.div_ceil(Nanos::MILLI.0);
        let retry_at = wall_ms().plus_ms(wait_ms);
        let is_free = match why {
            Why::Kind(kind) => kind.is_unsent(),
            Why::Answer(meaning) => matches!(meaning, Meaning::Unauthorized | Meaning::Blocked),
            _ => false,
        };
        if let Some(held) = hand.jobs.get_mut(&job).filter(|_| is_free) {
            // What is recorded counts as a try.
            held.last = None;
        }
        self.end_job(hand, job, Step::Dead { retry_at }, attempt::words(why));
        hand.dispatch.on(self.timer.now(), Event::Withdrawn(job), actions);
    }

    /// A job leaves our hands.
    pub(super) fn end_job(&self, hand: &mut Hand, job: JobId, step: Step, reason: String) {
        let Some(mut held) = hand.jobs.remove(&job) else { return };
        let at = wall_ms();
        let state = match step {
            Step::Done => State::Done,
            Step::Graveyard => State::Graveyard,
            Step::Expired => State::Expired,
            Step::Sent | Step::Dead { .. } | Step::Released => State::Dead,
        };
        let last = held.last.take();
        let attempt = last.as_ref().map(|last| Attempt {
            key: self.options.keys.get(last.tried.key).map(|key| key.name().to_owned()),
            sent: last.tried.sent,
            code: last.tried.outcome.as_ref().ok().copied(),
        });
        let answer = last
            .as_ref()
            .filter(|_| self.options.keep_answers)
            .map(|last| Answer { headers: last.headers.clone(), body: last.body.to_vec() });
        hand.changes.push(Change { lease: held.lease, at, reason: reason.clone(), step, attempt, answer });
        self.happened.notify_one();
        if state == State::Dead {
            return;
        }
        if state == State::Expired
            && let Some(expires) = self.more_time(hand, job, at)
        {
            hand.renewed.push((job, expires));
            return;
        }
        hand.renewals.remove(&job);
        let (last, body) = last.map_or((None, Bytes::new()), |last| (Some(last.tried), last.body));
        let ended = Ended { entry: held.entry, state, reason, at, last, body, tries: held.tries };
        hand.news.push(News::Ended(Box::new(ended)));
        self.talk.notify_one();
    }

    /// When the time of a job that expired is over if it goes on; None if it does not.
    pub(super) fn more_time(&self, hand: &mut Hand, job: JobId, now: UnixMs) -> Option<UnixMs> {
        let renew = self.options.renew?;
        let used = hand.renewals.entry(job).or_default();
        (*used < renew.times).then(|| {
            *used += 1;
            now.plus_ms(renew.ttl_ms)
        })
    }
}
