//! A request on its route: its deadline, its body and headers, and its call.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use http_body::Body as _;

use super::call_spans::CallSpanFacts;
use super::culprit_guard::RequestUse;
use super::forwarding::set_forwarded;
use super::gate_route::GateRoute;
use super::headers;
use super::local_responses::{self, ErrorFormat};
use super::route_caller::RouteCaller;
use super::token_limit::RequestTokens;
use super::tracing::{TracedCall, Tracer};
use super::trailer_filter::TrailerFilter;
use weir_base::Nanos;
use weir_call::attempt_log::CallTrace;
use weir_call::{CallEngine, CallFailure, CallFailureReason, CallPlan, CallRequest, CallResponse};
use weir_machine::logger::Logger;
use weir_net::client::{OutgoingBody, WireOptions};
use weir_net::lookup::{field, has_field};
use weir_net::wire::PassedFields;
use weir_resilience::admission::{ConnectionNumber, Priority};
use weir_resilience::ratelimit::per_caller::BucketState;
use weir_server::{BodyPrefix, RequestBody, RequestContext, ResponseBody, ServiceReply};

/// Shortest time of a call whose caller sets its deadline, before service times are known: enough for most services to
/// show theirs.
const FIRST_DEADLINE_FLOOR: Nanos = Nanos::from_millis(100);

/// Request with all that its route, upstream and listener decide about its call.
pub(super) struct RoutedRequest<'a> {
    /// Logger of attempt logs, as text.
    pub(super) call_logger: Option<&'a Logger>,
    pub(super) engine: &'a CallEngine,
    pub(super) caller: &'a RouteCaller<'a>,
    pub(super) route: &'a GateRoute,
    /// Plan of the side that the call goes to.
    pub(super) plan: &'a CallPlan,
    /// Key by which the upstream chooses a host, with consistent hashing.
    pub(super) key: Option<u64>,
    /// The caller's bucket of its rate limit, if responses report it.
    pub(super) bucket: Cell<Option<BucketState>>,
    /// Tokens of a language model that the call has taken.
    pub(super) tokens: RequestTokens,
    /// Set-Cookie of the response, for a caller that is to keep its side.
    pub(super) set_cookie: Option<HeaderValue>,
    pub(super) context: &'a RequestContext,
    pub(super) tracer: Option<&'a Tracer>,
    pub(super) error_format: ErrorFormat,
    /// Culprits of its upstream, and its use of a slot.
    pub(super) slot_use: RequestUse<'a>,
}

impl RoutedRequest<'_> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    pub(super) async fn forward(
        &self,
        parts: &Parts,
        (mut headers, mut passed): (HeaderMap, PassedFields),
        body: RequestBody,
        target_deadline: Option<Nanos>,
        target: &str,
        priority: Priority,
        mirror_random: u64,
    ) -> ServiceReply {
        if let Some(too_large) = self.route.limits.check_body(body.size_hint().lower()) {
            return self.error_format.format(too_large).into();
        }
        let began = self.context.began();
        let upgrade = self.route.upgrade(parts, &headers, !body.is_end_stream());
        let header_deadline = self.caller_deadline(&headers);
        let caller_deadline = [header_deadline, target_deadline].into_iter().flatten().min();
        // The shortest of the policy's and the caller's.
        let deadline = began
            + caller_deadline.map_or(self.plan.policy.deadline, |caller_deadline| {
                caller_deadline.max(self.deadline_floor()).min(self.plan.policy.deadline)
            });
        self.context.set_progress(Some(&self.route.label), "reading_body");
        let spread = self.engine.spread();
        let shed_early = || {
            let of_culprit = self.shed_culprit_early(priority);
            of_culprit.or_else(|| self.engine.shed_early(self.plan, priority, spread, deadline))
        };
        if !body.is_end_stream()
            && let Some(failed) = shed_early()
        {
            return self.reject(parts, &headers, failed);
        }
        let length = body.size_hint().exact();
        let (body, is_too_large) = match self.read_body(parts, body, deadline).await {
            Ok(read) => read,
            Err(response) => return response.into(),
        };
        let charged = self.charge_tokens(&body, length, priority);
        if let Some(failed) = charged.or_else(|| self.begin_use(priority)) {
            return self.reject(parts, &headers, failed);
        }
        let traced = self.tracer.and_then(|tracer| tracer.begin(&headers));
        if traced.is_some() {
            headers.remove("traceparent");
        }
        if header_deadline.is_some() {
            for (name, _) in &self.route.caller_deadlines {
                headers.remove(name);
            }
        }
        self.sanitize_headers(parts, (&mut headers, &mut passed), upgrade);
        let request = CallRequest {
            deadline,
            upgrade: upgrade.is_some(),
            trace: traced.map(|traced| traced.context),
            priority,
            key: self.key,
            client: Some(self.context.peer()),
            spread,
            connection: self.context.http2_connection().map(ConnectionNumber),
            // HTTP/2 has no lines of headers.
            wire: WireOptions {
                passed: Some(&passed),
                passes_all_but: (parts.version != Version::HTTP_2).then_some(&self.route.response_headers),
                ..WireOptions::default()
            },
            ..CallRequest::new(self.plan, &parts.method, target, &headers)
        };
        if self.context.is_described() {
            self.context.set_progress(None, "calling");
        }
        if let Some(mirror) = &self.route.mirror {
            mirror.copy(self.engine, mirror_random, &request, &body);
        }
        let on_cancel = |trace: CallTrace| {
            if self.context.is_logged() {
                self.context.log_attempts(trace.json());
            }
            self.report(&self.span_facts(parts, &headers, traced, (None, "client_closed")), &trace);
        };
        let ended = self.engine.call_with_cancel_hook(&request, body, &on_cancel).await;
        if !matches!(ended, Err(CallFailure { reason: CallFailureReason::Rejected(_), .. })) {
            self.route.caller_policy.record_accepted(self.engine.timer());
        }
        let is_too_large = is_too_large.is_some_and(|exceeded| exceeded.get());
        let mut reply = self.finish(parts, &headers, traced, ended, upgrade, is_too_large);
        match &mut reply {
            // The server uses the memory of a response's headers for the next request's.
            ServiceReply::Response(response) if response.headers().is_empty() => {
                headers.clear();
                *response.headers_mut() = headers;
            }
            _ => self.engine.client().recycle_headers(headers),
        }
        self.engine.client().recycle_passed_fields(passed);
        reply
    }

    /// The reply to a call that was rejected before it was made.
    pub(super) fn reject(&self, parts: &Parts, headers: &HeaderMap, failed: CallFailure) -> ServiceReply {
        self.context.set_progress(Some(&self.route.label), "handling");
        let traced = self.tracer.and_then(|tracer| tracer.begin(headers));
        self.finish(parts, headers, traced, Err(failed), None, false)
    }

    /// Reports the outcome of a call, and returns its reply.
    fn finish(
        &self,
        parts: &Parts,
        headers: &HeaderMap,
        traced: Option<TracedCall>,
        mut ended: Result<CallResponse, CallFailure>,
        upgrade: Option<&HeaderValue>,
        is_too_large: bool,
    ) -> ServiceReply {
        self.note_rejection(&mut ended);
        let (trace, outcome) = match &ended {
            Ok(response) => (&response.call_trace, "succeeded"),
            Err(failed) => match failed.reason {
                CallFailureReason::DeadlineExceeded => (&failed.call_trace, "deadline_exceeded"),
                CallFailureReason::Rejected(_) => (&failed.call_trace, "rejected"),
                CallFailureReason::AllFailed => (&failed.call_trace, "failed"),
            },
        };
        if self.context.is_logged() {
            self.context.log_attempts(trace.json());
        }
        let reported = (traced.is_some() || self.call_logger.is_some()).then(|| trace.clone());
        let mut reply = match ended {
            Ok(response) => self.success_reply(response, upgrade),
            Err(failed) => self.failure_response(failed, is_too_large).into(),
        };
        if let Some(bucket) = self.bucket.get() {
            headers::report_bucket(&mut reply, &bucket, self.route.caller_policy.counts_tokens());
        }
        if let Some(trace) = reported {
            let status = reply.status().map(|status| status.as_u16());
            self.report(&self.span_facts(parts, headers, traced, (status, outcome)), &trace);
        }
        reply
    }

    /// Counts a rejection of the caller, and adds what logs show of it.
    fn note_rejection(&self, ended: &mut Result<CallResponse, CallFailure>) {
        let Err(CallFailure { reason: CallFailureReason::Rejected(why), call_trace, .. }) = ended else { return };
        let now = self.engine.timer().now();
        self.slot_use.rejected(now, self.caller, why.reason);
        self.return_tokens();
        self.route.caller_policy.record_rejected(now, self.caller, why.reason);
        if self.context.is_logged() || self.call_logger.is_some() || self.tracer.is_some() {
            call_trace.rejected_call = Some(self.caller.rejected_call(&self.route.label));
        }
    }

    fn span_facts<'a>(
        &'a self,
        parts: &'a Parts,
        headers: &'a HeaderMap,
        traced: Option<TracedCall>,
        (status, outcome): (Option<u16>, &'static str),
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
            outcome,
            began: self.context.began(),
            ended: self.context.now(),
        }
    }

    /// Exports the call's spans, and prints its attempt log.
    fn report(&self, call: &CallSpanFacts<'_>, trace: &CallTrace) {
        if let Some(tracer) = self.tracer.filter(|_| call.trace_id != 0) {
            tracer.record(call, trace);
        }
        if let Some(logger) = self.call_logger {
            let CallSpanFacts { method, path, began, ended, .. } = call;
            let status = call.status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
            let why = match call.outcome {
                "deadline_exceeded" => ": deadline exceeded",
                "rejected" => ": rejected",
                "failed" => ": no attempt succeeded",
                "client_closed" if self.context.is_server_abort() => ": the gateway closed the connection",
                "client_closed" => ": the caller disconnected",
                _ => "",
            };
            let ms = (*ended - *began).as_millis_f64();
            logger.log(&format!("{method} {path} -> {status} after {ms:.1} ms{why}\n{trace}"));
        }
    }

    /// The caller's remaining time: the shortest of its headers.
    fn caller_deadline(&self, headers: &HeaderMap) -> Option<Nanos> {
        let all = self.route.caller_deadlines.iter();
        // An invalid header sets no limit, but must not be passed on beside the gateway's own.
        all.filter_map(|(name, form)| {
            field(headers, name).map(|value| form.read(value.as_bytes()).unwrap_or(Nanos::NEVER))
        })
        .min()
    }

    /// Shortest time that a call gets whose caller sets its deadline: the upstream's mean service time. With less the
    /// upstream would work for nothing, and hold a slot that other callers need. Trusted proxies are exempt.
    fn deadline_floor(&self) -> Nanos {
        match self.plan.upstream.permits() {
            Some(permits) if !self.route.proxies.contains(self.context.peer().ip()) => {
                let service_time = permits.slots().service_time();
                if service_time == Nanos::ZERO { FIRST_DEADLINE_FLOOR } else { service_time }
            }
            _ => Nanos::ZERO,
        }
    }

    /// Reads the request's body into memory if it may have to be sent again; otherwise it is streamed. With it comes
    /// whether a streamed body turns out to be longer than the route allows.
    async fn read_body(
        &self,
        parts: &Parts,
        body: RequestBody,
        deadline: Nanos,
    ) -> Result<(OutgoingBody, Option<Rc<Cell<bool>>>), Response<ResponseBody>> {
        if body.is_end_stream() {
            return Ok((OutgoingBody::Empty, None));
        }
        // A body of unknown length may go on while the response comes.
        let is_counted = self.route.caller_policy.counts_tokens();
        let is_buffered = is_counted || body.size_hint().exact().is_some() || self.route.is_retryable(&parts.method);
        let max_bytes = if is_buffered { self.route.buffer } else { 0 };
        let prefix = tokio::select! {
            biased;
            prefix = self.context.read_prefix(body, max_bytes) => prefix,
            () = self.context.sleep_until(deadline), if deadline < Nanos::NEVER => {
                return Err(self.route.deadline_response(self.error_format));
            }
        };
        match prefix {
            Ok(BodyPrefix::Complete(bytes)) => match self.route.limits.check_body(bytes.len() as u64) {
                Some(too_large) => Err(self.error_format.format(too_large)),
                None => Ok((OutgoingBody::Bytes(bytes), None)),
            },
            Ok(BodyPrefix::Streaming(upload)) => {
                let upload = Box::pin(TrailerFilter::new(
                    upload,
                    Arc::clone(&self.route.client_certificate_headers),
                    Arc::clone(&self.route.forwarding_headers),
                    Arc::clone(&self.route.own_headers),
                ));
                let (upload, is_too_large) = self.route.limits.limit_body(upload);
                Ok((OutgoingBody::Stream(upload), is_too_large))
            }
            Err(_) => {
                let broken = local_responses::text(StatusCode::BAD_REQUEST, "the body broke off");
                Err(self.error_format.format(broken))
            }
        }
    }

    /// Turns the caller's headers into those of the upstream request.
    fn sanitize_headers(
        &self,
        parts: &Parts,
        (headers, passed): (&mut HeaderMap, &mut PassedFields),
        upgrade: Option<&HeaderValue>,
    ) {
        let route = self.route;
        headers::remove_hop_by_hop(headers);
        if has_field(headers, &header::EXPECT) {
            headers.remove(header::EXPECT);
        }
        headers::keep_te_trailers(headers);
        if parts.version == Version::HTTP_2 {
            headers::join_cookies(headers);
        }
        if self.plan.success.inspects_bodies() || self.route.caller_policy.counts_tokens() {
            // Bodies are checked as they are sent, uncompressed.
            headers.remove(header::ACCEPT_ENCODING);
        }
        if let Some(protocol) = upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
        }
        if let Some(authority) = parts.uri.authority() {
            // The host in the target comes before the header (RFC 9112, 3.2.2).
            if let Ok(host) = HeaderValue::try_from(authority.as_str()) {
                headers.insert(header::HOST, host);
            }
        }
        let trusted = route.proxies.contains(self.context.peer().ip());
        let scheme = if self.context.tls().is_some() { "https" } else { "http" };
        // As lines, unless the route may read or change them.
        let lines = (!route.changes_request_headers()).then_some(passed);
        set_forwarded((headers, lines), self.context.client_address(), scheme, trusted, &route.forwarding_headers);
        let client = self.context.tls().and_then(|tls| tls.client.as_ref());
        route.client_certificate_headers.apply(headers, client, trusted);
        route.rewrite_request(headers);
    }
}
