//! Ending of a request: a response, a reset, or nothing.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::de::IgnoredAny;

use crate::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, response};
use weir_base::Nanos;
use weir_server::{ResponseBody, StaticBody};
use weir_workload::mix::Behaviour;

/// Ending of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseEnding {
    /// Response with this status and body.
    Response(StatusCode, Payload),
    /// Reset of the connection, in HTTP/2 of the stream.
    Reset,
    /// No response; the connection stays open.
    Hang,
}

/// Body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Default body of the status: `{"time": N}` with 200, a line of text with others.
    Standard,
    /// Body of a 200, cut off: not JSON.
    Garbage,
    /// Text; JSON if it parses as such.
    Text(String),
    /// Number of constant bytes.
    Bytes(u64),
}

impl From<Behaviour> for ResponseEnding {
    fn from(behaviour: Behaviour) -> Self {
        match behaviour {
            Behaviour::Good => Self::Response(StatusCode::OK, Payload::Standard),
            Behaviour::Garbage => Self::Response(StatusCode::OK, Payload::Garbage),
            Behaviour::Error | Behaviour::Slow => Self::Response(StatusCode::INTERNAL_SERVER_ERROR, Payload::Standard),
            Behaviour::Limited => Self::Response(StatusCode::TOO_MANY_REQUESTS, Payload::Standard),
            Behaviour::Reset => Self::Reset,
            Behaviour::Hang => Self::Hang,
        }
    }
}

impl Payload {
    /// Response to a request that took `took`; `page` is the content of [`Payload::Bytes`].
    pub(super) fn response(self, status: StatusCode, took: Nanos, page: &StaticBody) -> Response<ResponseBody> {
        let ms = took.as_millis();
        match self {
            Self::Standard if status == StatusCode::OK => {
                response(status, CONTENT_TYPE_JSON, format!("{{\"time\": {ms}}}"))
            }
            Self::Standard => response(status, CONTENT_TYPE_TEXT, standard_text(status)),
            // Looks valid by status, content type and first bytes.
            Self::Garbage => response(status, CONTENT_TYPE_JSON, format!("{{\"time\": {ms}")),
            Self::Text(text) => {
                let kind = if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
                    CONTENT_TYPE_JSON
                } else {
                    CONTENT_TYPE_TEXT
                };
                response(status, kind, text)
            }
            Self::Bytes(bytes) => {
                let mut reply = Response::new(ResponseBody::repeated(page, bytes));
                *reply.status_mut() = status;
                reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                reply
            }
        }
    }
}

/// 429 because of a full queue.
pub(super) fn rate_limited_response(retry_after: Nanos) -> Response<ResponseBody> {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut reply = response(status, CONTENT_TYPE_TEXT, standard_text(status));
    // In whole seconds, by RFC 9110.
    let seconds = retry_after.0.div_ceil(Nanos::SECOND.0);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}

fn standard_text(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        // Statuses without a body.
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => "",
        _ => status.canonical_reason().unwrap_or("No reason"),
    }
}
