//! One attempt: sends the request, reads the response's head and as much of its body as success depends on.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::Body;
use http_body_util::BodyExt;

use super::attempt_log::AttemptCause;
use super::body::CallBody;
use super::headers::{AttemptHeaders, HeaderList};
use super::host_permit::HostPermit;
use super::request::CallRequest;
use super::response::UpstreamResponse;
use super::success::grpc_failure;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::clock;
use weir_machine::timer::Timer;
use weir_net::client::buffered_body::{BufferedBody, read_body, too_long};
use weir_net::client::{
    BegunExchange, Client, FailurePoint, IncomingBody, OutgoingBody, OutgoingRequest, SendError, TimedBody,
};
use weir_retry::grpc::Codes;
use weir_retry::policy::AttemptFailure;
use weir_retry::retry_after::retry_after;

/// Response of a successful attempt, or failure with the response, if one came.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    Success(UpstreamResponse),
    Failure {
        failure: AttemptFailure,
        /// Cause as text, if there is more than the kind.
        cause: Option<AttemptCause>,
        /// Retry-After of the response.
        retry_after: Option<Nanos>,
        /// The response, if there was one.
        response: Option<UpstreamResponse>,
    },
}

/// Outcome of an attempt, and its time.
#[derive(Debug)]
pub(super) struct ConcludedAttempt {
    pub(super) outcome: AttemptOutcome,
    pub(super) at: Nanos,
}

fn failed_outcome(failure: AttemptFailure, cause: impl Into<AttemptCause>) -> AttemptOutcome {
    AttemptOutcome::Failure { failure, cause: Some(cause.into()), retry_after: None, response: None }
}

impl ConcludedAttempt {
    /// Outcome of an attempt that was cancelled before it began.
    pub(super) fn cancelled(timer: &Timer) -> Self {
        failed_outcome(AttemptFailure::Kind(FailureKind::Closed), "cancelled").at(timer.now())
    }
}

/// An attempt that is ready to be sent to its host.
#[derive(Debug)]
pub(super) struct LaunchedAttempt<'a> {
    pub(super) client: &'a Client,
    pub(super) timer: &'a Timer,
    pub(super) headers: &'a AttemptHeaders,
    pub(super) request: &'a CallRequest<'a>,
    pub(super) body: OutgoingBody,
    pub(super) extra_headers: HeaderList,
    pub(super) host_permit: HostPermit,
    /// Its exchange, if that has begun.
    pub(super) exchange: Option<Box<BegunExchange>>,
    /// Why it can not be sent.
    pub(super) fault: Option<String>,
}

/// Sends an attempt and evaluates its response.
pub(super) async fn attempt(launched: LaunchedAttempt<'_>) -> ConcludedAttempt {
    let LaunchedAttempt { client, timer, headers, request, body, extra_headers, mut host_permit, exchange, fault } =
        launched;
    if let Some(fault) = fault {
        let failure = AttemptFailure::Kind(FailureKind::Request);
        host_permit.failed_by(failure, fault.clone().into());
        let cause = AttemptCause { text: fault.into(), point: FailurePoint::RateLimit };
        return failed_outcome(failure, cause).at(timer.now());
    }
    // In a bidirectional stream the response's first message may depend on the caller's next one.
    let may_wait = request.plan.policy.allows_extra_attempts() && !matches!(body, OutgoingBody::Stream(_));
    let outgoing = OutgoingRequest {
        method: request.method,
        target: request.target,
        headers: request.headers,
        extra_headers: &extra_headers,
        body,
        upgrade: request.upgrade,
        wire: request.wire,
    };
    let origin = host_permit.origin();
    let named = request.client.filter(|_| origin.names_clients()).map(|client| Arc::new(origin.for_client(client)));
    let sent = match exchange {
        Some(begun) => Box::pin(client.complete(origin, *begun)).await,
        None => client.send(named.as_ref().unwrap_or(origin), outgoing).await,
    };
    drop(named);
    headers.recycle(extra_headers);
    let response = match sent {
        Ok(response) => response,
        Err(error) => {
            let failure = AttemptFailure::Kind(error.kind);
            host_permit.failed_by(failure, error.text.clone());
            let cause = AttemptCause { text: error.text, point: error.point };
            return failed_outcome(failure, cause).at(timer.now());
        }
    };
    evaluate_response(request, response, timer, may_wait, host_permit).await
}

async fn evaluate_response(
    request: &CallRequest<'_>,
    response: http::Response<IncomingBody>,
    timer: &Timer,
    may_wait: bool,
    mut host_permit: HostPermit,
) -> ConcludedAttempt {
    let success = &request.plan.success;
    let (head, mut body) = response.into_parts();
    let passed = body.take_passed_fields();
    host_permit.response_started(head.status.as_u16());
    let mut verdict = success.check_head(head.status, &head.headers);
    let codes = success.codes(&head.headers);
    // 101 has no body, and responses to HEAD and 304 only describe one (RFC 9110, 9.3.2, 15.4.5).
    let bodiless = *request.method == Method::HEAD
        || matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::NOT_MODIFIED);
    let length = if success.complete_bytes > 0 { body.size_hint().exact() } else { None };
    let wanted = match verdict {
        _ if bodiless => false,
        Ok(()) => success.needs_body(length),
        Err(_) => success.require_complete || length.is_some_and(|length| length <= success.complete_bytes),
    };
    let content = match body.take_complete() {
        Some(bytes) if wanted && bytes.len() > success.max_body_bytes => Err(too_long(success.max_body_bytes)),
        Some(bytes) if body.is_end_stream() => Ok(BodyRead::Complete(BufferedBody { bytes, trailers: None })),
        Some(bytes) => Ok(BodyRead::Complete(BufferedBody { bytes, trailers: read_trailers(body).await })),
        // An HTTP/2 stream may end with its head.
        None if body.is_end_stream() && head.status != StatusCode::SWITCHING_PROTOCOLS => {
            Ok(BodyRead::Complete(BufferedBody::default()))
        }
        None if wanted => {
            let body = TimedBody::new(body, timer, request.wire.timeouts);
            read_body(body, success.max_body_bytes).await.map(BodyRead::Complete)
        }
        // The outcome of a gRPC call is in its trailers; a failed one has no message before them.
        None if may_wait && verdict.is_ok() && (codes != Codes::NONE || success.require_start) => {
            read_start(TimedBody::new(body, timer, request.wire.timeouts)).await
        }
        None => Ok(BodyRead::Started(Bytes::new(), body)),
    };
    let content = match content {
        Ok(content) => content,
        Err(error) => {
            let failure = verdict.err().unwrap_or(AttemptFailure::Kind(error.kind));
            host_permit.failed_by(failure, error.text.clone());
            let cause = AttemptCause { text: error.text, point: error.point };
            return failed_outcome(failure, cause).at(timer.now());
        }
    };
    if let (Ok(()), false, BodyRead::Complete(buffered)) = (verdict, bodiless, &content) {
        verdict = success.check_body(&buffered.bytes);
        if let (Ok(()), Some(trailers)) = (verdict, &buffered.trailers) {
            verdict = grpc_failure(codes, trailers).map_or(Ok(()), Err);
        }
    }
    match verdict {
        Ok(()) => host_permit.succeeded(),
        Err(failure) => host_permit.failed(failure),
    }
    // For the permits and for the call, which ends at the same time.
    let now = timer.now();
    let body = match content {
        BodyRead::Complete(buffered) => {
            host_permit.complete();
            host_permit.end(now);
            CallBody::complete(buffered)
        }
        BodyRead::Started(first, rest) => {
            if verdict.is_ok() {
                host_permit.set_failing_codes(codes);
            }
            CallBody::incomplete(first, rest, host_permit, now)
        }
    };
    AttemptOutcome::from_response(verdict, UpstreamResponse { head, passed, body }).at(now)
}

/// Part of a response's body that was read.
enum BodyRead {
    Complete(BufferedBody),
    /// The first part, and the rest.
    Started(Bytes, IncomingBody),
}

/// Reads the first part of a body, or its trailers if there is none.
async fn read_start(mut body: TimedBody<'_>) -> Result<BodyRead, SendError> {
    let Some(frame) = body.frame().await else { return Ok(BodyRead::Complete(BufferedBody::default())) };
    let frame = frame?;
    Ok(match frame.into_data() {
        Ok(first) => BodyRead::Started(first, body.into_inner()),
        Err(frame) => {
            BodyRead::Complete(BufferedBody { bytes: Bytes::new(), trailers: frame.into_trailers().ok().map(Box::new) })
        }
    })
}

/// Reads the trailers of a body whose data is complete.
async fn read_trailers(mut body: IncomingBody) -> Option<Box<HeaderMap>> {
    Some(Box::new(body.frame().await?.ok()?.into_trailers().ok()?))
}

impl AttemptOutcome {
    fn at(self, at: Nanos) -> ConcludedAttempt {
        ConcludedAttempt { outcome: self, at }
    }

    fn from_response(verdict: Result<(), AttemptFailure>, response: UpstreamResponse) -> Self {
        match verdict {
            Ok(()) => Self::Success(response),
            Err(failure) => {
                let value = response.head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                let retry_after = value.and_then(|text| retry_after(text, clock::wall()));
                Self::Failure { failure, cause: None, retry_after, response: Some(response) }
            }
        }
    }
}
