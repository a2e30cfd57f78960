//! A caller's standing on a route: who it is, whether it may call now, and how much its call matters.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};

use super::config::{CallerFrom, PriorityRule, Proxies, RouteConfig};
use super::headers;
use super::routes::Captures;
use super::sharing::hash;
use crate::decide::Nanos;
use crate::decide::admit::{Priority, Rejection, RejectionReason};
use crate::decide::callers::{CallerLimiter, CallerRule};
use crate::decide::portion::Fraction;
use crate::decide::shares::{PriorityFairness, PriorityFairnessRule};

/// What a route asks of its callers, and what it knows of them.
#[derive(Debug)]
pub(super) struct CallerPolicy {
    config: CallerPolicyConfig,
    caller_limiter: Option<Mutex<CallerLimiter>>,
    /// Of those who may claim more than others have.
    priority_fairness: Option<Mutex<PriorityFairness>>,
    /// Names cannot be chosen so that they fall together.
    hasher: RandomState,
    /// Whether other gates have to know callers by the same numbers.
    is_shared: bool,
}

/// What it is made from: a reload that leaves it alone keeps what is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallerPolicyConfig {
    priority: PriorityRule,
    caller: Option<CallerFrom>,
    rate: Option<CallerRule>,
    /// The proxies that are believed about for whom they ask.
    proxies: Arc<Proxies>,
}

impl CallerPolicyConfig {
    pub(super) fn of(route: &RouteConfig, proxies: &Arc<Proxies>) -> Self {
        let RouteConfig { priority, caller, rate, .. } = route;
        Self { priority: priority.clone(), caller: caller.clone(), rate: *rate, proxies: Arc::clone(proxies) }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallerPolicy {
    /// With a salt, what callers may send is shared with other gates, and nothing is ours yet.
    pub(super) fn new(config: CallerPolicyConfig, salt: Option<u64>) -> Self {
        let PriorityRule { header, values, default: otherwise } = &config.priority;
        let may_raise = header.is_some() && values.iter().any(|(_, priority)| priority > otherwise);
        Self {
            caller_limiter: config.rate.map(|rule| {
                Mutex::new(match salt {
                    Some(salt) => CallerLimiter::shared(rule, salt),
                    None => CallerLimiter::new(rule),
                })
            }),
            priority_fairness: may_raise.then(|| Mutex::new(PriorityFairness::new(PriorityFairnessRule::default()))),
            hasher: RandomState::new(),
            is_shared: salt.is_some() && config.rate.is_some(),
            config,
        }
    }

    pub(super) fn has_config(&self, terms: &CallerPolicyConfig) -> bool {
        self.config == *terms
    }

    /// How much a call matters; and a refusal, if its caller has used up its rate.
    pub(super) fn check(
        &self,
        now: Nanos,
        headers: &HeaderMap,
        captures: &Captures<'_>,
        peer: IpAddr,
    ) -> (Priority, Option<Rejection>) {
        let claimed = self.requested_priority(headers);
        if self.caller_limiter.is_none() && self.priority_fairness.is_none() {
            return (claimed, None);
        }
        let key = self.key(headers, captures, peer);
        let wait = self.caller_limiter.as_ref().and_then(|callers| locked(callers).allows(now, key, 1).err());
        if let Some(retry_after) = wait {
            return (claimed, Some(Rejection { reason: RejectionReason::RateLimited, retry_after }));
        }
        let Some(shares) = &self.priority_fairness else { return (claimed, None) };
        // Elsewhere numbers have no salt.
        let key = if self.is_shared { self.hasher.hash_one(key) } else { key };
        let mut shares = locked(shares);
        shares.arrived(now, key);
        let raised = claimed > self.config.priority.default;
        (if raised && !shares.honours(now, key) { Priority::Low } else { claimed }, None)
    }

    /// From now on this is ours of what callers may send: of most, and of some by their numbers.
    pub(super) fn apply_split(&self, now: Nanos, usual: Fraction, claims: impl Iterator<Item = (u64, Fraction)>) {
        if let Some(callers) = &self.caller_limiter {
            locked(callers).set_fractions(now, usual, claims);
        }
    }

    /// What callers could use of their rate, by their numbers.
    pub(super) fn wanted(&self, now: Nanos) -> Vec<(u64, u32)> {
        self.caller_limiter.as_ref().map_or_else(Vec::new, |callers| locked(callers).demand(now))
    }

    /// A call was taken.
    pub(super) fn record_accepted(&self, now: Nanos) {
        if let Some(shares) = &self.priority_fairness {
            locked(shares).accepted(now);
        }
    }

    fn requested_priority(&self, headers: &HeaderMap) -> Priority {
        let PriorityRule { header, values, default: otherwise } = &self.config.priority;
        let said = header.as_ref().and_then(|name| headers.get(name));
        let known = said.and_then(|said| values.iter().find(|(value, _)| value.as_bytes() == said.as_bytes()));
        known.map_or(*otherwise, |(_, priority)| *priority)
    }

    fn key(&self, headers: &HeaderMap, captures: &Captures<'_>, peer: IpAddr) -> u64 {
        let named = match &self.config.caller {
            Some(CallerFrom::Header(name)) => headers.get(name).map(HeaderValue::as_bytes),
            Some(CallerFrom::Path(name)) => captures.get(name).map(str::as_bytes),
            Some(CallerFrom::Address) | None => None,
        };
        match named {
            Some(name) if self.is_shared => hash(&[b"name", name]),
            Some(name) => self.hasher.hash_one(name),
            // Who does not say who it is is known by where it comes from.
            None if self.is_shared => hash(&[b"network", &self.network(headers, peer)]),
            None => self.hasher.hash_one(self.network(headers, peer)),
        }
    }

    /// An address, or as much of it as one caller has: of IPv6 everybody has a network full.
    fn network(&self, headers: &HeaderMap, peer: IpAddr) -> [u8; 8] {
        match headers::client_address(headers, peer, &self.config.proxies) {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                [0, 0, 0, 0, a, b, c, d]
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                [a, b, c, d, e, f, g, h]
            }
        }
    }
}
