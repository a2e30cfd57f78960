//! Below which rank calls are refused at once.
//!
//! Under overload a refusal has to cost next to nothing, or refusing becomes the load. The bar is a number that every
//! call is compared with before it touches anything else. It is set so that those at or above it are a little more
//! than there is capacity for: the line behind it then always has somebody to take.

use super::room::{RANK_BINS, RANKS_PER_BIN};
use super::usual::ServiceFlow;
use super::{Priority, Slots};
use crate::decide::Nanos;

const PRIORITIES: usize = Priority::ALL.len();
/// How often it is set anew.
const UPDATE_INTERVAL: Nanos = Nanos::from_millis(50);
/// What is let through, in capacities, at least and at most.
const FEED_FACTOR_RANGE: (f64, f64) = (1.05, 1.5);
/// How much of what was counted before still counts.
const COUNT_DECAY_FACTOR: f64 = 0.8;
/// Demand is that of the last second, and of so many calls more: few of them come unevenly.
const SMOOTHING_CALLS: f64 = 50.0;
/// It is put away after so many times at which nobody was below it.
const CALM_UPDATES: u32 = 4;

/// As many come as leave up to the second of these shares: connections in a closed loop do, however many they are, and are
/// no overload. One that was found is not over before fewer come than this share of what could leave.
const STEADY_DEMAND_FRACTION: f64 = 0.95;
const GROWING_DEMAND_FACTOR: f64 = 1.02;

/// How those that come stand to those that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DemandTrend {
    /// Fewer come.
    Below,
    /// As many.
    Steady,
    /// More.
    Growing,
}

/// Arrivals by rank, and what follows.
#[derive(Clone, Debug)]
pub(super) struct ShedThreshold {
    updated_at: Nanos,
    bins: [f64; RANK_BINS],
    /// For so long it was counted, as far as it still counts.
    seconds: f64,
    /// What is let through, in capacities.
    feed_factor: f64,
    /// How often it is still to be set; 0 if there is none.
    hold_updates: u32,
    /// Calls per second of each priority and those above it.
    demand_per_s: [f64; PRIORITIES],
    /// Those that left, however that was: ever, and per second, over the same time as the demand.
    departures: u64,
    departures_per_s: f64,
}

impl ShedThreshold {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            updated_at: now,
            bins: [0.0; RANK_BINS],
            seconds: 0.0,
            feed_factor: FEED_FACTOR_RANGE.0,
            hold_updates: 0,
            demand_per_s: [0.0; PRIORITIES],
            departures: 0,
            departures_per_s: 0.0,
        }
    }

    /// Sets it, if it is time.
    pub(super) fn update(&mut self, now: Nanos, room: &Slots, flow: &ServiceFlow, overloaded: bool) {
        let length = now - self.updated_at;
        if length < UPDATE_INTERVAL {
            return;
        }
        self.updated_at = now;
        self.seconds = self.seconds * COUNT_DECAY_FACTOR + length.as_secs_f64();
        let arrivals = room.take_arrivals();
        for (bin, count) in self.bins.iter_mut().zip(arrivals) {
            *bin = *bin * COUNT_DECAY_FACTOR + f64::from(count);
        }
        let part = 1.0 - (-length.as_secs_f64() / (1.0 + SMOOTHING_CALLS / flow.per_s.max(1.0))).exp();
        for (class, demand) in self.demand_per_s.iter_mut().enumerate() {
            let count: u32 = arrivals[class * RANK_BINS / PRIORITIES..].iter().sum();
            *demand += part * (f64::from(count) / length.as_secs_f64() - *demand);
        }
        let left = room.departures();
        self.departures_per_s +=
            part * ((left - self.departures) as f64 / length.as_secs_f64() - self.departures_per_s);
        self.departures = left;
        // A place that nobody takes is worth more than a call that comes for nothing.
        let idle = room.limit().saturating_sub(room.in_flight());
        self.feed_factor =
            (self.feed_factor * if idle > 0 { 1.05 } else { 0.99 }).clamp(FEED_FACTOR_RANGE.0, FEED_FACTOR_RANGE.1);
        let height = if flow.per_s == 0.0 { 0 } else { self.rank_threshold(flow, idle) };
        if overloaded || (height > 0 && self.hold_updates > 0) {
            self.hold_updates = CALM_UPDATES;
        } else {
            self.hold_updates = self.hold_updates.saturating_sub(1);
        }
        room.set_shed_threshold(if self.hold_updates > 0 { height } else { 0 });
    }

    /// Whether more of this priority and above come than leave, or as many.
    pub(super) fn demand_trend(&self, class: usize, flow: &ServiceFlow) -> DemandTrend {
        if self.demand_per_s[class] > GROWING_DEMAND_FACTOR * self.departures_per_s.max(flow.per_s) {
            DemandTrend::Growing
        } else if self.demand_per_s[class] > STEADY_DEMAND_FRACTION * flow.per_s {
            DemandTrend::Steady
        } else {
            DemandTrend::Below
        }
    }

    fn rank_threshold(&self, flow: &ServiceFlow, idle: u32) -> u32 {
        // Each of the free ones can be taken once in the time of one look, and the bins are those of several.
        let mut left = self.feed_factor * self.seconds * flow.per_s + f64::from(idle) / (1.0 - COUNT_DECAY_FACTOR);
        for (at, count) in self.bins.iter().enumerate().rev() {
            left -= count;
            if left < 0.0 {
                // This one still comes through: it has a part of those that there is room for.
                return at as u32 * RANKS_PER_BIN;
            }
        }
        0
    }
}
