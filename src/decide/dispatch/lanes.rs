//! The lanes of one host: what each key may send there, and when.
//!
//! A lane is where the limits of a host and of a key meet: it has the windows of that pair, and whatever else decides when
//! the next request of the key may go to the host. A key itself is one thing for all hosts ([`Key`]): its nonces rise,
//! whichever host they go to, and a key that is of no use is of use nowhere.

use std::collections::BTreeSet;

use super::{Nanos, Rules};
use crate::decide::nonce::Nonces;
use crate::decide::window::{self, WayIn, Windows};

/// One key, for all hosts.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) nonces: Nonces,
    pub(super) usable: bool,
    /// It is ours now.
    pub(super) held: bool,
}

impl Key {
    pub(super) fn new() -> Self {
        Self { nonces: Nonces::above(0), usable: true, held: true }
    }

    pub(super) fn is_open(&self) -> bool {
        self.usable && self.held
    }
}

/// One key at one host.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) windows: Windows,
    /// Its key may be used.
    pub(super) open: bool,
    place: (Nanos, u64),
}

#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// What holds for each of them.
    pub(super) rules: window::Rules,
    lanes: Vec<Lane>,
    /// Those that are open: when the lightest job may be sent, then which was used longest ago.
    by_time: BTreeSet<((Nanos, u64), u32)>,
    pub(super) way_in: WayIn,
    /// Lanes that may send at another time than before.
    pub(super) changed: Vec<u32>,
    sends: u64,
    bound: Option<Nanos>,
}

impl Lanes {
    pub(super) fn new(rules: &Rules, own: Option<window::Rules>, keys: &[Key]) -> Self {
        let own = own.unwrap_or_else(|| rules.key.clone());
        let way_in = match own.way_in {
            Some(bound) => WayIn::given(bound),
            None if rules.learns_way_in => WayIn::learnt(),
            None => WayIn::unknown(),
        };
        let windows = Windows::new(&own);
        let lane = |key: &Key| Lane { windows: windows.clone(), open: key.is_open(), place: (Nanos::ZERO, 0) };
        let lanes: Vec<Lane> = keys.iter().map(lane).collect();
        let by_time = (0..).zip(&lanes).filter(|(_, lane)| lane.open).map(|(number, lane)| (lane.place, number));
        Self {
            by_time: by_time.collect(),
            lanes,
            way_in,
            changed: Vec::new(),
            sends: 0,
            bound: way_in.bound(),
            rules: own,
        }
    }

    pub(super) fn get(&self, key: u32) -> Option<&Lane> {
        self.lanes.get(key as usize)
    }

    /// Does something to a lane, and finds its new place.
    pub(super) fn with<T>(&mut self, key: u32, act: impl FnOnce(&mut Lane) -> T) -> Option<T> {
        let lane = self.lanes.get_mut(key as usize)?;
        let done = act(lane);
        self.changed.push(key);
        self.by_time.remove(&(lane.place, key));
        if lane.open {
            lane.place.0 = lane.windows.earliest(1);
            self.by_time.insert((lane.place, key));
        }
        Some(done)
    }

    /// A lane has sent: all others that could have go before it.
    pub(super) fn used(&mut self, key: u32) {
        self.sends += 1;
        let sends = self.sends;
        if let Some(lane) = self.lanes.get_mut(key as usize) {
            self.by_time.remove(&(lane.place, key));
            lane.place.1 = sends;
            if lane.open {
                self.by_time.insert((lane.place, key));
            }
        }
    }

    pub(super) fn all(&mut self, act: impl Fn(&mut Lane)) {
        for key in 0..self.lanes.len() as u32 {
            self.with(key, &act);
        }
    }

    /// The lane that may send this weight first, of those that are free for it, and when. If none may send anything now,
    /// the time is only the least that it can be.
    pub(super) fn first(&self, now: Nanos, weight: u64, is_free: impl Fn(u32) -> bool) -> Option<(Nanos, u32)> {
        let mut best: Option<(Nanos, u32)> = None;
        for ((at_least, _), key) in &self.by_time {
            if best.is_some_and(|(at, _)| at <= *at_least || at <= now) {
                break;
            }
            // Whoever it is free for, nobody can use it before.
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

    /// When a lane may send this weight; None if its key is of no use.
    pub(super) fn when(&self, key: u32, weight: u64) -> Option<Nanos> {
        self.get(key).filter(|lane| lane.open).map(|lane| lane.windows.earliest(weight))
    }

    /// Tells all windows what has been learnt of the way in.
    pub(super) fn set_way_in(&mut self, now: Nanos) {
        if self.bound != self.way_in.bound() {
            self.bound = self.way_in.bound();
            let bound = self.bound;
            self.all(|lane| lane.windows.set_way_in(now, bound));
        }
    }

    /// The bound on the way in that holds now.
    pub(super) fn bound(&self) -> Option<Nanos> {
        self.bound
    }

    /// Whether a job of this weight can be sent here at all.
    pub(super) fn fits(&self, weight: u64) -> bool {
        self.get(0).is_none_or(|lane| lane.windows.fits(weight))
    }
}
