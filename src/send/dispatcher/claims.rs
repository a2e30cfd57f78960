//! Takes jobs out of the store: as many as are about to be sent, and a few more.

use std::rc::Rc;

use super::super::news::{Ended, News};
use super::super::options::Options;
use super::super::sender::{SendFailed, Until, wall_ms};
use super::super::state::State;
use super::super::store::{Change, Claim, Claimed, Lease, Step, StoreError, Want};
use super::{Edge, Entry, Event, Hand, Held};
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
            let mut wants = self.wants();
            if wants.is_empty() {
                tokio::select! {
                    () = self.hungry.notified() => {}
                    () = self.starved.notified() => {}
                }
                continue;
            }
            let pause = self.while_away(&mut wants);
            if pause > Nanos::ZERO {
                self.timer.sleep(pause).await;
            }
            let claim = Claim {
                now: wall_ms(),
                // They end with this process; no time is waited for.
                lease: Nanos::NEVER,
                wants: wants.iter().map(|(_, want)| want.clone()).collect(),
                most_bytes: MOST_BYTES,
                sending: true,
            };
            let asking = self.claiming.lock().await;
            let claimed = match self.store.claim(claim).await {
                Ok(claimed) => claimed,
                Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Away(..)) => {
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
            self.learn(&wants, &claimed);
            let is_new = self.heed_hints(&claimed.hints);
            self.take(claimed).await;
            drop(asking);
            if got > 0 || is_new {
                continue;
            }
            self.settled.notify_one();
            let wait_ms = next.map(|at| u64::try_from(at.0.saturating_sub(wall_ms().0)).unwrap_or(0).max(1));
            let shares = self.hand.borrow().owned.is_some();
            let wait_ms = if shares { Some(wait_ms.unwrap_or(LOOK_MS).min(LOOK_MS)) } else { wait_ms };
            let due = wait_ms.map_or(Nanos::NEVER, |ms| self.timer.now() + Nanos::from_millis(ms.min(DAY_MS)));
            tokio::select! {
                _ = arrivals.changed() => {}
                () = self.starved.notified() => {}
                () = self.put_off.notified() => {}
                _ = until.changed() => {}
                () = self.timer.sleep_until(due), if due < Nanos::NEVER => {}
            }
        }
    }

    /// How many more jobs are wanted, of which key.
    fn wants(&self) -> Vec<(Option<u32>, Want)> {
        let hand = self.hand.borrow();
        // What is held back for a mark, or not recorded yet, counts: memory is bounded if the disk stalls.
        let stalled = hand.untold || hand.changes.len() > 4 * MOST_AHEAD;
        let has_no_key = hand.owned.as_ref().is_some_and(|owned| owned.held() == 0);
        if hand.failed.is_some() || self.is_told_to_end() || stalled || has_no_key {
            return Vec::new();
        }
        let hints = hand.hints.iter().map(|(hint, key)| (Some(*key), Some(hint.clone())));
        let lines = [(None, None)].into_iter().chain(hints).filter(|(key, _)| self.has_room(&hand, *key));
        let want = |(key, key_hint)| (key, Want { key_hint, most: self.ahead(&hand, key) - hand.dispatch.queued(key) });
        lines.map(want).collect()
    }

    /// How many jobs are to be in hand that any key may send, or only this one.
    fn ahead(&self, hand: &Hand, key: Option<u32>) -> usize {
        if key.is_some() { (hand.ahead / self.options.keys.len().max(1)).max(2) } else { hand.ahead }
    }

    pub(super) fn has_room(&self, hand: &Hand, key: Option<u32>) -> bool {
        hand.dispatch.queued(key) <= self.ahead(hand, key) / 2
    }

    /// If no service can be reached, a few jobs find out now and then, and not all of them again and again.
    fn while_away(&self, wants: &mut [(Option<u32>, Want)]) -> Nanos {
        let (away, few) = (self.hand.borrow().away as usize, least(&self.options));
        if away <= few {
            return Nanos::ZERO;
        }
        for (_, want) in wants {
            want.most = want.most.min(few);
        }
        let doublings = (away / few).min(6);
        Nanos(FIRST_PAUSE.0 << doublings).min(Nanos::SECOND)
    }

    /// Holds more jobs if they went out while others were fetched, and fewer if most of them only wait.
    fn learn(&self, wants: &[(Option<u32>, Want)], claimed: &Claimed) {
        let mut hand = self.hand.borrow_mut();
        let got = |want: &Want| claimed.jobs.iter().filter(|(_, entry)| entry.job.key_hint == want.key_hint).count();
        let held = |key: Option<u32>| hand.dispatch.queued(key);
        if wants.iter().any(|(key, want)| held(*key) == 0 && got(want) == want.most) {
            hand.ahead = (hand.ahead * 2).min(MOST_AHEAD);
        } else if wants.iter().all(|(key, _)| held(*key) > self.ahead(&hand, *key) / 4) {
            hand.ahead = (hand.ahead - hand.ahead.div_ceil(16)).max(least(&self.options));
        }
    }

    /// Which keys the store has jobs for. Says whether there are some to be claimed at once.
    fn heed_hints(&self, hints: &[String]) -> bool {
        let mut hand = self.hand.borrow_mut();
        let usable = |hint: &String| self.names.get(hint).filter(|key| !hand.lost.contains(key));
        let known: Vec<_> = hints.iter().filter_map(|hint| Some((hint.clone(), *usable(hint)?))).collect();
        hand.has_stranded = known.len() < hints.len();
        // Others send by the keys that are not ours.
        let known: Vec<_> = known.into_iter().filter(|(_, key)| hand.dispatch.is_held(*key)).collect();
        let is_new = known
            .iter()
            .any(|(hint, key)| self.has_room(&hand, Some(*key)) && !hand.hints.iter().any(|(other, _)| other == hint));
        hand.hints = known;
        is_new
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
        let named = entry.job.key_hint.as_ref().map(|hint| self.names.get(hint).copied());
        let obstacle = if self.is_told_to_end() || self.hand.borrow().failed.is_some() {
            Some("the sender ended")
        } else {
            (named == Some(None)).then_some("its key is not there")
        };
        if let Some(reason) = obstacle {
            let reason = reason.to_owned();
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
        if let Some(held) = self.hand.borrow_mut().jobs.get_mut(&number) {
            // We were taken for gone, and it is still in our hands.
            held.lease = lease;
            return;
        }
        let key = named.flatten();
        let asked = self.asked(&entry, key);
        let held = Held { lease, tries: entry.status.tries, entry, key, flying: None, last: None };
        self.hand.borrow_mut().jobs.insert(number, held);
        self.tell(self.timer.now(), Event::Submitted(number, asked));
    }
}

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Where others send, too, it is looked so often whether there is something to do, whatever news has come.
const LOOK_MS: u64 = 1000;
