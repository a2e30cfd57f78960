//! Takes jobs out of the store: as many as are about to be sent, and a few more.

use std::rc::Rc;

use super::super::news::{Ended, News};
use super::super::options::Options;
use super::super::sender::{SendFailed, Until, wall_ms};
use super::super::state::State;
use super::super::store::{Change, Claim, Claimed, Lease, Step, StoreError, Want};
use super::{Edge, Entry, Event, Held};
use crate::decide::Nanos;

/// No more jobs than this are held that are not sent yet.
const MOST_AHEAD: usize = 2048;
/// So many are taken in hand before anything else has its turn: what is due is not to wait for all of them.
const AT_ONCE: usize = 16;
/// Before a service that cannot be reached is tried again; up to a second.
const FIRST_PAUSE: Nanos = Nanos::from_millis(20);
/// No further job once those of a claim have so many bytes.
const MOST_BYTES: u64 = 64 << 20;

/// As few jobs are held, if they go slowly: so that a crash leaves few that may have been sent and were not.
pub(super) fn least(options: &Options) -> usize {
    options.keys.len().clamp(4, 512)
}

impl Edge {
    /// Claims whenever there is need, for as long as it runs.
    pub(super) async fn claim(self: Rc<Self>) {
        let mut arrivals = self.store.arrivals();
        let mut until = self.until.clone();
        loop {
            arrivals.mark_unchanged();
            let want = self.want();
            if want == 0 {
                self.hungry.notified().await;
                continue;
            }
            let (want, pause) = self.while_away(want);
            if pause > Nanos::ZERO {
                self.timer.sleep(pause).await;
            }
            let claim = Claim {
                now: wall_ms(),
                // They end with this process; no time is waited for.
                lease: Nanos::NEVER,
                wants: vec![Want { key_hint: None, most: want }],
                most_bytes: MOST_BYTES,
                sending: true,
            };
            let asking = self.claiming.lock().await;
            let claimed = match self.store.claim(claim).await {
                Ok(claimed) => claimed,
                Err(StoreError::NoSpace(..) | StoreError::Locked(_)) => {
                    drop(asking);
                    self.timer.sleep(Nanos::SECOND).await;
                    continue;
                }
                Err(error) => {
                    self.hand.borrow_mut().failed.get_or_insert(SendFailed::Store(error));
                    self.settled.notify_one();
                    return;
                }
            };
            let (got, next) = (claimed.jobs.len(), claimed.next);
            self.learn(got == want);
            self.take(claimed).await;
            drop(asking);
            if got > 0 {
                continue;
            }
            self.settled.notify_one();
            let wait_ms = next.map(|at| u64::try_from(at.0.saturating_sub(wall_ms().0)).unwrap_or(0).max(1));
            let due = wait_ms.map_or(Nanos::NEVER, |ms| self.timer.now() + Nanos::from_millis(ms.min(DAY_MS)));
            tokio::select! {
                _ = arrivals.changed() => {}
                () = self.put_off.notified() => {}
                _ = until.changed() => {}
                () = self.timer.sleep_until(due), if due < Nanos::NEVER => {}
            }
        }
    }

    /// How many more jobs are wanted.
    fn want(&self) -> usize {
        let hand = self.hand.borrow();
        let held = hand.dispatch.sizes().0;
        // What is held back for a mark, or not recorded yet, counts: memory is bounded if the disk stalls.
        let unrecorded = hand.changes.len();
        if hand.failed.is_some()
            || hand.untold
            || self.is_told_to_end()
            || held > hand.ahead / 2
            || unrecorded > 4 * MOST_AHEAD
        {
            0
        } else {
            hand.ahead - held
        }
    }

    /// If no service can be reached, a few jobs find out now and then, and not all of them again and again.
    fn while_away(&self, want: usize) -> (usize, Nanos) {
        let (away, few) = (self.hand.borrow().away as usize, least(&self.options));
        if away <= few {
            return (want, Nanos::ZERO);
        }
        let doublings = (away / few).min(6);
        (want.min(few), Nanos(FIRST_PAUSE.0 << doublings).min(Nanos::SECOND))
    }

    /// Holds more jobs if they went out while others were fetched, and fewer if most of them only wait.
    fn learn(&self, there_are_more: bool) {
        let mut hand = self.hand.borrow_mut();
        let held = hand.dispatch.sizes().0;
        if held == 0 && there_are_more {
            hand.ahead = (hand.ahead * 2).min(MOST_AHEAD);
        } else if held > hand.ahead / 4 {
            hand.ahead = (hand.ahead - hand.ahead.div_ceil(16)).max(least(&self.options));
        }
    }

    async fn take(self: &Rc<Self>, claimed: Claimed) {
        for entry in claimed.expired {
            self.expired(entry);
        }
        for (number, (lease, entry)) in (1..).zip(claimed.jobs) {
            self.begin(lease, entry);
            if number % AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The store found that its time was over.
    fn expired(&self, entry: Entry) {
        let mut hand = self.hand.borrow_mut();
        let at = wall_ms();
        if let Some(expires) = self.more_time(&mut hand, entry.number, at) {
            hand.renewed.push((entry.number, expires));
        } else {
            hand.renewals.remove(&entry.number);
            let reason = "its time was over before it could be sent".to_owned();
            let tries = entry.status.tries;
            let ended =
                Ended { entry, state: State::Expired, reason, at, last: None, body: bytes::Bytes::new(), tries };
            hand.news.push(News::Ended(Box::new(ended)));
        }
        self.talk.notify_one();
    }

    pub(super) fn is_told_to_end(&self) -> bool {
        *self.until.borrow() > Until::Empty
    }

    fn begin(self: &Rc<Self>, lease: Lease, entry: Entry) {
        let number = entry.number;
        if self.is_told_to_end() || self.hand.borrow().failed.is_some() {
            let reason = "the sender ended".to_owned();
            let change = Change { lease, at: wall_ms(), reason, step: Step::Released, attempt: None, answer: None };
            self.hand.borrow_mut().changes.push(change);
            self.happened.notify_one();
            return;
        }
        if entry.status.maybe_sent
            && let Some(state) = self.listener.borrow_mut().known(&entry)
        {
            // Its end was told, and the crash came before it was recorded.
            let step = match state {
                State::Done => Step::Done,
                State::Expired => Step::Expired,
                _ => Step::Graveyard,
            };
            let reason = "as was told before a crash".to_owned();
            let change = Change { lease, at: wall_ms(), reason, step, attempt: None, answer: None };
            self.hand.borrow_mut().changes.push(change);
            self.happened.notify_one();
            return;
        }
        let asked = self.asked(&entry);
        let held = Held { lease, tries: entry.status.tries, entry, flying: None, last: None };
        self.hand.borrow_mut().jobs.insert(number, held);
        self.tell(self.timer.now(), Event::Submitted(number, asked));
    }
}

const DAY_MS: u64 = 24 * 3600 * 1000;
