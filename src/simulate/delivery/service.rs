//! A rate-limited service: what it accepts, and what its responses report.

use crate::decide::Nanos;
use crate::decide::feedback::{Feedback, Quota};
use crate::decide::limit::{Limiter, Retry, Standing, Window};
use crate::decide::window::Unit;

/// Which rate-limit headers responses carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headers {
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
pub enum RetryAfter {
    /// No.
    #[default]
    None,
    /// The exact length.
    Exact,
    /// Whole seconds, rounded up.
    Seconds,
}

/// What a service enforces, and what it reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// All hold at once.
    pub limits: Vec<Window>,
    /// What each request counts, whatever its sender takes it for.
    pub weight: u64,
    /// What is used of the limits at the start.
    pub used: u64,
    /// What responses report.
    pub headers: Headers,
    /// What rejections report.
    pub retry_after: RetryAfter,
    /// How often another user of the same key sends a request.
    pub neighbour: Option<Nanos>,
    /// Limits that hold from a later time on, in the order of time.
    pub later: Vec<(Nanos, Vec<Window>)>,
}

impl Service {
    /// A service with this limit, and nothing out of the ordinary.
    pub fn new(limit: Window) -> Self {
        Self {
            limits: vec![limit],
            weight: 1,
            used: 0,
            headers: Headers::None,
            retry_after: RetryAfter::None,
            neighbour: None,
            later: Vec::new(),
        }
    }

    /// Its count at the start.
    pub(super) fn count(&self) -> Count {
        let mut limiter = Limiter::new(&self.limits, Nanos(1));
        for _ in 0..self.used {
            // What is used at the start has long been answered.
            let _ = limiter.judge(Nanos::ZERO, 1);
        }
        Count { limiter, next: 0 }
    }

    /// What a response made at `now` reports.
    pub(super) fn feedback(&self, now: Nanos, count: &mut Count, retry: Option<Retry>) -> Feedback {
        let retry_after = match (self.retry_after, retry) {
            (RetryAfter::Exact, Some(Retry::After(length))) => Some(length),
            (RetryAfter::Seconds, Some(Retry::After(length))) => Some(seconds(length)),
            _ => None,
        };
        let standings = if self.headers == Headers::None { Vec::new() } else { count.limiter.standings(now) };
        Feedback { retry_after, quotas: standings.into_iter().map(|standing| self.quota(&standing)).collect() }
    }

    fn quota(&self, standing: &Standing) -> Quota {
        let length = |retry| match retry {
            Retry::After(length) => Some(length),
            _ => None,
        };
        let limit = standing.window.limit() / self.weight.max(1);
        let remaining = Some(standing.remaining / self.weight.max(1));
        match self.headers {
            Headers::None => Quota::default(),
            Headers::Remaining => Quota { remaining, ..Quota::default() },
            Headers::Full => Quota {
                name: "requests".into(),
                unit: Some(Unit::Requests),
                limit: Some(limit),
                remaining,
                reset: length(standing.all),
                ..Quota::default()
            },
            Headers::Draft => Quota {
                name: "default".into(),
                limit: Some(limit),
                per: Some(standing.window.per()).filter(|per| *per > Nanos::ZERO),
                remaining,
                reset: length(standing.more).map(seconds),
                ..Quota::default()
            },
        }
    }
}

/// The service's own count.
#[derive(Clone, Debug)]
pub(super) struct Count {
    limiter: Limiter,
    next: usize,
}

impl Count {
    /// A request arrives.
    pub(super) fn judge(&mut self, now: Nanos, service: &Service) -> Result<(), Retry> {
        if let Some((at, limits)) = service.later.get(self.next)
            && *at <= now
        {
            self.limiter = Limiter::new(limits, Nanos(1));
            self.next += 1;
        }
        self.limiter.judge(now, service.weight.max(1)).map_err(|refusal| refusal.retry)
    }

    /// When all of every limit is free, if nothing else comes.
    pub(super) fn reset(&mut self, now: Nanos) -> Nanos {
        let lengths = self.limiter.standings(now).into_iter().map(|standing| match standing.all {
            Retry::After(length) => length,
            _ => Nanos::ZERO,
        });
        lengths.max().unwrap_or_default()
    }

    /// A request that was accepted has been answered.
    pub(super) fn finished(&mut self, service: &Service) {
        self.limiter.finished(service.weight.max(1));
    }
}

fn seconds(length: Nanos) -> Nanos {
    Nanos(length.0.next_multiple_of(Nanos::SECOND.0))
}
