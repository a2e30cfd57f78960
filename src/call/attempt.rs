//! One copy of a call on its way: a connection, the answer's head, and as much of the body as it takes to
//! know whether it is a success.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::Body;
use http_body_util::BodyExt;

use super::answer::StreamingBody;
use super::ask::CallRequest;
use super::headers::{AttemptHeaders, HeaderList};
use super::success::grpc_failure;
use super::upstream::HostPermit;
use crate::decide::Nanos;
use crate::decide::feedback::retry_after;
use crate::decide::grpc::Codes;
use crate::decide::policy::{AttemptFailure, FailureKind};
use crate::http::client::{Client, IncomingBody, OutgoingBody, OutgoingRequest};
use crate::machine::clock;

/// What an attempt brought.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    Success(Parts, AttemptBody),
    Failure {
        failure: AttemptFailure,
        /// In words, if there is more to say than the kind.
        cause: Option<Cow<'static, str>>,
        /// How long the upstream asks us to wait.
        retry_after: Option<Nanos>,
        /// The answer, if there was one.
        response: Option<(Parts, AttemptBody)>,
    },
}

/// A body, and the place at its upstream as long as it still comes.
#[derive(Debug)]
pub(super) enum AttemptBody {
    Buffered(BufferedBody),
    /// In a box, as it will stay.
    Streaming(Box<StreamingBody>),
}

/// A body that has come.
#[derive(Debug, Default)]
pub(super) struct BufferedBody {
    pub(super) bytes: Bytes,
    pub(super) trailers: Option<Box<HeaderMap>>,
}

fn failed_outcome(failure: AttemptFailure, cause: impl Into<Cow<'static, str>>) -> AttemptOutcome {
    AttemptOutcome::Failure { failure, cause: Some(cause.into()), retry_after: None, response: None }
}

impl AttemptOutcome {
    /// What an attempt brings that is not there.
    pub(super) fn cancelled() -> Self {
        failed_outcome(AttemptFailure::Kind(FailureKind::Closed), "it was cancelled")
    }
}

/// One copy of `ask` that has a place to go to.
#[derive(Debug)]
pub(super) struct LaunchedAttempt<'a> {
    pub(super) client: &'a Client,
    pub(super) headers: &'a AttemptHeaders,
    pub(super) request: &'a CallRequest<'a>,
    pub(super) body: OutgoingBody,
    pub(super) extra_headers: HeaderList,
    pub(super) host_permit: HostPermit,
}

/// Sends it, and judges what comes back.
pub(super) async fn attempt(launched: LaunchedAttempt<'_>) -> AttemptOutcome {
    let LaunchedAttempt { client, headers, request: ask, body, extra_headers: more, host_permit: mut occupied } =
        launched;
    // While its caller still speaks, an answer's first word may be due to its next.
    let may_wait = ask.plan.policy.allows_extra_attempts() && !matches!(body, OutgoingBody::Stream(_));
    let outgoing = OutgoingRequest {
        method: ask.method,
        target: ask.target,
        headers: ask.headers,
        extra_headers: &more,
        body,
        upgrade: ask.upgrade,
    };
    let sent = client.send(occupied.origin(), outgoing).await;
    headers.recycle(more);
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => {
            let failure = AttemptFailure::Kind(error.kind);
            occupied.failed(failure);
            return failed_outcome(failure, error.text);
        }
    };
    evaluate_response(ask, answer, may_wait, occupied).await
}

async fn evaluate_response(
    ask: &CallRequest<'_>,
    answer: http::Response<IncomingBody>,
    may_wait: bool,
    mut occupied: HostPermit,
) -> AttemptOutcome {
    let success = &ask.plan.success;
    let (head, mut body) = answer.into_parts();
    occupied.response_started(head.status.as_u16());
    let mut judged = success.check_head(&head);
    let codes = success.codes(&head);
    // What comes after a 101 is no body; the body that the others speak of is elsewhere (RFC 9110, 9.3.2, 15.4.5).
    let bodiless = *ask.method == Method::HEAD
        || matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::NOT_MODIFIED);
    let wanted = match judged {
        _ if bodiless => false,
        Ok(()) => success.needs_body(),
        Err(_) => success.require_complete,
    };
    let carried = match body.take_complete() {
        Some(bytes) if wanted && judged.is_ok() && bytes.len() > success.max_body_bytes => {
            Err(too_long(success.max_body_bytes))
        }
        Some(bytes) if body.is_end_stream() => Ok(BodyRead::Complete(BufferedBody { bytes, trailers: None })),
        Some(bytes) => Ok(BodyRead::Complete(BufferedBody { bytes, trailers: read_trailers(body).await })),
        // A stream may end with its head.
        None if body.is_end_stream() && head.status != StatusCode::SWITCHING_PROTOCOLS => {
            Ok(BodyRead::Complete(BufferedBody::default()))
        }
        None if wanted => read_body(body, success.max_body_bytes).await.map(BodyRead::Complete),
        // How a call of gRPC has ended stands in its trailers; one that has failed has nothing before them.
        None if may_wait && judged.is_ok() && codes != Codes::NONE => read_start(body).await,
        None => Ok(BodyRead::Started(Bytes::new(), body)),
    };
    let carried = match carried {
        Ok(carried) => carried,
        Err((kind, cause)) => {
            let failure = judged.err().unwrap_or(AttemptFailure::Kind(kind));
            occupied.failed(failure);
            return failed_outcome(failure, cause);
        }
    };
    if let (Ok(()), false, BodyRead::Complete(whole)) = (judged, bodiless, &carried) {
        judged = success.check_body(&whole.bytes);
        if let (Ok(()), Some(trailers)) = (judged, &whole.trailers) {
            judged = grpc_failure(codes, trailers).map_or(Ok(()), Err);
        }
    }
    match judged {
        Ok(()) => occupied.succeeded(),
        Err(failure) => occupied.failed(failure),
    }
    let carried = match carried {
        BodyRead::Complete(whole) => {
            occupied.complete();
            AttemptBody::Buffered(whole)
        }
        BodyRead::Started(first, rest) => {
            if judged.is_ok() {
                occupied.set_failing_codes(codes);
            }
            AttemptBody::Streaming(Box::new(StreamingBody::new(first, rest, occupied)))
        }
    };
    AttemptOutcome::from_response(judged, head, carried)
}

/// As much of an answer's body as is there, or was waited for.
enum BodyRead {
    Complete(BufferedBody),
    /// What came first, and the rest.
    Started(Bytes, IncomingBody),
}

/// Waits for the beginning of a body, or for what stands in its place.
async fn read_start(mut body: IncomingBody) -> Result<BodyRead, BodyReadError> {
    let Some(frame) = body.frame().await else { return Ok(BodyRead::Complete(BufferedBody::default())) };
    let frame = frame.map_err(|error| (error.kind, error.text))?;
    Ok(match frame.into_data() {
        Ok(first) => BodyRead::Started(first, body),
        Err(frame) => {
            BodyRead::Complete(BufferedBody { bytes: Bytes::new(), trailers: frame.into_trailers().ok().map(Box::new) })
        }
    })
}

/// Why a body was not read to its end.
type BodyReadError = (FailureKind, Cow<'static, str>);

fn too_long(most: usize) -> BodyReadError {
    (FailureKind::Body, format!("the answer is longer than the {most} bytes that are looked at").into())
}

/// The trailers of a body that has come.
async fn read_trailers(mut body: IncomingBody) -> Option<Box<HeaderMap>> {
    Some(Box::new(body.frame().await?.ok()?.into_trailers().ok()?))
}

/// Reads a body of at most `most` bytes.
async fn read_body(mut body: IncomingBody, most: usize) -> Result<BufferedBody, BodyReadError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| (error.kind, error.text))?;
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                trailers = frame.into_trailers().ok().map(Box::new);
                continue;
            }
        };
        if first.len() + rest.len() + data.len() > most {
            return Err(too_long(most));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    let bytes = if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() };
    Ok(BufferedBody { bytes, trailers })
}

impl AttemptOutcome {
    fn from_response(judged: Result<(), AttemptFailure>, head: Parts, carried: AttemptBody) -> Self {
        match judged {
            Ok(()) => Self::Success(head, carried),
            Err(failure) => {
                let told = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                let retry_after = told.and_then(|text| retry_after(text, clock::wall()));
                Self::Failure { failure, cause: None, retry_after, response: Some((head, carried)) }
            }
        }
    }
}
