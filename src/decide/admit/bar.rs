//! Below which rank calls are refused at once.
//!
//! Under overload a refusal has to cost next to nothing, or refusing becomes the load. The bar is a number that every
//! call is compared with before it touches anything else. It is set so that those at or above it are a little more
//! than there is capacity for: the line behind it then always has somebody to take.

use super::room::{BINS, STEP};
use super::usual::Flow;
use super::{Priority, Room};
use crate::decide::Nanos;

const CLASSES: usize = Priority::ALL.len();
/// How often it is set anew.
const EVERY: Nanos = Nanos::from_millis(50);
/// What is let through, in capacities, at least and at most.
const FEED: (f64, f64) = (1.05, 1.5);
/// How much of what was counted before still counts.
const MEMORY: f64 = 0.8;
/// Demand is that of the last second, and of so many calls more: few of them come unevenly.
const CALLS: f64 = 50.0;
/// It is put away after so many times at which nobody was below it.
const CALM: u32 = 4;

/// As many come as leave up to the second of these shares: connections in a closed loop do, however many they are, and are
/// no overload. One that was found is not over before fewer come than this share of what could leave.
const STAYS: f64 = 0.95;
const GROWS: f64 = 1.02;

/// How those that come stand to those that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Crowd {
    /// Fewer come.
    None,
    /// As many.
    Stays,
    /// More.
    Grows,
}

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
    /// Calls per second of each priority and those above it.
    demand: [f64; CLASSES],
    /// Those that left, however that was: ever, and per second, over the same time as the demand.
    left: u64,
    left_per_s: f64,
}

impl Bar {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            since: now,
            bins: [0.0; BINS],
            seconds: 0.0,
            feed: FEED.0,
            turns: 0,
            demand: [0.0; CLASSES],
            left: 0,
            left_per_s: 0.0,
        }
    }

    /// Sets it, if it is time.
    pub(super) fn set(&mut self, now: Nanos, room: &Room, flow: &Flow, overloaded: bool) {
        let length = now - self.since;
        if length < EVERY {
            return;
        }
        self.since = now;
        self.seconds = self.seconds * MEMORY + length.as_secs_f64();
        let arrivals = room.arrivals();
        for (bin, count) in self.bins.iter_mut().zip(arrivals) {
            *bin = *bin * MEMORY + f64::from(count);
        }
        let part = 1.0 - (-length.as_secs_f64() / (1.0 + CALLS / flow.per_s.max(1.0))).exp();
        for (class, demand) in self.demand.iter_mut().enumerate() {
            let count: u32 = arrivals[class * BINS / CLASSES..].iter().sum();
            *demand += part * (f64::from(count) / length.as_secs_f64() - *demand);
        }
        let left = room.left();
        self.left_per_s += part * ((left - self.left) as f64 / length.as_secs_f64() - self.left_per_s);
        self.left = left;
        // A place that nobody takes is worth more than a call that comes for nothing.
        let idle = room.limit().saturating_sub(room.in_flight());
        self.feed = (self.feed * if idle > 0 { 1.05 } else { 0.99 }).clamp(FEED.0, FEED.1);
        let height = if flow.per_s == 0.0 { 0 } else { self.height(flow, idle) };
        if overloaded || (height > 0 && self.turns > 0) {
            self.turns = CALM;
        } else {
            self.turns = self.turns.saturating_sub(1);
        }
        room.set_bar(if self.turns > 0 { height } else { 0 });
    }

    /// Whether more of this priority and above come than leave, or as many.
    pub(super) fn crowd(&self, class: usize, flow: &Flow) -> Crowd {
        if self.demand[class] > GROWS * self.left_per_s.max(flow.per_s) {
            Crowd::Grows
        } else if self.demand[class] > STAYS * flow.per_s {
            Crowd::Stays
        } else {
            Crowd::None
        }
    }

    fn height(&self, flow: &Flow, idle: u32) -> u32 {
        // Each of the free ones can be taken once in the time of one look, and the bins are those of several.
        let mut left = self.feed * self.seconds * flow.per_s + f64::from(idle) / (1.0 - MEMORY);
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
