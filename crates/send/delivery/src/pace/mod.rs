//! The sustainable pace of a service without a declared limit, learnt from its responses: requests per second, and
//! requests in flight.
//!
//! ```text
//!            rejected               a rejection with far fewer in flight,
//!   free ───────────────► unsure ───────────────────────────────────────► rate
//!     no limit at all       │  one probe, then as many as before              ▲
//!                           │ a rejection at the same number in flight        │ with far fewer
//!                           └───────────────────────────────────────────► concurrency
//! ```
//!
//! - **Free.** Until the first rejection the only limit is a ramp: requests in flight double with each round trip,
//!   and grow by 250 per second at least.
//! - **An event** is the first rejection and all others of requests sent before it came. Then sending stops for
//!   `Retry-After`, or for pauses that double, and a single *probe* shows whether it can go on. A rejected probe with
//!   few requests in flight proves a limit by time.
//! - **Rate.** Requests are spaced evenly. What was accepted between two recoveries, over the time between them, is the
//!   rate of any limit by time, whatever its window and burst: a window that is used up has to end, and an empty bucket
//!   has to refill. The rate grows in small steps: quickly where it was never rejected, rarely where it was. A step
//!   that costs R rejections is followed by some 100 R requests without one.
//! - **Concurrency.** Requests in flight are limited to fewer than were in flight at the rejection.
//!
//! Rates count weight: 1 for jobs that declare none, else the declared weight, which is what the service counts. In
//! flight means requests.
//!
//! Rejections with `Retry-After` are taken as a limit by time; others are classified as above.

mod constants;
mod cycle;
mod event;
mod learned_limit;
mod stage;
mod step;
#[cfg(test)]
mod tests;

use self::constants::{
    FAR_FEWER_FRACTION, FAR_STEP_FRACTION, INITIAL_IN_FLIGHT, MAX_PAUSE, MAX_QUICK_EVENTS, MAX_STEP_FRACTION,
    MAX_UNREJECTED_STEP_FRACTION, MIN_ACCEPTED_BETWEEN_EVENTS, MIN_PAUSE, MIN_RATE_FRACTIONS, NEAR_STEP_FRACTION,
    RAMP_INTERVAL, RATE_MARGIN_FRACTION,
};
use self::cycle::Cycle;
use self::event::PaceEvent;
pub use self::learned_limit::LearnedLimit;
use self::stage::{LimitKind, PaceStage};
use self::step::PaceStep;
use weir_base::Nanos;

/// A sent request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacedRequest {
    at: Nanos,
    /// Requests in flight at the send, itself included.
    in_flight: u64,
    weight: u64,
}

/// The pace of one key at one service. Pure: instants are arguments, in order.
#[derive(Clone, Debug)]
pub struct AdaptivePace {
    kind: LimitKind,
    stage: PaceStage,
    in_flight: u64,
    /// Maximum number of requests in flight.
    max_in_flight: f64,
    /// Weight per second.
    rate: f64,
    /// Moving average of the weight.
    mean_weight: f64,
    /// Time of the next request by the rate.
    next_at: Nanos,
    begun: Option<Nanos>,
    last_sent: Nanos,
    /// Latest event.
    event: PaceEvent,
    /// Rate at which the previous event happened.
    previous_rejected_rate: f64,
    /// Next pause without `Retry-After`.
    next_pause: Nanos,
    /// Round trip of the latest rejection.
    round_trip: Nanos,
    /// Longest recent pause.
    longest_pause: Nanos,
    /// Consecutive cycles that were only a part of a window.
    short_cycles: usize,
    cycle: Cycle,
    /// Previous cycle.
    previous_cycle: Cycle,
    /// Weight of the latest probe.
    probe_weight: u64,
    step: PaceStep,
    /// Requests accepted since the latest event, and consecutive events with few of them in between.
    accepted: u64,
    quick_events: u32,
}

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
            event: PaceEvent::default(),
            previous_rejected_rate: 0.0,
            next_pause: MIN_PAUSE,
            round_trip: MIN_PAUSE,
            longest_pause: Nanos::ZERO,
            short_cycles: 0,
            cycle: Cycle::default(),
            previous_cycle: Cycle::default(),
            probe_weight: 1,
            step: PaceStep::default(),
            accepted: 0,
            quick_events: 0,
        }
    }
}

impl AdaptivePace {
    /// Requests per second; infinite: no limit by time is known.
    pub fn rate_per_s(&self) -> f64 {
        self.rate / self.mean_weight
    }

    /// Whether a limit is known, by time or on concurrency.
    pub fn is_limited(&self) -> bool {
        matches!(self.kind, LimitKind::Rate | LimitKind::Concurrency)
    }

    /// Concurrency limit; None: none is known.
    pub fn max_in_flight(&self) -> Option<u64> {
        (self.kind == LimitKind::Concurrency).then_some(self.max_in_flight as u64)
    }

    /// Earliest time of the next request; [`Nanos::NEVER`]: not before a response.
    pub fn next_send_at(&self) -> Nanos {
        match self.stage {
            PaceStage::Paused { max_in_flight, .. } if self.in_flight > max_in_flight => Nanos::NEVER,
            PaceStage::Paused { until, .. } => until,
            // A rejection would have come by then.
            PaceStage::Probing { since } => since + self.probe_timeout().max(self.interval(self.probe_weight)),
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

    /// Time that the rate has for this weight.
    fn interval(&self, weight: u64) -> Nanos {
        if self.rate.is_finite() { Nanos::from_secs_f64(weight as f64 / self.rate) } else { Nanos::ZERO }
    }

    fn probe_timeout(&self) -> Nanos {
        Nanos(4 * self.round_trip.0).max(MIN_PAUSE)
    }

    /// Records a sent request of this weight.
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
            self.cycle = Cycle::starting_at(now);
        }
        match self.stage {
            PaceStage::Paused { .. } => (self.stage, self.probe_weight) = (PaceStage::Probing { since: now }, weight),
            PaceStage::Probing { since } => self.recover(since, now),
            PaceStage::Open => {}
        }
        self.in_flight += 1;
        self.cycle.add(weight);
        self.last_sent = now;
        if self.rate.is_finite() {
            let interval = self.interval(weight);
            // A timer that is slightly late loses nothing.
            self.next_at = self.next_at.max(now - interval.max(Nanos::from_millis(5))) + interval;
        }
        PacedRequest { at: now, in_flight: self.in_flight, weight }
    }

    /// Records an end without information about limits.
    pub fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records an acceptance.
    pub fn accepted(&mut self, now: Nanos, sent: PacedRequest) {
        self.ended();
        self.accepted += 1;
        if let PaceStage::Probing { since } = self.stage
            && sent.at >= since
        {
            self.recover(since, now);
        }
        if sent.at < self.event.start || self.stage != PaceStage::Open {
            return;
        }
        match self.kind {
            LimitKind::Free => self.max_in_flight += 1.0,
            LimitKind::Unsure if self.max_in_flight + 1.0 < self.event.min_in_flight as f64 => {
                self.max_in_flight += 1.0;
            }
            LimitKind::Unsure => self.max_in_flight += 1.0 / self.max_in_flight,
            LimitKind::Concurrency => self.raise_cap(sent),
            LimitKind::Rate => self.raise_rate(now),
        }
    }

    fn raise_cap(&mut self, sent: PacedRequest) {
        // Only a used limit counts.
        self.step.credit += u64::from(sent.in_flight as f64 + 1.0 > self.max_in_flight);
        if self.step.credit >= 60 + 100 * self.event.rejections {
            self.max_in_flight += 1.0;
            self.step.credit = 0;
        }
    }

    fn raise_rate(&mut self, now: Nanos) {
        self.step.credit += 1;
        let is_near = self.rate >= 0.9 * self.event.rate;
        let (credit, time) = if is_near {
            // Cost of an event: its rejections, and the time lost by it.
            let lost = Nanos(self.event.pause.0.saturating_mul(30)).min(Nanos::from_secs(60));
            (20 + 50 * self.event.rejections.min(50), lost.max(Nanos(self.longest_pause.0 / 2)).max(Nanos::SECOND))
        } else {
            (5, Nanos(self.longest_pause.0 / 5).max(Nanos::from_millis(500)))
        };
        if self.step.credit >= credit && now - self.step.at >= time {
            let rate = self.rate * (1.0 + self.step.fraction);
            // A step from afar ends below the rejected rate; small steps go on from there.
            let bounded = if is_near { rate } else { rate.min(0.95 * self.event.rate) };
            self.rate = bounded.max(self.rate);
            (self.step.credit, self.step.at) = (0, now);
            self.step.fraction = if self.rate > 1.05 * self.event.rate || self.event.rate.is_infinite() {
                (2.0 * self.step.fraction).min(if self.event.rate.is_infinite() {
                    MAX_UNREJECTED_STEP_FRACTION
                } else {
                    MAX_STEP_FRACTION
                })
            } else if self.rate >= 0.9 * self.event.rate {
                NEAR_STEP_FRACTION
            } else {
                FAR_STEP_FRACTION
            };
        }
    }

    /// Records a rate-limit rejection.
    pub fn rejected(&mut self, now: Nanos, sent: PacedRequest, retry_after: Option<Nanos>) {
        self.ended();
        self.round_trip = now - sent.at;
        self.cycle.remove(sent);
        let retry_after = retry_after.filter(|length| *length > Nanos::ZERO);
        if sent.at < self.event.start {
            self.event.rejections += 1;
            self.event.min_in_flight = self.event.min_in_flight.min(sent.in_flight);
            if let (Some(length), PaceStage::Paused { until, .. }) = (retry_after, &mut self.stage) {
                *until = (*until).max(now + length);
            }
            return;
        }
        if let PaceStage::Probing { .. } = self.stage {
            self.event.rejections += 1;
            if (sent.in_flight as f64) < FAR_FEWER_FRACTION * self.event.min_in_flight as f64 || sent.in_flight == 1 {
                self.kind = LimitKind::Rate;
            }
            self.next_pause = Nanos(self.next_pause.0 / 2 * 3).min(MAX_PAUSE);
        } else {
            self.begin_event(sent, retry_after.is_some());
        }
        self.event.start = now;
        if self.kind == LimitKind::Concurrency && retry_after.is_none() {
            return;
        }
        let max_in_flight = if self.kind == LimitKind::Rate { u64::MAX } else { self.event.min_in_flight / 2 };
        self.stage = PaceStage::Paused { until: now + retry_after.unwrap_or(self.next_pause), max_in_flight };
    }

    /// Begins a new event.
    fn begin_event(&mut self, sent: PacedRequest, by_time: bool) {
        let before = self.event.min_in_flight;
        (self.event.rejections, self.event.min_in_flight) = (1, sent.in_flight);
        (self.step.credit, self.step.fraction) = (0, NEAR_STEP_FRACTION);
        self.quick_events = if self.accepted < MIN_ACCEPTED_BETWEEN_EVENTS { self.quick_events + 1 } else { 0 };
        self.accepted = 0;
        // A second event within the same window, which has not ended yet.
        let is_again = self.kind == LimitKind::Rate && sent.at - self.cycle.start < Nanos(self.longest_pause.0 / 2);
        let again = if is_again { self.next_pause + self.next_pause } else { Nanos::ZERO };
        self.next_pause = self.round_trip.max(MIN_PAUSE).max(again).min(MAX_PAUSE);
        let is_far_fewer = (sent.in_flight as f64) < FAR_FEWER_FRACTION * before as f64;
        match self.kind {
            // A single request cannot exceed a concurrency limit.
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
            self.event.rate = self.rate;
            if self.rate.is_finite() {
                self.next_pause = self
                    .next_pause
                    .max(Nanos::from_secs_f64(self.mean_weight / self.rate))
                    .max(Nanos(self.longest_pause.0 / 10))
                    .min(MAX_PAUSE);
            }
        }
    }

    /// Ends the event: the probe sent at `since` was not rejected.
    fn recover(&mut self, since: Nanos, now: Nanos) {
        self.stage = PaceStage::Open;
        self.event.pause = since - self.event.start;
        if self.cycle.requests < 2 && self.previous_cycle.requests > 0 {
            // Only the probe was sent: the recovery does not count.
            self.cycle.extend(&self.previous_cycle);
        }
        // A measurement within a part of a window is weak: the window's count returns as it was used.
        let is_short = since - self.event.pause - self.cycle.start < Nanos(self.longest_pause.0 / 2);
        let faded = if is_short { self.longest_pause } else { Nanos(self.longest_pause.0 / 10 * 9) };
        self.longest_pause = faded.max(self.event.pause);
        let length = (since - self.cycle.start).as_secs_f64().max(1e-6);
        // So is one of a small part of the cycle before: a sliding window frees only what was sent a window ago.
        let previous = self.cycle.start - self.previous_cycle.start;
        let is_part = Nanos(4 * (since - self.event.pause - self.cycle.start).0) < previous;
        // Without the probe, which begins the next cycle.
        let taken = self.cycle.weight.saturating_sub(self.probe_weight);
        let requests = self.cycle.requests.saturating_sub(1);
        let measured = taken as f64 / length;
        match self.kind {
            LimitKind::Rate => {
                self.short_cycles = if is_short { self.short_cycles + 1 } else { 0 };
                let lowest = match self.rate {
                    rate if rate.is_infinite() => self.mean_weight / length,
                    rate if is_short => MIN_RATE_FRACTIONS[self.short_cycles.min(MIN_RATE_FRACTIONS.len()) - 1] * rate,
                    rate if requests < 20 || is_part => 0.5 * rate,
                    _ => self.mean_weight / length,
                };
                // One rejection within a window says little of the rate, several in a row do.
                if is_short && self.short_cycles <= MIN_RATE_FRACTIONS.len() {
                    self.event.rate = self.event.rate.max(self.previous_rejected_rate);
                }
                self.previous_rejected_rate = self.event.rate;
                self.rate = (RATE_MARGIN_FRACTION * measured).min(0.96 * self.rate).max(lowest);
                self.step.fraction = FAR_STEP_FRACTION;
                self.max_in_flight = f64::INFINITY;
                self.next_at = since + self.interval(self.probe_weight);
            }
            LimitKind::Unsure => self.max_in_flight = self.in_flight as f64 + 1.0,
            LimitKind::Free | LimitKind::Concurrency => {}
        }
        self.previous_cycle = Cycle { weight: taken, requests, ..self.cycle };
        self.cycle = Cycle { start: since, weight: self.probe_weight, requests: 1 };
        (self.step.credit, self.step.at) = (0, now);
    }
}
