//! What an upstream is spared: calls while it is down, and a part of them while it says that it has too many.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decide::Nanos;
use crate::decide::admit::{Rejection, RejectionReason};
use crate::decide::breaker::{Breaker, BreakerPermit, BreakerRule, State};
use crate::decide::throttle::{Throttle, ThrottleRule};

/// A circuit breaker and a throttle; either may be missing.
#[derive(Debug, Default)]
pub(super) struct UpstreamGuard {
    breaker: Option<Mutex<Breaker>>,
    throttle: Option<GuardThrottle>,
}

#[derive(Debug)]
struct GuardThrottle {
    state: Mutex<Throttle>,
    window: Nanos,
    /// Until then something that was refused is remembered. Before the first, and after the last, nothing is counted,
    /// and no call needs the lock.
    active_until: AtomicU64,
}

/// How an attempt went, as far as it says something of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardOutcome {
    /// It was answered, and well if this is true.
    Responded(bool),
    /// The upstream said that it has too many.
    Overloaded,
    /// There was no answer.
    Failed,
    /// Nobody waited for one.
    Cancelled,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UpstreamGuard {
    pub(super) fn new(breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>) -> Self {
        let throttled = |rule: ThrottleRule| GuardThrottle {
            state: Mutex::new(Throttle::new(rule)),
            window: rule.window,
            active_until: AtomicU64::new(0),
        };
        Self { breaker: breaker.map(|rule| Mutex::new(Breaker::new(rule))), throttle: throttle.map(throttled) }
    }

    /// Whether a call may be sent. What it gets is given back by [`Self::ended`]. `roll` is a draw from [0, 1).
    pub(super) fn allows(&self, now: Nanos, roll: impl FnOnce() -> f64) -> Result<Option<BreakerPermit>, Rejection> {
        if let Some(throttle) = self.throttle.as_ref().filter(|throttle| throttle.is_active(now))
            && !locked(&throttle.state).allows(now, roll())
        {
            return Err(Rejection { reason: RejectionReason::Throttled, retry_after: Nanos::SECOND });
        }
        let Some(breaker) = &self.breaker else { return Ok(None) };
        locked(breaker)
            .allows(now)
            .map(Some)
            .map_err(|wait| Rejection { reason: RejectionReason::CircuitOpen, retry_after: wait })
    }

    /// An attempt has ended.
    pub(super) fn ended(&self, now: Nanos, pass: Option<BreakerPermit>, told: GuardOutcome) {
        if let Some(throttle) = &self.throttle {
            match told {
                GuardOutcome::Overloaded => {
                    throttle.active_until.fetch_max((now + throttle.window).0, Relaxed);
                    locked(&throttle.state).rejected(now);
                }
                GuardOutcome::Responded(_) if throttle.is_active(now) => locked(&throttle.state).accepted(now),
                GuardOutcome::Responded(_) | GuardOutcome::Failed | GuardOutcome::Cancelled => {}
            }
        }
        if let (Some(breaker), Some(pass)) = (&self.breaker, pass) {
            match told {
                GuardOutcome::Responded(ok) => locked(breaker).ended(now, pass, ok),
                GuardOutcome::Failed => locked(breaker).ended(now, pass, false),
                GuardOutcome::Overloaded | GuardOutcome::Cancelled => locked(breaker).cancelled(pass),
            }
        }
    }

    /// What the breaker does with calls, if there is one.
    pub(super) fn state(&self, now: Nanos) -> Option<State> {
        self.breaker.as_ref().map(|breaker| locked(breaker).state(now))
    }

    /// The share of calls that is dropped now, if any might be.
    pub(super) fn dropped_fraction(&self, now: Nanos) -> Option<f64> {
        let throttle = self.throttle.as_ref()?;
        Some(if throttle.is_active(now) { locked(&throttle.state).dropped_fraction(now) } else { 0.0 })
    }
}

impl GuardThrottle {
    fn is_active(&self, now: Nanos) -> bool {
        now.0 < self.active_until.load(Relaxed)
    }
}
