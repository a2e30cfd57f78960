//! The runtime of a configuration: origins, upstreams, plans and the table of routes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, Method, Response, StatusCode, Uri, header};

use super::caller::{CallerPolicy, CallerPolicyConfig};
use super::cluster_hash::cluster_hash;
use super::config::{
    Config, DeadlineFrom, DeadlineLocation, HealthCheck, HostRule, LocalResponse, Proxies, ResponseRule, Rewrite,
    RouteConfig, SuccessRule, UpstreamConfig,
};
use super::distributed_limit::DistributedLimit;
use super::json_merge::JsonMerge;
use super::listener_runtime::ListenerRuntime;
use super::local_responses;
use super::rewrite;
use super::routes::Captures;
use weir_call::{CallPlan, PermitPool, Success, Upstream, UpstreamHost};
use weir_decide::Nanos;
use weir_decide::admission::{self, Rejection};
use weir_decide::call::deadline::DeadlineFormat;
use weir_decide::call::hedge::ResendRule;
use weir_decide::call::policy::BudgetRule;
use weir_decide::call::retry_budget::RetryBudget;
use weir_decide::ratelimit::per_caller::CallerRule;
use weir_http::client::{ConnectOptions, Origin};
use weir_http::path::PathRule;
use weir_http::target::Target;
use weir_http::tls::{Tls, TlsOptions};
use weir_server::ResponseBody;

/// Runtime of a configuration.
#[derive(Debug)]
pub(super) struct GateRuntime {
    /// Listeners, in the server's order.
    pub(super) listeners: Vec<ListenerRuntime>,
    /// Rules of the normal form of paths.
    pub(super) path_rule: PathRule,
    /// Routes, in the configuration's order.
    pub(super) routes: Vec<GateRoute>,
    pub(super) upstreams: Vec<(String, UpstreamRuntime)>,
    /// Budgets, by policy and upstream.
    budgets: HashMap<(String, String), SharedBudget>,
}

/// Budget of one policy's calls to one upstream.
#[derive(Clone, Debug)]
struct SharedBudget {
    config: BudgetRule,
    budget: Arc<Mutex<RetryBudget>>,
    /// ID among cluster-wide limits.
    limit_id: u64,
}

/// Runtime of an upstream.
#[derive(Clone, Debug)]
pub(super) struct UpstreamRuntime {
    pub(super) upstream: Arc<Upstream>,
    pub(super) health_check: Option<HealthCheck>,
    /// Its configuration: a reload that does not change it keeps connections and health.
    config: UpstreamConfig,
    /// Hash of its certificate files.
    certificates_digest: u64,
}

/// Runtime of a route.
#[derive(Debug)]
pub(super) struct GateRoute {
    /// Name in metrics and logs.
    pub(super) name: String,
    /// The same, for the list of calls in flight.
    pub(super) label: Arc<str>,
    /// Name of the upstream.
    pub(super) upstream: String,
    pub(super) plan: CallPlan,
    pub(super) caller_deadlines: Vec<(HeaderName, DeadlineFormat)>,
    pub(super) buffer: usize,
    pub(super) proxies: Arc<Proxies>,
    pub(super) caller_policy: Arc<CallerPolicy>,
    /// ID of its rate limit among cluster-wide limits.
    rate_limit_id: Option<u64>,
    /// Configuration of its concurrency limit.
    admission_config: Option<admission::AdmissionConfig>,
    deadline_from: Option<DeadlineFrom>,
    rewrite: Rewrite,
    response_rule: ResponseRule,
    merge: Option<JsonMerge>,
}

impl GateRuntime {
    /// The runtime of a configuration. Parts of `before` that the configuration does not change are kept. With a salt,
    /// that of the cluster's limits, the limits are cluster-wide, and need their allocations before the runtime is
    /// used.
    ///
    /// # Errors
    /// A part of the configuration is invalid on this machine; in one line.
    pub(super) fn new(
        config: &Config,
        before: Option<&Self>,
        now: Nanos,
        cluster_salt: Option<u64>,
    ) -> Result<Self, String> {
        let listeners = ListenerRuntime::all(config, before.map(|before| before.listeners.as_slice()))?;
        let mut upstreams = Vec::new();
        for asked in &config.upstreams {
            let is_same =
                |kept: &&UpstreamRuntime| kept.config == *asked && kept.certificates_digest == digest(&asked.tls);
            let kept = before.and_then(|before| before.upstream(&asked.name)).filter(is_same);
            let service = match kept {
                Some(kept) => kept.clone(),
                None => UpstreamRuntime::new(asked, now).map_err(|why| format!("upstream {}: {why}", asked.name))?,
            };
            upstreams.push((asked.name.clone(), service));
        }
        let mut setup =
            Self { listeners, path_rule: config.path_rule, routes: Vec::new(), upstreams, budgets: HashMap::new() };
        for asked in &config.routes {
            let upstream = setup.upstream(&asked.upstream).ok_or_else(|| format!("no upstream {}", asked.upstream))?;
            let mut route =
                GateRoute::new(asked, Arc::clone(&upstream.upstream), &config.trusted_proxies, now, cluster_salt)?;
            let of_this = |before: &&GateRoute| before.name == route.name;
            if let Some(before) = before.and_then(|before| before.routes.iter().find(of_this)) {
                route.plan.counts = Arc::clone(&before.plan.counts);
                if before.admission_config == asked.admission {
                    route.plan.permits.clone_from(&before.plan.permits);
                }
                if before.caller_policy.has_config(&CallerPolicyConfig::of(asked, &config.trusted_proxies)) {
                    route.caller_policy = Arc::clone(&before.caller_policy);
                }
            }
            if let Some(terms) = asked.policy.policy.budget.filter(|_| asked.policy.policy.allows_extra_attempts()) {
                let key = (asked.policy.name.clone(), asked.upstream.clone());
                let kept = before.and_then(|before| before.existing_budget(&key, terms, &route.plan.upstream));
                let number = budget_limit_id(&key, terms);
                let ledger =
                    || if cluster_salt.is_some() { RetryBudget::shared(terms) } else { RetryBudget::new(terms) };
                let fresh = || SharedBudget { config: terms, budget: Arc::new(Mutex::new(ledger())), limit_id: number };
                let account = setup.budgets.entry(key).or_insert_with(|| kept.unwrap_or_else(fresh));
                route.plan.budget = Some(Arc::clone(&account.budget));
            }
            setup.routes.push(route);
        }
        Ok(setup)
    }

    /// Limits that can be cluster-wide.
    pub(super) fn limits(&self) -> impl Iterator<Item = DistributedLimit<'_>> {
        let rates = self
            .routes
            .iter()
            .filter_map(|route| Some(DistributedLimit::Rate(route.rate_limit_id?, &route.caller_policy)));
        rates.chain(self.budgets.values().map(|account| DistributedLimit::Budget(account.limit_id, &account.budget)))
    }

    /// A budget of before, if its configuration and upstream are unchanged.
    fn existing_budget(
        &self,
        key: &(String, String),
        terms: BudgetRule,
        upstream: &Arc<Upstream>,
    ) -> Option<SharedBudget> {
        let same = self.upstream(&key.1).is_some_and(|kept| Arc::ptr_eq(&kept.upstream, upstream));
        self.budgets.get(key).filter(|kept| same && kept.config == terms).cloned()
    }

    fn upstream(&self, name: &str) -> Option<&UpstreamRuntime> {
        self.upstreams.iter().find(|(known, _)| known == name).map(|(_, service)| service)
    }
}

impl UpstreamRuntime {
    fn new(asked: &UpstreamConfig, now: Nanos) -> Result<Self, String> {
        // Hashed before they are used, so that the next reload sees a change in between.
        let certificates = digest(&asked.tls);
        let secure = asked.hosts.iter().any(|host| host.url.starts_with("https:"));
        let tls = if secure { Some(Tls::shared(&asked.tls).map_err(|error| error.to_string())?) } else { None };
        let mut hosts = Vec::new();
        for host in &asked.hosts {
            let target = Target::parse(&host.url).map_err(|error| error.to_string())?;
            let reach = ConnectOptions {
                socket: host.socket.clone(),
                tls: tls.clone(),
                server_name: asked.server_name.clone(),
                protocol: asked.protocol,
                http2: asked.http2,
                connect_timeout: asked.connect_timeout,
                stall_timeout: asked.stall_timeout,
                idle_timeout: Some(asked.idle_timeout),
                max_connections: asked.max_connections,
            };
            let origin = Origin::new(&target, &reach).map_err(|error| error.to_string())?;
            hosts.push(UpstreamHost { origin: Arc::new(origin), weight: host.weight });
        }
        let mut upstream = Upstream::new(hosts, asked.balance, asked.health).with_guard(asked.breaker, asked.throttle);
        if let Some(terms) = &asked.admission {
            upstream = upstream.with_admission(terms, now);
        }
        Ok(Self {
            upstream: Arc::new(upstream),
            health_check: asked.health_check.clone(),
            config: asked.clone(),
            certificates_digest: certificates,
        })
    }
}

/// Hash of the contents of the certificate files.
fn digest(tls: &TlsOptions) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in [&tls.cacert, &tls.cert, &tls.key] {
        path.as_ref().map(|path| std::fs::read(path).ok()).hash(&mut hasher);
    }
    hasher.finish()
}

impl GateRoute {
    fn new(
        asked: &RouteConfig,
        upstream: Arc<Upstream>,
        proxies: &Arc<Proxies>,
        now: Nanos,
        cluster_salt: Option<u64>,
    ) -> Result<Self, String> {
        let policy = &asked.policy;
        let mut success = success_check(&policy.success)?;
        // Bodies to merge into must be JSON, and complete.
        success.json |= !asked.response.merge.is_empty();
        let mut plan = CallPlan::new(policy.policy.clone(), success, upstream);
        plan.permits = asked.admission.as_ref().map(|terms| Arc::new(PermitPool::new(terms, now)));
        plan.deadline_headers.clone_from(&policy.deadlines_out);
        let name = asked.name();
        let rate = cluster_salt.and(asked.rate).map(|rule| rate_limit_id(&name, &rule));
        Ok(Self {
            label: name.as_str().into(),
            name,
            upstream: asked.upstream.clone(),
            plan,
            caller_deadlines: policy.deadlines_in.clone(),
            buffer: policy.max_buffer_bytes,
            proxies: Arc::clone(proxies),
            caller_policy: Arc::new(CallerPolicy::new(CallerPolicyConfig::of(asked, proxies), cluster_salt)),
            rate_limit_id: rate,
            admission_config: asked.admission.clone(),
            deadline_from: asked.deadline_from.clone(),
            rewrite: asked.rewrite.clone(),
            merge: JsonMerge::new(&asked.response.merge),
            response_rule: asked.response.clone(),
        })
    }

    /// Whether a request of this method may be sent more than once.
    pub(super) fn is_retryable(&self, method: &Method) -> bool {
        let policy = &self.plan.policy;
        policy.allows_extra_attempts()
            && ResendRule::of(policy.retryable_methods, method.as_str()) == ResendRule::Always
    }

    /// The caller's deadline in the target, or the response to an invalid one.
    pub(super) fn target_deadline(
        &self,
        captures: &Captures<'_>,
        query: Option<&str>,
    ) -> Result<Option<Nanos>, &LocalResponse> {
        let Some(from) = &self.deadline_from else { return Ok(None) };
        let text = match &from.location {
            DeadlineLocation::Path(name) => captures.get(name).map(Cow::Borrowed),
            DeadlineLocation::Query(name) => form_urlencoded::parse(query.unwrap_or_default().as_bytes())
                .find(|(key, _)| key == name.as_str())
                .map(|(_, value)| value),
        };
        let number = text.as_deref().and_then(parse_integer).ok_or(&from.invalid_response)?;
        match u64::try_from(number) {
            Ok(number) if number > from.above => Ok(Some(Nanos(from.unit.0.saturating_mul(number)))),
            _ => Err(&from.too_low_response),
        }
    }

    /// Path and query of the upstream request.
    pub(super) fn target<'a>(&self, captures: &Captures<'_>, path: &str, uri: &'a Uri) -> Cow<'a, str> {
        rewrite::target(&self.rewrite, captures, path, uri)
    }

    pub(super) fn rewrite_request(&self, headers: &mut HeaderMap) {
        match &self.rewrite.host {
            HostRule::Keep => {}
            HostRule::Upstream => drop(headers.remove(header::HOST)),
            HostRule::Set(host) => drop(headers.insert(header::HOST, host.clone())),
        }
        edit_headers(headers, &self.rewrite.remove, &self.rewrite.set);
    }

    pub(super) fn rewrite_response(&self, headers: &mut HeaderMap) {
        edit_headers(headers, &self.rewrite.response_remove, &self.rewrite.response_set);
    }

    pub(super) fn merge(&self) -> Option<&JsonMerge> {
        self.merge.as_ref()
    }

    /// The response when the deadline has passed.
    pub(super) fn deadline_response(&self) -> Response<ResponseBody> {
        let plain = || local_responses::text(StatusCode::GATEWAY_TIMEOUT, "no success before the deadline");
        self.response_rule.deadline_exceeded.as_ref().map_or_else(plain, LocalResponse::response)
    }

    /// The custom response when all attempts have failed, if there is one.
    pub(super) fn failure_response(&self) -> Option<Response<ResponseBody>> {
        self.response_rule.failed.as_ref().map(LocalResponse::response)
    }

    /// The response to a rejected call.
    pub(super) fn rejection_response(&self, rejection: Rejection) -> Response<ResponseBody> {
        let mut response = local_responses::rejected(rejection);
        if let Some(own) = &self.response_rule.rejected {
            *response.body_mut() = ResponseBody::from(own.body.clone());
            response.headers_mut().insert(header::CONTENT_TYPE, own.content_type.clone());
        }
        response
    }
}

/// ID of a cluster-wide rate limit. Gateways with different settings share none: during a rollout there are two limits.
fn rate_limit_id(route: &str, rule: &CallerRule) -> u64 {
    let CallerRule { limit, per, burst, .. } = rule;
    cluster_hash(&[b"rate", route.as_bytes(), &limit.to_be_bytes(), &per.0.to_be_bytes(), &burst.to_be_bytes()])
}

/// ID of a cluster-wide budget.
fn budget_limit_id((policy, upstream): &(String, String), rule: BudgetRule) -> u64 {
    let BudgetRule { fraction, min_per_window, window } = rule;
    let numbers = [&fraction.to_be_bytes()[..], &min_per_window.to_be_bytes(), &window.0.to_be_bytes()].concat();
    cluster_hash(&[b"budget", policy.as_bytes(), upstream.as_bytes(), &numbers])
}

/// Parses a whole number with an optional sign; numbers out of range saturate.
fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(limit))
}

fn edit_headers(headers: &mut HeaderMap, remove: &[HeaderName], set: &[(HeaderName, http::HeaderValue)]) {
    for name in remove {
        headers.remove(name);
    }
    for (name, value) in set {
        headers.insert(name, value.clone());
    }
}

fn success_check(rule: &SuccessRule) -> Result<Success, String> {
    let mut success = Success::default();
    success.statuses.clone_from(&rule.statuses);
    success.headers.clone_from(&rule.headers);
    success.json = rule.json;
    success.max_body_bytes = rule.max_body_bytes;
    success.grpc = rule.grpc;
    match &rule.schema {
        Some(schema) => success.with_schema(schema).map_err(|error| error.to_string()),
        None => Ok(success),
    }
}

impl LocalResponse {
    /// The response.
    pub(super) fn response(&self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::from(self.body.clone()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, self.content_type.clone());
        response
    }
}
