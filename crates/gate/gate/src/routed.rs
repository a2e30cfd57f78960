//! A request on its route: its deadline, its body and headers, and its call.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use http_body::Body as _;

use super::call_spans::CallSpanFacts;
use super::caller::CallerVerdict;
use super::culprit_guard::RequestUse;
use super::decision::RouteDecision;
use super::forwarding::set_forwarded;
use super::gate_route::{GateRoute, RouteSide};
use super::headers;
use super::local_responses;
use super::runtime::GateRuntime;
use super::sent_request::{CallTerms, Reports, SentRequest};
use super::token_limit::RequestTokens;
use super::tracing::TracedCall;
use super::trailer_filter::TrailerFilter;
use weir_base::Nanos;
use weir_call::attempt_log::CallTrace;
use weir_call::{CallEngine, CallFailure, CallFailureReason, CallPlan, CallRequest, CallResponse, DirectCall};
use weir_net::client::{OutgoingBody, WireOptions};
use weir_net::lookup::has_field;
use weir_net::wire::PassedFields;
use weir_resilience::admission::ConnectionNumber;
use weir_resilience::ratelimit::per_caller::BucketState;
use weir_server::{BodyPrefix, RequestBody, RequestContext, ResponseBody, ServiceReply};

/// Request with all that its route, upstream and listener decide about its call.
pub(super) struct RoutedRequest<'a> {
    pub(super) engine: &'a CallEngine,
    pub(super) route: &'a GateRoute,
    /// Plan of the side that the call goes to.
    pub(super) plan: &'a Arc<CallPlan>,
    pub(super) decision: &'a RouteDecision,
    /// The caller's bucket of its rate limit, if responses report it.
    pub(super) bucket: Cell<Option<BucketState>>,
    /// Tokens of a language model that the call has taken.
    pub(super) tokens: RequestTokens,
    pub(super) context: &'a RequestContext,
    reports: Reports<'a>,
    /// Culprits of its upstream, and its use of a slot.
    pub(super) slot_use: RequestUse<'a>,
}

impl<'a> RoutedRequest<'a> {
    pub(super) fn new(
        engine: &'a CallEngine,
        runtime: &'a GateRuntime,
        decision: &'a RouteDecision,
        context: &'a RequestContext,
        reports: Reports<'a>,
    ) -> Self {
        let route = &runtime.routes[decision.route];
        let RouteSide { plan, culprits, .. } = &route.sides[decision.side.index];
        let (slot_use, tokens) = (RequestUse::new(culprits.as_ref()), RequestTokens::default());
        let bucket = Cell::new(decision.verdict.bucket);
        Self { engine, route, plan, decision, bucket, tokens, context, reports, slot_use }
    }

    /// The failure of a call whose caller is over its rate limit.
    pub(super) fn rejection(&self) -> Option<CallFailure> {
        let CallerVerdict { priority, rejection, .. } = self.decision.verdict;
        rejection.map(|rejection| self.engine.reject(self.plan, priority, self.context.began(), rejection))
    }

    /// A response of the gateway's own.
    pub(super) fn own(&self, response: Response<ResponseBody>) -> ServiceReply {
        self.decision.error_format.format(response).into()
    }

    pub(super) async fn forward(
        &self,
        parts: &Parts,
        (mut headers, mut passed): (HeaderMap, PassedFields),
        body: RequestBody,
        terms: CallTerms,
    ) -> ServiceReply {
        let upgrade = self.route.upgrade(parts, &headers, !body.is_end_stream());
        let (length, priority) = (body.size_hint().exact(), self.decision.verdict.priority);
        let (body, is_too_large) = match self.read_body(parts, body, terms.deadline).await {
            Ok(read) => read,
            Err(response) => return response.into(),
        };
        let charged = self.charge_tokens(&body, length, priority);
        if let Some(failed) = charged.or_else(|| self.begin_use(priority)) {
            return self.reject(parts, &headers, failed);
        }
        let traced = self.reports.tracer.and_then(|tracer| tracer.begin(&headers));
        if traced.is_some() {
            headers.remove("traceparent");
        }
        self.sanitize_headers(parts, (&mut headers, &mut passed), terms, upgrade);
        let sent = SentRequest { parts, headers, passed, terms, upgrade, traced };
        self.begin_call(&sent, &body);
        self.call(sent, body, is_too_large, None).await
    }

    /// Takes a body of which nothing is still to come, if a value can send it: it is no longer than what is kept for
    /// another attempt, and neither culprits nor tokens are counted, which is done to the end of a response.
    pub(super) fn take_body(&self, body: &mut RequestBody) -> Option<Bytes> {
        let counts = self.slot_use.counts() || self.route.caller_policy.counts_tokens();
        if counts || body.size_hint().lower() > self.route.buffer as u64 {
            return None;
        }
        self.context.take_whole_body(body)
    }

    /// The request of the call.
    pub(super) fn call_request<'r>(&'r self, sent: &'r SentRequest<'_>) -> CallRequest<'r> {
        let SentRequest { parts, headers, passed, terms, upgrade, traced } = sent;
        CallRequest {
            deadline: terms.deadline,
            upgrade: upgrade.is_some(),
            trace: traced.map(|traced| traced.context),
            priority: self.decision.verdict.priority,
            key: self.decision.key,
            client: Some(self.context.peer()),
            spread: terms.spread,
            connection: self.context.http2_connection().map(ConnectionNumber),
            // HTTP/2 has no lines of headers.
            wire: WireOptions {
                passed: Some(passed),
                passes_all_but: (parts.version != Version::HTTP_2).then_some(&self.route.response_headers),
                ..WireOptions::default()
            },
            ..CallRequest::new(self.plan, &parts.method, self.decision.target(parts), headers)
        }
    }

    /// Records that the call begins, and sends a copy of its request where the route has one.
    pub(super) fn begin_call(&self, sent: &SentRequest<'_>, body: &OutgoingBody) {
        if self.context.is_described() {
            self.context.set_progress(None, "calling");
        }
        if let Some(mirror) = &self.route.mirror {
            mirror.copy(self.engine, self.decision.mirror_random, &self.call_request(sent), body);
        }
    }

    /// Makes the call, or goes on with one that has begun.
    pub(super) async fn call(
        &self,
        sent: SentRequest<'_>,
        body: OutgoingBody,
        is_too_large: Option<Rc<Cell<bool>>>,
        begun: Option<Box<DirectCall>>,
    ) -> ServiceReply {
        let SentRequest { parts, headers, upgrade, traced, .. } = &sent;
        let request = self.call_request(&sent);
        let on_cancel = |trace: CallTrace| {
            if self.context.is_logged() {
                self.context.log_attempts(trace.json());
            }
            self.report(&self.span_facts(parts, headers, *traced, (None, "client_closed")), &trace);
        };
        let ended = self.engine.resume(begun, &request, body, &on_cancel).await;
        if !matches!(ended, Err(CallFailure { reason: CallFailureReason::Rejected(_), .. })) {
            self.route.caller_policy.record_accepted(self.engine.timer());
        }
        let is_too_large = is_too_large.is_some_and(|exceeded| exceeded.get());
        let mut reply = self.finish(parts, headers, *traced, ended, *upgrade, is_too_large);
        let SentRequest { mut headers, passed, .. } = sent;
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
        let traced = self.reports.tracer.and_then(|tracer| tracer.begin(headers));
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
        let reported = (traced.is_some() || self.reports.call_logger.is_some()).then(|| trace.clone());
        let mut reply = match ended {
            Ok(response) => self.success_reply(response, upgrade),
            Err(failed) => self.failure_response(failed, is_too_large).into(),
        };
        if let (Some(bucket), ServiceReply::Response(response) | ServiceReply::Upgrade(response, _)) =
            (self.bucket.get(), &mut reply)
        {
            headers::report_bucket(response.headers_mut(), &bucket, self.route.caller_policy.counts_tokens());
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
        let (now, caller) = (self.engine.timer().now(), &self.decision.caller);
        self.slot_use.rejected(now, caller, why.reason);
        self.return_tokens();
        self.route.caller_policy.record_rejected(now, caller, why.reason);
        if self.context.is_logged() || self.reports.call_logger.is_some() || self.reports.tracer.is_some() {
            call_trace.rejected_call = Some(caller.rejected_call(&self.route.label));
        }
    }

    fn span_facts<'c>(
        &'c self,
        parts: &'c Parts,
        headers: &'c HeaderMap,
        traced: Option<TracedCall>,
        (status, outcome): (Option<u16>, &'static str),
    ) -> CallSpanFacts<'c> {
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
        if let Some(tracer) = self.reports.tracer.filter(|_| call.trace_id != 0) {
            tracer.record(call, trace);
        }
        if let Some(logger) = self.reports.call_logger {
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
                return Err(self.route.deadline_response(self.decision.error_format));
            }
        };
        match prefix {
            Ok(BodyPrefix::Complete(bytes)) => match self.route.limits.check_body(bytes.len() as u64) {
                Some(too_large) => Err(self.decision.error_format.format(too_large)),
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
                Err(self.decision.error_format.format(broken))
            }
        }
    }

    /// Turns the caller's headers into those of the upstream request.
    pub(super) fn sanitize_headers(
        &self,
        parts: &Parts,
        (headers, passed): (&mut HeaderMap, &mut PassedFields),
        terms: CallTerms,
        upgrade: Option<&HeaderValue>,
    ) {
        let route = self.route;
        if terms.has_deadline_header {
            for (name, _) in &route.caller_deadlines {
                headers.remove(name);
            }
        }
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
