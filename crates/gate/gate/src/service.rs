//! The gateway as a service of the server: routing of requests.

use std::borrow::Cow;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use prometheus_client::registry::Registry;

use super::caller::CallerVerdict;
use super::config_cell::{CachedRuntime, ConfigCell};
use super::culprit_guard::RequestUse;
use super::distributed_limits::DistributedLimits;
use super::gate_route::RouteSide;
use super::headers;
use super::key_source;
use super::listener_runtime::ListenerRuntime;
use super::local_responses::{self, ErrorFormat};
use super::metrics::GateMetrics;
use super::routed::RoutedRequest;
use super::routing::{RequestFacts, RouteMatch};
use super::runtime::RuntimeAction;
use super::token_limit::RequestTokens;
use super::tracing::Tracer;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_call::CallEngine;
use weir_machine::executor::spawn_task;
use weir_machine::logger::Logger;
use weir_net::client::{Client, Options as ClientOptions};
use weir_net::lookup::field;
use weir_net::path::{AmbiguousPath, PathRule, normalize, without_parameters};
use weir_net::wire::PassedNames;
use weir_resilience::admission::ConnectionNumber;
use weir_server::{self as server, RequestBody, RequestContext, ServiceReply, Timer};
use weir_telemetry::SpanSender;

/// The gateway, for all event loops.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) config_cell: Arc<ConfigCell>,
    pub(super) options: super::Options,
    /// Exporter of traces, and the sampled fraction.
    pub(super) span_sender: Option<(SpanSender, f64)>,
    /// Logger of the gateway.
    pub(super) logger: Logger,
    /// Whether an event loop runs health checks, resolver and the log of conditions already.
    pub(super) has_health_checks: AtomicBool,
    /// Event loops so far.
    pub(super) thread_count: AtomicU64,
    /// Cluster-wide limits, if the gateway is in a cluster.
    pub(super) distributed_limits: Option<Arc<DistributedLimits>>,
}

/// State of one event loop.
#[derive(Debug)]
pub(super) struct GateThread {
    engine: CallEngine,
    runtime: CachedRuntime,
    tracer: Option<Tracer>,
    /// Random numbers for the upstreams of calls and for copies.
    random: Cell<SeededRng>,
}

impl GateThread {
    fn random_bits(&self) -> u64 {
        let mut random = self.random.get();
        let bits = random.bits();
        self.random.set(random);
        bits
    }
}

/// Stream of the seed's random numbers.
const ROUTE_STREAM: u64 = 0x726f_7574;

impl server::Service for Service {
    type Local = GateThread;

    fn init_thread(&self, timer: &Timer) -> io::Result<GateThread> {
        let client = Client::new(timer.clone(), ClientOptions::default());
        let engine = CallEngine::new(client.clone(), timer.clone(), self.options.seed);
        spawn_task(sweep_connections(client, timer.clone()));
        if !self.has_health_checks.swap(true, Ordering::Relaxed) {
            super::health_checks::start(Arc::clone(&self.config_cell), engine.clone());
            super::resolver::start(Arc::clone(&self.config_cell), engine.clone(), self.logger.clone());
            super::condition_watch::start(Arc::clone(&self.config_cell), timer.clone(), self.logger.clone());
        }
        let tracer =
            self.span_sender.as_ref().map(|(sender, fraction)| Tracer::new(sender.clone(), *fraction, timer.clock()));
        let number = self.thread_count.fetch_add(1, Ordering::Relaxed);
        let random = Cell::new(SeededRng::new(self.options.seed, ROUTE_STREAM + number));
        Ok(GateThread { engine, runtime: self.config_cell.cached(timer.clock()), tracer, random })
    }

    fn register_metrics(&self, registry: &mut Registry) {
        let (config_cell, distributed_limits) = (Arc::clone(&self.config_cell), self.distributed_limits.clone());
        registry.register_collector(Box::new(GateMetrics { config_cell, distributed_limits }));
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        normalize(path, PathRule::default()).unwrap_or(Cow::Borrowed(path))
    }

    fn passed_names(&self, local: &GateThread) -> PassedNames {
        local.runtime.with(&self.config_cell, |runtime| runtime.passed_names)
    }

    fn crowds_out_others(&self, local: &GateThread, connection: u32) -> bool {
        let (runtime, now) = (local.runtime.get(&self.config_cell), local.engine.timer().now());
        let of_upstreams = runtime.upstreams.iter().filter_map(|(_, one)| one.upstream.permits());
        let of_routes = runtime.routes.iter().filter_map(|one| one.plan().permits.as_ref());
        let connection = ConnectionNumber(connection);
        of_upstreams.chain(of_routes).any(|permits| permits.crowds_out_others(now, connection))
    }

    async fn handle(
        &self,
        local: &GateThread,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        let runtime = local.runtime.get(&self.config_cell);
        let (mut parts, mut body) = request.into_parts();
        let (mut headers, mut passed) = (std::mem::take(&mut parts.headers), body.take_passed_fields());
        if !passed.names().are_in(runtime.passed_names) {
            // A configuration that came in between reads some of them.
            passed.append_to(&mut headers);
            passed.clear();
        }
        let error_format = ErrorFormat::of(&headers);
        let bad = |why: &str| error_format.format(local_responses::text(StatusCode::BAD_REQUEST, why)).into();
        // In any case: there are services that do not distinguish it.
        if parts.method.as_str().eq_ignore_ascii_case(Method::CONNECT.as_str()) {
            return connect_rejection().into();
        }
        let tls = context.tls();
        let host = match check_scheme(&parts, tls.is_some()).and_then(|()| request_host(&parts, &headers)) {
            Ok(host) => host,
            Err(why) => return bad(why),
        };
        let Some(listener) = runtime.listeners.get(context.listener()) else {
            return error_format.format(local_responses::text(StatusCode::NOT_FOUND, "no route matches")).into();
        };
        if let Some(redirect) = listener.redirect(host.as_deref(), &parts.uri) {
            return redirect.into();
        }
        let ambiguous = |ambiguity: AmbiguousPath| bad(&format!("ambiguous path: {ambiguity}"));
        let path = match normalize(parts.uri.path(), runtime.path_rule) {
            Ok(path) => path,
            Err(ambiguity) => return ambiguous(ambiguity),
        };
        let facts = RequestFacts {
            method: &parts.method,
            host: host.as_deref(),
            path: &path,
            query: parts.uri.query(),
            headers: &headers,
        };
        let (index, captures) = match listener.find(&facts) {
            RouteMatch::Route { index, captures } => (index, captures),
            RouteMatch::MethodNotAllowed { allow } => {
                return error_format.format(local_responses::not_allowed(&allow)).into();
            }
            RouteMatch::NotFound => {
                return error_format.format(local_responses::text(StatusCode::NOT_FOUND, "no route matches")).into();
            }
        };
        if !runtime.path_rule.passes_parameters() && leads_elsewhere(listener, &facts, index) {
            return ambiguous(AmbiguousPath::OtherRoute);
        }
        let route = match runtime.actions[index] {
            RuntimeAction::Forward(index) => &runtime.routes[index],
            RuntimeAction::Local(index) => {
                let local_route = &runtime.local_routes[index];
                return match local_route.respond(&captures, host.as_deref(), &path, &parts.uri, runtime.path_rule) {
                    Ok(reply) => error_format.format(reply).into(),
                    Err(ambiguity) => ambiguous(ambiguity),
                };
            }
        };
        let error_format = error_format.on_route(route.caller_policy.counts_tokens());
        if let Some(too_large) = route.limits.check_head(&parts, &headers, &passed) {
            return error_format.format(too_large).into();
        }
        let target_deadline = match route.target_deadline(&captures, parts.uri.query()) {
            Ok(deadline) => deadline,
            Err(invalid) => return error_format.format_configured(invalid.response()).into(),
        };
        let target = match route.target(&captures, &path, &parts.uri, runtime.path_rule) {
            Ok(target) => target,
            Err(ambiguity) => {
                let why = format!("ambiguous path: {ambiguity}");
                return error_format.format(local_responses::text(StatusCode::BAD_REQUEST, &why)).into();
            }
        };
        let (seed, peer) = (self.options.seed, context.peer().ip());
        let side = route.side_chooser.choose(&headers, peer, &route.proxies, seed, || local.random_bits());
        let RouteSide { plan, hash_by, culprits, .. } = &route.sides[side.index];
        let key = hash_by.as_ref().and_then(|by| key_source::key(by, &headers, peer, &route.proxies, seed));
        let client = tls.and_then(|tls| tls.client.as_ref());
        let caller = route.caller_policy.caller(&headers, &captures, peer, client);
        context.set_caller(|| caller.name());
        let length = body.size_hint().exact();
        if length.is_none() && route.caller_policy.needs_length() {
            return error_format.format(local_responses::length_required()).into();
        }
        let verdict =
            route.caller_policy.check(local.engine.timer(), &headers, &caller, client, length.unwrap_or_default());
        let routed = RoutedRequest {
            bucket: Cell::new(verdict.bucket),
            tokens: RequestTokens::default(),
            caller: &caller,
            call_logger: self.options.call_logger.as_ref(),
            engine: &local.engine,
            route,
            plan,
            key,
            set_cookie: side.set_cookie,
            context,
            tracer: local.tracer.as_ref(),
            error_format,
            slot_use: RequestUse::new(culprits.as_ref()),
        };
        let CallerVerdict { priority, rejection, .. } = verdict;
        if let Some(rejection) = rejection {
            let failed = local.engine.reject(routed.plan, priority, context.began(), rejection);
            return routed.reject(&parts, &headers, failed);
        }
        let mirror_random = if route.mirror.is_some() { local.random_bits() } else { 0 };
        routed.forward(&parts, (headers, passed), body, target_deadline, &target, priority, mirror_random).await
    }
}

/// Closes connections that have been idle for too long, once per second.
async fn sweep_connections(client: Client, timer: Timer) {
    loop {
        timer.sleep(Nanos::SECOND).await;
        client.sweep(timer.now());
    }
}

/// The response to CONNECT: what goes through a tunnel passes all rules. Another reader may take what follows for the
/// tunnel's, so the connection is closed.
fn connect_rejection() -> Response<weir_server::ResponseBody> {
    let mut response = local_responses::text(StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported");
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether a request, once the parameters of its path are removed, is not of the route of this index.
fn leads_elsewhere(listener: &ListenerRuntime, facts: &RequestFacts<'_>, index: usize) -> bool {
    let Some(plain) = without_parameters(facts.path) else { return false };
    let found = listener.find(&RequestFacts { path: &plain, ..*facts });
    !matches!(found, RouteMatch::Route { index: other, .. } if other == index)
}

/// Rejects a target with another scheme than that of the connection (RFC 9110, 7.4). Over HTTP/2 it may also be
/// `https` without TLS, since a proxy may have ended it (RFC 9113, 8.3.1).
fn check_scheme(parts: &Parts, has_tls: bool) -> Result<(), &'static str> {
    match parts.uri.scheme() {
        None => Ok(()),
        Some(scheme) if *scheme == Scheme::HTTPS && (has_tls || parts.version == Version::HTTP_2) => Ok(()),
        Some(scheme) if *scheme == Scheme::HTTP && !has_tls => Ok(()),
        Some(_) if has_tls => Err("the target's scheme is not https"),
        Some(_) => Err("the target's scheme is not http"),
    }
}

/// The host that a request is for (RFC 9112, 3.2).
fn request_host<'a>(parts: &'a Parts, headers: &'a HeaderMap) -> Result<Option<Cow<'a, str>>, &'static str> {
    let first = field(headers, &header::HOST);
    // No name is there twice, mostly.
    if headers.keys_len() < headers.len() && headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Err("more than one Host header");
    }
    match parts.version {
        // Also with a host in the target.
        Version::HTTP_11 if first.is_none() => return Err("no Host header"),
        Version::HTTP_2 if first.is_none() && parts.uri.authority().is_none() => return Err("no :authority"),
        _ => {}
    }
    if let Some(authority) = parts.uri.authority() {
        // RFC 9113, 8.3.1; over HTTP/1.1 the target comes before the header (RFC 9112, 3.2.2).
        let is_same = |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
        if parts.version == Version::HTTP_2 && !first.is_none_or(is_same) {
            return Err("the Host header is not the :authority");
        }
        // User and password are not allowed (RFC 9110, 4.2.4), and an upstream might take them for the host.
        let is_host = headers::is_host(authority.as_str().as_bytes());
        return if is_host { Ok(Some(authority.host().into())) } else { Err("invalid host in the target") };
    }
    match first {
        None => Ok(None),
        Some(host) => match host.to_str() {
            Ok(host) if headers::is_host(host.as_bytes()) => Ok(Some(host.into())),
            _ => Err("invalid Host header"),
        },
    }
}
