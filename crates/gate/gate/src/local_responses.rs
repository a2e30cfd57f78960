//! Responses of the gateway's own.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use weir_base::Nanos;
use weir_base::failure::FailureSide;
use weir_base::percent;
use weir_base::percent::AsciiSet;
use weir_call::attempt_log::{AttemptStatus, CallTrace};
use weir_net::lookup::field;
use weir_resilience::admission::{Rejection, RejectionReason};
use weir_retry::grpc::{Code, is_grpc};
use weir_server::ResponseBody;

/// Format of the gateway's own responses to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    /// A status and a body.
    Http,
    /// A gRPC status (trailers only).
    Grpc,
    /// A status and an error as the APIs of OpenAI and Anthropic have it.
    ModelApi,
}

impl ErrorFormat {
    /// The format for a request's Content-Type.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let grpc = field(headers, &header::CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        if grpc { Self::Grpc } else { Self::Http }
    }

    /// The format on a route whose calls go to language models, or on any other.
    pub(super) fn on_route(self, is_of_models: bool) -> Self {
        if is_of_models && self == Self::Http { Self::ModelApi } else { self }
    }

    /// A response of the gateway's own, a line of text, in this format.
    pub(super) fn format(self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        match self {
            Self::Http => response,
            Self::Grpc => trailers_only(&response),
            Self::ModelApi => model_error(response),
        }
    }

    /// A response whose body is that of the configuration, in this format.
    pub(super) fn format_configured(self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        match self {
            Self::Http | Self::ModelApi => response,
            Self::Grpc => trailers_only(&response),
        }
    }
}

/// A response whose line of text is the message of an error: the SDK of OpenAI reads `error` with `message`, `type`,
/// `code` and `param`, that of Anthropic `type` and `error` with its own types.
fn model_error(mut http: Response<ResponseBody>) -> Response<ResponseBody> {
    let Some(line) = http.body().as_bytes() else { return http };
    let message = Value::from(String::from_utf8_lossy(line.trim_ascii()));
    let (kind, code) = match http.status() {
        StatusCode::TOO_MANY_REQUESTS => ("rate_limit_error", "\"rate_limit_exceeded\""),
        StatusCode::SERVICE_UNAVAILABLE => ("overloaded_error", "null"),
        StatusCode::GATEWAY_TIMEOUT => ("timeout_error", "null"),
        StatusCode::PAYLOAD_TOO_LARGE => ("request_too_large", "null"),
        status if status.is_client_error() => ("invalid_request_error", "null"),
        _ => ("api_error", "null"),
    };
    let error = format!("{{\"type\":\"{kind}\",\"message\":{message},\"code\":{code},\"param\":null}}");
    *http.body_mut() = ResponseBody::from(format!("{{\"type\":\"error\",\"error\":{error}}}\n"));
    http.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    http
}

/// A gRPC response with trailers only: status 200, and the gRPC status in its headers (grpc/grpc,
/// doc/PROTOCOL-HTTP2.md, Trailers-Only).
fn trailers_only(http: &Response<ResponseBody>) -> Response<ResponseBody> {
    let code = Code::of_http(http.status().as_u16());
    let message = http
        .body()
        .as_bytes()
        .filter(|line| line.len() <= MAX_MESSAGE_BYTES)
        .map(|line| percent::encoded(line.trim_ascii(), GRPC_ESCAPED));
    let mut grpc = Response::new(ResponseBody::empty());
    let headers = grpc.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(u16::from(code.number())));
    if let Some(message) = message.and_then(|message| HeaderValue::try_from(message).ok()) {
        headers.insert("grpc-message", message);
    }
    if let Some(after) = http.headers().get(header::RETRY_AFTER) {
        headers.insert(header::RETRY_AFTER, after.clone());
    }
    grpc
}

/// Maximum length of a `grpc-message`.
const MAX_MESSAGE_BYTES: usize = 1024;

/// What a `grpc-message` escapes: all but printable ASCII, and `%`.
const GRPC_ESCAPED: &AsciiSet = &percent::CONTROLS.add(b'%');

/// A response with one line of text.
pub(super) fn text(status: StatusCode, line: &str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(format!("{line}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// 405: the path has routes, but none for this method.
pub(super) fn not_allowed(allow: &str) -> Response<ResponseBody> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, &format!("allowed methods: {allow}"));
    if let Ok(allow) = HeaderValue::try_from(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// 411: the length of the body is the call's weight in a rate limit.
pub(super) fn length_required() -> Response<ResponseBody> {
    text(StatusCode::LENGTH_REQUIRED, "the body's length counts in the rate limit: Content-Length is required")
}

/// Whether to retry a response, as the SDKs of OpenAI and Anthropic read it.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The response to a rejected call: 429 or 503 with Retry-After, and a line that ends with the reason. It must be
/// cheap, since most calls get it under overload.
pub(super) fn rejected(rejection: Rejection) -> Response<ResponseBody> {
    const OVERLOAD: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    let (status, line) = match rejection.reason {
        RejectionReason::Shed => (OVERLOAD, "overload: calls with a higher priority come first (shed)\n"),
        RejectionReason::QueueFull => (OVERLOAD, "overload: concurrency limit and queue are full (queue_full)\n"),
        RejectionReason::DeadlineExceeded => {
            (OVERLOAD, "overload: no response before the deadline (deadline_too_short)\n")
        }
        RejectionReason::QueueTimeout => (OVERLOAD, "overload: no slot became free in time (queue_timeout)\n"),
        RejectionReason::RateLimited if rejection.retry_after == Nanos::NEVER => (
            StatusCode::TOO_MANY_REQUESTS,
            "the call weighs more than its caller's rate limit allows at once (rate_limited)\n",
        ),
        RejectionReason::RateLimited => {
            (StatusCode::TOO_MANY_REQUESTS, "the caller is over its rate limit (rate_limited)\n")
        }
        RejectionReason::CircuitOpen => (OVERLOAD, "nearly all calls to the upstream fail (circuit_open)\n"),
        RejectionReason::Throttled => (OVERLOAD, "the upstream responds 429 or 503 too often (throttled)\n"),
        RejectionReason::Culprit => (OVERLOAD, "overload: calls like this one crowd out all others (culprit)\n"),
    };
    let mut response = Response::new(ResponseBody::from(Bytes::from_static(line.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(2);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if rejection.retry_after == Nanos::NEVER {
        // What is never allowed is not to be retried. Clients of language models would retry any 429.
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    } else {
        let seconds = rejection.retry_after.0.div_ceil(Nanos::SECOND.0).max(1);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// 400 if the last attempt failed by the caller's fault.
pub(super) fn bad_request(trace: &CallTrace) -> Option<Response<ResponseBody>> {
    match &trace.attempts.last()?.end {
        AttemptStatus::Failed(failure, cause) if failure.side() == FailureSide::Caller => {
            let why = cause.as_ref().map(|cause| &*cause.text).unwrap_or("the request cannot be sent");
            Some(text(StatusCode::BAD_REQUEST, why))
        }
        _ => None,
    }
}

/// 502: no attempt got a response that could be passed on.
pub(super) fn no_response(trace: &CallTrace) -> Response<ResponseBody> {
    let why = trace.attempts.iter().rev().find_map(|attempt| match &attempt.end {
        AttemptStatus::Failed(failure, _) => failure.name(),
        _ => None,
    });
    let attempts = trace.attempts.len();
    let line = format!("no response from the upstream ({}); attempts: {attempts}", why.unwrap_or("none was sent"));
    text(StatusCode::BAD_GATEWAY, &line)
}
