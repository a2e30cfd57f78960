//! A rate-limited service: what it accepts, and what its responses report.

use weir_base::Nanos;
use weir_delivery::limit_headers::{Quota, RateLimitHeaders};
use weir_limits::limit_unit::LimitUnit;
use weir_limits::models::{LimitUsage, LimitWindow, RetryTime, ServerLimiter};

/// Rate-limit headers of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderStyle {
    /// None.
    #[default]
    None,
    /// As OpenAI's: limit and remaining of the requests, and when all of the limit is there again.
    Full,
    /// As in the IETF's draft: policy and remaining, and when there is more, in whole seconds.
    Draft,
    /// Remaining requests alone.
    Remaining,
}

/// Whether a rejection carries `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfterStyle {
    /// No.
    #[default]
    None,
    /// The exact length.
    Exact,
    /// Whole seconds, rounded up.
    Seconds,
}

/// Limits that a service enforces, and the headers with which it reports them.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// All hold at once.
    pub limits: Vec<LimitWindow>,
    /// Actual weight of each request at the service; the sender may assume another.
    pub weight: u64,
    /// Usage of the limits at the start, in requests.
    pub initial_used: u64,
    /// Rate-limit headers of all responses.
    pub headers: HeaderStyle,
    /// `Retry-After` of rejections.
    pub retry_after: RetryAfterStyle,
    /// How often another user of the same key sends a request.
    pub neighbour: Option<Nanos>,
    /// Limits that hold from a later time on, in the order of time.
    pub limit_changes: Vec<(Nanos, Vec<LimitWindow>)>,
}

impl Service {
    /// A service with this limit, and nothing out of the ordinary.
    pub fn new(limit: LimitWindow) -> Self {
        Self {
            limits: vec![limit],
            weight: 1,
            initial_used: 0,
            headers: HeaderStyle::None,
            retry_after: RetryAfterStyle::None,
            neighbour: None,
            limit_changes: Vec::new(),
        }
    }

    /// Count at the start.
    pub(super) fn initial_count(&self) -> ServiceCount {
        let mut limiter = ServerLimiter::new(&self.limits, Nanos(1));
        for _ in 0..self.initial_used {
            // The responses to requests before the start were sent long ago.
            let _ = limiter.judge(Nanos::ZERO, 1);
        }
        ServiceCount { limiter, next_change: 0 }
    }

    /// Rate-limit headers of a response made at `now`.
    pub(super) fn feedback(&self, now: Nanos, count: &mut ServiceCount, retry: Option<RetryTime>) -> RateLimitHeaders {
        let retry_after = match (self.retry_after, retry) {
            (RetryAfterStyle::Exact, Some(RetryTime::After(length))) => Some(length),
            (RetryAfterStyle::Seconds, Some(RetryTime::After(length))) => Some(ceil_to_second(length)),
            _ => None,
        };
        let standings = if self.headers == HeaderStyle::None { Vec::new() } else { count.limiter.usages(now) };
        RateLimitHeaders { retry_after, quotas: standings.into_iter().map(|standing| self.quota(&standing)).collect() }
    }

    fn quota(&self, standing: &LimitUsage) -> Quota {
        let length = |retry| match retry {
            RetryTime::After(length) => Some(length),
            _ => None,
        };
        let limit = standing.window.limit() / self.weight.max(1);
        let remaining = Some(standing.remaining / self.weight.max(1));
        match self.headers {
            HeaderStyle::None => Quota::default(),
            HeaderStyle::Remaining => Quota { remaining, ..Quota::default() },
            HeaderStyle::Full => Quota {
                name: "requests".into(),
                unit: Some(LimitUnit::Requests),
                limit: Some(limit),
                remaining,
                reset: length(standing.all),
                ..Quota::default()
            },
            HeaderStyle::Draft => Quota {
                name: "default".into(),
                limit: Some(limit),
                per: Some(standing.window.per()).filter(|per| *per > Nanos::ZERO),
                remaining,
                reset: length(standing.more).map(ceil_to_second),
                ..Quota::default()
            },
        }
    }
}

/// The service's own count.
#[derive(Clone, Debug)]
pub(super) struct ServiceCount {
    limiter: ServerLimiter,
    next_change: usize,
}

impl ServiceCount {
    /// A request arrives.
    pub(super) fn admit(&mut self, now: Nanos, service: &Service) -> Result<(), RetryTime> {
        if let Some((at, limits)) = service.limit_changes.get(self.next_change)
            && *at <= now
        {
            self.limiter = ServerLimiter::new(limits, Nanos(1));
            self.next_change += 1;
        }
        self.limiter.judge(now, service.weight.max(1)).map_err(|rejection| rejection.retry)
    }

    /// When all of every limit is free, if nothing else comes.
    pub(super) fn reset(&mut self, now: Nanos) -> Nanos {
        let lengths = self.limiter.usages(now).into_iter().map(|standing| match standing.all {
            RetryTime::After(length) => length,
            _ => Nanos::ZERO,
        });
        lengths.max().unwrap_or_default()
    }

    /// Response to an accepted request was sent.
    pub(super) fn finished(&mut self, service: &Service) {
        self.limiter.finished(service.weight.max(1));
    }
}

fn ceil_to_second(length: Nanos) -> Nanos {
    Nanos(length.0.next_multiple_of(Nanos::SECOND.0))
}
