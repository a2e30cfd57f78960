//! Requests that need no future: those whose call is one attempt that succeeds at once.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use http::{HeaderMap, Request};

use super::decision::RouteDecision;
use super::headers;
use super::routed::RoutedRequest;
use super::runtime::GateRuntime;
use super::sent_request::{CallTerms, Reports, SentRequest};
use super::service::{GateThread, Service, split};
use weir_call::{CallEngine, DirectCall};
use weir_machine::executor::BoxedFuture;
use weir_net::client;
use weir_net::client::OutgoingBody;
use weir_net::wire::PassedFields;
use weir_server::{DirectReply, DirectRequest, RequestBody, RequestContext, ServiceReply, WholeResponse};

/// A request whose call may have begun.
struct DirectForward {
    /// Dropped first: the call ends before what it is about.
    call: Option<Box<DirectCall>>,
    engine: CallEngine,
    runtime: Arc<GateRuntime>,
    decision: RouteDecision,
    context: RequestContext,
    parts: Parts,
    headers: HeaderMap,
    passed: PassedFields,
    terms: CallTerms,
}

/// Decides about a request without a body, and begins its call.
pub(super) fn begin(
    service: &Service,
    local: &GateThread,
    runtime: Arc<GateRuntime>,
    request: Request<RequestBody>,
    context: &RequestContext,
) -> DirectReply {
    let (parts, mut headers, mut passed, body) = split(request, &runtime);
    let decision = match service.decide(local, &runtime, (&parts, &headers, &passed), &body, context) {
        Ok(decision) => decision,
        Err(reply) => return DirectReply::Ready(reply),
    };
    let routed = service.routed(local, &runtime, &decision, context);
    if let Some(failed) = routed.rejection() {
        return DirectReply::Ready(routed.reject(&parts, &headers, failed));
    }
    let terms = routed.terms(&headers);
    routed.sanitize_headers(&parts, (&mut headers, &mut passed), terms, None);
    let sent = SentRequest::plain(&parts, headers, passed, terms);
    routed.begin_call(&sent, &OutgoingBody::Empty);
    let call = local.engine.begin_direct(routed.plan, &routed.call_request(&sent), &OutgoingBody::Empty);
    let SentRequest { headers, passed, .. } = sent;
    let (engine, context) = (local.engine.clone(), context.clone());
    let call = call.map(Box::new);
    DirectReply::Pending(Box::new(DirectForward {
        call,
        engine,
        runtime,
        decision,
        context,
        parts,
        headers,
        passed,
        terms,
    }))
}

impl DirectForward {
    fn routed(&self) -> RoutedRequest<'_> {
        RoutedRequest::new(&self.engine, &self.runtime, &self.decision, &self.context, Reports::default())
    }

    /// The response to the caller.
    fn reply(&mut self, response: client::WholeResponse) -> WholeResponse {
        let client::WholeResponse { mut head, body } = response;
        let routed = self.routed();
        routed.route.caller_policy.record_accepted(self.engine.timer());
        routed.edit_response(head.status, &mut head.headers);
        if let Some(bucket) = &self.decision.verdict.bucket {
            headers::report_bucket(&mut head.headers, bucket);
        }
        self.engine.client().recycle_headers(std::mem::take(&mut self.headers));
        self.engine.client().recycle_passed_fields(std::mem::take(&mut self.passed));
        WholeResponse { status: head.status, headers: head.headers, passed: head.passed, body }
    }
}

impl DirectRequest for DirectForward {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WholeResponse>> {
        let Some(call) = &mut self.call else { return Poll::Ready(None) };
        let response = ready!(call.poll(cx));
        Poll::Ready(response.map(|response| self.reply(response)))
    }

    fn into_future(self: Box<Self>) -> BoxedFuture<'static, ServiceReply> {
        Box::pin(async move {
            let Self { call, engine, runtime, decision, context, parts, headers, passed, terms } = *self;
            let routed = RoutedRequest::new(&engine, &runtime, &decision, &context, Reports::default());
            let sent = SentRequest::plain(&parts, headers, passed, terms);
            routed.call(sent, OutgoingBody::Empty, None, call).await
        })
    }
}

impl fmt::Debug for DirectForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectForward").field("call", &self.call).finish_non_exhaustive()
    }
}
