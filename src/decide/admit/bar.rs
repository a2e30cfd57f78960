//! Below which rank calls are refused at once.
//!
//! Under overload a refusal has to cost next to nothing, or refusing becomes the load. The bar is a number that every
//! call is compared with before it touches anything else. It is set so that those at or above it are a little more
//! than there is capacity for: the line behind it then always has somebody to take.

use super::Room;
use super::room::{BINS, STEP};
use super::usual::Flow;
use crate::decide::Nanos;

/// How often it is set anew.
const EVERY: Nanos = Nanos::from_millis(50);
/// What is let through, in capacities, at least and at most.
const FEED: (f64, f64) = (1.05, 1.5);
/// How much of what was counted before still counts.
const MEMORY: f64 = 0.8;
/// It is put away after so many times at which nobody was below it.
const CALM: u32 = 4;

/// Arrivals by rank, and what follows.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    since: Nanos,
    bins: [f64; BINS],
    /// For so long it was counted, as far as it still counts.
    seconds: f64,
    /// What is let through, in capacities.
    feed: f64,
    /// How often it is still to be set; 0 if there is none.
    turns: u32,
}

impl Bar {
    pub(super) fn new(now: Nanos) -> Self {
        Self { since: now, bins: [0.0; BINS], seconds: 0.0, feed: FEED.0, turns: 0 }
    }

    /// Sets it, if it is time.
    pub(super) fn set(&mut self, now: Nanos, room: &Room, flow: &Flow, overloaded: bool) {
        let length = now - self.since;
        if length < EVERY {
            return;
        }
        self.since = now;
        self.seconds = self.seconds * MEMORY + length.as_secs_f64();
        for (bin, count) in self.bins.iter_mut().zip(room.arrivals()) {
            *bin = *bin * MEMORY + f64::from(count);
        }
        // A place that nobody takes is worth more than a call that comes for nothing.
        let idle = room.in_flight() < room.limit();
        self.feed = (self.feed * if idle { 1.05 } else { 0.99 }).clamp(FEED.0, FEED.1);
        let height = if flow.service == Nanos::ZERO { 0 } else { self.height(flow) };
        if overloaded || (height > 0 && self.turns > 0) {
            self.turns = CALM;
        } else {
            self.turns = self.turns.saturating_sub(1);
        }
        room.set_bar(if self.turns > 0 { height } else { 0 });
    }

    fn height(&self, flow: &Flow) -> u32 {
        let mut left = self.feed * self.seconds * f64::from(flow.places) / flow.service.as_secs_f64();
        for (at, count) in self.bins.iter().enumerate().rev() {
            left -= count;
            if left < 0.0 {
                // This one still comes through: it has a part of those that there is room for.
                return at as u32 * STEP;
            }
        }
        0
    }
}
