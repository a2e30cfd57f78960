//! The runtime of a configuration: origins, upstreams, plans and the table of routes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ClientConfig;

use super::caller::CallerPolicyConfig;
use super::cluster_hash::cluster_hash;
use super::config::{CallWeight, Config, HealthCheck, HostConfig, RouteConfig, UpstreamConfig};
use super::culprit_guard::{CulpritGuard, RouteCulprits};
use super::distributed_limit::DistributedLimit;
use super::gate_route::{GateRoute, RouteSide, route_name};
use super::listener_runtime::ListenerRuntime;
use super::local_route::{LocalReply, LocalRoute};
use super::mirror::Mirror;
use weir_base::Nanos;
use weir_call::{Upstream, UpstreamHost};
use weir_net::client::{ConnectOptions, Origin, PendingAddresses};
use weir_net::path::PathRule;
use weir_net::tls::{Tls, TlsOptions};
use weir_net::wire::PassedNames;
use weir_retry::policy::BudgetRule;
use weir_retry::retry_budget::RetryBudget;

/// Names of fields of requests that a configuration reads nowhere. A name that it has anywhere counts as read: so a part of
/// it that comes to read fields needs no entry here.
fn passed_names(config: &Config) -> PassedNames {
    let names = PassedNames::unread_by(&format!("{config:?}"));
    let inspects = |route: &RouteConfig| {
        let success = &route.policy.success;
        let counts_tokens = route.rate_terms.weight == CallWeight::ModelTokens;
        success.json || success.schema.is_some() || !route.response.merge.is_empty() || counts_tokens
    };
    // It is removed where bodies are inspected.
    if config.routes.iter().any(inspects) { names.without("accept-encoding") } else { names }
}

/// Runtime of a configuration.
#[derive(Debug)]
pub(super) struct GateRuntime {
    /// Listeners, in the server's order.
    pub(super) listeners: Vec<ListenerRuntime>,
    /// Rules of the normal form of paths.
    pub(super) path_rule: PathRule,
    /// Handling of a request, by the index of its route in the configuration.
    pub(super) actions: Vec<RuntimeAction>,
    /// Names of request fields that nothing in the configuration reads.
    pub(super) passed_names: PassedNames,
    /// Routes with calls.
    pub(super) routes: Vec<GateRoute>,
    /// Routes without.
    pub(super) local_routes: Vec<LocalRoute>,
    pub(super) upstreams: Vec<(String, UpstreamRuntime)>,
    /// Budgets, by policy and upstream.
    budgets: HashMap<BudgetKey, SharedBudget>,
}

/// A route's place in the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuntimeAction {
    /// Index of a route with calls.
    Forward(usize),
    /// Index of a route without.
    Local(usize),
}

/// Names of the policy and the upstream whose calls share a budget.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BudgetKey {
    policy: String,
    upstream: String,
}

/// Budget of one policy's calls to one upstream.
#[derive(Clone, Debug)]
struct SharedBudget {
    config: BudgetRule,
    budget: Arc<Mutex<RetryBudget>>,
    /// ID among cluster-wide limits.
    limit_id: u64,
}

/// Upstream with its pending addresses, TLS and health check; kept by a reload that does not change it.
#[derive(Clone, Debug)]
pub(super) struct UpstreamRuntime {
    pub(super) upstream: Arc<Upstream>,
    pub(super) health_check: Option<HealthCheck>,
    /// Culprits among its calls, if they are shed.
    pub(super) culprits: Option<Arc<CulpritGuard>>,
    /// TLS towards its hosts, if one of them has it.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// By host of the configuration: what connections wait for until the gateway has resolved the name itself.
    pub(super) pending: Vec<Option<Arc<PendingAddresses>>>,
    /// Configuration: a reload that does not change it keeps connections and health.
    pub(super) config: UpstreamConfig,
    /// Hash of its certificate files.
    certificates_digest: u64,
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
        for upstream in &config.upstreams {
            let is_same =
                |kept: &&UpstreamRuntime| kept.config == *upstream && kept.certificates_digest == digest(&upstream.tls);
            let kept = before.and_then(|before| before.upstream(&upstream.name)).filter(is_same);
            let service = match kept {
                Some(kept) => kept.clone(),
                None => {
                    UpstreamRuntime::new(upstream, now).map_err(|why| format!("upstream {}: {why}", upstream.name))?
                }
            };
            upstreams.push((upstream.name.clone(), service));
        }
        let mut runtime = Self {
            listeners,
            passed_names: passed_names(config),
            path_rule: config.path_rule,
            actions: Vec::new(),
            routes: Vec::new(),
            local_routes: Vec::new(),
            upstreams,
            budgets: HashMap::new(),
        };
        for route_config in &config.routes {
            let action = match LocalReply::of(&route_config.action) {
                Some(reply) => {
                    let kept = before.map_or(&[][..], |before| &before.local_routes);
                    runtime.local_routes.push(LocalRoute::new(route_name(route_config), reply, kept));
                    RuntimeAction::Local(runtime.local_routes.len() - 1)
                }
                None => {
                    let route = runtime.route(config, route_config, before, now, cluster_salt)?;
                    runtime.routes.push(route);
                    RuntimeAction::Forward(runtime.routes.len() - 1)
                }
            };
            runtime.actions.push(action);
        }
        Ok(runtime)
    }

    /// A route with calls, with what is kept of before.
    fn route(
        &mut self,
        config: &Config,
        route_config: &RouteConfig,
        before: Option<&Self>,
        now: Nanos,
        cluster_salt: Option<u64>,
    ) -> Result<GateRoute, String> {
        let find = |name: &str| self.upstream(name).ok_or_else(|| format!("no upstream {name}"));
        let sides = route_config.upstreams.iter().map(|side| {
            let found = find(&side.name)?;
            Ok((side.name.clone(), Arc::clone(&found.upstream), found.config.hash_by.clone()))
        });
        let sides = sides.collect::<Result<Vec<_>, String>>()?;
        let mirror_upstream = route_config.mirror.as_ref().map(|mirror| find(&mirror.upstream)).transpose()?;
        let mirror_upstream = mirror_upstream.map(|found| Arc::clone(&found.upstream));
        let mut route = GateRoute::new(route_config, sides, config, now, cluster_salt)?;
        for side in &mut route.sides {
            let guard = find(&side.upstream)?.culprits.as_ref();
            side.culprits = guard.map(|guard| RouteCulprits::new(Arc::clone(guard), &route.name));
        }
        let kept_route = before.and_then(|before| before.routes.iter().find(|kept| kept.name == route.name));
        if let (Some(rule), Some(upstream)) = (&route_config.mirror, mirror_upstream) {
            let kept = kept_route.and_then(|kept| kept.mirror.as_ref());
            route.mirror = Some(Mirror::new_or_kept(rule, upstream, kept));
        }
        if let Some(kept) = kept_route {
            for side in &mut route.sides {
                if let Some(before) = kept.sides.iter().find(|before| before.upstream == side.upstream) {
                    side.plan_mut().counts = Arc::clone(&before.plan.counts);
                }
                if kept.admission_config == route_config.admission {
                    side.plan_mut().permits.clone_from(&kept.sides[0].plan.permits);
                }
            }
            if kept.caller_policy.has_config(&CallerPolicyConfig::of(route_config, &config.trusted_proxies)) {
                route.caller_policy = Arc::clone(&kept.caller_policy);
            }
        }
        if let Some(terms) =
            route_config.policy.policy.budget.filter(|_| route_config.policy.policy.allows_extra_attempts())
        {
            for side in &mut route.sides {
                self.set_budget(side, &route_config.policy.name, terms, before, cluster_salt);
            }
        }
        Ok(route)
    }

    /// Sets the budget that all calls of a policy to an upstream share.
    fn set_budget(
        &mut self,
        side: &mut RouteSide,
        policy: &str,
        terms: BudgetRule,
        before: Option<&Self>,
        cluster_salt: Option<u64>,
    ) {
        let key = BudgetKey { policy: policy.to_owned(), upstream: side.upstream.clone() };
        let kept = before.and_then(|before| before.existing_budget(&key, terms, &side.plan.upstream));
        let number = budget_limit_id(&key, terms);
        let new_budget = || if cluster_salt.is_some() { RetryBudget::shared(terms) } else { RetryBudget::new(terms) };
        let fresh = || SharedBudget { config: terms, budget: Arc::new(Mutex::new(new_budget())), limit_id: number };
        let shared_budget = self.budgets.entry(key).or_insert_with(|| kept.unwrap_or_else(fresh));
        side.plan_mut().budget = Some(Arc::clone(&shared_budget.budget));
    }

    /// Limits that can be cluster-wide.
    pub(super) fn limits(&self) -> impl Iterator<Item = DistributedLimit<'_>> {
        let rates = self
            .routes
            .iter()
            .filter_map(|route| Some(DistributedLimit::Rate(route.rate_limit_id?, &route.caller_policy)));
        rates.chain(
            self.budgets
                .values()
                .map(|shared_budget| DistributedLimit::Budget(shared_budget.limit_id, &shared_budget.budget)),
        )
    }

    /// A budget of before, if its configuration and upstream are unchanged.
    fn existing_budget(&self, key: &BudgetKey, terms: BudgetRule, upstream: &Arc<Upstream>) -> Option<SharedBudget> {
        let same = self.upstream(&key.upstream).is_some_and(|kept| Arc::ptr_eq(&kept.upstream, upstream));
        self.budgets.get(key).filter(|kept| same && kept.config == terms).cloned()
    }

    fn upstream(&self, name: &str) -> Option<&UpstreamRuntime> {
        self.upstreams.iter().find(|(known, _)| known == name).map(|(_, service)| service)
    }
}

impl UpstreamRuntime {
    fn new(config: &UpstreamConfig, now: Nanos) -> Result<Self, String> {
        // Hashed before they are used, so that the next reload sees a change in between.
        let certificates = digest(&config.tls);
        let secure = config.hosts.iter().any(|host| host.url.starts_with("https:"));
        let tls = if secure { Some(Tls::shared(&config.tls).map_err(|error| error.to_string())?) } else { None };
        let (mut hosts, mut pending) = (Vec::new(), Vec::new());
        for host in &config.hosts {
            let waits = config.asks_dns(host).then(Arc::default);
            let origin = host_origin(config, host, None, waits.as_ref(), tls.clone())?;
            hosts.push(UpstreamHost { origin: Arc::new(origin), weight: host.weight });
            pending.push(waits);
        }
        let mut upstream = Upstream::new(hosts, config.balance, config.health)
            .with_guard(config.breaker, config.throttle)
            .with_slow_start(config.slow_start.unwrap_or(Nanos::ZERO));
        if config.resolve.is_some() {
            upstream = upstream.with_changing_hosts();
        }
        if let Some(terms) = &config.admission {
            upstream = upstream.with_admission(terms, now);
        }
        Ok(Self {
            upstream: Arc::new(upstream),
            health_check: config.health_check.clone(),
            culprits: config.culprits.map(|rule| Arc::new(CulpritGuard::new(rule, now))),
            tls,
            pending,
            config: config.clone(),
            certificates_digest: certificates,
        })
    }
}

/// Origin of a host at an address of its name; without one the name is resolved for each connection, or its connections
/// wait for the first addresses.
///
/// # Errors
/// The host is invalid on this machine; in one line.
pub(super) fn host_origin(
    config: &UpstreamConfig,
    host: &HostConfig,
    address: Option<SocketAddr>,
    pending: Option<&Arc<PendingAddresses>>,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Origin, String> {
    let options = ConnectOptions {
        socket: host.socket.clone(),
        address,
        tls,
        server_name: config.server_name.clone(),
        proxy_protocol: config.proxy_protocol,
        protocol: config.protocol,
        http2: config.http2,
        connect_timeout: config.connect_timeout,
        stall_timeout: config.stall_timeout,
        idle_timeout: Some(config.idle_timeout),
        max_idle: None,
        max_connections: config.max_connections,
        max_requests: config.max_connection_requests,
        max_age: config.max_connection_age,
    };
    let target = host.target().map_err(|error| error.to_string())?;
    let origin = Origin::new(&target, &options).map_err(|error| error.to_string())?;
    Ok(match pending.filter(|_| address.is_none()) {
        Some(pending) => origin.with_pending(host.authority(), Arc::clone(pending)),
        None => origin,
    })
}

/// Hash of the contents of the certificate files.
fn digest(tls: &TlsOptions) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in [&tls.cacert, &tls.cert, &tls.key] {
        path.as_ref().map(|path| std::fs::read(path).ok()).hash(&mut hasher);
    }
    hasher.finish()
}

/// ID of a cluster-wide budget.
fn budget_limit_id(key: &BudgetKey, rule: BudgetRule) -> u64 {
    let BudgetKey { policy, upstream } = key;
    let BudgetRule { fraction, min_per_window, window } = rule;
    let numbers = [&fraction.to_be_bytes()[..], &min_per_window.to_be_bytes(), &window.0.to_be_bytes()].concat();
    cluster_hash(&[b"budget", policy.as_bytes(), upstream.as_bytes(), &numbers])
}
