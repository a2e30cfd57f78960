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
pub struct Sent {
    at: Nanos,
    /// In flight, itself included.
    out: u64,
    weight: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Free,
    Unsure,
    Rate,
    Concurrency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Requests go by rate and cap.
    Open,
    /// None goes before, nor with more than so many in flight.
    Held { until: Nanos, most: u64 },
    /// One is out, whose response tells how to go on.
    Probing { since: Nanos },
}

/// What was sent from one recovery to the next and not rejected: rejections come soon, other responses may take long.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    start: Nanos,
    /// Their weight, and how many.
    taken: u64,
    requests: u64,
}

/// The pace of one key at one service. Pure: instants are arguments, in order.
#[derive(Clone, Debug)]
pub struct Pace {
    kind: Kind,
    stage: Stage,
    out: u64,
    /// The most in flight.
    cap: f64,
    /// Weight per second.
    rate: f64,
    /// The mean weight of late.
    mean: f64,
    /// By the rate, the next goes then.
    next: Nanos,
    begun: Option<Nanos>,
    last_sent: Nanos,
    /// When the latest event began: what was sent before belongs to it.
    event: Nanos,
    /// Its rejections.
    rejected: u64,
    /// The fewest in flight at one of them.
    fewest: u64,
    /// The rate at which it happened, and how long it was held.
    bad: f64,
    held: Nanos,
    /// The same of the event before.
    bad_before: f64,
    /// The next wait without a word from the service.
    gap: Nanos,
    /// The round trip of rejections.
    round_trip: Nanos,
    /// The longest hold of late.
    slow: Nanos,
    /// Cycles in a row that were only a part of a window.
    short: usize,
    cycle: Cycle,
    /// The one before it.
    before: Cycle,
    /// What the latest probe weighs.
    probe: u64,
    /// Accepted since the last step, and since when.
    credit: u64,
    stepped: Nanos,
    step: f64,
    most_accepted: u64,
    /// Accepted since the latest event, and events in a row with few of them between.
    accepted: u64,
    quick: u32,
}

/// In flight at first.
const FIRST: f64 = 16.0;
/// One more in flight is let in so often, whether or not responses come.
const RAMP: Nanos = Nanos::from_millis(4);
/// The shortest wait after a rejection, and the longest without a word from the service.
const SHORTEST: Nanos = Nanos::from_millis(10);
const LONGEST: Nanos = Nanos::from_secs(30);
/// A rejection with fewer than this fraction of those in flight before speaks of time.
const FAR_FEWER: f64 = 0.7;
/// The fraction of the rate that the first, the second and each further of such cycles leave at least: a part of a window is
/// no measure, but a burst that was taken for a rate is found out.
const LOWER: [f64; 3] = [0.9, 0.6, 0.3];
/// A limit on concurrency that is known rejects seldom: with so few accepted between, so often in a row, it is none.
const SOON: u64 = 30;
const OFTEN: u32 = 4;
/// So much of what was measured is sent.
const MARGIN: f64 = 0.98;

impl Default for Pace {
    fn default() -> Self {
        Self {
            kind: Kind::Free,
            stage: Stage::Open,
            out: 0,
            cap: FIRST,
            rate: f64::INFINITY,
            mean: 1.0,
            next: Nanos::ZERO,
            begun: None,
            last_sent: Nanos::ZERO,
            event: Nanos::ZERO,
            rejected: 0,
            fewest: u64::MAX,
            bad: f64::INFINITY,
            held: Nanos::ZERO,
            bad_before: 0.0,
            gap: SHORTEST,
            round_trip: SHORTEST,
            slow: Nanos::ZERO,
            short: 0,
            cycle: Cycle::default(),
            before: Cycle::default(),
            probe: 1,
            credit: 0,
            stepped: Nanos::ZERO,
            step: STEP,
            most_accepted: 0,
            accepted: 0,
            quick: 0,
        }
    }
}

/// A step of the rate close to where it was rejected, and at most.
const STEP: f64 = 0.01;
const LONG_STEP: f64 = 0.08;
/// Below that, and where it was never rejected.
const FAR_STEP: f64 = 0.05;
const LONGEST_STEP: f64 = 0.2;

impl Pace {
    /// Requests per second; infinite: no limit by time is known.
    pub fn rate_per_s(&self) -> f64 {
        self.rate / self.mean
    }

    /// Whether a limit is known, by time or on concurrency.
    pub fn is_limited(&self) -> bool {
        matches!(self.kind, Kind::Rate | Kind::Concurrency)
    }

    /// The most in flight; None: no limit on concurrency is known.
    pub fn most_in_flight(&self) -> Option<u64> {
        (self.kind == Kind::Concurrency).then_some(self.cap as u64)
    }

    /// When the next request may be sent; [`Nanos::NEVER`]: not before a response.
    pub fn room(&self) -> Nanos {
        match self.stage {
            Stage::Held { until, most } => {
                if self.out > most {
                    Nanos::NEVER
                } else {
                    until
                }
            }
            // A rejection would have been here by now.
            Stage::Probing { since } => since + self.patience(),
            Stage::Open if self.kind == Kind::Free => {
                let over = (self.out + 1) as f64 - self.cap;
                let ramp =
                    self.begun.map_or(Nanos::ZERO, |begun| begun + Nanos((over.max(0.0) * RAMP.0 as f64) as u64));
                self.next.max(ramp)
            }
            Stage::Open if self.out as f64 + 1.0 > self.cap => Nanos::NEVER,
            Stage::Open => self.next,
        }
    }

    fn patience(&self) -> Nanos {
        Nanos(4 * self.round_trip.0).max(SHORTEST)
    }

    /// A request of this weight is sent.
    pub fn sent(&mut self, now: Nanos, weight: u64) -> Sent {
        let weight = weight.max(1);
        self.mean = if self.begun.is_some() { self.mean + (weight as f64 - self.mean) / 32.0 } else { weight as f64 };
        let idle = self.out == 0 && now - self.last_sent > Nanos::SECOND;
        if self.begun.is_none() || (idle && self.kind == Kind::Free) {
            self.begun = self.begun.or(Some(now));
            self.cycle = Cycle { start: now, ..Cycle::default() };
        }
        match self.stage {
            Stage::Held { .. } => (self.stage, self.probe) = (Stage::Probing { since: now }, weight),
            Stage::Probing { since } => self.recover(since, now),
            Stage::Open => {}
        }
        self.out += 1;
        self.cycle.taken = self.cycle.taken.saturating_add(weight);
        self.cycle.requests += 1;
        self.last_sent = now;
        if self.rate.is_finite() {
            let interval = Nanos::from_secs_f64(weight as f64 / self.rate);
            // A timer that is late by a little loses nothing.
            self.next = self.next.max(now - interval.max(Nanos::from_millis(5))) + interval;
        }
        Sent { at: now, out: self.out, weight }
    }

    /// It has ended, and says nothing of limits.
    pub fn ended(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// It was accepted.
    pub fn accepted(&mut self, now: Nanos, sent: Sent) {
        self.ended();
        self.most_accepted = self.most_accepted.max(sent.out);
        self.accepted += 1;
        if let Stage::Probing { since } = self.stage
            && sent.at >= since
        {
            self.recover(since, now);
        }
        if sent.at < self.event || self.stage != Stage::Open {
            return;
        }
        match self.kind {
            Kind::Free => self.cap += 1.0,
            Kind::Unsure if self.cap + 1.0 < self.fewest as f64 => self.cap += 1.0,
            Kind::Unsure => self.cap += 1.0 / self.cap,
            Kind::Concurrency => self.widen(sent),
            Kind::Rate => self.quicken(now),
        }
    }

    fn widen(&mut self, sent: Sent) {
        // A limit that is not used says nothing.
        self.credit += u64::from(sent.out as f64 + 1.0 > self.cap);
        if self.credit >= 60 + 100 * self.rejected {
            self.cap += 1.0;
            self.credit = 0;
        }
    }

    fn quicken(&mut self, now: Nanos) {
        self.credit += 1;
        let is_near = self.rate >= 0.9 * self.bad;
        let (credit, time) = if is_near {
            // What an event costs: its rejections, and the time that was lost by it.
            let lost = Nanos(self.held.0.saturating_mul(30)).min(Nanos::from_secs(60));
            (20 + 50 * self.rejected.min(50), lost.max(Nanos(self.slow.0 / 2)).max(Nanos::SECOND))
        } else {
            (5, Nanos(self.slow.0 / 5).max(Nanos::from_millis(500)))
        };
        if self.credit >= credit && now - self.stepped >= time {
            let rate = self.rate * (1.0 + self.step);
            // Where it was rejected it is careful.
            let before_bad = if is_near { rate } else { rate.min(0.95 * self.bad) };
            self.rate = before_bad.max(self.rate);
            (self.credit, self.stepped) = (0, now);
            self.step = if self.rate > 1.05 * self.bad || self.bad.is_infinite() {
                (2.0 * self.step).min(if self.bad.is_infinite() { LONGEST_STEP } else { LONG_STEP })
            } else if self.rate >= 0.9 * self.bad {
                STEP
            } else {
                FAR_STEP
            };
        }
    }

    /// It was rejected for its rate.
    pub fn rejected(&mut self, now: Nanos, sent: Sent, retry_after: Option<Nanos>) {
        self.ended();
        self.round_trip = now - sent.at;
        if sent.at >= self.cycle.start {
            self.cycle.taken = self.cycle.taken.saturating_sub(sent.weight);
            self.cycle.requests = self.cycle.requests.saturating_sub(1);
        }
        let retry_after = retry_after.filter(|length| *length > Nanos::ZERO);
        if sent.at < self.event {
            self.rejected += 1;
            self.fewest = self.fewest.min(sent.out);
            if let (Some(length), Stage::Held { until, most }) = (retry_after, self.stage) {
                self.stage = Stage::Held { until: until.max(now + length), most };
            }
            return;
        }
        if let Stage::Probing { .. } = self.stage {
            self.rejected += 1;
            if (sent.out as f64) < FAR_FEWER * self.fewest as f64 || sent.out == 1 {
                self.kind = Kind::Rate;
            }
            self.gap = Nanos(self.gap.0 / 2 * 3).min(LONGEST);
        } else {
            self.begin(sent, retry_after.is_some());
        }
        self.event = now;
        if self.kind == Kind::Concurrency && retry_after.is_none() {
            return;
        }
        let most = if self.kind == Kind::Rate { u64::MAX } else { self.fewest / 2 };
        self.stage = Stage::Held { until: now + retry_after.unwrap_or(self.gap), most };
    }

    /// A new event begins.
    fn begin(&mut self, sent: Sent, by_time: bool) {
        let before = self.fewest;
        (self.rejected, self.fewest, self.credit, self.step) = (1, sent.out, 0, STEP);
        self.quick = if self.accepted < SOON { self.quick + 1 } else { 0 };
        self.accepted = 0;
        // Again, within the same window: it is not over yet.
        let is_again = self.kind == Kind::Rate && sent.at - self.cycle.start < Nanos(self.slow.0 / 2);
        let again = if is_again { self.gap + self.gap } else { Nanos::ZERO };
        self.gap = self.round_trip.max(SHORTEST).max(again).min(LONGEST);
        let is_far_fewer = (sent.out as f64) < FAR_FEWER * before as f64;
        match self.kind {
            // A request alone exceeds no concurrency.
            _ if by_time || sent.out == 1 => self.kind = Kind::Rate,
            Kind::Free => self.kind = Kind::Unsure,
            Kind::Unsure | Kind::Concurrency if is_far_fewer || self.quick >= OFTEN => self.kind = Kind::Rate,
            Kind::Unsure | Kind::Concurrency => {
                self.kind = Kind::Concurrency;
                self.cap = (sent.out.saturating_sub(1).max(1) as f64).min(self.cap);
            }
            Kind::Rate => {}
        }
        if self.kind == Kind::Rate {
            self.bad = self.rate;
            if self.rate.is_finite() {
                self.gap =
                    self.gap.max(Nanos::from_secs_f64(self.mean / self.rate)).max(Nanos(self.slow.0 / 10)).min(LONGEST);
            }
        }
    }

    /// The probe that was sent at `since` was not rejected.
    fn recover(&mut self, since: Nanos, now: Nanos) {
        self.stage = Stage::Open;
        self.held = since - self.event;
        if self.cycle.requests < 2 && self.before.requests > 0 {
            // Nothing but the probe: the recovery was none.
            self.cycle.start = self.before.start;
            self.cycle.taken += self.before.taken;
            self.cycle.requests += self.before.requests;
        }
        // What was measured within a part of a window says little: its count goes back as it came.
        let is_short = since - self.held - self.cycle.start < Nanos(self.slow.0 / 2);
        let kept = if is_short { self.slow } else { Nanos(self.slow.0 / 10 * 9) };
        self.slow = kept.max(self.held);
        let length = (since - self.cycle.start).as_secs_f64().max(1e-6);
        // Without the probe, with which the next one begins.
        let taken = self.cycle.taken.saturating_sub(self.probe);
        let requests = self.cycle.requests.saturating_sub(1);
        let measured = taken as f64 / length;
        match self.kind {
            Kind::Rate => {
                self.short = if is_short { self.short + 1 } else { 0 };
                let lowest = match self.rate {
                    rate if rate.is_infinite() => self.mean / length,
                    rate if is_short => LOWER[self.short.min(LOWER.len()) - 1] * rate,
                    rate if requests < 20 => 0.5 * rate,
                    _ => self.mean / length,
                };
                if is_short {
                    self.bad = self.bad.max(self.bad_before);
                }
                self.bad_before = self.bad;
                self.rate = (MARGIN * measured).min(0.96 * self.rate).max(lowest);
                self.step = FAR_STEP;
                self.cap = f64::INFINITY;
                self.next = since + Nanos::from_secs_f64(self.probe as f64 / self.rate);
            }
            Kind::Unsure => self.cap = self.out as f64 + 1.0,
            Kind::Free | Kind::Concurrency => {}
        }
        self.before = Cycle { taken, requests, ..self.cycle };
        self.cycle = Cycle { start: since, taken: self.probe, requests: 1 };
        (self.credit, self.stepped) = (0, now);
    }
}
