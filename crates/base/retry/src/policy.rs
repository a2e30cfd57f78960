//! Rules of retries as data: failures that are retried, delays, methods, budget.

use std::fmt;
use std::ops::RangeInclusive;

use weir_base::Nanos;
use weir_base::failure::{FailureKind, FailureSide};

use super::backoff::Backoff;
use super::grpc::{Code, Codes};

/// Retries of failed attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Maximum retries per call; 0 for none.
    pub max_retries: u32,
    /// Failures that are retried.
    pub on: Retryable,
    /// Delay before each retry.
    pub backoff: Backoff,
    /// Whether the delay is at least the response's Retry-After; without a retry if that is past the deadline.
    pub honor_retry_after: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 0, on: Retryable::default(), backoff: Backoff::default(), honor_retry_after: true }
    }
}

/// Failures that are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retryable {
    /// Kinds of failures without a valid response.
    pub kinds: Vec<FailureKind>,
    /// Ranges of HTTP statuses. They include the gRPC codes that correspond to them.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Further gRPC codes.
    pub grpc: Codes,
}

impl Default for Retryable {
    /// No response, and 429, 502, 503, 504; so of gRPC RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED.
    fn default() -> Self {
        let kinds =
            vec![FailureKind::Dns, FailureKind::Connect, FailureKind::Closed, FailureKind::Reset, FailureKind::Timeout];
        Self { kinds, statuses: vec![429..=429, 502..=504], grpc: Codes::NONE }
    }
}

impl Retryable {
    /// Whether this failure is retried.
    pub fn covers(&self, failure: AttemptFailure) -> bool {
        let of_status = |status| self.statuses.iter().any(|range| range.contains(&status));
        match failure {
            AttemptFailure::Kind(kind) => self.kinds.contains(&kind),
            AttemptFailure::Status(status) => of_status(status),
            AttemptFailure::Grpc(code) => self.grpc.contains(code) || code.as_http().is_some_and(of_status),
        }
    }
}

/// Methods of requests that may be sent more than once (RFC 9110, 9.2.1 and 9.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryableMethodClass {
    /// Safe methods: GET, HEAD, OPTIONS, TRACE.
    #[default]
    Safe,
    /// Idempotent methods: also PUT and DELETE.
    Idempotent,
    /// All methods.
    All,
}

/// Bound on extra attempts: in any `window` that ends with one, at most `min_per_window` plus `fraction` of the calls
/// that began in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetRule {
    /// Extra attempts per call; in [0, 100].
    pub fraction: f64,
    /// Extra attempts per window in addition, whatever the number of calls.
    pub min_per_window: u32,
    /// Length of the window.
    pub window: Nanos,
}

impl BudgetRule {
    /// Extra attempts per second of the default minimum.
    pub const DEFAULT_MIN_PER_S: u32 = 25;
}

impl Default for BudgetRule {
    /// 5% of the calls, and a minimum that a script of calls in sequence does not meet: 25 extra attempts per second,
    /// counted over 10 s. A tenth of failures, a tenth of hangs and pairs of hedges after 150 ms need 24 per second.
    fn default() -> Self {
        Self { fraction: 0.05, min_per_window: 10 * Self::DEFAULT_MIN_PER_S, window: Nanos::from_secs(10) }
    }
}

/// Notation of configurations: `5% + 250/10s`.
impl fmt::Display for BudgetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fraction, min_per_window, window } = self;
        // Rounded, since 0.07 times 100 is not 7.
        let percent = (fraction * 1e8).round() / 1e6;
        write!(f, "{percent}% + {min_per_window}/{window}")
    }
}

/// Failure that a retry policy decides about: by kind, or by the response's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptFailure {
    /// No valid response, or one with a wrong body or header.
    Kind(FailureKind),
    /// Response with a status that is not a success.
    Status(u16),
    /// Response with a gRPC status, in its head or trailers, that is not a success.
    Grpc(Code),
}

impl AttemptFailure {
    /// Side that caused the failure.
    pub const fn side(self) -> FailureSide {
        match self {
            Self::Kind(kind) => kind.side(),
            Self::Status(_) | Self::Grpc(_) => FailureSide::Upstream,
        }
    }

    /// Name in logs and metrics; `None` for a status, whose name is its number.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Kind(kind) => Some(kind.name()),
            Self::Grpc(code) => Some(code.name()),
            Self::Status(_) => None,
        }
    }
}
