//! Callers of a route: identification, rate limit and priority.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use http::HeaderMap;

use super::cluster_hash::cluster_hash;
use super::config::{CallWeight, CallerFrom, CertificateField, PriorityRule, Proxies, RateTerms, RouteConfig};
use super::forwarding::client_address;
use super::key_source::network_of;
use super::route_caller::RouteCaller;
use super::routing::Captures;
use weir_base::Nanos;
use weir_limits::fraction::Fraction;
use weir_machine::lock::lock;
use weir_machine::timer::Timer;
use weir_net::path::segment_name;
use weir_net::wire::digits;
use weir_resilience::admission::{Priority, Rejection, RejectionReason};
use weir_resilience::ratelimit::fair_priority::{PriorityFairness, PriorityFairnessRule};
use weir_resilience::ratelimit::per_caller::{BucketState, CallerLimiter, CallerRule};
use weir_resilience::ratelimit::top_callers::{RejectedCaller, TopCallers};
use weir_server::tls::ClientIdentity;

/// Rate limits and priorities of a route's callers.
#[derive(Debug)]
pub(super) struct CallerPolicy {
    config: CallerPolicyConfig,
    caller_limiter: Option<Mutex<CallerLimiter>>,
    /// Bounds raised priorities; None if callers cannot raise theirs.
    priority_fairness: Option<Mutex<PriorityFairness>>,
    /// Hasher with random keys, so that colliding names cannot be chosen.
    hasher: RandomState,
    /// Whether the rate limit is cluster-wide, so that callers need the same hashes at all gateways.
    is_shared: bool,
    /// Callers with the most rejections.
    top_rejected: Mutex<TopCallers>,
}

/// Configuration of a [`CallerPolicy`]: a reload that does not change it keeps the policy's state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallerPolicyConfig {
    priority: PriorityRule,
    caller: Option<CallerFrom>,
    rate: Option<CallerRule>,
    rate_terms: RateTerms,
    /// Trusted proxies, for callers' addresses.
    proxies: Arc<Proxies>,
}

impl CallerPolicyConfig {
    pub(super) fn of(route: &RouteConfig, proxies: &Arc<Proxies>) -> Self {
        let RouteConfig { priority, caller, rate, rate_terms, .. } = route;
        Self {
            priority: priority.clone(),
            caller: caller.clone(),
            rate: *rate,
            rate_terms: rate_terms.clone(),
            proxies: Arc::clone(proxies),
        }
    }
}

/// Decision about a call by its caller.
#[derive(Debug)]
pub(super) struct CallerVerdict {
    pub(super) priority: Priority,
    /// Rejection, if its caller is over its rate limit.
    pub(super) rejection: Option<Rejection>,
    /// The caller's bucket, if responses report it.
    pub(super) bucket: Option<BucketState>,
}

impl CallerPolicy {
    /// A policy without state. With a salt the rate limit is cluster-wide, and nothing is allocated yet.
    pub(super) fn new(config: CallerPolicyConfig, salt: Option<u64>) -> Self {
        let PriorityRule { header, certificate, values, default } = &config.priority;
        let may_raise =
            (header.is_some() || certificate.is_some()) && values.iter().any(|(_, priority)| priority > default);
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
            top_rejected: Mutex::default(),
            config,
        }
    }

    pub(super) fn has_config(&self, config: &CallerPolicyConfig) -> bool {
        self.config == *config
    }

    /// The caller of a request, by the route's rule; without a name by its address.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        captures: &Captures<'_>,
        peer: IpAddr,
        client: Option<&ClientIdentity>,
    ) -> RouteCaller {
        let named = match &self.config.caller {
            Some(CallerFrom::Header(name)) => {
                headers.get(name).map(|value| RouteCaller::Header(name.clone(), value.clone()))
            }
            Some(CallerFrom::Path(name)) => {
                captures.get(name).map(|capture| RouteCaller::Capture(name.clone(), caller_name(capture).to_owned()))
            }
            Some(CallerFrom::Certificate(field)) => client
                .and_then(|client| field.values(client).first().copied())
                .map(|value| RouteCaller::Certificate(value.to_owned())),
            Some(CallerFrom::Address) | None => None,
        };
        named.unwrap_or_else(|| RouteCaller::Address(client_address(headers, peer, &self.config.proxies)))
    }

    /// Whether the length of a request's body has to be known before it is read.
    pub(super) fn needs_length(&self) -> bool {
        self.caller_limiter.is_some() && matches!(self.config.rate_terms.weight, CallWeight::Body(_))
    }

    /// Whether the rate limit is one of tokens of a language model: see [`Self::charge`].
    pub(super) fn counts_tokens(&self) -> bool {
        self.caller_limiter.is_some() && self.config.rate_terms.weight == CallWeight::ModelTokens
    }

    /// Size of a caller's bucket.
    pub(super) fn burst(&self) -> Option<u64> {
        self.config.rate.map(|rule| rule.burst)
    }

    /// Takes tokens of a language model: the caller's key, whether it has that many, or after which time, and its
    /// bucket, if responses report it.
    pub(super) fn charge(
        &self,
        now: Nanos,
        caller: &RouteCaller,
        tokens: u64,
    ) -> (u64, Result<(), Nanos>, Option<BucketState>) {
        let key = self.key(caller);
        let admit = |callers: &Mutex<CallerLimiter>| lock(callers).admit(now, key, tokens);
        let (admitted, bucket) = self.caller_limiter.as_ref().map(admit).unzip();
        (key, admitted.unwrap_or(Ok(())), bucket.filter(|_| self.config.rate_terms.reports))
    }

    /// Corrects what a call has taken; see [`CallerLimiter::correct`].
    pub(super) fn correct(&self, now: Nanos, key: u64, taken: u64, used: u64) -> Option<BucketState> {
        self.caller_limiter.as_ref().map(|callers| lock(callers).correct(now, key, taken, used))
    }

    /// Tokens that a call takes. A caller that says nothing, or no whole number, takes one; a number beyond 64 bits is more
    /// than any bucket holds.
    fn weight(&self, headers: &HeaderMap, body_bytes: u64) -> u64 {
        let weight = match &self.config.rate_terms.weight {
            CallWeight::One | CallWeight::ModelTokens => 1,
            CallWeight::Header(name) => headers.get(name).map_or(1, |value| whole_number(value.as_bytes())),
            CallWeight::Body(token_bytes) => body_bytes.div_ceil(*token_bytes),
        };
        weight.max(1)
    }

    /// The priority of a call with a body of this length, and a rejection if its caller is over its rate limit.
    pub(super) fn check(
        &self,
        timer: &Timer,
        headers: &HeaderMap,
        caller: &RouteCaller,
        client: Option<&ClientIdentity>,
        body_bytes: u64,
    ) -> CallerVerdict {
        let requested = self.requested_priority(headers, client);
        if self.caller_limiter.is_none() && self.priority_fairness.is_none() {
            return CallerVerdict { priority: requested, rejection: None, bucket: None };
        }
        let now = timer.now();
        let key = self.key(caller);
        let admit = |callers: &Mutex<CallerLimiter>| lock(callers).admit(now, key, self.weight(headers, body_bytes));
        // Tokens are charged once the body is there.
        let limiter = self.caller_limiter.as_ref().filter(|_| !self.counts_tokens());
        let (admitted, bucket) = limiter.map(admit).unzip();
        let bucket = bucket.filter(|_| self.config.rate_terms.reports);
        if let Some(Err(retry_after)) = admitted {
            let rejection = Some(Rejection { reason: RejectionReason::RateLimited, retry_after });
            return CallerVerdict { priority: requested, rejection, bucket };
        }
        let Some(fairness) = &self.priority_fairness else {
            return CallerVerdict { priority: requested, rejection: None, bucket };
        };
        // Cluster-wide hashes have no random keys.
        let key = if self.is_shared { self.hasher.hash_one(key) } else { key };
        let mut fairness = lock(fairness);
        fairness.arrived(now, key);
        let raised = requested > self.config.priority.default;
        let priority = if raised && !fairness.honours(now, key) { Priority::Low } else { requested };
        CallerVerdict { priority, rejection: None, bucket }
    }

    /// Applies this gateway's fractions of the rate limit: the default one, and those of callers with an allocation.
    pub(super) fn apply_split(&self, now: Nanos, default: Fraction, own: impl Iterator<Item = (u64, Fraction)>) {
        if let Some(callers) = &self.caller_limiter {
            lock(callers).set_fractions(now, default, own);
        }
    }

    /// Demand of callers, by their hashes.
    pub(super) fn wanted(&self, now: Nanos) -> Vec<(u64, u32)> {
        self.caller_limiter.as_ref().map_or_else(Vec::new, |callers| lock(callers).demand(now))
    }

    /// Counts an admitted call.
    pub(super) fn record_accepted(&self, timer: &Timer) {
        if let Some(fairness) = &self.priority_fairness {
            lock(fairness).accepted(timer.now());
        }
    }

    fn requested_priority(&self, headers: &HeaderMap, client: Option<&ClientIdentity>) -> Priority {
        let PriorityRule { header, certificate, values, default } = &self.config.priority;
        if let Some(field) = certificate {
            let shown = client.map(|client| field.values(client)).unwrap_or_default();
            let of_shown = |value: &str| values.iter().find(|(known, _)| known == value).map(|(_, priority)| *priority);
            return shown.into_iter().filter_map(of_shown).max().unwrap_or(*default);
        }
        let sent = header.as_ref().and_then(|name| headers.get(name));
        let known = sent.and_then(|sent| values.iter().find(|(value, _)| value.as_bytes() == sent.as_bytes()));
        known.map_or(*default, |(_, priority)| *priority)
    }

    fn key(&self, caller: &RouteCaller) -> u64 {
        let name = match caller {
            RouteCaller::Header(_, value) => value.as_bytes(),
            RouteCaller::Capture(_, value) | RouteCaller::Certificate(value) => value.as_bytes(),
            RouteCaller::Address(address) if self.is_shared => {
                return cluster_hash(&[b"network", &network_of(*address)]);
            }
            RouteCaller::Address(address) => return self.hasher.hash_one(network_of(*address)),
        };
        if self.is_shared { cluster_hash(&[b"name", name]) } else { self.hasher.hash_one(name) }
    }

    /// Counts a rejection of a caller.
    pub(super) fn record_rejected(&self, now: Nanos, caller: &RouteCaller, reason: RejectionReason) {
        lock(&self.top_rejected).rejected(now, self.key(caller), reason.name(), || caller.name());
    }

    /// The callers with the most rejections, the most first.
    pub(super) fn top_rejected(&self, now: Nanos, max: usize) -> Vec<RejectedCaller> {
        lock(&self.top_rejected).top(now, max)
    }
}

/// A captured name without path parameters, which a caller could vary where the service removes them.
fn caller_name(capture: &str) -> &str {
    if capture.contains('/') { capture } else { segment_name(capture) }
}

impl CertificateField {
    /// Values of this part of a client's certificate; the first one identifies the client.
    pub(super) fn values(self, client: &ClientIdentity) -> Vec<&str> {
        match self {
            Self::Subject => Some(client.subject.as_str()).filter(|subject| !subject.is_empty()).into_iter().collect(),
            Self::CommonName => client.common_name.as_deref().into_iter().collect(),
            Self::AlternativeName => client.alternative_names.iter().map(String::as_str).collect(),
        }
    }
}

/// Whole number of a header, as large as 64 bits allow; 1 for anything else.
fn whole_number(text: &[u8]) -> u64 {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits(text).unwrap_or(if is_number { u64::MAX } else { 1 })
}
