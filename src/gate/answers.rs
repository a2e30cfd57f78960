//! Answers that the gate gives itself.

use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::call::story::{AttemptStatus, CallTrace};
use crate::decide::Nanos;
use crate::decide::admit::{Rejection, RejectionReason};
use crate::decide::grpc::{Code, is_grpc};
use crate::decide::policy::FailureSide;
use crate::server::ResponseBody;

/// What a caller understands as an answer of the gate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    /// A status and a body.
    Http,
    /// A gRPC status: without it a client can only guess from the status of HTTP.
    Grpc,
}

impl ErrorFormat {
    /// By the request's Content-Type.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let grpc = headers.get(header::CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        if grpc { Self::Grpc } else { Self::Http }
    }

    /// An answer of the gate's own as this caller understands it.
    pub(super) fn format(self, answer: Response<ResponseBody>) -> Response<ResponseBody> {
        match self {
            Self::Http => answer,
            Self::Grpc => trailers_only(&answer),
        }
    }
}

/// An answer of gRPC that is nothing but its end: status 200, and the gRPC status in the only headers there are
/// (grpc/grpc, doc/PROTOCOL-HTTP2.md, Trailers-Only).
fn trailers_only(answer: &Response<ResponseBody>) -> Response<ResponseBody> {
    let code = Code::of_http(answer.status().as_u16());
    let message = answer
        .body()
        .as_bytes()
        .filter(|line| line.len() <= MAX_MESSAGE_BYTES)
        .map(|line| percent_encode(line.trim_ascii()));
    let mut told = Response::new(ResponseBody::empty());
    let headers = told.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(u16::from(code.number())));
    if let Some(message) = message.and_then(|message| HeaderValue::try_from(message).ok()) {
        headers.insert("grpc-message", message);
    }
    if let Some(after) = answer.headers().get(header::RETRY_AFTER) {
        headers.insert(header::RETRY_AFTER, after.clone());
    }
    told
}

/// The longest text that becomes a message of gRPC.
const MAX_MESSAGE_BYTES: usize = 1024;

/// A text as `grpc-message` has it: what is not printable ASCII, and `%`, as `%XX`.
fn percent_encode(text: &[u8]) -> String {
    let mut message = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'%' | ..=0x1f | 0x7f.. => {
                // Writing to memory does not fail.
                let _ = write!(message, "%{byte:02X}");
            }
            plain => message.push(char::from(*plain)),
        }
    }
    message
}

/// One line of text.
pub(super) fn text(status: StatusCode, line: &str) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::from(format!("{line}\n")));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// The path is there, the method is not.
pub(super) fn not_allowed(allow: &str) -> Response<ResponseBody> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, &format!("this route takes {allow}"));
    if let Ok(allow) = HeaderValue::try_from(allow) {
        answer.headers_mut().insert(header::ALLOW, allow);
    }
    answer
}

/// There is too much. It costs next to nothing, since it is what most get then.
pub(super) fn rejected(refusal: Rejection) -> Response<ResponseBody> {
    let (status, line) = match refusal.reason {
        RejectionReason::Shed => (StatusCode::SERVICE_UNAVAILABLE, "too much load: others come first (shed)\n"),
        RejectionReason::QueueFull => {
            (StatusCode::SERVICE_UNAVAILABLE, "too much load: no place is free soon (full)\n")
        }
        RejectionReason::DeadlineExceeded => {
            (StatusCode::SERVICE_UNAVAILABLE, "too much load: no answer would be in time (late)\n")
        }
        RejectionReason::QueueTimeout => {
            (StatusCode::SERVICE_UNAVAILABLE, "too much load: no place became free (waited)\n")
        }
        RejectionReason::RateLimited => {
            (StatusCode::TOO_MANY_REQUESTS, "this caller has sent as many requests as it may (rate)\n")
        }
        RejectionReason::CircuitOpen => {
            (StatusCode::SERVICE_UNAVAILABLE, "the upstream has failed too often (broken)\n")
        }
        RejectionReason::Throttled => {
            (StatusCode::SERVICE_UNAVAILABLE, "the upstream takes fewer requests (throttled)\n")
        }
    };
    let mut answer = Response::new(ResponseBody::from(Bytes::from_static(line.as_bytes())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.reserve(2);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let seconds = refusal.retry_after.0.div_ceil(Nanos::SECOND.0).max(1);
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// The request itself was at fault, if the last attempt has failed for that.
pub(super) fn bad_request(story: &CallTrace) -> Option<Response<ResponseBody>> {
    match &story.attempts.last()?.end {
        AttemptStatus::Failed(failure, cause) if failure.side() == FailureSide::Caller => {
            let why = cause.as_deref().unwrap_or("the request cannot be sent");
            Some(text(StatusCode::BAD_REQUEST, why))
        }
        _ => None,
    }
}

/// No attempt brought an answer that could be passed on.
pub(super) fn no_response(story: &CallTrace) -> Response<ResponseBody> {
    let why = story.attempts.iter().rev().find_map(|attempt| match &attempt.end {
        AttemptStatus::Failed(failure, _) => failure.name(),
        _ => None,
    });
    let attempts = story.attempts.len();
    let line = format!("no answer from the upstream ({}); attempts: {attempts}", why.unwrap_or("none was sent"));
    text(StatusCode::BAD_GATEWAY, &line)
}
