//! Time in slots by origin, in fixed memory but for one entry per route.
//!
//! Counts fade evenly, so that each is of the last `window`. What is in flight counts as it goes on: a call of a minute
//! would be known too late if it counted when it ends.
//!
//! With more origins than entries, those with the least use are evicted. Totals of routes are exact nevertheless, so
//! that callers with invented names hide no route.

use std::collections::BTreeMap;

use super::{CallOrigin, OriginGroup};
use weir_base::Nanos;
use weir_base::set_cache::SetCache;

/// Interval at which counts fade.
pub(super) const STEP: Nanos = Nanos::from_millis(100);
/// Time from which totals are worth a decision.
const MIN_KNOWN_S: f64 = 0.5;
/// Time of the fading mean of slots in use: a window of ten seconds knows calls of some seconds too late. Chosen by the
/// simulation's scenarios.
const RECENT: Nanos = Nanos::SECOND;
/// Use below which an entry is cleared, in slot seconds and in calls.
const MIN_USE: f64 = 0.01;
/// Odd number that spreads the routes of a caller over the table (golden ratio).
const ROUTE_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Fading counts of a group of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OriginUse {
    origin: CallOrigin,
    in_flight: u32,
    /// Time in slots, in seconds, until `settled_at`.
    slot_s: f64,
    settled_at: Nanos,
    arrived: f64,
    started: f64,
    /// Slots of the last moment, as a fading mean.
    recent: f64,
}

/// Fractions of counts that are kept in a step.
#[derive(Clone, Copy, Debug)]
struct KeptFractions {
    /// Of those over the window.
    window: f64,
    /// Of those of recent calls.
    recent: f64,
}

impl OriginUse {
    fn settle(&mut self, now: Nanos) {
        self.slot_s += f64::from(self.in_flight) * (now - self.settled_at).as_secs_f64();
        self.settled_at = self.settled_at.max(now);
    }

    fn fade(&mut self, now: Nanos, window_s: f64, kept: KeptFractions) {
        let fresh = 1.0 - (-(now - self.settled_at).as_secs_f64() / window_s).exp();
        self.slot_s = self.slot_s * kept.window + f64::from(self.in_flight) * window_s * fresh;
        self.settled_at = self.settled_at.max(now);
        self.arrived *= kept.window;
        self.started *= kept.window;
        self.recent = self.recent * kept.recent + f64::from(self.in_flight) * (1.0 - kept.recent);
    }

    fn is_nothing(&self) -> bool {
        self.in_flight == 0 && self.slot_s < MIN_USE && self.arrived < MIN_USE
    }

    /// What an entry is worth in a full table.
    fn worth(&self) -> (u32, f64) {
        (self.in_flight, self.slot_s + self.arrived * MIN_USE)
    }
}

/// Recent use of slots by one origin, or by the callers of a route that have no entry of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UseRow {
    pub(super) route: u64,
    pub(super) caller: Option<u64>,
    pub(super) in_flight: u32,
    /// Mean number of slots, ...
    pub(super) slots: f64,
    /// ... and that of the last moment.
    pub(super) recent: f64,
    /// Calls, as fading counts.
    pub(super) arrived: f64,
    pub(super) started: f64,
}

impl UseRow {
    pub(super) fn is_in(&self, group: &OriginGroup) -> bool {
        match *group {
            OriginGroup::Origin(of) => self.route == of.route && self.caller == Some(of.caller),
            OriginGroup::Caller(caller) => self.caller == Some(caller),
            OriginGroup::Route(route) => self.route == route,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct UseTable {
    window_s: f64,
    origins: SetCache<OriginUse>,
    routes: BTreeMap<u64, OriginUse>,
    /// Time that the counts are of, with the same fading.
    seconds: f64,
    faded_at: Nanos,
}

impl UseTable {
    pub(super) fn new(window: Nanos, entries: usize, now: Nanos) -> Self {
        Self {
            window_s: window.as_secs_f64(),
            origins: SetCache::new(entries),
            routes: BTreeMap::new(),
            seconds: 0.0,
            faded_at: now,
        }
    }

    /// Lets counts fade; true if a step was over.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let passed = now - self.faded_at;
        if passed < STEP {
            return false;
        }
        self.faded_at = now;
        let of = |time_s: f64| (-passed.as_secs_f64() / time_s).exp();
        let kept = KeptFractions { window: of(self.window_s), recent: of(RECENT.as_secs_f64()) };
        self.seconds = self.seconds * kept.window + self.window_s * (1.0 - kept.window);
        for of in self.origins.values_mut().filter(|of| **of != OriginUse::default()) {
            of.fade(now, self.window_s, kept);
            if of.is_nothing() {
                *of = OriginUse::default();
            }
        }
        self.routes.retain(|_, of| {
            of.fade(now, self.window_s, kept);
            !of.is_nothing()
        });
        true
    }

    /// Time that the counts are of, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Whether counts are of more than a moment.
    pub(super) fn is_warm(&self) -> bool {
        self.seconds >= MIN_KNOWN_S.min(self.window_s / 2.0)
    }

    pub(super) fn arrived(&mut self, now: Nanos, origin: CallOrigin) {
        self.change(now, origin, |of| of.arrived += 1.0);
    }

    pub(super) fn started(&mut self, now: Nanos, origin: CallOrigin) {
        self.change(now, origin, |of| {
            of.started += 1.0;
            of.in_flight += 1;
        });
    }

    /// A call that was counted as started has never begun.
    pub(super) fn not_started(&mut self, origin: CallOrigin) {
        let less = |of: &mut OriginUse| of.started = (of.started - 1.0).max(0.0);
        self.origins.get_mut(key(origin)).into_iter().for_each(less);
        self.routes.get_mut(&origin.route).into_iter().for_each(less);
    }

    pub(super) fn ended(&mut self, now: Nanos, origin: CallOrigin) {
        let end = |of: &mut OriginUse| {
            of.settle(now);
            of.in_flight = of.in_flight.saturating_sub(1);
        };
        // An entry that was evicted meanwhile has no call in flight.
        self.origins.get_mut(key(origin)).into_iter().for_each(end);
        self.routes.get_mut(&origin.route).into_iter().for_each(end);
    }

    fn change(&mut self, now: Nanos, origin: CallOrigin, change: impl Fn(&mut OriginUse)) {
        let of_origin = self.origins.get_or_insert(key(origin), OriginUse::worth);
        of_origin.origin = origin;
        of_origin.settle(now);
        change(of_origin);
        let of_route = self.routes.entry(origin.route).or_default();
        of_route.settle(now);
        change(of_route);
    }

    /// Use of all origins until now.
    pub(super) fn rows(&self, now: Nanos) -> Vec<UseRow> {
        let seconds = self.seconds.max(f64::MIN_POSITIVE);
        let row = |of: &OriginUse, route, caller| {
            let mut of = *of;
            of.settle(now);
            let OriginUse { in_flight, slot_s, arrived, started, recent, .. } = of;
            UseRow { route, caller, in_flight, slots: slot_s / seconds, recent, arrived, started }
        };
        let known = self.origins.values().filter(|of| !of.is_nothing());
        let mut rows: Vec<UseRow> = known.map(|of| row(of, of.origin.route, Some(of.origin.caller))).collect();
        let mut others: BTreeMap<u64, UseRow> =
            self.routes.iter().map(|(route, of)| (*route, row(of, *route, None))).collect();
        for of in &rows {
            if let Some(rest) = others.get_mut(&of.route) {
                rest.in_flight = rest.in_flight.saturating_sub(of.in_flight);
                rest.slots = (rest.slots - of.slots).max(0.0);
                rest.recent = (rest.recent - of.recent).max(0.0);
                rest.arrived = (rest.arrived - of.arrived).max(0.0);
                rest.started = (rest.started - of.started).max(0.0);
            }
        }
        // What rounding leaves over belongs to no row.
        rows.extend(others.into_values().filter(|of| of.slots * seconds >= MIN_USE || of.arrived >= MIN_USE));
        rows
    }
}

/// Place of an origin in the table.
fn key(origin: CallOrigin) -> u64 {
    origin.caller ^ origin.route.wrapping_mul(ROUTE_FACTOR)
}
