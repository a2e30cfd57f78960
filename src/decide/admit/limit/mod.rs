//! How many may be in flight, from how long things take.
//!
//! A service that can do N things at a time takes as long for one of them as it does for N; beyond that, whatever more
//! it is given waits in it, and everything takes longer in proportion. So the best limit is where the curve of times
//! over concurrency bends, and nobody has to be told where that is: those in flight are never exactly as many, each
//! that ends says how long it took beside how many, and together they draw the curve (`Map`). The limit is set a
//! little beyond the bend (`Knee`).
//!
//! What it takes for that to be true:
//!
//! - **No memory of a best time.** A limit that compares times with the least ever seen believes that a service which
//!   has become slower is overloaded, and one that compares with a slow average forgets under steady overload what
//!   unhindered was. Here the curve forgets too, but where there is no low end any more, the limit is lowered by a
//!   quarter for as long as it takes to see it again. That is no starving: the upstream is as busy as before but for
//!   the end of a queue, or loses a quarter of its work for a moment every half minute.
//! - **The other end is looked at, too.** What was learnt above the limit is forgotten within seconds. Then, if it is
//!   used, the limit is raised by a quarter for the time of an answer. If that takes no longer, it grows.
//! - **Those that began together count together.** Of what has just begun only the quick ones have ended. A sample waits
//!   until nearly all that began with it have ended, and counts up to twice the usual time.
//! - **Tails.** Whoever waits for a slot waits for the mean call, and the usual one may be far quicker. The bend is as
//!   much steeper.
//! - **A service that has changed is learnt anew.** What comes tells by being far off what is known of its like.
//! - **Refusals by the upstream are no times.** They are a ceiling.
//!
//! The curve is what Little's law demands of any service with a fixed capacity; the idea to look at the relation of
//! concurrency to what comes out, and not at times alone, is that of Uber's Cinnamon and of failsafe-go.

mod map;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::map::{Knee, LatencyCurve};
use super::{ServiceSample, Slots};
use crate::decide::Nanos;

/// While nothing speaks for a limit there is room for so many times those that were in of late, and for so many at least.
const PEAK_SLACK_FACTOR: f64 = 4.0;
const MIN_UNCONSTRAINED_LIMIT: f64 = 100.0;
/// How long a first limit stands whatever is in.
const INITIAL_LIMIT_TIME: Nanos = Nanos::from_secs(10);
/// Those that may wait in the upstream, as a share of the knee: it must not run dry between an answer and the next call.
const KNEE_HEADROOM_FRACTION: f64 = 0.03;
/// What waits in the upstream for so long (ns) harms nobody.
const TOLERATED_WAIT_NS: f64 = 1e6;
/// Where things take less than that it may be so much: such a time is the machine's more than the service's, and gets less
/// for each the more there are. As long as a stall of a shared host; DAGOR takes an average wait of 20 ms in the service for
/// overload (Zhou and others, "Overload control for scaling WeChat microservices", 2018, 4.1).
const TOLERATED_WAIT_OF_QUICK_NS: f64 = 20e6;
/// Those that come at once are let in up to the first limit; from then on there is room for twice as many until it is known
/// for how many there is.
const INITIAL_BURST_TIME: Nanos = Nanos::from_millis(100);
/// How far below and above the knee is looked at, and by how many samples times have to be known there.
const LOW_PROBE_FACTOR: f64 = 0.75;
const HIGH_PROBE_FACTOR: f64 = 1.2;
const MIN_PROBE_SAMPLES: f64 = 30.0;
/// From one such look to the next it takes so many stays.
const PROBE_INTERVAL_RESIDENCES: f64 = 8.0;
/// As many are needed to know something.
const MIN_SAMPLES: u32 = 60;
/// At first only of those that began beside so few.
const MAX_INITIAL_IN_FLIGHT: u32 = 64;
/// Samples that wait for their time.
const MAX_PENDING_SAMPLES: usize = 1024;
/// A time counts up to so many typical ones, and is waited for as long, at least.
const MAX_TIME_FACTOR: f64 = 2.0;
/// All are waited for until this share of the slow ones is still out, ...
const SLOW_FRACTION: f64 = 0.02;
/// ... of which we know by steps of this size.
const SLOW_TIME_STEP_FRACTION: f64 = 0.05;
/// The mean of all is that of so many, of which none counts more than so many typical ones.
const MEAN_SAMPLES: u32 = 1000;
const MAX_TAIL_FACTOR: f64 = 50.0;
/// A stay counts up to so many typical times.
const MAX_RESIDENCE_FACTOR: f64 = 8.0;
/// What was learnt above the limit, and up to it, is forgotten in so many stays, at least in so long (ns).
const FORGET_ABOVE_RESIDENCES_NS: (f64, f64) = (3.0, 0.5e9);
const FORGET_BELOW_RESIDENCES_NS: (f64, f64) = (60.0, 10e9);
/// From one growth to the next it takes so many stays: the last one has to show first.
const GROWTH_INTERVAL_RESIDENCES: f64 = 2.2;
/// By how much the limit grows at first, and at most.
const GROWTH_STEP_RANGE: (f64, f64) = (0.2, 1.0);
/// The upstream refuses for want of room if it refuses more than this share.
const MAX_REJECTED_FRACTION: f64 = 0.02;

/// An upstream that has answered nobody for so long, and for so many times as long as callers have, is one that calls
/// without an answer say something of.
const UNRESPONSIVE_AFTER: Nanos = Nanos::SECOND;
const UNRESPONSIVE_FACTOR: u64 = 4;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The first limit: nothing is known then, so it should only keep the worst away.
    pub initial: u32,
    /// The least, >= 1.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial: 4000, min: 1, max: 100_000 }
    }
}

/// The limit that is found out.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    options: Options,
    limit: u32,
    created_at: Nanos,
    /// When the first of all began, and whether all is still new.
    first_started: Option<Nanos>,
    is_initial_burst: bool,
    curve: LatencyCurve,
    knee: Option<Knee>,
    /// The usual time of late, in ns, but not far above that of the map's low end.
    typical_ns: f64,
    /// How long those that are in stay, on average, in ns: all of them are others after a few such times.
    residence_ns: f64,
    /// Nearly all take less, in ns, of those beside few.
    slow_ns: f64,
    /// The mean time by the usual one: some take far longer than others.
    steepness: f64,
    /// Samples, ever.
    samples: u32,
    /// Those that wait: when they began, beside how many, how long they took.
    pending: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    /// When one was answered last; that is, when the first was seen, while there was none.
    responded_at: Option<Nanos>,
    /// Of so many samples one is taken.
    sample_one_in: u64,
    window: SampleWindow,
    /// When the limit was moved last.
    changed_at: Nanos,
    /// The most that were in at once of late.
    peak: f64,
    /// By how much the limit grew last.
    growth_step: f64,
    /// Beyond it the upstream refuses.
    ceiling: f64,
    probe: Option<LimitProbe>,
}

/// A look at how long things take a little beside the knee.
#[derive(Clone, Copy, Debug)]
struct LimitProbe {
    limit: u32,
    until: Nanos,
}

/// What a call says that was not answered in its caller's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lateness {
    /// The caller had less time than answers usually take: nothing.
    ShortDeadline,
    /// An answer takes so long at least, which is longer than usual.
    Slow,
    /// That is far longer, or nobody is answered at all.
    Unresponsive,
}

/// What came between two looks.
#[derive(Clone, Copy, Debug)]
struct SampleWindow {
    since: Nanos,
    count: u32,
    /// Those that began beside about as many as there may be.
    pressed: u32,
    /// Those that the upstream had no room for, and beside how many they were, all together.
    rejected: u32,
    /// Those that were not answered in time.
    timed_out: u32,
    rejected_in_flight: u64,
}

impl SampleWindow {
    fn new(since: Nanos) -> Self {
        Self { since, count: 0, pressed: 0, rejected: 0, timed_out: 0, rejected_in_flight: 0 }
    }
}

impl AdaptiveLimit {
    /// Nothing is known yet.
    pub fn new(options: Options, now: Nanos) -> Self {
        Self {
            limit: options.initial.clamp(options.min, options.max.max(options.min)),
            options,
            created_at: now,
            first_started: None,
            is_initial_burst: true,
            curve: LatencyCurve::default(),
            knee: None,
            typical_ns: 0.0,
            residence_ns: 0.0,
            slow_ns: 0.0,
            steepness: 1.0,
            samples: 0,
            pending: BinaryHeap::new(),
            responded_at: None,
            sample_one_in: 1,
            window: SampleWindow::new(now),
            changed_at: now,
            peak: 0.0,
            growth_step: GROWTH_STEP_RANGE.0,
            ceiling: f64::INFINITY,
            probe: None,
        }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u32 {
        self.bounded(self.probe.as_ref().map_or(self.limit, |probe| probe.limit).into())
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1]; 1 while nothing hinders.
    pub fn gradient(&self) -> f64 {
        let unhindered = self.curve.no_load_ns().filter(|_| self.typical_ns > 0.0);
        unhindered.map_or(1.0, |time| (time / self.typical_ns).min(1.0))
    }

    /// How long an answer takes unhindered; none while too little is known.
    pub fn no_load_time(&self) -> Option<Nanos> {
        self.curve.no_load_ns().map(|time| Nanos(time as u64))
    }

    /// One has taken so long, or longer if it was given up as `late`; [`Nanos::NEVER`] if the upstream had no room for it.
    pub(super) fn learn(&mut self, now: Nanos, sample: &ServiceSample, took: Nanos, late: bool, room: &Slots) {
        let late = late.then(|| self.lateness(now, took));
        match late {
            None => self.responded_at = Some(now),
            Some(Lateness::ShortDeadline) => {
                self.peak = self.peak.max(f64::from(sample.in_flight_at_start));
                return;
            }
            Some(Lateness::Slow | Lateness::Unresponsive) => {}
        }
        self.window.count += 1;
        self.window.timed_out += u32::from(late == Some(Lateness::Unresponsive));
        if f64::from(sample.in_flight_at_start) >= 0.9 * f64::from(self.limit()) {
            self.window.pressed += 1;
        }
        if took == Nanos::NEVER {
            self.window.rejected += 1;
            self.window.rejected_in_flight += u64::from(sample.in_flight_at_start);
        } else {
            self.record(sample, took, late == Some(Lateness::Unresponsive));
        }
        let first = *self.first_started.get_or_insert(sample.started);
        if self.is_initial_burst && now - first >= INITIAL_BURST_TIME {
            self.is_initial_burst = false;
            self.limit = self.limit.min(self.bounded((2.0 * f64::from(room.in_flight())).max(MIN_UNCONSTRAINED_LIMIT)));
        }
        if self.samples >= MIN_SAMPLES {
            self.add_due_samples(now);
            let often = Nanos((self.typical_ns / 4.0) as u64).max(Nanos::from_millis(5));
            if now - self.window.since >= often && self.window.count >= 8 {
                self.update_limit(now, room);
            }
        }
    }

    /// What it says that a caller's time was over after this.
    fn lateness(&mut self, now: Nanos, took: Nanos) -> Lateness {
        let (answered, took_ns) = (*self.responded_at.get_or_insert(now - took), took.0 as f64);
        let silent = now - answered >= UNRESPONSIVE_AFTER.max(Nanos(took.0.saturating_mul(UNRESPONSIVE_FACTOR)));
        if silent || (self.samples > 0 && took_ns >= MAX_TIME_FACTOR * self.typical_ns) {
            Lateness::Unresponsive
        } else if self.samples > 0 && took_ns >= self.typical_ns {
            Lateness::Slow
        } else {
            Lateness::ShortDeadline
        }
    }

    fn record(&mut self, sample: &ServiceSample, took: Nanos, hopeless: bool) {
        // Of the first only the quick ones have ended yet, except of those that began before all others.
        if self.samples < MIN_SAMPLES && sample.in_flight_at_start > MAX_INITIAL_IN_FLIGHT && !hopeless {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        let most = match self.curve.no_load_ns() {
            Some(base) => 1.5 * base,
            // What comes first is quick; what comes later may have waited in a queue.
            None if self.samples > MIN_SAMPLES => self.typical_ns,
            None => f64::INFINITY,
        };
        let (took_ns, part) = (took.0 as f64, 1.0 / f64::from(self.samples.min(MIN_SAMPLES)));
        self.typical_ns += part * (took_ns.min(most) - self.typical_ns);
        self.residence_ns += part * (took_ns.min(MAX_RESIDENCE_FACTOR * self.typical_ns) - self.residence_ns);
        self.peak = self.peak.max(f64::from(sample.in_flight_at_start));
        let tail = 1.0 / f64::from(self.samples.min(MEAN_SAMPLES));
        self.steepness +=
            tail * (took_ns.min(MAX_TAIL_FACTOR * self.typical_ns) / self.typical_ns.max(1.0) - self.steepness);
        if self.samples <= MIN_SAMPLES {
            self.slow_ns = self.slow_ns.max(took_ns);
        } else if f64::from(sample.in_flight_at_start) <= self.curve.mean_in_flight() {
            let by =
                SLOW_TIME_STEP_FRACTION * if took_ns > self.slow_ns { 1.0 - SLOW_FRACTION } else { -SLOW_FRACTION };
            self.slow_ns *= 1.0 + by;
        }
        // Chosen by when it began, which has nothing to do with how long it took.
        let chosen = (sample.started.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(self.sample_one_in);
        if chosen && self.pending.len() < MAX_PENDING_SAMPLES {
            self.pending.push(Reverse((sample.started, sample.in_flight_at_start, took.0)));
        }
    }

    /// Puts those into the map whose time has come.
    fn add_due_samples(&mut self, now: Nanos) {
        let most = MAX_TIME_FACTOR * self.typical_ns;
        let wait = Nanos(most.max(self.slow_ns) as u64);
        while let Some(Reverse((began, beside, took))) = self.pending.peek().copied() {
            if now - began < wait {
                break;
            }
            self.pending.pop();
            self.curve.add(f64::from(beside), (took as f64).min(most));
        }
    }

    /// Sets the limit anew.
    fn update_limit(&mut self, now: Nanos, room: &Slots) {
        let window = std::mem::replace(&mut self.window, SampleWindow::new(now));
        let passed = (now - window.since).0 as f64;
        let stay = self.residence_ns.max(self.slow_ns / 3.0).max(1.0);
        let pressed = window.pressed * 2 >= window.count || room.waiting() > 0;
        let kept = |(times, least): (f64, f64)| (-passed / least.max(times * stay)).exp();

        self.update_ceiling(&window, pressed, passed / stay);
        self.adapt_sampling();
        self.peak *= kept(FORGET_BELOW_RESIDENCES_NS);
        self.curve.forget(
            f64::from(self.limit),
            kept((self.min_residences(FORGET_ABOVE_RESIDENCES_NS.0), FORGET_ABOVE_RESIDENCES_NS.1)),
            kept(FORGET_BELOW_RESIDENCES_NS),
        );
        self.knee = match (self.curve.knee(MAX_TIME_FACTOR, self.steepness.max(1.0), self.knee, pressed), self.knee) {
            // Nothing speaks for it any more, and nothing against it.
            (None, Some(before)) if self.samples_above(before) < 1.3 * MIN_PROBE_SAMPLES => Some(before),
            (Some(found), Some(before)) => Some(before.towards(found)),
            (found, _) => found,
        };
        if let Some(probe) = &self.probe {
            if now < probe.until {
                return;
            }
            self.probe = None;
            self.changed_at = now;
        }
        let since = (now - self.changed_at).0 as f64 / stay;
        match self.knee {
            Some(knee) => {
                self.growth_step = GROWTH_STEP_RANGE.0;
                self.limit = self.bounded(self.limit_for_knee(knee));
                if pressed && since > PROBE_INTERVAL_RESIDENCES {
                    self.begin_probe(now, knee);
                }
            }
            // All that is known of those is that they take too long, beside however many.
            None if window.timed_out * 2 > window.count && since > GROWTH_INTERVAL_RESIDENCES => {
                self.growth_step = GROWTH_STEP_RANGE.0;
                self.limit = self.bounded(f64::from(self.limit.min(room.in_flight())) * LOW_PROBE_FACTOR);
                self.changed_at = now;
            }
            None if pressed && window.timed_out * 10 <= window.count && since > GROWTH_INTERVAL_RESIDENCES => {
                self.growth_step = (self.growth_step * 2.0).clamp(GROWTH_STEP_RANGE.0, GROWTH_STEP_RANGE.1);
                self.limit = self.bounded(f64::from(self.limit) * (1.0 + self.growth_step));
                self.changed_at = now;
            }
            None if !pressed && now - self.created_at >= INITIAL_LIMIT_TIME => {
                self.limit = self.limit.min(self.bounded((PEAK_SLACK_FACTOR * self.peak).max(MIN_UNCONSTRAINED_LIMIT)));
            }
            None => {}
        }
    }

    /// So many stays, but as many as it takes for enough to begin where there are few places.
    fn min_residences(&self, stays: f64) -> f64 {
        stays.max(2.0 * MIN_PROBE_SAMPLES / f64::from(self.limit.max(1)))
    }

    /// The knee, and what may wait beyond it.
    fn limit_for_knee(&self, knee: Knee) -> f64 {
        let unhindered = self.curve.no_load_ns().unwrap_or(self.typical_ns).max(1.0);
        let tolerated = if unhindered < TOLERATED_WAIT_NS { TOLERATED_WAIT_OF_QUICK_NS } else { TOLERATED_WAIT_NS };
        knee.in_flight * (1.0 + KNEE_HEADROOM_FRACTION + tolerated / unhindered)
    }

    fn samples_above(&self, knee: Knee) -> f64 {
        let limit = self.limit_for_knee(knee);
        self.curve.weight()
            - self.curve.weight_up_to((limit + 1.0).max(limit + knee.in_flight * KNEE_HEADROOM_FRACTION))
    }

    /// Looks to one side of the knee if too little is known there.
    fn begin_probe(&mut self, now: Nanos, knee: Knee) {
        let (to, length) = if self.curve.weight_up_to(knee.in_flight * (LOW_PROBE_FACTOR + 0.05)) < MIN_PROBE_SAMPLES {
            // Time for those to leave that are too many, and for as many to begin as it takes to know.
            (knee.in_flight * LOW_PROBE_FACTOR, 1.5)
        } else if self.samples_above(knee) < 1.3 * MIN_PROBE_SAMPLES {
            (self.limit_for_knee(knee) * HIGH_PROBE_FACTOR, 1.0)
        } else {
            return;
        };
        let limit = self.bounded(to);
        let until = now + Nanos((self.min_residences(length) * self.residence_ns) as u64);
        self.probe = Some(LimitProbe { limit, until });
    }

    /// Keeps below what the upstream refuses, and tries a little more again.
    fn update_ceiling(&mut self, window: &SampleWindow, pressed: bool, passed: f64) {
        let share = f64::from(window.rejected) / f64::from(window.count);
        if share > MAX_REJECTED_FRACTION {
            let beside = window.rejected_in_flight as f64 / f64::from(window.rejected);
            self.ceiling = (0.97 * beside).min(self.ceiling).max(1.0);
        } else if pressed {
            self.ceiling *= 1.0 + 0.025 * passed;
        }
    }

    /// Takes fewer samples where there are many.
    fn adapt_sampling(&mut self) {
        if self.pending.len() > MAX_PENDING_SAMPLES / 2 {
            self.sample_one_in = self.sample_one_in.saturating_mul(2);
        } else if self.pending.len() < MAX_PENDING_SAMPLES / 8 {
            self.sample_one_in = (self.sample_one_in / 2).max(1);
        }
    }

    fn bounded(&self, limit: f64) -> u32 {
        (limit.min(self.ceiling).ceil() as u32).clamp(self.options.min, self.options.max.max(self.options.min))
    }
}
