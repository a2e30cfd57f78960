//! Requests that need no future: those whose call is one attempt that succeeds at once.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request};

use super::decision::{RouteDecision, split};
use super::gate_thread::GateThread;
use super::headers;
use super::routed::RoutedRequest;
use super::runtime::GateRuntime;
use super::sent_request::{CallTerms, Reports, SentRequest};
use weir_call::{CallEngine, DirectCall};
use weir_machine::executor::BoxedFuture;
use weir_net::client;
use weir_net::client::OutgoingBody;
use weir_net::wire::PassedFields;
use weir_server::{DirectReply, DirectRequest, RequestBody, RequestContext, ServiceReply, WholeResponse};

/// A request whose call has begun.
struct DirectForward {
    /// Dropped first: the call ends before what it is about.
    call: DirectCall,
    sent: OwnedRequest,
}

/// A request on its route, with all that its call needs.
struct OwnedRequest {
    engine: CallEngine,
    runtime: Arc<GateRuntime>,
    decision: RouteDecision,
    context: RequestContext,
    parts: Parts,
    headers: HeaderMap,
    passed: PassedFields,
    body: Bytes,
    terms: CallTerms,
}

/// Decides about a request of which nothing is still to come, and begins its call.
pub(super) fn begin(
    local: &GateThread,
    runtime: Arc<GateRuntime>,
    request: Request<RequestBody>,
    context: &RequestContext,
) -> DirectReply {
    let (parts, mut headers, mut passed, mut body) = split(request, &runtime);
    let decision = match RouteDecision::of(local, &runtime, (&parts, &headers, &passed), &body, context) {
        Ok(decision) => decision,
        Err(reply) => return DirectReply::Ready(reply),
    };
    let routed = RoutedRequest::new(&local.engine, &runtime, &decision, context, Reports::default());
    if let Some(failed) = routed.rejection() {
        return DirectReply::Ready(routed.reject(&parts, &headers, failed));
    }
    let terms = routed.terms(&headers);
    if let Some(reply) = routed.early_reply(&parts, &headers, &body, terms) {
        return DirectReply::Ready(reply);
    }
    let engine = local.engine.clone();
    let Some(whole) = routed.take_body(&mut body) else {
        let context = context.clone();
        return DirectReply::Future(Box::pin(async move {
            let routed = RoutedRequest::new(&engine, &runtime, &decision, &context, Reports::default());
            routed.forward(&parts, (headers, passed), body, terms).await
        }));
    };
    routed.sanitize_headers(&parts, (&mut headers, &mut passed), terms, None);
    let sent = SentRequest::plain(&parts, headers, passed, terms);
    let outgoing = outgoing(&whole);
    routed.begin_call(&sent, &outgoing);
    let call = engine.begin_direct(routed.plan, &routed.call_request(&sent), &outgoing);
    let SentRequest { headers, passed, .. } = sent;
    let context = context.clone();
    let sent = OwnedRequest { engine, runtime, decision, context, parts, headers, passed, body: whole, terms };
    match call {
        Some(call) => DirectReply::Pending(Box::new(DirectForward { call, sent })),
        None => DirectReply::Future(Box::pin(sent.call(None))),
    }
}

fn outgoing(body: &Bytes) -> OutgoingBody {
    if body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(body.clone()) }
}

impl OwnedRequest {
    fn routed(&self) -> RoutedRequest<'_> {
        RoutedRequest::new(&self.engine, &self.runtime, &self.decision, &self.context, Reports::default())
    }

    /// The response to the caller.
    fn reply(&mut self, response: client::CompleteResponse) -> WholeResponse {
        let client::CompleteResponse { mut head, body } = response;
        let routed = self.routed();
        routed.route.caller_policy.record_accepted(self.engine.timer());
        routed.edit_response(head.status, &mut head.headers);
        if let Some(bucket) = &self.decision.verdict.bucket {
            headers::report_bucket(&mut head.headers, bucket, false);
        }
        self.engine.client().recycle_headers(std::mem::take(&mut self.headers));
        self.engine.client().recycle_passed_fields(std::mem::take(&mut self.passed));
        WholeResponse { status: head.status, headers: head.headers, passed: head.passed, body }
    }

    /// Makes the call, or goes on with it.
    async fn call(self, begun: Option<Box<DirectCall>>) -> ServiceReply {
        let Self { engine, runtime, decision, context, parts, headers, passed, body, terms } = self;
        let routed = RoutedRequest::new(&engine, &runtime, &decision, &context, Reports::default());
        let sent = SentRequest::plain(&parts, headers, passed, terms);
        routed.call(sent, outgoing(&body), None, begun).await
    }
}

impl DirectRequest for DirectForward {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WholeResponse>> {
        let response = ready!(self.call.poll(cx));
        Poll::Ready(response.map(|response| self.sent.reply(response)))
    }

    fn into_future(self: Box<Self>) -> BoxedFuture<'static, ServiceReply> {
        let Self { call, sent } = *self;
        Box::pin(sent.call(Some(Box::new(call))))
    }
}

impl fmt::Debug for DirectForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectForward").field("call", &self.call).finish_non_exhaustive()
    }
}
