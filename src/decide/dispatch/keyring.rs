//! All keys, by when they may send next.

use std::collections::BTreeSet;

use super::{Nanos, Rules};
use crate::decide::nonce::Nonces;
use crate::decide::window::{WayIn, Windows};

/// One key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) windows: Windows,
    pub(super) nonces: Nonces,
    pub(super) usable: bool,
    /// It is ours now.
    pub(super) held: bool,
    place: (Nanos, u64),
}

#[derive(Clone, Debug)]
pub(super) struct Keyring {
    keys: Vec<Key>,
    /// Those that can be used: when the lightest job may be sent, then who was used longest ago.
    by_time: BTreeSet<((Nanos, u64), u32)>,
    pub(super) way_in: WayIn,
    /// Keys that may send at another time than before.
    pub(super) changed: Vec<u32>,
    sends: u64,
    bound: Option<Nanos>,
}

impl Keyring {
    pub(super) fn new(rules: &Rules, keys: u32) -> Self {
        let way_in = match rules.key.way_in {
            Some(bound) => WayIn::given(bound),
            None if rules.learns_way_in => WayIn::learnt(),
            None => WayIn::unknown(),
        };
        let key = Key {
            windows: Windows::new(&rules.key),
            nonces: Nonces::above(0),
            usable: true,
            held: true,
            place: (Nanos::ZERO, 0),
        };
        let by_time = (0..keys).map(|number| (key.place, number)).collect();
        Self { keys: vec![key; keys as usize], by_time, way_in, changed: Vec::new(), sends: 0, bound: way_in.bound() }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Key> {
        self.keys.get(number as usize)
    }

    /// Does something to a key, and finds its new place.
    pub(super) fn with<T>(&mut self, number: u32, act: impl FnOnce(&mut Key) -> T) -> Option<T> {
        let key = self.keys.get_mut(number as usize)?;
        let done = act(key);
        self.changed.push(number);
        self.by_time.remove(&(key.place, number));
        if key.usable && key.held {
            key.place.0 = key.windows.earliest(1);
            self.by_time.insert((key.place, number));
        }
        Some(done)
    }

    /// A key has sent: all others that could have go before it.
    pub(super) fn used(&mut self, number: u32) {
        self.sends += 1;
        let sends = self.sends;
        if let Some(key) = self.keys.get_mut(number as usize) {
            self.by_time.remove(&(key.place, number));
            key.place.1 = sends;
            if key.usable && key.held {
                self.by_time.insert((key.place, number));
            }
        }
    }

    pub(super) fn all(&mut self, act: impl Fn(&mut Key)) {
        for number in 0..self.keys.len() as u32 {
            self.with(number, &act);
        }
    }

    /// The key that may send this weight first, of those that are free for it, and when. If no key may send anything now,
    /// the time is only the least that it can be.
    pub(super) fn first(&self, now: Nanos, weight: u64, is_free: impl Fn(u32) -> bool) -> Option<(Nanos, u32)> {
        let mut best: Option<(Nanos, u32)> = None;
        for ((at_least, _), number) in &self.by_time {
            if best.is_some_and(|(at, _)| at <= *at_least || at <= now) {
                break;
            }
            // Whoever it is free for, nobody can use it before.
            let is_light_and_later = weight == 1 && *at_least > now;
            if !is_light_and_later && !is_free(*number) {
                continue;
            }
            let at = if weight == 1 { *at_least } else { self.get(*number)?.windows.earliest(weight) };
            if best.is_none_or(|(best, _)| at < best) {
                best = Some((at, *number));
            }
        }
        best
    }

    /// When a key may send this weight; None if it is of no use.
    pub(super) fn when(&self, number: u32, weight: u64) -> Option<Nanos> {
        self.get(number).filter(|key| key.usable && key.held).map(|key| key.windows.earliest(weight))
    }

    /// Tells all windows what has been learnt of the way in.
    pub(super) fn set_way_in(&mut self, now: Nanos) {
        if self.bound != self.way_in.bound() {
            self.bound = self.way_in.bound();
            let bound = self.bound;
            self.all(|key| key.windows.set_way_in(now, bound));
        }
    }

    /// The bound on the way in that holds now.
    pub(super) fn bound(&self) -> Option<Nanos> {
        self.bound
    }

    pub(super) fn usable(&self) -> usize {
        self.keys.iter().filter(|key| key.usable).count()
    }
}
