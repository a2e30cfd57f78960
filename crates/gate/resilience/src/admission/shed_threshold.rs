//! The shed threshold: the rank below which calls are rejected at once.
//!
//! Under overload a rejection has to cost next to nothing, or rejecting becomes the load. The threshold is a number
//! that each call is compared with before it touches anything else. It admits a little more than the capacity, so that
//! the queue behind it always has a call for a free slot.

use super::service_rate::ServiceFlow;
use super::slots::{RANK_BINS, RANKS_PER_BIN};
use super::{Priority, Slots};
use weir_base::Nanos;

const PRIORITIES: usize = Priority::ALL.len();
/// Update interval of the threshold. Chosen by the simulation's scenarios.
const UPDATE_INTERVAL: Nanos = Nanos::from_millis(50);
/// Admitted calls per call of capacity, minimum and maximum: a twentieth more than fits uses the capacity to the last
/// slot. Chosen by the simulation's scenarios.
const FEED_FACTOR_RANGE: (f64, f64) = (1.05, 1.5);
/// Weight that earlier arrival counts keep per update: a memory of five intervals. Chosen by the simulation's
/// scenarios.
const COUNT_DECAY_FACTOR: f64 = 0.8;
/// Calls over which demand is averaged, beyond a second: few calls arrive unevenly. Chosen by the simulation's
/// scenarios.
const SMOOTHING_CALLS: f64 = 50.0;
/// Updates without overload after which the threshold is lifted. Chosen by the simulation's scenarios.
const CALM_UPDATES: u32 = 4;

/// Arrivals per call of capacity below which overload ends. From ten seeds of `step-down` and `slower-service`.
const STEADY_DEMAND_FRACTION: f64 = 0.95;
/// Arrivals per completion above which overload begins: in a closed loop they are equal, however many connections there
/// are. From ten seeds of `step-down` and `slower-service`; with 1.05 the limit settled later.
const GROWING_DEMAND_FACTOR: f64 = 1.02;

/// Arrivals relative to completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DemandTrend {
    /// Fewer arrivals than [`STEADY_DEMAND_FRACTION`] of the capacity.
    Below,
    /// Between the two.
    Steady,
    /// More arrivals than [`GROWING_DEMAND_FACTOR`] times the completions.
    Growing,
}

/// Arrivals by rank, and the threshold that follows from them.
#[derive(Clone, Debug)]
pub(super) struct ShedThreshold {
    updated_at: Nanos,
    /// Decaying counts of arrivals by rank.
    bins: [f64; RANK_BINS],
    /// Time that `bins` cover, with the same decay.
    seconds: f64,
    /// Admitted calls per call of capacity, in [`FEED_FACTOR_RANGE`].
    feed_factor: f64,
    /// Updates for which the threshold is still kept; 0 without a threshold.
    hold_updates: u32,
    /// Arrivals per second of each priority and those above it.
    demand_per_s: [f64; PRIORITIES],
    /// Ended calls: so far, and per second over the same time as the demand.
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

    /// Updates the threshold if an interval has passed.
    pub(super) fn update(&mut self, now: Nanos, slots: &Slots, flow: &ServiceFlow, overloaded: bool) {
        let length = now - self.updated_at;
        if length < UPDATE_INTERVAL {
            return;
        }
        self.updated_at = now;
        self.seconds = self.seconds * COUNT_DECAY_FACTOR + length.as_secs_f64();
        let arrivals = slots.take_arrivals();
        for (bin, count) in self.bins.iter_mut().zip(arrivals) {
            *bin = *bin * COUNT_DECAY_FACTOR + f64::from(count);
        }
        let weight = 1.0 - (-length.as_secs_f64() / (1.0 + SMOOTHING_CALLS / flow.per_s.max(1.0))).exp();
        for (class, demand) in self.demand_per_s.iter_mut().enumerate() {
            let count: u32 = arrivals[class * RANK_BINS / PRIORITIES..].iter().sum();
            *demand += weight * (f64::from(count) / length.as_secs_f64() - *demand);
        }
        let departures = slots.departures();
        self.departures_per_s +=
            weight * ((departures - self.departures) as f64 / length.as_secs_f64() - self.departures_per_s);
        self.departures = departures;
        // An idle slot costs more than a call that is admitted in vain.
        let idle = slots.limit().saturating_sub(slots.in_flight());
        self.feed_factor =
            (self.feed_factor * if idle > 0 { 1.05 } else { 0.99 }).clamp(FEED_FACTOR_RANGE.0, FEED_FACTOR_RANGE.1);
        let threshold = if flow.per_s == 0.0 { 0 } else { self.rank_threshold(flow, idle) };
        if overloaded || (threshold > 0 && self.hold_updates > 0) {
            self.hold_updates = CALM_UPDATES;
        } else {
            self.hold_updates = self.hold_updates.saturating_sub(1);
        }
        slots.set_shed_threshold(if self.hold_updates > 0 { threshold } else { 0 });
    }

    /// Arrivals of this priority and above, relative to completions.
    pub(super) fn demand_trend(&self, class: usize, flow: &ServiceFlow) -> DemandTrend {
        if self.demand_per_s[class] > GROWING_DEMAND_FACTOR * self.departures_per_s.max(flow.per_s) {
            DemandTrend::Growing
        } else if self.demand_per_s[class] > STEADY_DEMAND_FRACTION * flow.per_s {
            DemandTrend::Steady
        } else {
            DemandTrend::Below
        }
    }

    /// Lowest rank that is admitted, for this flow and idle slots.
    fn rank_threshold(&self, flow: &ServiceFlow, idle: u32) -> u32 {
        // Each idle slot can be taken once per update, and the bins cover several updates.
        let mut capacity = self.feed_factor * self.seconds * flow.per_s + f64::from(idle) / (1.0 - COUNT_DECAY_FACTOR);
        for (at, count) in self.bins.iter().enumerate().rev() {
            capacity -= count;
            if capacity < 0.0 {
                // This bin is admitted whole: a part of it fits.
                return at as u32 * RANKS_PER_BIN;
            }
        }
        0
    }
}
