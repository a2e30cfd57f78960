//! Circuit breaker: an upstream that fails gets no calls for a while.
//!
//! A call to an upstream that is down costs its caller a timeout, and the upstream a connection. After some failures it
//! is better to reject calls at once (M. Nygard, "Release It!", 2007). The breaker is *closed* while calls flow. It
//! *opens* when at least `min_calls` of the calls that began in a window have ended, and at least `failure_fraction` of
//! these failed. After `open_time` it is *half open*: at most `probes` calls at a time go through. When that many have
//! succeeded in a row it closes; a failure opens it again, for twice as long as before.
//!
//! Rejecting all calls of an upstream that serves half of them makes matters worse. So the defaults are for one that is
//! as good as down: 80% of 40 calls. A service that fails 2 calls of 11 and lets one more hang reaches that by chance
//! with a probability below 1e-11 per window (computed by a test); with the usual 50% of 20 calls it is 3%, and the
//! breaker would open every few minutes.
//!
//! A call counts by its *start*. By its end, the slowest calls would be alone in a window after traffic stops. The
//! cost: a failure that took longer than the window does not count. So the window should be longer than an attempt's
//! timeout.
//!
//! A rejection for overload is not a failure: with client-side throttling ([`super::client_throttle`]) the permits of
//! such calls are [cancelled](Breaker::cancelled).

use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_base::sliding_count::SlidingCount;

/// Configuration of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    /// Window over which calls count, by their start; longer than an attempt's timeout.
    pub window: Nanos,
    /// Ended calls in the window below which it does not open; at least 1.
    pub min_calls: u64,
    /// Fraction of failures that opens it, in (0, 1].
    pub failure_fraction: f64,
    /// First open time.
    pub open_time: Nanos,
    /// Maximum open time; it doubles while probes fail.
    pub max_open_time: Nanos,
    /// Calls at a time while half open, and successes in a row that close it; at least 1.
    pub probes: u32,
}

impl Default for BreakerRule {
    /// Opens for 1 s to 30 s when 80% of at least 40 calls of 10 s fail; one success closes it.
    fn default() -> Self {
        let (rest, longest_rest) = (Nanos::SECOND, Nanos::from_secs(30));
        Self {
            window: Nanos::from_secs(10),
            min_calls: 40,
            failure_fraction: 0.8,
            open_time: rest,
            max_open_time: longest_rest,
            probes: 1,
        }
    }
}

impl BreakerRule {
    /// Fault of an invalid rule.
    pub fn validation_error(&self) -> Option<Fault> {
        let Self {
            window,
            min_calls: least,
            failure_fraction: share,
            open_time: rest,
            max_open_time: longest_rest,
            probes,
        } = self;
        if *window == Nanos::ZERO {
            let what = format!("a window of {window} is too short");
            Some(Fault::new(what, "make it longer than an attempt may take, e.g. 10s"))
        } else if *least == 0 {
            Some(Fault::new("min_calls is 0", "make it at least 1, e.g. 40"))
        } else if !(*share > 0.0 && *share <= 1.0) {
            let what = format!("a failure threshold of {share} is not possible");
            Some(Fault::new(what, "make it above 0 and 1 at most, e.g. 0.8"))
        } else if *rest == Nanos::ZERO {
            Some(Fault::new(format!("an open_time of {rest} is too short"), "make it longer, e.g. 1s"))
        } else if longest_rest < rest {
            let what = format!("max_open_time ({longest_rest}) is shorter than open_time ({rest})");
            Some(Fault::new(what, format!("make it {rest} at least")))
        } else if *probes == 0 {
            Some(Fault::new("without probes the circuit never closes again", "make it 1 at least"))
        } else {
            None
        }
    }
}

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All calls go through.
    Closed,
    /// All calls are rejected.
    Open,
    /// Some calls go through as probes.
    HalfOpen,
}

/// A change of the state of a circuit breaker, for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    /// New state.
    pub state: State,
    /// Calls of the window that have ended; 0 if a probe was the reason.
    pub ended: u64,
    /// Failed calls among these.
    pub failed: u64,
    /// Length of the window.
    pub window: Nanos,
    /// Time until it is half open, if it is open.
    pub open_time: Nanos,
}

impl BreakerChange {
    /// Line of a log, without the name of the upstream.
    pub fn line(&self) -> String {
        let Self { ended, failed, window, open_time, .. } = self;
        match self.state {
            State::Open if *ended == 0 => format!("circuit open for {open_time}: a probe failed"),
            State::Open => format!("circuit open for {open_time}: {failed} of {ended} calls within {window} failed"),
            State::HalfOpen => "circuit half-open: the next calls are probes".to_owned(),
            State::Closed => "circuit closed: probes succeeded".to_owned(),
        }
    }
}

/// Permit of a call, to be returned when the call has [ended](Breaker::ended) or was [cancelled](Breaker::cancelled).
#[derive(Debug)]
#[must_use]
pub struct BreakerPermit {
    started: Nanos,
    generation: u64,
}

/// Indices of the counts.
const SUCCEEDED: usize = 0;
const FAILED: usize = 1;

#[derive(Clone, Copy, Debug)]
enum BreakerPhase {
    Closed,
    Open { until: Nanos },
    HalfOpen { in_flight: u32, successes: u32, latest: Nanos },
}

impl BreakerPhase {
    fn state(self) -> State {
        match self {
            Self::Closed => State::Closed,
            Self::Open { .. } => State::Open,
            Self::HalfOpen { .. } => State::HalfOpen,
        }
    }
}

/// Circuit breaker of one upstream. Memory is fixed; nothing is allocated.
#[derive(Clone, Debug)]
pub struct Breaker {
    rule: BreakerRule,
    counts: SlidingCount<2>,
    phase: BreakerPhase,
    /// Number of transitions; permits of earlier generations do not count.
    generation: u64,
    /// Current open time.
    open_time: Nanos,
    openings: u64,
    /// Latest change, until it is taken.
    change: Option<BreakerChange>,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(rule: BreakerRule) -> Self {
        let counts = SlidingCount::new(rule.window);
        Self {
            rule,
            counts,
            phase: BreakerPhase::Closed,
            generation: 0,
            open_time: rule.open_time,
            openings: 0,
            change: None,
        }
    }

    /// Permit for a call that begins now.
    ///
    /// # Errors
    /// Time until a retry: the rest of the open time; while half open, the first open time or less, since the outcome
    /// of the probes is unknown.
    pub fn allows(&mut self, now: Nanos) -> Result<BreakerPermit, Nanos> {
        match self.phase {
            BreakerPhase::Closed => return Ok(BreakerPermit { started: now, generation: self.generation }),
            BreakerPhase::Open { until } if now < until => return Err(until - now),
            BreakerPhase::Open { .. } => {
                self.transition(BreakerPhase::HalfOpen { in_flight: 0, successes: 0, latest: now });
            }
            BreakerPhase::HalfOpen { in_flight, latest, .. } if in_flight >= self.rule.probes.max(1) => {
                // The probes were never returned, and their outcome would not count any more: new ones may begin.
                let lost = latest + self.rule.window;
                if now < lost {
                    return Err((lost - now).min(self.rule.open_time).max(Nanos(1)));
                }
                self.transition(BreakerPhase::HalfOpen { in_flight: 0, successes: 0, latest: now });
            }
            BreakerPhase::HalfOpen { .. } => {}
        }
        if let BreakerPhase::HalfOpen { in_flight, latest, .. } = &mut self.phase {
            *in_flight += 1;
            *latest = now.max(*latest);
        }
        Ok(BreakerPermit { started: now, generation: self.generation })
    }

    /// Records the end of a call.
    #[expect(clippy::needless_pass_by_value, reason = "a call ends once, and so its pass is used up")]
    pub fn ended(&mut self, now: Nanos, permit: BreakerPermit, ok: bool) {
        if permit.generation != self.generation {
            return;
        }
        match &mut self.phase {
            BreakerPhase::Closed => {
                self.counts.count_at(now, permit.started, if ok { SUCCEEDED } else { FAILED });
                if !ok && self.is_failing() {
                    self.open(now);
                }
            }
            BreakerPhase::HalfOpen { in_flight, successes, .. } => {
                *in_flight = in_flight.saturating_sub(1);
                *successes += u32::from(ok);
                if !ok {
                    self.open_time =
                        Nanos(self.open_time.0.saturating_mul(2)).min(self.rule.max_open_time).max(self.rule.open_time);
                    self.open(now);
                } else if *successes >= self.rule.probes {
                    self.open_time = self.rule.open_time;
                    self.counts.clear();
                    self.transition(BreakerPhase::Closed);
                }
            }
            BreakerPhase::Open { .. } => {}
        }
    }

    /// Returns the permit of a cancelled call: its caller disconnected, or another attempt won. A cancelled probe
    /// admits the next one.
    #[expect(clippy::needless_pass_by_value, reason = "a call ends once, and so its pass is used up")]
    pub fn cancelled(&mut self, permit: BreakerPermit) {
        if let BreakerPhase::HalfOpen { in_flight, .. } = &mut self.phase
            && permit.generation == self.generation
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// State at `now`.
    pub fn state(&self, now: Nanos) -> State {
        match self.phase {
            BreakerPhase::Closed => State::Closed,
            BreakerPhase::Open { until } if now < until => State::Open,
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// Number of openings so far.
    pub fn openings(&self) -> u64 {
        self.openings
    }

    fn is_failing(&self) -> bool {
        let [succeeded, failed] = self.counts.totals();
        let ended = succeeded + failed;
        ended >= self.rule.min_calls && failed as f64 >= self.rule.failure_fraction * ended as f64
    }

    fn open(&mut self, now: Nanos) {
        self.openings += 1;
        self.transition(BreakerPhase::Open { until: now + self.open_time });
    }

    fn transition(&mut self, next: BreakerPhase) {
        self.generation += 1;
        let state = next.state();
        if state != self.phase.state() {
            let [succeeded, failed] = match self.phase {
                BreakerPhase::Closed => self.counts.totals(),
                BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => [0, 0],
            };
            let (ended, window, open_time) = (succeeded + failed, self.rule.window, self.open_time);
            self.change = Some(BreakerChange { state, ended, failed, window, open_time });
        }
        self.phase = next;
    }

    /// Latest change of state since the previous call.
    pub fn take_change(&mut self) -> Option<BreakerChange> {
        self.change.take()
    }
}

#[cfg(test)]
mod tests;
