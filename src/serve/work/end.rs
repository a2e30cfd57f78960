//! How a request ends: with which answer, or without one.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::de::IgnoredAny;

use crate::decide::Nanos;
use crate::decide::mix::Behaviour;
use crate::serve::answers::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, response};
use crate::server::{ResponseBody, StaticBody};

/// How a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseEnding {
    /// With an answer.
    Response(StatusCode, Payload),
    /// With a reset of its connection.
    Reset,
    /// Not at all.
    Hang,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// As ever with this status: `{"time": N}` with 200, a line of text with others.
    Standard,
    /// As with 200, but cut short: not JSON.
    Garbage,
    /// This text.
    Text(String),
    /// So many bytes.
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
    /// The answer to a request that took `took`; `page` is what many bytes are made of.
    pub(super) fn response(self, status: StatusCode, took: Nanos, page: &StaticBody) -> Response<ResponseBody> {
        let ms = took.0 / Nanos::MILLI.0;
        match self {
            Self::Standard if status == StatusCode::OK => {
                response(status, CONTENT_TYPE_JSON, format!("{{\"time\": {ms}}}"))
            }
            Self::Standard => response(status, CONTENT_TYPE_TEXT, standard_text(status)),
            // Who looks at the status, the content type or the first bytes only is taken in.
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
                let mut answer = Response::new(ResponseBody::repeated(page, bytes));
                *answer.status_mut() = status;
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                answer
            }
        }
    }
}

/// 429, for want of a place to wait.
pub(super) fn rate_limited_response(retry_after: Nanos) -> Response<ResponseBody> {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut answer = response(status, CONTENT_TYPE_TEXT, standard_text(status));
    // In whole seconds, by RFC 9110.
    let seconds = retry_after.0.div_ceil(Nanos::SECOND.0);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

fn standard_text(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        // These have no body.
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => "",
        _ => status.canonical_reason().unwrap_or("No reason"),
    }
}
