//! What a call may do for its answer, as data: how long it may take, how many attempts, when, and why.

use super::Nanos;
use super::grpc::{Code, Codes};
use super::hedge::{MOST_ATTEMPTS, MOST_STAGES};

/// What a call may do for its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The caller has an answer so long after the call's start; [`Nanos::NEVER`] for no limit.
    pub deadline: Nanos,
    /// An attempt that has not succeeded so long after its own start has failed ([`Kind::Timeout`]); or never.
    pub attempt_timeout: Nanos,
    /// More copies beside the first attempt, stage by stage; each waits for the one before it.
    pub stages: Vec<Stage>,
    /// New attempts in place of failed ones, once no stage is left for that.
    pub retry: Retry,
    /// Which requests may be sent more than once.
    pub repeat: Repeat,
    /// What all extra attempts (of stages and retries) may come to, for all calls together; None is without limit.
    pub budget: Option<Budget>,
}

impl Default for Policy {
    /// One attempt, and all the time in the world.
    fn default() -> Self {
        Self {
            deadline: Nanos::NEVER,
            attempt_timeout: Nanos::NEVER,
            stages: Vec::new(),
            retry: Retry::default(),
            repeat: Repeat::default(),
            budget: Some(Budget::default()),
        }
    }
}

impl Policy {
    /// Whether there can be a second attempt at all.
    pub fn repeats(&self) -> bool {
        !self.stages.is_empty() || self.retry.times > 0
    }

    /// What of it is more than a call can have, and how much that is.
    pub fn excess(&self) -> Option<(String, String)> {
        let attempts = self.stages.iter().fold(1 + u64::from(self.retry.times), |sum, one| sum + u64::from(one.copies));
        if self.stages.len() > MOST_STAGES {
            let what = format!("{} stages are too many", self.stages.len());
            Some((what, format!("make it {MOST_STAGES} at most")))
        } else if attempts > u64::from(MOST_ATTEMPTS) {
            let what = format!("{attempts} attempts per call (one, all copies, all retries) are too many");
            Some((what, format!("make it {MOST_ATTEMPTS} at most")))
        } else {
            None
        }
    }
}

/// Copies that are launched together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// When, counted from the stage before (the first: from the call's start).
    pub after: After,
    /// Whether an attempt's failure launches it at once.
    pub on_failure: bool,
    /// How many; at least 1.
    pub copies: u32,
}

/// How long a stage waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// So long.
    Time(Nanos),
    /// As long as this share of recent first attempts took at most; in (0, 1). For ever while too few are known.
    Quantile(f64),
    /// For a failure.
    Failure,
}

/// When a failed attempt is followed by another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// At most so many retries per call; 0 is none.
    pub times: u32,
    /// After which failures.
    pub on: Retryable,
    /// How long to wait before each.
    pub backoff: Backoff,
    /// Wait at least as long as the answer's Retry-After says; if that is past the deadline, there is no retry.
    pub obey_retry_after: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { times: 0, on: Retryable::default(), backoff: Backoff::default(), obey_retry_after: true }
    }
}

/// Failures after which another attempt is worth it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retryable {
    /// The kinds without an answer, and answers with a wrong body.
    pub kinds: Vec<Kind>,
    /// Statuses, as inclusive ranges. A gRPC code is covered by the status that stands for it, too.
    pub statuses: Vec<(u16, u16)>,
    /// More gRPC codes.
    pub grpc: Codes,
}

impl Default for Retryable {
    /// No answer, and 429, 502, 503, 504; so of gRPC RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED.
    fn default() -> Self {
        let kinds = vec![Kind::Dns, Kind::Connect, Kind::Closed, Kind::Reset, Kind::Timeout];
        Self { kinds, statuses: vec![(429, 429), (502, 504)], grpc: Codes::NONE }
    }
}

impl Retryable {
    /// Whether this failure is one of them.
    pub fn covers(&self, failure: Failure) -> bool {
        let of_status = |status| self.statuses.iter().any(|(low, high)| (*low..=*high).contains(&status));
        match failure {
            Failure::Kind(kind) => self.kinds.contains(&kind),
            Failure::Status(status) => of_status(status),
            Failure::Grpc(code) => self.grpc.contains(code) || code.as_http().is_some_and(of_status),
        }
    }
}

/// Waits that grow and are spread: each is uniform between `first` and three times the one before, and `most` at most
/// ("decorrelated jitter": M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The shortest.
    pub first: Nanos,
    /// The longest.
    pub most: Nanos,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Nanos::from_millis(25), most: Nanos::from_secs(1) }
    }
}

/// Which requests may be sent more than once (RFC 9110, 9.2.1 and 9.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// GET, HEAD, OPTIONS, TRACE: those that change nothing.
    #[default]
    Safe,
    /// PUT and DELETE, too: twice is the same as once.
    Idempotent,
    /// All.
    Every,
}

/// What extra attempts may come to: in any `window` that ends with one of them, at most `floor` and `share` of the
/// calls that began in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Extra attempts per call; in [0, 100].
    pub share: f64,
    /// Extra attempts per window whatever the number of calls.
    pub floor: u32,
    /// The window's length.
    pub window: Nanos,
}

impl Default for Budget {
    fn default() -> Self {
        Self { share: 0.05, floor: 1, window: Nanos::SECOND }
    }
}

/// Why an attempt did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Without a valid answer, or with a body that is not what was asked for.
    Kind(Kind),
    /// An answer with a status that is no success.
    Status(u16),
    /// An answer whose gRPC status, in its head or behind its body, is no success.
    Grpc(Code),
}

impl Failure {
    /// The side that has caused it.
    pub const fn fault(self) -> Fault {
        match self {
            Self::Kind(kind) => kind.fault(),
            Self::Status(_) | Self::Grpc(_) => Fault::Upstream,
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
pub enum Fault {
    /// The upstream, or the way to it: counted against the host, the breaker and the limit.
    Upstream,
    /// The caller: it says nothing of the upstream, and no other copy would fare better.
    Caller,
}

/// Kinds of failures that are not a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
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

impl Kind {
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
    pub const fn fault(self) -> Fault {
        match self {
            Self::Request => Fault::Caller,
            Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Timeout
            | Self::Closed
            | Self::Reset
            | Self::Protocol
            | Self::Body
            | Self::Header => Fault::Upstream,
        }
    }

    /// The kinds after which another attempt may be asked for.
    pub fn retryable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.fault() == Fault::Upstream)
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
