//! Lanes of one host: what each key may send there, and when.
//!
//! A lane is a pair of host and key: it has the windows of the pair's limits, and all else that decides when the key's
//! next request may go to the host. A key itself is the same for all hosts ([`DispatchKey`]): its nonces ascend across
//! hosts, and an unusable key is unusable at all hosts.

use std::collections::BTreeSet;

use super::{DispatchRules, Nanos};
use crate::key_window;
use crate::key_window::{KeyWindows, OneWayDelayBound};
use crate::nonce::Nonces;

/// A key, for all hosts.
#[derive(Clone, Debug)]
pub(super) struct DispatchKey {
    pub(super) nonces: Nonces,
    pub(super) is_usable: bool,
    /// Whether this sender has the key's lease.
    pub(super) is_leased: bool,
}

impl DispatchKey {
    pub(super) fn new() -> Self {
        Self { nonces: Nonces::above(0), is_usable: true, is_leased: true }
    }

    pub(super) fn can_send(&self) -> bool {
        self.is_usable && self.is_leased
    }
}

/// A key at one host.
#[derive(Clone, Debug)]
pub(super) struct KeyLane {
    pub(super) windows: KeyWindows,
    /// Whether the key may send.
    pub(super) is_open: bool,
    rank: (Nanos, u64),
    /// Time of a rejection whose stated wait was next to nothing, without a success since.
    short_wait_at: Option<Nanos>,
}

/// Minimum pause of a key after a rate-limit rejection, whatever its `Retry-After`.
pub(super) const MIN_HOLD: Nanos = Nanos::from_millis(50);

impl KeyLane {
    /// Time to wait by a rejection of a request that was sent then; `None` if it states none. A wait of next to nothing
    /// counts once: if the request after it is rejected as well, it states nothing.
    pub(super) fn stated_wait(&mut self, now: Nanos, sent: Nanos, stated: Option<Nanos>) -> Option<Nanos> {
        let length = stated?;
        if length > MIN_HOLD {
            return Some(length);
        }
        let is_repeated = self.short_wait_at.is_some_and(|at| sent > at);
        self.short_wait_at = Some(self.short_wait_at.filter(|_| !is_repeated).unwrap_or(now));
        (!is_repeated).then_some(MIN_HOLD)
    }

    /// Records a success.
    pub(super) fn accepted(&mut self) {
        self.short_wait_at = None;
    }
}

#[derive(Clone, Debug)]
pub(super) struct KeyLanes {
    /// Rules of each lane.
    pub(super) rules: key_window::KeyRules,
    lanes: Vec<KeyLane>,
    /// Open lanes, by the time at which the lightest job may be sent, then the least recently used.
    by_time: BTreeSet<((Nanos, u64), u32)>,
    pub(super) delay_bound: OneWayDelayBound,
    /// Lanes whose send time has changed.
    pub(super) changed: Vec<u32>,
    sends: u64,
    applied_bound: Option<Nanos>,
}

impl KeyLanes {
    pub(super) fn new(rules: &DispatchRules, host_rules: Option<key_window::KeyRules>, keys: &[DispatchKey]) -> Self {
        let host_rules = host_rules.unwrap_or_else(|| rules.key.clone());
        let delay_bound = match host_rules.delay_bound {
            Some(bound) => OneWayDelayBound::fixed(bound),
            None if rules.learns_delay_bound => OneWayDelayBound::learnt(),
            None => OneWayDelayBound::unknown(),
        };
        let windows = KeyWindows::new(&host_rules);
        let lane = |key: &DispatchKey| KeyLane {
            windows: windows.clone(),
            is_open: key.can_send(),
            rank: (Nanos::ZERO, 0),
            short_wait_at: None,
        };
        let lanes: Vec<KeyLane> = keys.iter().map(lane).collect();
        let by_time = (0..).zip(&lanes).filter(|(_, lane)| lane.is_open).map(|(number, lane)| (lane.rank, number));
        Self {
            by_time: by_time.collect(),
            lanes,
            delay_bound,
            changed: Vec::new(),
            sends: 0,
            applied_bound: delay_bound.bound(),
            rules: host_rules,
        }
    }

    pub(super) fn get(&self, key: u32) -> Option<&KeyLane> {
        self.lanes.get(key as usize)
    }

    /// Updates a lane and its rank.
    pub(super) fn update<T>(&mut self, key: u32, act: impl FnOnce(&mut KeyLane) -> T) -> Option<T> {
        let lane = self.lanes.get_mut(key as usize)?;
        let done = act(lane);
        self.changed.push(key);
        self.by_time.remove(&(lane.rank, key));
        if lane.is_open {
            lane.rank.0 = lane.windows.earliest(1);
            self.by_time.insert((lane.rank, key));
        }
        Some(done)
    }

    /// Records a send: the lane goes behind all others that could have sent.
    pub(super) fn mark_used(&mut self, key: u32) {
        self.sends += 1;
        let sends = self.sends;
        if let Some(lane) = self.lanes.get_mut(key as usize) {
            self.by_time.remove(&(lane.rank, key));
            lane.rank.1 = sends;
            if lane.is_open {
                self.by_time.insert((lane.rank, key));
            }
        }
    }

    pub(super) fn update_all(&mut self, act: impl Fn(&mut KeyLane)) {
        for key in 0..self.lanes.len() as u32 {
            self.update(key, &act);
        }
    }

    /// First lane, of those that `is_free` returns true for, that may send this weight, and its time. If none may send
    /// now, the time is a lower bound.
    pub(super) fn first_available(
        &self,
        now: Nanos,
        weight: u64,
        is_free: impl Fn(u32) -> bool,
    ) -> Option<(Nanos, u32)> {
        let mut best: Option<(Nanos, u32)> = None;
        for ((at_least, _), key) in &self.by_time {
            if best.is_some_and(|(at, _)| at <= *at_least || at <= now) {
                break;
            }
            // A later lane for the lightest weight: its time is a bound, whether it is free or not.
            let is_light_and_later = weight == 1 && *at_least > now;
            if !is_light_and_later && !is_free(*key) {
                continue;
            }
            let at = if weight == 1 { *at_least } else { self.get(*key)?.windows.earliest(weight) };
            if best.is_none_or(|(best, _)| at < best) {
                best = Some((at, *key));
            }
        }
        best
    }

    /// Time at which a lane may send this weight; `None` if its key may not send.
    pub(super) fn earliest(&self, key: u32, weight: u64) -> Option<Nanos> {
        self.get(key).filter(|lane| lane.is_open).map(|lane| lane.windows.earliest(weight))
    }

    /// Passes a changed one-way delay bound to all windows.
    pub(super) fn apply_delay_bound(&mut self, now: Nanos) {
        if self.applied_bound != self.delay_bound.bound() {
            self.applied_bound = self.delay_bound.bound();
            let bound = self.applied_bound;
            self.update_all(|lane| lane.windows.set_delay_bound(now, bound));
        }
    }

    /// Current one-way delay bound.
    pub(super) fn applied_bound(&self) -> Option<Nanos> {
        self.applied_bound
    }

    /// Whether the limits allow a job of this weight.
    pub(super) fn fits(&self, weight: u64) -> bool {
        self.get(0).is_none_or(|lane| lane.windows.fits(weight))
    }
}
