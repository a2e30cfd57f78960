//! What a call may do for its answer, as data: how long it may take, how many attempts, when, and why.

use super::Nanos;
use super::grpc::{Code, Codes};
use super::hedge::{MAX_ATTEMPTS, MAX_STAGES};

/// What a call may do for its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The caller has an answer so long after the call's start; [`Nanos::NEVER`] for no limit.
    pub deadline: Nanos,
    /// An attempt that has not succeeded so long after its own start has failed ([`FailureKind::Timeout`]); or never.
    pub attempt_timeout: Nanos,
    /// More copies beside the first attempt, stage by stage; each waits for the one before it.
    pub stages: Vec<HedgeStage>,
    /// New attempts in place of failed ones, once no stage is left for that.
    pub retry: RetryPolicy,
    /// Which requests may be sent more than once.
    pub retryable_methods: RetryableMethodClass,
    /// What all extra attempts (of stages and retries) may come to, for all calls together; None is without limit.
    pub budget: Option<BudgetRule>,
}

impl Default for Policy {
    /// One attempt, and all the time in the world.
    fn default() -> Self {
        Self {
            deadline: Nanos::NEVER,
            attempt_timeout: Nanos::NEVER,
            stages: Vec::new(),
            retry: RetryPolicy::default(),
            retryable_methods: RetryableMethodClass::default(),
            budget: Some(BudgetRule::default()),
        }
    }
}

impl Policy {
    /// Whether there can be a second attempt at all.
    pub fn allows_extra_attempts(&self) -> bool {
        !self.stages.is_empty() || self.retry.max_retries > 0
    }

    /// What of it is more than a call can have, and how much that is.
    pub fn validation_error(&self) -> Option<(String, String)> {
        let attempts =
            self.stages.iter().fold(1 + u64::from(self.retry.max_retries), |sum, one| sum + u64::from(one.attempts));
        if self.stages.len() > MAX_STAGES {
            let what = format!("{} stages are too many", self.stages.len());
            Some((what, format!("make it {MAX_STAGES} at most")))
        } else if attempts > u64::from(MAX_ATTEMPTS) {
            let what = format!("{attempts} attempts per call (one, all copies, all retries) are too many");
            Some((what, format!("make it {MAX_ATTEMPTS} at most")))
        } else {
            None
        }
    }
}

/// Copies that are launched together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeStage {
    /// When, counted from the stage before (the first: from the call's start).
    pub after: StageTrigger,
    /// Whether an attempt's failure launches it at once.
    pub on_failure: bool,
    /// How many; at least 1.
    pub attempts: u32,
}

/// How long a stage waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StageTrigger {
    /// So long.
    Time(Nanos),
    /// As long as this share of recent first attempts took at most; in (0, 1). For ever while too few are known.
    Quantile(f64),
    /// For a failure.
    Failure,
}

/// When a failed attempt is followed by another one.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// At most so many retries per call; 0 is none.
    pub max_retries: u32,
    /// After which failures.
    pub on: Retryable,
    /// How long to wait before each.
    pub backoff: Backoff,
    /// Wait at least as long as the answer's Retry-After says; if that is past the deadline, there is no retry.
    pub honor_retry_after: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 0, on: Retryable::default(), backoff: Backoff::default(), honor_retry_after: true }
    }
}

/// Failures after which another attempt is worth it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retryable {
    /// The kinds without an answer, and answers with a wrong body.
    pub kinds: Vec<FailureKind>,
    /// Statuses, as inclusive ranges. A gRPC code is covered by the status that stands for it, too.
    pub statuses: Vec<(u16, u16)>,
    /// More gRPC codes.
    pub grpc: Codes,
}

impl Default for Retryable {
    /// No answer, and 429, 502, 503, 504; so of gRPC RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED.
    fn default() -> Self {
        let kinds =
            vec![FailureKind::Dns, FailureKind::Connect, FailureKind::Closed, FailureKind::Reset, FailureKind::Timeout];
        Self { kinds, statuses: vec![(429, 429), (502, 504)], grpc: Codes::NONE }
    }
}

impl Retryable {
    /// Whether this failure is one of them.
    pub fn covers(&self, failure: AttemptFailure) -> bool {
        let of_status = |status| self.statuses.iter().any(|(low, high)| (*low..=*high).contains(&status));
        match failure {
            AttemptFailure::Kind(kind) => self.kinds.contains(&kind),
            AttemptFailure::Status(status) => of_status(status),
            AttemptFailure::Grpc(code) => self.grpc.contains(code) || code.as_http().is_some_and(of_status),
        }
    }
}

/// Waits that grow and are spread: each is uniform between `first` and three times the one before, and `most` at most
/// ("decorrelated jitter": M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The shortest.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { min: Nanos::from_millis(25), max: Nanos::from_secs(1) }
    }
}

/// Which requests may be sent more than once (RFC 9110, 9.2.1 and 9.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryableMethodClass {
    /// GET, HEAD, OPTIONS, TRACE: those that change nothing.
    #[default]
    Safe,
    /// PUT and DELETE, too: twice is the same as once.
    Idempotent,
    /// All.
    All,
}

/// What extra attempts may come to: in any `window` that ends with one of them, at most `floor` and `share` of the
/// calls that began in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetRule {
    /// Extra attempts per call; in [0, 100].
    pub fraction: f64,
    /// Extra attempts per window whatever the number of calls.
    pub min_per_window: u32,
    /// The window's length.
    pub window: Nanos,
}

impl Default for BudgetRule {
    fn default() -> Self {
        Self { fraction: 0.05, min_per_window: 1, window: Nanos::SECOND }
    }
}

/// Why an attempt did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptFailure {
    /// Without a valid answer, or with a body that is not what was asked for.
    Kind(FailureKind),
    /// An answer with a status that is no success.
    Status(u16),
    /// An answer whose gRPC status, in its head or behind its body, is no success.
    Grpc(Code),
}

impl AttemptFailure {
    /// The side that has caused it.
    pub const fn side(self) -> FailureSide {
        match self {
            Self::Kind(kind) => kind.side(),
            Self::Status(_) | Self::Grpc(_) => FailureSide::Upstream,
        }
    }

    /// The word for it, but for that of a status, which is its number.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Kind(kind) => Some(kind.name()),
            Self::Grpc(code) => Some(code.name()),
            Self::Status(_) => None,
        }
    }
}

/// The side that has caused a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureSide {
    /// The upstream, or the way to it: counted against the host, the breaker and the limit.
    Upstream,
    /// The caller: it says nothing of the upstream, and no other copy would fare better.
    Caller,
}

/// Kinds of failures that are not a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The name has no address.
    Dns,
    /// No connection; the request was not sent.
    Connect,
    /// No TLS; the request was not sent.
    Tls,
    /// Nothing within the attempt's own timeout.
    Timeout,
    /// The connection was closed before the whole answer.
    Closed,
    /// The connection (or the stream) was reset.
    Reset,
    /// What came is not HTTP.
    Protocol,
    /// The answer's body is not what a success has: no JSON, not after the schema, too long to look at.
    Body,
    /// The answer lacks a header that a success has.
    Header,
    /// The request itself: its body broke off or is not as long as it said, or its target, host or length cannot be sent.
    /// The only kind that is the caller's fault.
    Request,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Closed,
        Self::Reset,
        Self::Protocol,
        Self::Body,
        Self::Header,
        Self::Request,
    ];

    /// The side that has caused a failure of this kind.
    pub const fn side(self) -> FailureSide {
        match self {
            Self::Request => FailureSide::Caller,
            Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Timeout
            | Self::Closed
            | Self::Reset
            | Self::Protocol
            | Self::Body
            | Self::Header => FailureSide::Upstream,
        }
    }

    /// The kinds after which another attempt may be asked for.
    pub fn retryable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.side() == FailureSide::Upstream)
    }

    /// The word for it in configurations, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Body => "body",
            Self::Header => "header",
            Self::Request => "request",
        }
    }

    /// Whether the upstream has surely not seen the request, so that any method may be tried again.
    pub const fn is_unsent(self) -> bool {
        matches!(self, Self::Dns | Self::Connect | Self::Tls)
    }
}
