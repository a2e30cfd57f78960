//! Guard of an upstream: a circuit breaker and adaptive throttling.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::condition_changes::{ChangeQueue, UpstreamEvent};
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_resilience::admission::{Rejection, RejectionReason};
use weir_resilience::upstream::circuit_breaker::{Breaker, BreakerPermit, BreakerRule, State};
use weir_resilience::upstream::client_throttle::{Throttle, ThrottleChange, ThrottleRule};

/// Circuit breaker and throttle of an upstream; either may be missing.
#[derive(Debug, Default)]
pub(super) struct UpstreamGuard {
    breaker: Option<Mutex<Breaker>>,
    throttle: Option<GuardThrottle>,
    changes: Arc<ChangeQueue>,
}

#[derive(Debug)]
struct GuardThrottle {
    state: Mutex<Throttle>,
    window: Nanos,
    /// End of the window of the last 429 or 503. Outside of it nothing is counted, and no call needs the lock.
    active_until: AtomicU64,
    /// Time at which the throttling ends if no further call is rejected by it; 0 without throttling.
    quiet_at: AtomicU64,
}

/// Outcome of an attempt, as evidence about its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardOutcome {
    /// A response; true if it was not a failure.
    Responded(bool),
    /// 429 or 503.
    Overloaded,
    /// No response.
    Failed,
    /// Cancelled, which is no evidence.
    Cancelled,
}

impl UpstreamGuard {
    pub(super) fn new(breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>, changes: Arc<ChangeQueue>) -> Self {
        let throttled = |rule: ThrottleRule| GuardThrottle {
            state: Mutex::new(Throttle::new(rule)),
            window: rule.window,
            active_until: AtomicU64::new(0),
            quiet_at: AtomicU64::new(0),
        };
        Self { breaker: breaker.map(|rule| Mutex::new(Breaker::new(rule))), throttle: throttle.map(throttled), changes }
    }

    /// Admits or rejects a call; a permit is returned by [`Self::ended`]. `random` is uniform in [0, 1).
    pub(super) fn allows(&self, now: Nanos, random: impl FnOnce() -> f64) -> Result<Option<BreakerPermit>, Rejection> {
        if let Some(throttle) = self.throttle.as_ref().filter(|throttle| throttle.is_active(now))
            && !self.throttle_allows(now, throttle, random())
        {
            return Err(Rejection { reason: RejectionReason::Throttled, retry_after: Nanos::SECOND });
        }
        let Some(breaker) = &self.breaker else { return Ok(None) };
        let mut breaker = lock(breaker);
        let allowed = breaker.allows(now);
        self.note_change(now, &mut breaker);
        allowed.map(Some).map_err(|wait| Rejection { reason: RejectionReason::CircuitOpen, retry_after: wait })
    }

    /// As [`Self::allows`] where that decides nothing: no call is throttled, and the circuit is closed.
    pub(super) fn allows_any(&self, now: Nanos) -> Option<Option<BreakerPermit>> {
        if self.throttle.as_ref().is_some_and(|throttle| throttle.is_active(now)) {
            return None;
        }
        let Some(breaker) = &self.breaker else { return Some(None) };
        let mut breaker = lock(breaker);
        if breaker.state(now) != State::Closed {
            return None;
        }
        breaker.allows(now).ok().map(Some)
    }

    fn throttle_allows(&self, now: Nanos, throttle: &GuardThrottle, random: f64) -> bool {
        let mut state = lock(&throttle.state);
        let allows = state.allows(now, random);
        if !allows {
            throttle.quiet_at.store(state.quiet_at().map_or(0, |at| at.0), Relaxed);
            self.note_throttling(now, state.take_beginning());
        }
        allows
    }

    /// Passes on the beginning or end of throttling.
    fn note_throttling(&self, now: Nanos, change: Option<ThrottleChange>) {
        if let Some(change) = change.filter(|_| self.changes.is_read()) {
            self.changes.push(UpstreamEvent { at: now, kind: "throttle", host: None, line: change.line() });
        }
    }

    /// Time at which throttling ends if no further call is rejected by it; None without throttling.
    pub(super) fn throttling_until(&self) -> Option<Nanos> {
        let quiet_at = self.throttle.as_ref()?.quiet_at.load(Relaxed);
        (quiet_at > 0).then_some(Nanos(quiet_at))
    }

    /// Ends throttling if its time has come.
    pub(super) fn end_throttling(&self, now: Nanos) {
        let Some(throttle) = self.throttle.as_ref().filter(|_| self.throttling_until().is_some_and(|at| at <= now))
        else {
            return;
        };
        let mut state = lock(&throttle.state);
        let ended = state.end_if_quiet(now);
        throttle.quiet_at.store(state.quiet_at().map_or(0, |at| at.0), Relaxed);
        self.note_throttling(now, ended);
    }

    /// Records the outcome of an attempt.
    pub(super) fn ended(&self, now: Nanos, permit: Option<BreakerPermit>, outcome: GuardOutcome) {
        if let Some(throttle) = &self.throttle {
            match outcome {
                GuardOutcome::Overloaded => {
                    throttle.active_until.fetch_max((now + throttle.window).0, Relaxed);
                    lock(&throttle.state).rejected(now);
                }
                GuardOutcome::Responded(_) if throttle.is_active(now) => lock(&throttle.state).accepted(now),
                GuardOutcome::Responded(_) | GuardOutcome::Failed | GuardOutcome::Cancelled => {}
            }
        }
        if let (Some(breaker), Some(permit)) = (&self.breaker, permit) {
            let mut breaker = lock(breaker);
            match outcome {
                GuardOutcome::Responded(ok) => breaker.ended(now, permit, ok),
                GuardOutcome::Failed => breaker.ended(now, permit, false),
                GuardOutcome::Overloaded | GuardOutcome::Cancelled => breaker.cancelled(permit),
            }
            self.note_change(now, &mut breaker);
        }
    }

    /// Passes on a change of the circuit.
    fn note_change(&self, now: Nanos, breaker: &mut Breaker) {
        if let Some(change) = breaker.take_change().filter(|_| self.changes.is_read()) {
            self.changes.push(UpstreamEvent { at: now, kind: "circuit", host: None, line: change.line() });
        }
    }

    /// State of the circuit breaker, if there is one.
    pub(super) fn state(&self, now: Nanos) -> Option<State> {
        self.breaker.as_ref().map(|breaker| lock(breaker).state(now))
    }

    /// Fraction of calls that the throttle rejects now, if there is one.
    pub(super) fn dropped_fraction(&self, now: Nanos) -> Option<f64> {
        let throttle = self.throttle.as_ref()?;
        Some(if throttle.is_active(now) { lock(&throttle.state).dropped_fraction(now) } else { 0.0 })
    }
}

impl GuardThrottle {
    fn is_active(&self, now: Nanos) -> bool {
        now.0 < self.active_until.load(Relaxed)
    }
}
