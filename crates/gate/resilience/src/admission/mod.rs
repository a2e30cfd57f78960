//! Overload protection: whether a call runs at its upstream now, waits for a slot, or is rejected.
//!
//! ```text
//!             arrive ──► rank below the shed threshold? ──► rejected at once
//!                              │
//!                        slot free? ──yes──► runs ──► ended: a sample for the limit
//!                              │ no                     │
//!                        in time, queue short enough? ──no──► rejected at once
//!                              │ yes                    │
//!                           waits ◄──── slot granted ───┘
//! ```
//!
//! - [`Slots`]: slots and how many of them are taken, for all threads without a lock
//! - [`AdaptiveLimit`]: number of slots, estimated from service times
//! - `CallQueue`: calls that wait: their order, and how long they may wait
//! - `ShedThreshold`: rank below which calls are rejected at once
//! - `ConnectionShares`, `OtherCallers`: slots that one connection of HTTP/2 may hold while there are others
//! - `AbandonedCalls`: cancelled calls that the upstream may still work on
//!
//! [`Admission`] combines them. A call that takes a free slot touches the [`Slots`] alone.
//! `docs/design/overload.md` has the reasons, the evidence and the alternatives.

mod abandoned;
pub mod adaptive_limit;
mod connection_shares;
mod controller;
mod pulse;
mod queue;
mod service_rate;
mod shed_threshold;
mod silence;
mod slots;
mod terms;
#[cfg(test)]
mod tests;

use std::fmt;

pub use self::adaptive_limit::AdaptiveLimit;
pub use self::connection_shares::ConnectionNumber;
pub use self::controller::Admission;
pub use self::pulse::{PauseTotal, Pulse};
pub use self::slots::Slots;
pub use self::terms::{AdmissionConfig, ConcurrencyLimitConfig};
use weir_base::Nanos;

/// Importance of a call. Under overload the lowest priorities are shed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Work that can be done another time.
    Low,
    /// Calls without a priority.
    #[default]
    Normal,
    /// Calls that a user waits for.
    High,
    /// Calls without which the service is down.
    Critical,
}

impl Priority {
    /// All priorities, from the lowest to the highest.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// Name in configurations, headers and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Index in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionReason {
    /// Overload: more calls arrive than the upstream can serve, and others have a higher rank.
    Shed,
    /// All slots are taken, and the queue is as long as can be served in time.
    QueueFull,
    /// No response could be there before the deadline.
    DeadlineExceeded,
    /// The maximum queue wait has passed.
    QueueTimeout,
    /// The caller's own rate limit is used up.
    RateLimited,
    /// The circuit breaker of the upstream is open.
    CircuitOpen,
    /// Client-side throttling: the upstream rejects a fraction of its calls, so that fraction is not sent.
    Throttled,
    /// Overload: the route or the caller takes the time of all others, and holds all the slots that are left for it.
    Culprit,
}

impl RejectionReason {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::Shed,
        Self::QueueFull,
        Self::DeadlineExceeded,
        Self::QueueTimeout,
        Self::RateLimited,
        Self::CircuitOpen,
        Self::Throttled,
        Self::Culprit,
    ];

    /// Label in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shed => "shed",
            Self::QueueFull => "queue_full",
            Self::DeadlineExceeded => "deadline_too_short",
            Self::QueueTimeout => "queue_timeout",
            Self::RateLimited => "rate_limited",
            Self::CircuitOpen => "circuit_open",
            Self::Throttled => "throttled",
            Self::Culprit => "culprit",
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rejection of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Reason.
    pub reason: RejectionReason,
    /// Time after which a retry may succeed.
    pub retry_after: Nanos,
}

/// Properties of an arriving call.
#[derive(Clone, Copy, Debug)]
pub struct CallArrival {
    /// Time at which the response is due; [`Nanos::NEVER`] without a deadline.
    pub deadline: Nanos,
    /// Importance of the call.
    pub priority: Priority,
    /// Evenly distributed number, e.g. a hash. Among equal priorities calls with a high spread are admitted first, so
    /// that a fraction of a priority can be shed.
    pub spread: u8,
    /// Connection of the caller, if it multiplexes calls (HTTP/2): its share of the slots is bounded.
    pub connection: Option<ConnectionNumber>,
}

impl CallArrival {
    /// Rank that is compared with the shed threshold: by priority, then by spread.
    pub fn rank(&self) -> u32 {
        (self.priority as u32) << 8 | u32::from(self.spread)
    }
}

/// Number of a queued call; later calls have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueTicket(pub u64);

/// Decision on an arriving call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionVerdict {
    /// The call has a slot, to be returned by [`Slots::release`] or [`Admission::abandoned`].
    Run,
    /// The call is queued. If it still is at that time, [`Admission::recheck`] is to be called.
    Wait(QueueTicket, Nanos),
    /// The call is rejected.
    Reject(Rejection),
}

/// Decision on a queued call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAction {
    /// The call has a slot now.
    Run(QueueTicket),
    /// The call is rejected.
    Reject(QueueTicket, Rejection),
}

/// Outcome of a call that had a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// Response: its service time is a sample.
    Responded,
    /// The upstream rejected it for overload: 429, 503.
    Overloaded,
    /// Any other failure: no evidence about the capacity.
    Failed,
}

/// Reason to cancel a call that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonReason {
    /// The deadline has passed: a lower bound of the service time.
    DeadlineExceeded,
    /// As `DeadlineExceeded`, of a deadline that the caller has chosen: no evidence while service times are unknown.
    CallerDeadlineExceeded,
    /// The caller disconnected, or another attempt won: no evidence.
    Unwanted,
}

/// Observation of a call that had a slot.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSample {
    /// Time at which the call got its slot.
    pub started: Nanos,
    /// Calls in flight at that time, including this one.
    pub in_flight_at_start: u32,
    /// Lateness of weir's own event loop when it saw the end ([`Pulse::lag`]): not part of the service time.
    pub lag: Nanos,
    /// Time for which the response waited unread, because the caller read it slowly.
    pub read_delay: Nanos,
}
