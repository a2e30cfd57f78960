//! The adaptive concurrency limit: calls in flight at one upstream, estimated from service times.
//!
//! A service that can do N things at a time takes as long for one of them as for N; beyond that the others wait in it,
//! and everything takes longer in proportion. So the best limit is the knee of service times over concurrency. It needs
//! no configuration: calls in flight vary, each call that ends is a sample of its time at its concurrency, and together
//! they are the curve (`LatencyCurve`). The limit is a little above the knee (`Knee`).
//!
//! Design:
//!
//! - **No best time is kept.** A limit that is relative to the shortest time ever takes a service that has become
//!   slower for overloaded; one that is relative to a slow average forgets under steady overload what unloaded was.
//!   Here the curve forgets too, but when no samples at low concurrency are left, the limit is lowered by a quarter for
//!   as long as it takes to get some. The upstream loses the end of a queue, or a quarter of its work for a moment
//!   every half minute.
//! - **Both ends are probed.** Samples above the limit are forgotten within seconds. Then, if the limit is used, it is
//!   raised by a fifth for a service time. If that takes no longer, it grows.
//! - **Calls that began together count together.** Of recent calls only quick ones have ended. A sample waits until
//!   nearly all calls that began with it have ended, and counts up to twice the typical time.
//! - **Tails.** The wait for a slot is that of the mean call, and the typical one may be far quicker. The curve above
//!   the knee is steeper by that ratio.
//! - **Change.** Samples that are far from earlier ones at their concurrency show that the service has changed; then
//!   the earlier ones count little.
//! - **Rejections by the upstream are not times.** They set a ceiling.
//!
//! The curve is Little's law for a service of fixed capacity; looking at the relation of concurrency and throughput,
//! and not at times alone, is the idea of Uber's Cinnamon and of failsafe-go. `docs/design/overload.md` compares
//! others.

mod map;
mod sample_window;
#[cfg(test)]
mod tests;
mod tuning;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::map::{Knee, LatencyCurve};
use self::sample_window::SampleWindow;
use self::tuning::{
    FORGET_ABOVE_RESIDENCES_NS, FORGET_BELOW_RESIDENCES_NS, GROWTH_INTERVAL_RESIDENCES, GROWTH_STEP_RANGE,
    HIGH_PROBE_FACTOR, INITIAL_BURST_TIME, INITIAL_LIMIT_TIME, KNEE_HEADROOM_FRACTION, LOW_PROBE_FACTOR,
    MAX_INITIAL_IN_FLIGHT, MAX_PENDING_SAMPLES, MAX_REJECTED_FRACTION, MAX_RESIDENCE_FACTOR, MAX_TAIL_FACTOR,
    MAX_TIME_FACTOR, MEAN_SAMPLES, MIN_PROBE_SAMPLES, MIN_SAMPLES, MIN_UNCONSTRAINED_LIMIT, PEAK_SLACK_FACTOR,
    PROBE_INTERVAL_RESIDENCES, SLOW_FRACTION, SLOW_TIME_STEP_FRACTION, TOLERATED_WAIT_NS, TOLERATED_WAIT_OF_QUICK_NS,
    UNRESPONSIVE_AFTER, UNRESPONSIVE_FACTOR,
};
use super::{ServiceSample, Slots};
use weir_base::Nanos;

/// Bounds of the adaptive limit, in calls in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Limit before the first estimate: high, against the worst only. 4,000 by default, so that 1,000 users who arrive
    /// at once are admitted.
    pub initial: u32,
    /// Lower bound, >= 1.
    pub min: u32,
    /// Upper bound.
    pub max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial: 4000, min: 1, max: 100_000 }
    }
}

/// Estimator of the concurrency limit of one upstream. Samples go in ([`Admission::ended`](super::Admission::ended)),
/// the limit comes out.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    options: Options,
    limit: u32,
    created_at: Nanos,
    /// Start of the first call, and whether the initial burst goes on.
    first_started: Option<Nanos>,
    is_initial_burst: bool,
    curve: LatencyCurve,
    /// Knee of the curve; `None` while there is no evidence for one.
    knee: Option<Knee>,
    /// Typical recent service time, in ns; capped near that at low concurrency.
    typical_ns: f64,
    /// Residence time, in ns: mean time in the upstream. After a few of them all calls in flight have changed.
    residence_ns: f64,
    /// Service time, in ns, that all but [`SLOW_FRACTION`] of the calls at low concurrency stay below.
    slow_ns: f64,
    /// Mean service time / typical service time: more than 1 with a tail.
    steepness: f64,
    /// Samples so far.
    samples: u32,
    /// Samples that do not count yet: start, calls in flight, service time in ns.
    pending: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    /// Time of the last response; before the first one, start of the first late call.
    responded_at: Option<Nanos>,
    /// One in N samples is taken.
    sample_one_in: u64,
    window: SampleWindow,
    /// Time of the last change of the limit by growth or a probe.
    changed_at: Nanos,
    /// Recent peak of calls in flight, decaying.
    peak: f64,
    /// Last step of growth, as a fraction of the limit.
    growth_step: f64,
    /// Calls in flight at which the upstream rejects.
    ceiling: f64,
    probe: Option<LimitProbe>,
}

/// Probe: a limit beside the knee for a moment, to get samples there.
#[derive(Clone, Copy, Debug)]
struct LimitProbe {
    limit: u32,
    until: Nanos,
}

/// Evidence of a call without a response before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lateness {
    /// None: the caller had less time than calls typically take.
    ShortDeadline,
    /// A lower bound of the service time, longer than typical.
    Slow,
    /// Far longer than typical, or no call gets a response.
    Unresponsive,
}

impl AdaptiveLimit {
    /// An estimator without samples.
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

    /// Current limit of calls in flight.
    pub fn limit(&self) -> u32 {
        self.bounded(self.probe.as_ref().map_or(self.limit, |probe| probe.limit).into())
    }

    /// Unloaded service time / recent service time, in (0, 1]; 1 without load.
    pub fn gradient(&self) -> f64 {
        let no_load = self.curve.no_load_ns().filter(|_| self.typical_ns > 0.0);
        no_load.map_or(1.0, |time| (time / self.typical_ns).min(1.0))
    }

    /// Unloaded service time; `None` with too few samples.
    pub fn no_load_time(&self) -> Option<Nanos> {
        self.curve.no_load_ns().map(|time| Nanos(time as u64))
    }

    /// Adds a sample: the service time, or with `late` a lower bound of it (the call was cancelled at its deadline);
    /// [`Nanos::NEVER`] if the upstream rejected the call for overload.
    pub(super) fn learn(&mut self, now: Nanos, sample: &ServiceSample, time: Nanos, late: bool, slots: &Slots) {
        let late = late.then(|| self.lateness(now, time));
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
        if time == Nanos::NEVER {
            self.window.rejected += 1;
            self.window.rejected_in_flight += u64::from(sample.in_flight_at_start);
        } else {
            self.record(sample, time, late == Some(Lateness::Unresponsive));
        }
        let first = *self.first_started.get_or_insert(sample.started);
        if self.is_initial_burst && now - first >= INITIAL_BURST_TIME {
            self.is_initial_burst = false;
            self.limit =
                self.limit.min(self.bounded((2.0 * f64::from(slots.in_flight())).max(MIN_UNCONSTRAINED_LIMIT)));
        }
        if self.samples >= MIN_SAMPLES {
            self.add_due_samples(now);
            let interval = Nanos((self.typical_ns / 4.0) as u64).max(Nanos::from_millis(5));
            if now - self.window.since >= interval && self.window.count >= 8 {
                self.update_limit(now, slots);
            }
        }
    }

    /// Evidence of a call that was cancelled at its deadline, after `time`.
    fn lateness(&mut self, now: Nanos, time: Nanos) -> Lateness {
        let (responded_at, time_ns) = (*self.responded_at.get_or_insert(now - time), time.0 as f64);
        let unresponsive =
            now - responded_at >= UNRESPONSIVE_AFTER.max(Nanos(time.0.saturating_mul(UNRESPONSIVE_FACTOR)));
        if unresponsive || (self.samples > 0 && time_ns >= MAX_TIME_FACTOR * self.typical_ns) {
            Lateness::Unresponsive
        } else if self.samples > 0 && time_ns >= self.typical_ns {
            Lateness::Slow
        } else {
            Lateness::ShortDeadline
        }
    }

    /// Updates the averages with a service time, and keeps it for the curve.
    fn record(&mut self, sample: &ServiceSample, time: Nanos, unresponsive: bool) {
        // Of many calls that began together only quick ones have ended yet.
        if self.samples < MIN_SAMPLES && sample.in_flight_at_start > MAX_INITIAL_IN_FLIGHT && !unresponsive {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        let cap = match self.curve.no_load_ns() {
            Some(no_load_ns) => 1.5 * no_load_ns,
            // The first calls are unloaded; later ones may have waited in a queue.
            None if self.samples > MIN_SAMPLES => self.typical_ns,
            None => f64::INFINITY,
        };
        let (time_ns, weight) = (time.0 as f64, 1.0 / f64::from(self.samples.min(MIN_SAMPLES)));
        self.typical_ns += weight * (time_ns.min(cap) - self.typical_ns);
        self.residence_ns += weight * (time_ns.min(MAX_RESIDENCE_FACTOR * self.typical_ns) - self.residence_ns);
        self.peak = self.peak.max(f64::from(sample.in_flight_at_start));
        let tail_weight = 1.0 / f64::from(self.samples.min(MEAN_SAMPLES));
        self.steepness +=
            tail_weight * (time_ns.min(MAX_TAIL_FACTOR * self.typical_ns) / self.typical_ns.max(1.0) - self.steepness);
        if self.samples <= MIN_SAMPLES {
            self.slow_ns = self.slow_ns.max(time_ns);
        } else if f64::from(sample.in_flight_at_start) <= self.curve.mean_in_flight() {
            let step =
                SLOW_TIME_STEP_FRACTION * if time_ns > self.slow_ns { 1.0 - SLOW_FRACTION } else { -SLOW_FRACTION };
            self.slow_ns *= 1.0 + step;
        }
        // Chosen by the start time, which is independent of the service time.
        let chosen = (sample.started.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(self.sample_one_in);
        if chosen && self.pending.len() < MAX_PENDING_SAMPLES {
            self.pending.push(Reverse((sample.started, sample.in_flight_at_start, time.0)));
        }
    }

    /// Adds samples to the curve when nearly all calls that began with them have ended.
    fn add_due_samples(&mut self, now: Nanos) {
        let cap = MAX_TIME_FACTOR * self.typical_ns;
        let wait = Nanos(cap.max(self.slow_ns) as u64);
        while let Some(Reverse((started, in_flight, time))) = self.pending.peek().copied() {
            if now - started < wait {
                break;
            }
            self.pending.pop();
            self.curve.add(f64::from(in_flight), (time as f64).min(cap));
        }
    }

    /// Updates knee and limit. With a knee the limit follows it, and probes beside it when samples are missing. Without
    /// one it falls while no call gets a response, grows while it is used, and otherwise falls to the recent peak.
    fn update_limit(&mut self, now: Nanos, slots: &Slots) {
        let window = std::mem::replace(&mut self.window, SampleWindow::new(now));
        let passed_ns = (now - window.since).0 as f64;
        let residence_ns = self.residence_ns.max(self.slow_ns / 3.0).max(1.0);
        let pressed = window.pressed * 2 >= window.count || slots.waiting() > 0;
        let decay = |(residences, min_ns): (f64, f64)| (-passed_ns / min_ns.max(residences * residence_ns)).exp();

        self.update_ceiling(&window, pressed, passed_ns / residence_ns);
        self.adapt_sampling();
        self.peak *= decay(FORGET_BELOW_RESIDENCES_NS);
        self.curve.forget(
            f64::from(self.limit),
            decay((self.min_residences(FORGET_ABOVE_RESIDENCES_NS.0), FORGET_ABOVE_RESIDENCES_NS.1)),
            decay(FORGET_BELOW_RESIDENCES_NS),
        );
        self.knee = match (self.curve.knee(MAX_TIME_FACTOR, self.steepness.max(1.0), self.knee, pressed), self.knee) {
            // No evidence for the knee any more, and too few samples above it to disprove it.
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
        let residences_since_change = (now - self.changed_at).0 as f64 / residence_ns;
        match self.knee {
            Some(knee) => {
                self.growth_step = GROWTH_STEP_RANGE.0;
                self.limit = self.bounded(self.limit_for_knee(knee));
                if pressed && residences_since_change > PROBE_INTERVAL_RESIDENCES {
                    self.begin_probe(now, knee);
                }
            }
            // Most calls get no response in time, whatever the concurrency.
            None if window.timed_out * 2 > window.count && residences_since_change > GROWTH_INTERVAL_RESIDENCES => {
                self.growth_step = GROWTH_STEP_RANGE.0;
                self.limit = self.bounded(f64::from(self.limit.min(slots.in_flight())) * LOW_PROBE_FACTOR);
                self.changed_at = now;
            }
            None if pressed
                && window.timed_out * 10 <= window.count
                && residences_since_change > GROWTH_INTERVAL_RESIDENCES =>
            {
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

    /// Residence times, but as many as enough samples take under a low limit.
    fn min_residences(&self, residences: f64) -> f64 {
        residences.max(2.0 * MIN_PROBE_SAMPLES / f64::from(self.limit.max(1)))
    }

    /// Limit for a knee: the knee, headroom, and the tolerated queue in the upstream.
    fn limit_for_knee(&self, knee: Knee) -> f64 {
        let no_load = self.curve.no_load_ns().unwrap_or(self.typical_ns).max(1.0);
        let tolerated = if no_load < TOLERATED_WAIT_NS { TOLERATED_WAIT_OF_QUICK_NS } else { TOLERATED_WAIT_NS };
        knee.in_flight * (1.0 + KNEE_HEADROOM_FRACTION + tolerated / no_load)
    }

    /// Weight of the samples above the limit for this knee.
    fn samples_above(&self, knee: Knee) -> f64 {
        let limit = self.limit_for_knee(knee);
        self.curve.weight()
            - self.curve.weight_up_to((limit + 1.0).max(limit + knee.in_flight * KNEE_HEADROOM_FRACTION))
    }

    /// Begins a probe to a side of the knee that has too few samples.
    fn begin_probe(&mut self, now: Nanos, knee: Knee) {
        let (target, residences) =
            if self.curve.weight_up_to(knee.in_flight * (LOW_PROBE_FACTOR + 0.05)) < MIN_PROBE_SAMPLES {
                // Long enough for the excess calls to end, and for enough samples to begin.
                (knee.in_flight * LOW_PROBE_FACTOR, 1.5)
            } else if self.samples_above(knee) < 1.3 * MIN_PROBE_SAMPLES {
                (self.limit_for_knee(knee) * HIGH_PROBE_FACTOR, 1.0)
            } else {
                return;
            };
        let limit = self.bounded(target);
        let until = now + Nanos((self.min_residences(residences) * self.residence_ns) as u64);
        self.probe = Some(LimitProbe { limit, until });
    }

    /// Lowers the ceiling below the concurrency at which the upstream rejects, and raises it by 2.5% per residence time
    /// while the limit is used.
    fn update_ceiling(&mut self, window: &SampleWindow, pressed: bool, residences: f64) {
        let rejected = f64::from(window.rejected) / f64::from(window.count);
        if rejected > MAX_REJECTED_FRACTION {
            let in_flight = window.rejected_in_flight as f64 / f64::from(window.rejected);
            self.ceiling = (0.97 * in_flight).min(self.ceiling).max(1.0);
        } else if pressed {
            self.ceiling *= 1.0 + 0.025 * residences;
        }
    }

    /// Doubles or halves the sampling interval, by the number of pending samples.
    fn adapt_sampling(&mut self) {
        if self.pending.len() > MAX_PENDING_SAMPLES / 2 {
            self.sample_one_in = self.sample_one_in.saturating_mul(2);
        } else if self.pending.len() < MAX_PENDING_SAMPLES / 8 {
            self.sample_one_in = (self.sample_one_in / 2).max(1);
        }
    }

    /// Limit within the bounds and the ceiling.
    fn bounded(&self, limit: f64) -> u32 {
        (limit.min(self.ceiling).ceil() as u32).clamp(self.options.min, self.options.max.max(self.options.min))
    }
}
