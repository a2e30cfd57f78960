//! A request through the gate: find its route, know its deadline, call its upstream, answer.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prometheus_client::registry::Registry;

use super::answers::{self, ErrorFormat};
use super::current::{CachedRuntime, ConfigCell};
use super::headers;
use super::metrics::GateMetrics;
use super::otlp::{CallSpanFacts, SpanSender};
use super::routes::RouteMatch;
use super::setup::GateRoute;
use super::sharing::DistributedLimits;
use super::tracing::{TracedCall, Tracer};
use crate::call::story::CallTrace;
use crate::call::{CallBody, CallEngine, CallFailure, CallFailureReason, CallRequest, CallResponse};
use crate::decide::Nanos;
use crate::decide::admit::Priority;
use crate::http::client::{Client, Options as Connections, OutgoingBody};
use crate::http::path::{PathRule, normalize};
use crate::server::{self, BodyPrefix, RequestContext, ResponseBody, ServiceReply, Timer};

/// The gate, for all event loops.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) config_cell: Arc<ConfigCell>,
    pub(super) options: super::Options,
    /// Where traces go, and of how many calls.
    pub(super) span_sender: Option<(SpanSender, f64)>,
    /// Whether an event loop looks after the hosts' health already.
    pub(super) has_health_checks: AtomicBool,
    /// With whom limits are shared.
    pub(super) distributed_limits: Option<Arc<DistributedLimits>>,
}

/// What one event loop has of it.
#[derive(Debug)]
pub(super) struct GateThread {
    engine: CallEngine,
    runtime: CachedRuntime,
    tracer: Option<Tracer>,
}

impl server::Service for Service {
    type Local = GateThread;

    fn init_thread(&self, timer: &Timer) -> io::Result<GateThread> {
        let client = Client::new(timer.clone(), Connections::default());
        let engine = CallEngine::new(client.clone(), timer.clone(), self.options.seed);
        tokio::task::spawn_local(sweep_connections(client, timer.clone()));
        if !self.has_health_checks.swap(true, Ordering::Relaxed) {
            super::checks::start(Arc::clone(&self.config_cell), engine.clone());
        }
        let tracer = self.span_sender.as_ref().map(|(pen, share)| Tracer::new(pen.clone(), *share, timer.clock()));
        Ok(GateThread { engine, runtime: self.config_cell.cached(timer.clock()), tracer })
    }

    fn register_metrics(&self, registry: &mut Registry) {
        let (current, sharing) = (Arc::clone(&self.config_cell), self.distributed_limits.clone());
        registry.register_collector(Box::new(GateMetrics { config_cell: current, distributed_limits: sharing }));
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        normalize(path, PathRule::default()).unwrap_or(Cow::Borrowed(path))
    }

    async fn handle(&self, local: &GateThread, request: Request<Incoming>, turn: &RequestContext) -> ServiceReply {
        let setup = local.runtime.get(&self.config_cell);
        let (mut parts, body) = request.into_parts();
        let headers = std::mem::take(&mut parts.headers);
        let speaks = ErrorFormat::of(&headers);
        let bad = |why: &str| speaks.format(answers::text(StatusCode::BAD_REQUEST, why)).into();
        let host = match check_scheme(&parts).and_then(|()| request_host(&parts, &headers)) {
            Ok(host) => host,
            Err(why) => return bad(why),
        };
        let path = match normalize(parts.uri.path(), setup.path_rule) {
            Ok(path) => path,
            Err(doubt) => return bad(&format!("the path can be read in two ways: {doubt}")),
        };
        let (route, captures) = match setup.route_table.find(&parts.method, host.as_deref(), &path) {
            RouteMatch::Route { index, captures } => (&setup.routes[index], captures),
            RouteMatch::MethodNotAllowed { allow } => return speaks.format(answers::not_allowed(&allow)).into(),
            RouteMatch::NotFound => {
                return speaks.format(answers::text(StatusCode::NOT_FOUND, "no route leads there")).into();
            }
        };
        let own = match route.target_deadline(&captures, parts.uri.query()) {
            Ok(own) => own,
            Err(refusal) => return speaks.format(refusal.response()).into(),
        };
        let target = route.target(&captures, &path, &parts.uri);
        let tracer = local.tracer.as_ref();
        let visit =
            RoutedRequest { service: self, engine: &local.engine, route, context: turn, tracer, error_format: speaks };
        let (priority, refusal) =
            route.caller_policy.check(local.engine.timer().now(), &headers, &captures, turn.peer().ip());
        if let Some(refusal) = refusal {
            let failed = local.engine.reject(&route.plan, priority, turn.began(), refusal);
            return visit.reject(&parts, &headers, failed);
        }
        visit.forward(&parts, headers, body, own, &target, priority).await
    }
}

/// Closes connections that idled for too long, once a second.
async fn sweep_connections(client: Client, timer: Timer) {
    loop {
        timer.sleep(Nanos::SECOND).await;
        client.sweep(timer.now());
    }
}

/// What stands in the target as a scheme is what is spoken here (RFC 9110, 7.4). Over HTTP/2 it is the proxy's word, which
/// may have ended TLS (RFC 9113, 8.3.1).
fn check_scheme(parts: &Parts) -> Result<(), &'static str> {
    match parts.uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS && parts.version == Version::HTTP_2 => Ok(()),
        Some(scheme) if *scheme != Scheme::HTTP => Err("the target's scheme is not the one that is spoken here: http"),
        _ => Ok(()),
    }
}

/// The host that a request is for (RFC 9112, 3.2).
fn request_host<'a>(parts: &'a Parts, headers: &'a HeaderMap) -> Result<Option<Cow<'a, str>>, &'static str> {
    let mut named = headers.get_all(header::HOST).iter();
    let first = named.next();
    if named.next().is_some() {
        return Err("more than one Host header");
    }
    if let Some(authority) = parts.uri.authority() {
        // User and password have no place here (RFC 9110, 4.2.4), and the next one might take them for the host.
        let fine = headers::is_host(authority.as_str().as_bytes());
        return if fine { Ok(Some(authority.host().into())) } else { Err("the target's host is none") };
    }
    match first {
        None if parts.version == Version::HTTP_11 => Err("no Host header"),
        None => Ok(None),
        Some(host) => match host.to_str() {
            Ok(host) if headers::is_host(host.as_bytes()) => Ok(Some(host.into())),
            _ => Err("the Host header is no host"),
        },
    }
}

/// One request that has found its route.
struct RoutedRequest<'a> {
    service: &'a Service,
    engine: &'a CallEngine,
    route: &'a GateRoute,
    context: &'a RequestContext,
    tracer: Option<&'a Tracer>,
    error_format: ErrorFormat,
}

impl RoutedRequest<'_> {
    async fn forward(
        &self,
        parts: &Parts,
        mut headers: HeaderMap,
        body: Incoming,
        own: Option<Nanos>,
        target: &str,
        priority: Priority,
    ) -> ServiceReply {
        let began = self.context.began();
        let upgrade = headers::upgrade(&headers).filter(|_| parts.version == Version::HTTP_11);
        let said = self.caller_deadline(&headers);
        // The policy's, or an earlier one that the caller gives.
        let deadline = began + [said, own].into_iter().flatten().fold(self.route.plan.policy.deadline, Nanos::min);
        let spread = self.engine.spread();
        if !body.is_end_stream()
            && let Some(failed) = self.engine.shed_early(&self.route.plan, priority, spread, deadline)
        {
            return self.reject(parts, &headers, failed);
        }
        let body = match self.read_body(parts, body, deadline).await {
            Ok(body) => body,
            Err(answer) => return self.error_format.format(answer).into(),
        };
        let traced = self.tracer.and_then(|tracer| tracer.begin(&headers));
        if traced.is_some() {
            headers.remove("traceparent");
        }
        if said.is_some() {
            for (name, _) in &self.route.caller_deadlines {
                headers.remove(name);
            }
        }
        self.sanitize_headers(parts, &mut headers, upgrade.as_ref());
        let ask = CallRequest {
            plan: &self.route.plan,
            method: &parts.method,
            target,
            headers: &headers,
            deadline,
            upgrade: upgrade.is_some(),
            trace: traced.map(|traced| traced.context),
            priority,
            spread,
        };
        let gone = |story: CallTrace| {
            if self.context.is_logged() {
                self.context.log_attempts(story.json());
            }
            self.report(&self.span_facts(parts, &headers, traced, (None, "gone")), &story);
        };
        let ended = self.engine.call_with_cancel_hook(&ask, body, &gone).await;
        if !matches!(ended, Err(CallFailure { reason: CallFailureReason::Rejected(_), .. })) {
            self.route.caller_policy.record_accepted(self.engine.timer().now());
        }
        self.finish(parts, &headers, traced, ended, upgrade.is_some())
    }

    /// There is no call.
    fn reject(&self, parts: &Parts, headers: &HeaderMap, failed: CallFailure) -> ServiceReply {
        let traced = self.tracer.and_then(|tracer| tracer.begin(headers));
        self.finish(parts, headers, traced, Err(failed), false)
    }

    /// Tells what became of a call, and makes it an answer.
    fn finish(
        &self,
        parts: &Parts,
        headers: &HeaderMap,
        traced: Option<TracedCall>,
        ended: Result<CallResponse, CallFailure>,
        upgrade: bool,
    ) -> ServiceReply {
        let (story, verdict) = match &ended {
            Ok(answer) => (&answer.call_trace, "won"),
            Err(failed) if failed.reason == CallFailureReason::DeadlineExceeded => (&failed.call_trace, "late"),
            Err(CallFailure { reason: CallFailureReason::Rejected(_), call_trace: story, .. }) => (story, "refused"),
            Err(failed) => (&failed.call_trace, "failed"),
        };
        if self.context.is_logged() {
            self.context.log_attempts(story.json());
        }
        let told = (traced.is_some() || self.service.options.call_logger.is_some()).then(|| story.clone());
        let reply = match ended {
            Ok(answer) => self.success_reply(answer, upgrade),
            Err(failed) => self.failure_response(failed).into(),
        };
        if let Some(story) = told {
            let status = reply.status().map(|status| status.as_u16());
            self.report(&self.span_facts(parts, headers, traced, (status, verdict)), &story);
        }
        reply
    }

    fn span_facts<'a>(
        &'a self,
        parts: &'a Parts,
        headers: &'a HeaderMap,
        traced: Option<TracedCall>,
        (status, verdict): (Option<u16>, &'static str),
    ) -> CallSpanFacts<'a> {
        CallSpanFacts {
            trace_id: traced.map_or(0, |traced| traced.context.trace_id),
            span_id: traced.map_or(0, |traced| traced.context.span_id),
            parent: traced.and_then(|traced| traced.parent),
            route: Some(&self.route.name),
            method: &parts.method,
            path: parts.uri.path_and_query().map_or("*", |both| both.as_str()),
            host: headers.get(header::HOST).and_then(|host| host.to_str().ok()),
            status,
            verdict,
            began: self.context.began(),
            ended: self.context.now(),
        }
    }

    /// Tells whoever wants to hear of every call.
    fn report(&self, call: &CallSpanFacts<'_>, story: &CallTrace) {
        if let Some(tracer) = self.tracer.filter(|_| call.trace_id != 0) {
            tracer.record(call, story);
        }
        if let Some(tell) = &self.service.options.call_logger {
            let CallSpanFacts { method, path, began, ended, .. } = call;
            let status = call.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let why = match call.verdict {
                "late" => ": the deadline has come",
                "refused" => ": there is too much",
                "failed" => ": no attempt succeeded",
                "gone" if self.context.is_server_abort() => ": the gate has ended the connection",
                "gone" => ": the caller has left",
                _ => "",
            };
            let took = (*ended - *began).as_millis_f64();
            tell.log(&format!("{method} {path} -> {status} after {took:.1} ms{why}\n{story}"));
        }
    }

    /// How much time the caller's headers leave: the least of what they say.
    fn caller_deadline(&self, headers: &HeaderMap) -> Option<Nanos> {
        let all = self.route.caller_deadlines.iter();
        // What cannot be read says nothing, but must not go on beside what we say.
        all.filter_map(|(name, form)| {
            headers.get(name).map(|value| form.read(value.as_bytes()).unwrap_or(Nanos::NEVER))
        })
        .min()
    }

    /// The request's body, kept if it may have to be sent again.
    async fn read_body(
        &self,
        parts: &Parts,
        body: Incoming,
        deadline: Nanos,
    ) -> Result<OutgoingBody, Response<ResponseBody>> {
        if body.is_end_stream() {
            return Ok(OutgoingBody::Empty);
        }
        // A body of unknown length may be one that goes on while it is answered.
        let kept = body.size_hint().exact().is_some() || self.route.is_retryable(&parts.method);
        let most = if kept { self.route.buffer } else { 0 };
        let taken = tokio::select! {
            biased;
            taken = self.context.read_prefix(body, most) => taken,
            () = self.context.sleep_until(deadline), if deadline < Nanos::NEVER => return Err(self.route.deadline_response()),
        };
        match taken {
            Ok(BodyPrefix::Complete(bytes)) => Ok(OutgoingBody::Bytes(bytes)),
            Ok(BodyPrefix::Streaming(upload)) => Ok(OutgoingBody::Stream(Box::pin(upload))),
            Err(_) => Err(answers::text(StatusCode::BAD_REQUEST, "the body broke off")),
        }
    }

    /// Makes the request's headers those of the upstream's.
    fn sanitize_headers(&self, parts: &Parts, headers: &mut HeaderMap, upgrade: Option<&HeaderValue>) {
        let route = self.route;
        headers::remove_hop_by_hop(headers);
        headers.remove(header::EXPECT);
        headers::keep_te_trailers(headers);
        if parts.version == Version::HTTP_2 {
            headers::join_cookies(headers);
        }
        if route.plan.success.inspects_bodies() {
            // They are looked at as they are sent.
            headers.remove(header::ACCEPT_ENCODING);
        }
        if let Some(protocol) = upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
        }
        if let Some(authority) = parts.uri.authority() {
            // What stands in the target counts, whatever the header says (RFC 9112, 3.2.2).
            if let Ok(host) = HeaderValue::try_from(authority.as_str()) {
                headers.insert(header::HOST, host);
            }
        }
        let host = headers.get(header::HOST).cloned();
        let trusted = route.proxies.contains(self.context.peer().ip());
        headers::set_forwarded(headers, self.context.client_address(), host.as_ref(), trusted);
        route.rewrite_request(headers);
    }

    fn success_reply(&self, answer: CallResponse, upgrade: bool) -> ServiceReply {
        let CallResponse { mut head, body, .. } = answer;
        if head.status == StatusCode::SWITCHING_PROTOCOLS && upgrade {
            let Some(tunnel) = body.into_upgraded() else {
                let answer = answers::text(StatusCode::BAD_GATEWAY, "the upstream did not switch protocols");
                return self.error_format.format(answer).into();
            };
            let mut switch = Response::new(ResponseBody::empty());
            *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *switch.headers_mut() = head.headers;
            headers::remove_content_headers(StatusCode::SWITCHING_PROTOCOLS, switch.headers_mut());
            return ServiceReply::Upgrade(switch, Box::new(tunnel));
        }
        headers::remove_hop_by_hop(&mut head.headers);
        headers::remove_content_headers(head.status, &mut head.headers);
        self.route.rewrite_response(&mut head.headers);
        let body = match self.route.merge() {
            Some(merge) => body.map_buffered(|bytes| merge.apply(bytes)).inspect(|_| {
                head.headers.remove(header::CONTENT_LENGTH);
            }),
            None => Err(body),
        };
        let body = body.unwrap_or_else(|body| body);
        head.version = Version::HTTP_11;
        Response::from_parts(head, server_body(body)).into()
    }

    fn failure_response(&self, failed: CallFailure) -> Response<ResponseBody> {
        let CallFailure { reason, last_response: last, call_trace: story } = failed;
        match reason {
            CallFailureReason::DeadlineExceeded => return self.error_format.format(self.route.deadline_response()),
            CallFailureReason::Rejected(refusal) => {
                return self.error_format.format(self.route.rejection_response(refusal));
            }
            CallFailureReason::AllFailed => {}
        }
        if let Some(own) = answers::bad_request(&story).or_else(|| self.route.failure_response()) {
            return self.error_format.format(own);
        }
        match last {
            Some((mut head, body)) => {
                headers::remove_hop_by_hop(&mut head.headers);
                headers::remove_content_headers(head.status, &mut head.headers);
                self.route.rewrite_response(&mut head.headers);
                head.version = Version::HTTP_11;
                Response::from_parts(head, server_body(body))
            }
            None => self.error_format.format(answers::no_response(&story)),
        }
    }
}

fn server_body(body: CallBody) -> ResponseBody {
    match body {
        CallBody::Buffered(bytes) => bytes.into(),
        CallBody::Streaming(_) => ResponseBody::from_stream(body.map_err(Into::into)),
    }
}
