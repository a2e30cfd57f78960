//! The pace that a service sustains, learnt from its responses: how many requests per second, and how many in flight.
//!
//! ```text
//!            rejected               a rejection with far fewer in flight,
//!   free ───────────────► unsure ───────────────────────────────────────► rate
//!     no limit at all       │  one probe, then as many as before              ▲
//!                           │ a rejection at the same number in flight        │ with far fewer
//!                           └───────────────────────────────────────────► concurrency
//! ```
//!
//! - **Free.** Until the first rejection there is no limit but a ramp: the requests in flight double with each round trip, and
//!   grow by 250 per second at least.
//! - **An event** is the first rejection and all others of requests that were sent before it came. Then sending stops for
//!   `Retry-After`, or for gaps that double, and a single *probe* tells that it can go on. A rejected probe with little in
//!   flight is proof of a limit by time.
//! - **Rate.** Requests are spaced evenly. What was accepted between two recoveries, over the time between them, is the rate
//!   of any limit by time, whatever its window and its burst: a window that is used up waits for its end, and a bucket
//!   that is empty for its refill. The rate grows in small steps: quickly where it has not been rejected, rarely where it
//!   was. A step that costs R rejections is followed by some 100 R requests without one.
//! - **Concurrency.** Requests in flight are limited to fewer than were in flight at the rejection.
//!
//! What is counted by time is weight: jobs that declare none weigh one each, and for others it is their declaration of what the
//! service counts. In flight it is requests.
//!
//! Rejections with `Retry-After` speak of time, the others of what is seen.

#[cfg(test)]
mod tests;

use super::Nanos;

/// One request, as it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacedRequest {
    at: Nanos,
    /// In flight, itself included.
    in_flight: u64,
    weight: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitKind {
    Free,
    Unsure,
    Rate,
    Concurrency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PaceStage {
    /// Requests go by rate and cap.
    Open,
    /// None goes before, nor with more than so many in flight.
    Paused { until: Nanos, most: u64 },
    /// One is out, whose response tells how to go on.
    Probing { since: Nanos },
}

/// What was sent from one recovery to the next and not rejected: rejections come soon, other responses may take long.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    start: Nanos,
    /// Their weight, and how many.
    weight: u64,
    requests: u64,
}

/// The pace of one key at one service. Pure: instants are arguments, in order.
#[derive(Clone, Debug)]
pub struct AdaptivePace {
    kind: LimitKind,
    stage: PaceStage,
    in_flight: u64,
    /// The most in flight.
    max_in_flight: f64,
    /// Weight per second.
    rate: f64,
    /// The mean weight of late.
    mean_weight: f64,
    /// By the rate, the next goes then.
    next_at: Nanos,
    begun: Option<Nanos>,
    last_sent: Nanos,
    /// When the latest event began: what was sent before belongs to it.
    event_start: Nanos,
    /// Its rejections.
    rejections: u64,
    /// The fewest in flight at one of them.
    min_rejected_in_flight: u64,
    /// The rate at which it happened, and how long it was held.
    rejected_rate: f64,
    pause: Nanos,
    /// The same of the event before.
    previous_rejected_rate: f64,
    /// The next wait without a word from the service.
    next_pause: Nanos,
    /// The round trip of rejections.
    round_trip: Nanos,
    /// The longest hold of late.
    longest_pause: Nanos,
    /// Cycles in a row that were only a part of a window.
    short_cycles: usize,
    cycle: Cycle,
    /// The one before it.
    previous_cycle: Cycle,
    /// What the latest probe weighs.
    probe_weight: u64,
    /// Accepted since the last step, and since when.
    credit: u64,
    stepped_at: Nanos,
    step: f64,
    max_accepted_in_flight: u64,
    /// Accepted since the latest event, and events in a row with few of them between.
    accepted: u64,
    quick_events: u32,
}

/// In flight at first.
const INITIAL_IN_FLIGHT: f64 = 16.0;
/// One more in flight is let in so often, whether or not responses come.
const RAMP_INTERVAL: Nanos = Nanos::from_millis(4);
/// The shortest wait after a rejection, and the longest without a word from the service.
const MIN_PAUSE: Nanos = Nanos::from_millis(10);
const MAX_PAUSE: Nanos = Nanos::from_secs(30);
/// A rejection with fewer than this fraction of those in flight before speaks of time.
const FAR_FEWER_FRACTION: f64 = 0.7;
/// The fraction of the rate that the first, the second and each further of such cycles leave at least: a part of a window is
/// no measure, but a burst that was taken for a rate is found out.
const MIN_RATE_FRACTIONS: [f64; 3] = [0.9, 0.6, 0.3];
/// A limit on concurrency that is known rejects seldom: with so few accepted between, so often in a row, it is none.
const MIN_ACCEPTED_BETWEEN_EVENTS: u64 = 30;
const MAX_QUICK_EVENTS: u32 = 4;
/// So much of what was measured is sent.
const RATE_MARGIN_FRACTION: f64 = 0.98;

impl Default for AdaptivePace {
    fn default() -> Self {
        Self {
            kind: LimitKind::Free,
            stage: PaceStage::Open,
            in_flight: 0,
            max_in_flight: INITIAL_IN_FLIGHT,
            rate: f64::INFINITY,
            mean_weight: 1.0,
            next_at: Nanos::ZERO,
            begun: None,
            last_sent: Nanos::ZERO,
            event_start: Nanos::ZERO,
            rejections: 0,
            min_rejected_in_flight: u64::MAX,
            rejected_rate: f64::INFINITY,
            pause: Nanos::ZERO,
            previous_rejected_rate: 0.0,
            next_pause: MIN_PAUSE,
            round_trip: MIN_PAUSE,
            longest_pause: Nanos::ZERO,
            short_cycles: 0,
            cycle: Cycle::default(),
            previous_cycle: Cycle::default(),
            probe_weight: 1,
            credit: 0,
            stepped_at: Nanos::ZERO,
            step: NEAR_STEP_FRACTION,
            max_accepted_in_flight: 0,
            accepted: 0,
            quick_events: 0,
        }
    }
}

/// A step of the rate close to where it was rejected, and at most.
const NEAR_STEP_FRACTION: f64 = 0.01;
const MAX_STEP_FRACTION: f64 = 0.08;
/// Below that, and where it was never rejected.
const FAR_STEP_FRACTION: f64 = 0.05;
const MAX_UNREJECTED_STEP_FRACTION: f64 = 0.2;

impl AdaptivePace {
    /// Requests per second; infinite: no limit by time is known.
    pub fn rate_per_s(&self) -> f64 {
        self.rate / self.mean_weight
    }

    /// Whether a limit is known, by time or on concurrency.
    pub fn is_limited(&self) -> bool {
        matches!(self.kind, LimitKind::Rate | LimitKind::Concurrency)
    }

    /// The most in flight; None: no limit on concurrency is known.
    pub fn max_in_flight(&self) -> Option<u64> {
        (self.kind == LimitKind::Concurrency).then_some(self.max_in_flight as u64)
    }

    /// When the next request may be sent; [`Nanos::NEVER`]: not before a response.
    pub fn next_send_at(&self) -> Nanos {
        match self.stage {
            PaceStage::Paused { until, most } => {
                if self.in_flight > most {
                    Nanos::NEVER
                } else {
                    until
                }
            }
            // A rejection would have been here by now.
            PaceStage::Probing { since } => since + self.probe_timeout(),
            PaceStage::Open if self.kind == LimitKind::Free => {
                let over = (self.in_flight + 1) as f64 - self.max_in_flight;
                let ramp = self
                    .begun
                    .map_or(Nanos::ZERO, |begun| begun + Nanos((over.max(0.0) * RAMP_INTERVAL.0 as f64) as u64));
                self.next_at.max(ramp)
            }
            PaceStage::Open if self.in_flight as f64 + 1.0 > self.max_in_flight => Nanos::NEVER,
            PaceStage::Open => self.next_at,
        }
    }

    fn probe_timeout(&self) -> Nanos {
        Nanos(4 * self.round_trip.0).max(MIN_PAUSE)
    }

    /// A request of this weight is sent.
    pub fn sent(&mut self, now: Nanos, weight: u64) -> PacedRequest {
        let weight = weight.max(1);
        self.mean_weight = if self.begun.is_some() {
            self.mean_weight + (weight as f64 - self.mean_weight) / 32.0
        } else {
            weight as f64
        };
        let idle = self.in_flight == 0 && now - self.last_sent > Nanos::SECOND;
        if self.begun.is_none() || (idle && self.kind == LimitKind::Free) {
            self.begun = self.begun.or(Some(now));
            self.cycle = Cycle { start: now, ..Cycle::default() };
        }
        match self.stage {
            PaceStage::Paused { .. } => (self.stage, self.probe_weight) = (PaceStage::Probing { since: now }, weight),
            PaceStage::Probing { since } => self.recover(since, now),
            PaceStage::Open => {}
        }
        self.in_flight += 1;
        self.cycle.weight = self.cycle.weight.saturating_add(weight);
        self.cycle.requests += 1;
        self.last_sent = now;
        if self.rate.is_finite() {
            let interval = Nanos::from_secs_f64(weight as f64 / self.rate);
            // A timer that is late by a little loses nothing.
            self.next_at = self.next_at.max(now - interval.max(Nanos::from_millis(5))) + interval;
        }
        PacedRequest { at: now, in_flight: self.in_flight, weight }
    }

    /// It has ended, and says nothing of limits.
    pub fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// It was accepted.
    pub fn accepted(&mut self, now: Nanos, sent: PacedRequest) {
        self.ended();
        self.max_accepted_in_flight = self.max_accepted_in_flight.max(sent.in_flight);
        self.accepted += 1;
        if let PaceStage::Probing { since } = self.stage
            && sent.at >= since
        {
            self.recover(since, now);
        }
        if sent.at < self.event_start || self.stage != PaceStage::Open {
            return;
        }
        match self.kind {
            LimitKind::Free => self.max_in_flight += 1.0,
            LimitKind::Unsure if self.max_in_flight + 1.0 < self.min_rejected_in_flight as f64 => {
                self.max_in_flight += 1.0;
            }
            LimitKind::Unsure => self.max_in_flight += 1.0 / self.max_in_flight,
            LimitKind::Concurrency => self.raise_cap(sent),
            LimitKind::Rate => self.raise_rate(now),
        }
    }

    fn raise_cap(&mut self, sent: PacedRequest) {
        // A limit that is not used says nothing.
        self.credit += u64::from(sent.in_flight as f64 + 1.0 > self.max_in_flight);
        if self.credit >= 60 + 100 * self.rejections {
            self.max_in_flight += 1.0;
            self.credit = 0;
        }
    }

    fn raise_rate(&mut self, now: Nanos) {
        self.credit += 1;
        let is_near = self.rate >= 0.9 * self.rejected_rate;
        let (credit, time) = if is_near {
            // What an event costs: its rejections, and the time that was lost by it.
            let lost = Nanos(self.pause.0.saturating_mul(30)).min(Nanos::from_secs(60));
            (20 + 50 * self.rejections.min(50), lost.max(Nanos(self.longest_pause.0 / 2)).max(Nanos::SECOND))
        } else {
            (5, Nanos(self.longest_pause.0 / 5).max(Nanos::from_millis(500)))
        };
        if self.credit >= credit && now - self.stepped_at >= time {
            let rate = self.rate * (1.0 + self.step);
            // Where it was rejected it is careful.
            let before_bad = if is_near { rate } else { rate.min(0.95 * self.rejected_rate) };
            self.rate = before_bad.max(self.rate);
            (self.credit, self.stepped_at) = (0, now);
            self.step = if self.rate > 1.05 * self.rejected_rate || self.rejected_rate.is_infinite() {
                (2.0 * self.step).min(if self.rejected_rate.is_infinite() {
                    MAX_UNREJECTED_STEP_FRACTION
                } else {
                    MAX_STEP_FRACTION
                })
            } else if self.rate >= 0.9 * self.rejected_rate {
                NEAR_STEP_FRACTION
            } else {
                FAR_STEP_FRACTION
            };
        }
    }

    /// It was rejected for its rate.
    pub fn rejected(&mut self, now: Nanos, sent: PacedRequest, retry_after: Option<Nanos>) {
        self.ended();
        self.round_trip = now - sent.at;
        if sent.at >= self.cycle.start {
            self.cycle.weight = self.cycle.weight.saturating_sub(sent.weight);
            self.cycle.requests = self.cycle.requests.saturating_sub(1);
        }
        let retry_after = retry_after.filter(|length| *length > Nanos::ZERO);
        if sent.at < self.event_start {
            self.rejections += 1;
            self.min_rejected_in_flight = self.min_rejected_in_flight.min(sent.in_flight);
            if let (Some(length), PaceStage::Paused { until, most }) = (retry_after, self.stage) {
                self.stage = PaceStage::Paused { until: until.max(now + length), most };
            }
            return;
        }
        if let PaceStage::Probing { .. } = self.stage {
            self.rejections += 1;
            if (sent.in_flight as f64) < FAR_FEWER_FRACTION * self.min_rejected_in_flight as f64 || sent.in_flight == 1
            {
                self.kind = LimitKind::Rate;
            }
            self.next_pause = Nanos(self.next_pause.0 / 2 * 3).min(MAX_PAUSE);
        } else {
            self.begin_event(sent, retry_after.is_some());
        }
        self.event_start = now;
        if self.kind == LimitKind::Concurrency && retry_after.is_none() {
            return;
        }
        let most = if self.kind == LimitKind::Rate { u64::MAX } else { self.min_rejected_in_flight / 2 };
        self.stage = PaceStage::Paused { until: now + retry_after.unwrap_or(self.next_pause), most };
    }

    /// A new event begins.
    fn begin_event(&mut self, sent: PacedRequest, by_time: bool) {
        let before = self.min_rejected_in_flight;
        (self.rejections, self.min_rejected_in_flight, self.credit, self.step) =
            (1, sent.in_flight, 0, NEAR_STEP_FRACTION);
        self.quick_events = if self.accepted < MIN_ACCEPTED_BETWEEN_EVENTS { self.quick_events + 1 } else { 0 };
        self.accepted = 0;
        // Again, within the same window: it is not over yet.
        let is_again = self.kind == LimitKind::Rate && sent.at - self.cycle.start < Nanos(self.longest_pause.0 / 2);
        let again = if is_again { self.next_pause + self.next_pause } else { Nanos::ZERO };
        self.next_pause = self.round_trip.max(MIN_PAUSE).max(again).min(MAX_PAUSE);
        let is_far_fewer = (sent.in_flight as f64) < FAR_FEWER_FRACTION * before as f64;
        match self.kind {
            // A request alone exceeds no concurrency.
            _ if by_time || sent.in_flight == 1 => self.kind = LimitKind::Rate,
            LimitKind::Free => self.kind = LimitKind::Unsure,
            LimitKind::Unsure | LimitKind::Concurrency if is_far_fewer || self.quick_events >= MAX_QUICK_EVENTS => {
                self.kind = LimitKind::Rate;
            }
            LimitKind::Unsure | LimitKind::Concurrency => {
                self.kind = LimitKind::Concurrency;
                self.max_in_flight = (sent.in_flight.saturating_sub(1).max(1) as f64).min(self.max_in_flight);
            }
            LimitKind::Rate => {}
        }
        if self.kind == LimitKind::Rate {
            self.rejected_rate = self.rate;
            if self.rate.is_finite() {
                self.next_pause = self
                    .next_pause
                    .max(Nanos::from_secs_f64(self.mean_weight / self.rate))
                    .max(Nanos(self.longest_pause.0 / 10))
                    .min(MAX_PAUSE);
            }
        }
    }

    /// The probe that was sent at `since` was not rejected.
    fn recover(&mut self, since: Nanos, now: Nanos) {
        self.stage = PaceStage::Open;
        self.pause = since - self.event_start;
        if self.cycle.requests < 2 && self.previous_cycle.requests > 0 {
            // Nothing but the probe: the recovery was none.
            self.cycle.start = self.previous_cycle.start;
            self.cycle.weight += self.previous_cycle.weight;
            self.cycle.requests += self.previous_cycle.requests;
        }
        // What was measured within a part of a window says little: its count goes back as it came.
        let is_short = since - self.pause - self.cycle.start < Nanos(self.longest_pause.0 / 2);
        let kept = if is_short { self.longest_pause } else { Nanos(self.longest_pause.0 / 10 * 9) };
        self.longest_pause = kept.max(self.pause);
        let length = (since - self.cycle.start).as_secs_f64().max(1e-6);
        // Without the probe, with which the next one begins.
        let taken = self.cycle.weight.saturating_sub(self.probe_weight);
        let requests = self.cycle.requests.saturating_sub(1);
        let measured = taken as f64 / length;
        match self.kind {
            LimitKind::Rate => {
                self.short_cycles = if is_short { self.short_cycles + 1 } else { 0 };
                let lowest = match self.rate {
                    rate if rate.is_infinite() => self.mean_weight / length,
                    rate if is_short => MIN_RATE_FRACTIONS[self.short_cycles.min(MIN_RATE_FRACTIONS.len()) - 1] * rate,
                    rate if requests < 20 => 0.5 * rate,
                    _ => self.mean_weight / length,
                };
                if is_short {
                    self.rejected_rate = self.rejected_rate.max(self.previous_rejected_rate);
                }
                self.previous_rejected_rate = self.rejected_rate;
                self.rate = (RATE_MARGIN_FRACTION * measured).min(0.96 * self.rate).max(lowest);
                self.step = FAR_STEP_FRACTION;
                self.max_in_flight = f64::INFINITY;
                self.next_at = since + Nanos::from_secs_f64(self.probe_weight as f64 / self.rate);
            }
            LimitKind::Unsure => self.max_in_flight = self.in_flight as f64 + 1.0,
            LimitKind::Free | LimitKind::Concurrency => {}
        }
        self.previous_cycle = Cycle { weight: taken, requests, ..self.cycle };
        self.cycle = Cycle { start: since, weight: self.probe_weight, requests: 1 };
        (self.credit, self.stepped_at) = (0, now);
    }
}
