//! Takes jobs out of the store: as many as are about to be sent, and a few more.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::news::{Ended, News};
use super::super::options::Options;
use super::super::sender::{SendFailed, Until, wall_ms};
use super::super::state::State;
use super::super::store::{Change, Claim, Claimed, Lane, Lease, MOST_LANES, Step, StoreError, Want};
use super::hosts::KnownLane;
use super::marks::Mark;
use super::{Edge, Entry, Event, Held};
use crate::decide::Nanos;
use crate::decide::dispatch::HostId;

/// No more jobs than this are held that are not sent yet.
const MOST_AHEAD: usize = 2048;
/// So many are taken in hand before anything else has its turn: what is due is not to wait for all of them.
const AT_ONCE: usize = 16;
/// No further job once those of a claim have so many bytes.
const MOST_BYTES: u64 = 64 << 20;

/// As few jobs are held, if they go slowly: what is in the store can still be edited, and be overtaken by what is urgent.
pub(super) fn least(options: &Options) -> usize {
    options.keys.len().clamp(4, 512)
}

/// A host or a key, and the lane of the store that is theirs.
type Wanted = (HostId, Option<u32>, Want);

impl Edge {
    /// Claims whenever there is need, for as long as it runs.
    pub(super) async fn claim(self: Rc<Self>) {
        let mut arrivals = self.store.arrivals();
        let mut until = self.until.clone();
        let (mut due, mut arrived) = (Nanos::NEVER, true);
        loop {
            let wants = self.wants(arrived);
            // What is due, or past its time, is so whether there is room for more or not.
            if self.is_stalled() || wants.is_empty() && !arrived && self.timer.now() < due {
                tokio::select! {
                    () = self.hungry.notified() => {}
                    () = self.put_off.notified() => arrived = true,
                    _ = arrivals.changed() => arrived = true,
                    _ = until.changed() => {}
                    () = self.timer.sleep_until(due), if due < Nanos::NEVER && !self.is_stalled() => {}
                }
                continue;
            }
            arrivals.mark_unchanged();
            arrived = false;
            let claim = Claim {
                now: wall_ms(),
                // They end with this process; no time is waited for.
                lease: Nanos::NEVER,
                wants: wants.iter().map(|(.., want)| want.clone()).collect(),
                most_bytes: MOST_BYTES,
                // Each is marked when it is sent.
                sending: false,
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
            let is_new = self.heed_lanes(&claimed.lanes);
            self.take(claimed).await;
            self.look_ahead();
            drop(asking);
            let wait_ms = next.map(|at| u64::try_from(at.0.saturating_sub(wall_ms().0)).unwrap_or(0).max(1));
            let shares = self.hand.borrow().owned.is_some();
            let wait_ms = if shares { Some(wait_ms.unwrap_or(LOOK_MS).min(LOOK_MS)) } else { wait_ms };
            due = wait_ms.map_or(Nanos::NEVER, |ms| self.timer.now() + Nanos::from_millis(ms.min(DAY_MS)));
            if got > 0 || is_new {
                continue;
            }
            self.settled.notify_one();
            tokio::select! {
                () = self.hungry.notified() => {}
                () = self.put_off.notified() => arrived = true,
                _ = arrivals.changed() => arrived = true,
                _ = until.changed() => {}
                () = self.timer.sleep_until(due), if due < Nanos::NEVER => arrived = true,
            }
        }
    }

    /// Whether no job is to be claimed now, whatever there is room for.
    fn is_stalled(&self) -> bool {
        let hand = self.hand.borrow();
        // What is held back for a mark, or not recorded yet, counts: memory is bounded if the disk stalls.
        let stalled = hand.untold || hand.changes.len() > 4 * MOST_AHEAD;
        let has_no_key = hand.owned.as_ref().is_some_and(|owned| owned.held() == 0);
        hand.failed.is_some() || self.is_told_to_end() || stalled || has_no_key
    }

    /// How many more jobs are wanted, of which host and key; of lanes that were found empty, too, if jobs have arrived.
    fn wants(&self, arrived: bool) -> Vec<Wanted> {
        let hand = self.hand.borrow();
        let lanes = hand.lanes.iter().filter(|known| arrived || known.has_jobs);
        let lanes = lanes.filter(|known| self.has_room(&hand, known.host, known.key));
        let want = |KnownLane { lane, host, key, .. }: &KnownLane| {
            let most = self.ahead(&hand, *host, *key) - hand.dispatch.queued(*host, *key);
            (*host, *key, Want { lane: lane.clone(), most })
        };
        lanes.map(want).collect()
    }

    /// Holds more jobs of a host if they went out while others were fetched, and fewer if most of them only wait.
    fn learn(&self, wants: &[Wanted], claimed: &Claimed) {
        let mut hand = self.hand.borrow_mut();
        let mut got: HashMap<Lane, usize> = HashMap::new();
        claimed.jobs.iter().for_each(|(_, entry)| *got.entry(Lane::of(&entry.job)).or_default() += 1);
        // As many as are in hand for all: what one host may have is bounded by what there are of them.
        let most = (MOST_AHEAD * 4 / wants.len().max(1)).clamp(2, MOST_AHEAD);
        for (host, key, want) in wants {
            let (ahead, held) = (hand.hosts.ahead(*host), hand.dispatch.queued(*host, *key));
            let has_gone = held == 0 && got.get(&want.lane) == Some(&want.most);
            if has_gone {
                hand.hosts.set_ahead(*host, (ahead * 2).min(most));
            } else if held > self.ahead(&hand, *host, *key) / 4 {
                hand.hosts.set_ahead(*host, (ahead - ahead.div_ceil(16)).max(least(&self.options)));
            }
        }
    }

    /// Which lanes of the store have jobs. Says whether there are some to be claimed at once.
    fn heed_lanes(&self, lanes: &[Lane]) -> bool {
        let mut hand = self.hand.borrow_mut();
        let mut known = Vec::with_capacity(lanes.len());
        let mut has_stranded = false;
        for lane in lanes {
            let key =
                lane.key_hint.as_ref().map(|hint| self.names.get(hint).copied().filter(|key| !hand.lost.contains(key)));
            has_stranded |= key == Some(None);
            // Others send by the keys that are not ours.
            let key = match key {
                None => None,
                Some(Some(key)) if hand.dispatch.is_held(key) => Some(key),
                Some(_) => continue,
            };
            let host = self.host(&mut hand, &lane.host);
            known.push(KnownLane { lane: lane.clone(), host, key, has_jobs: true });
        }
        hand.has_stranded = has_stranded;
        let new = hand.lanes.heed(known, lanes.len() < MOST_LANES);
        new.iter().any(|known| self.has_room(&hand, known.host, known.key))
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
            held.mark = Mark::Unset;
            return;
        }
        let key = named.flatten();
        let host = self.host(&mut self.hand.borrow_mut(), &entry.job.request.host());
        let asked = self.asked(&entry, host, key);
        let (tries, mark) = (entry.status.tries, Mark::Unset);
        let held = Held { lease, tries, sent: 0, entry, key, flying: None, last: None, mark };
        self.hand.borrow_mut().jobs.insert(number, held);
        self.tell(self.timer.now(), Event::Submitted(number, asked));
    }
}

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Where others send, too, it is looked so often whether there is something to do, whatever news has come.
const LOOK_MS: u64 = 1000;
