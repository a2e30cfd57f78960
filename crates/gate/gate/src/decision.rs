//! What the head of a request decides: its route, its upstream, its caller.

use std::borrow::Cow;

use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;

use super::caller::CallerVerdict;
use super::gate_route::RouteSide;
use super::gate_thread::GateThread;
use super::headers;
use super::key_source;
use super::listener_runtime::ListenerRuntime;
use super::local_responses::{self, ErrorFormat};
use super::route_caller::RouteCaller;
use super::routing::{RequestFacts, RouteMatch};
use super::runtime::{GateRuntime, RuntimeAction};
use super::side_choice::ChosenSide;
use weir_base::Nanos;
use weir_net::lookup::field;
use weir_net::path::{AmbiguousPath, normalize, without_parameters};
use weir_net::wire::PassedFields;
use weir_server::{RequestBody, RequestContext, ServiceReply};

/// Decisions about a request that is for a route with calls.
#[derive(Debug)]
pub(super) struct RouteDecision {
    /// Index of the route, of those with calls.
    pub(super) route: usize,
    pub(super) side: ChosenSide,
    /// Key by which the upstream chooses a host, with consistent hashing.
    pub(super) key: Option<u64>,
    pub(super) caller: RouteCaller,
    pub(super) verdict: CallerVerdict,
    /// The caller's deadline in the target.
    pub(super) target_deadline: Option<Nanos>,
    /// Path and query of the upstream request, if they are not the caller's.
    target: Option<String>,
    pub(super) error_format: ErrorFormat,
    /// Random bits for a copy of the request.
    pub(super) mirror_random: u64,
}

impl RouteDecision {
    /// Decides about a request. Its caller's rate limit has counted it then.
    ///
    /// # Errors
    /// The reply to one that is not for a route with calls.
    #[expect(clippy::result_large_err, reason = "a reply is one of two ways to go on")]
    pub(super) fn of(
        local: &GateThread,
        runtime: &GateRuntime,
        (parts, headers, passed): (&Parts, &HeaderMap, &PassedFields),
        body: &RequestBody,
        context: &RequestContext,
    ) -> Result<Self, ServiceReply> {
        let error_format = ErrorFormat::of(headers);
        let bad = |why: &str| error_format.format(local_responses::text(StatusCode::BAD_REQUEST, why)).into();
        // In any case: there are services that do not distinguish it.
        if parts.method.as_str().eq_ignore_ascii_case(Method::CONNECT.as_str()) {
            return Err(connect_rejection().into());
        }
        let tls = context.tls();
        let host = match check_scheme(parts, tls.is_some()).and_then(|()| request_host(parts, headers)) {
            Ok(host) => host,
            Err(why) => return Err(bad(why)),
        };
        let not_found = || error_format.format(local_responses::text(StatusCode::NOT_FOUND, "no route matches")).into();
        let Some(listener) = runtime.listeners.get(context.listener()) else {
            return Err(not_found());
        };
        if let Some(redirect) = listener.redirect(host.as_deref(), &parts.uri) {
            return Err(redirect.into());
        }
        let ambiguous = |ambiguity: AmbiguousPath| bad(&format!("ambiguous path: {ambiguity}"));
        let path = match normalize(parts.uri.path(), runtime.path_rule) {
            Ok(path) => path,
            Err(ambiguity) => return Err(ambiguous(ambiguity)),
        };
        let facts = RequestFacts {
            method: &parts.method,
            host: host.as_deref(),
            path: &path,
            query: parts.uri.query(),
            headers,
        };
        let (index, captures) = match listener.find(&facts) {
            RouteMatch::Route { index, captures } => (index, captures),
            RouteMatch::MethodNotAllowed { allow } => {
                return Err(error_format.format(local_responses::not_allowed(&allow)).into());
            }
            RouteMatch::NotFound => return Err(not_found()),
        };
        if !runtime.path_rule.passes_parameters() && leads_elsewhere(listener, &facts, index) {
            return Err(ambiguous(AmbiguousPath::OtherRoute));
        }
        let route_index = match runtime.actions[index] {
            RuntimeAction::Forward(index) => index,
            RuntimeAction::Local(index) => {
                let local_route = &runtime.local_routes[index];
                let reply = local_route.respond(&captures, host.as_deref(), &path, &parts.uri, runtime.path_rule);
                return Err(reply.map_or_else(ambiguous, |reply| error_format.format(reply).into()));
            }
        };
        let route = &runtime.routes[route_index];
        let error_format = error_format.on_route(route.caller_policy.counts_tokens());
        if let Some(too_large) = route.limits.check_head(parts, headers, passed) {
            return Err(error_format.format(too_large).into());
        }
        let target_deadline = match route.target_deadline(&captures, parts.uri.query()) {
            Ok(deadline) => deadline,
            Err(invalid) => return Err(error_format.format_configured(invalid.response()).into()),
        };
        let target = match route.target(&captures, &path, &parts.uri, runtime.path_rule) {
            Ok(Cow::Borrowed(_)) => None,
            Ok(Cow::Owned(target)) => Some(target),
            Err(ambiguity) => {
                let why = format!("ambiguous path: {ambiguity}");
                return Err(error_format.format(local_responses::text(StatusCode::BAD_REQUEST, &why)).into());
            }
        };
        let (seed, peer) = (local.seed, context.peer().ip());
        let side = route.side_chooser.choose(headers, peer, &route.proxies, seed, || local.random_bits());
        let RouteSide { hash_by, .. } = &route.sides[side.index];
        let key = hash_by.as_ref().and_then(|by| key_source::key(by, headers, peer, &route.proxies, seed));
        let client = tls.and_then(|tls| tls.client.as_ref());
        let caller = route.caller_policy.caller(headers, &captures, peer, client);
        context.set_caller(|| caller.name());
        let length = body.size_hint().exact();
        if length.is_none() && route.caller_policy.needs_length() {
            return Err(error_format.format(local_responses::length_required()).into());
        }
        let verdict =
            route.caller_policy.check(local.engine.timer(), headers, &caller, client, length.unwrap_or_default());
        let mirror_random = if route.mirror.is_some() && verdict.rejection.is_none() { local.random_bits() } else { 0 };
        Ok(Self {
            route: route_index,
            side,
            key,
            caller,
            verdict,
            target_deadline,
            target,
            error_format,
            mirror_random,
        })
    }

    /// Path and query of the upstream request.
    pub(super) fn target<'a>(&'a self, parts: &'a Parts) -> &'a str {
        // OPTIONS has a target without a path.
        let original = || parts.uri.path_and_query().map_or("*", |both| both.as_str());
        self.target.as_deref().unwrap_or_else(original)
    }
}

/// Parts, headers, fields that nothing reads, and body of a request.
pub(super) fn split(
    request: Request<RequestBody>,
    runtime: &GateRuntime,
) -> (Parts, HeaderMap, PassedFields, RequestBody) {
    let (mut parts, mut body) = request.into_parts();
    let (mut headers, mut passed) = (std::mem::take(&mut parts.headers), body.take_passed_fields());
    if !passed.names().are_in(runtime.passed_names) {
        // A configuration that came in between reads some of them.
        passed.append_to(&mut headers);
        passed.clear();
    }
    (parts, headers, passed, body)
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
