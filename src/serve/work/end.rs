//! How a request ends: with which answer, or without one.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::de::IgnoredAny;

use crate::decide::Nanos;
use crate::decide::mix::Behaviour;
use crate::serve::answers::{JSON, TEXT, answer};
use crate::server::{Body, Page};

/// How a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answer(StatusCode, Payload),
    /// With a reset of its connection.
    Reset,
    /// Not at all.
    Hang,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// As ever with this status: `{"time": N}` with 200, a line of text with others.
    Usual,
    /// As with 200, but cut short: not JSON.
    Garbage,
    /// This text.
    Text(String),
    /// So many bytes.
    Bytes(u64),
}

impl From<Behaviour> for End {
    fn from(behaviour: Behaviour) -> Self {
        match behaviour {
            Behaviour::Good => Self::Answer(StatusCode::OK, Payload::Usual),
            Behaviour::Garbage => Self::Answer(StatusCode::OK, Payload::Garbage),
            Behaviour::Error | Behaviour::Slow => Self::Answer(StatusCode::INTERNAL_SERVER_ERROR, Payload::Usual),
            Behaviour::Limited => Self::Answer(StatusCode::TOO_MANY_REQUESTS, Payload::Usual),
            Behaviour::Reset => Self::Reset,
            Behaviour::Hang => Self::Hang,
        }
    }
}

impl Payload {
    /// The answer to a request that took `took`; `page` is what many bytes are made of.
    pub(super) fn with(self, status: StatusCode, took: Nanos, page: &Page) -> Response<Body> {
        let ms = took.0 / Nanos::MILLI.0;
        match self {
            Self::Usual if status == StatusCode::OK => answer(status, JSON, format!("{{\"time\": {ms}}}")),
            Self::Usual => answer(status, TEXT, usual(status)),
            // Who looks at the status, the content type or the first bytes only is taken in.
            Self::Garbage => answer(status, JSON, format!("{{\"time\": {ms}")),
            Self::Text(text) => {
                let kind = if serde_json::from_str::<IgnoredAny>(&text).is_ok() { JSON } else { TEXT };
                answer(status, kind, text)
            }
            Self::Bytes(bytes) => {
                let mut answer = Response::new(Body::repeated(page, bytes));
                *answer.status_mut() = status;
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                answer
            }
        }
    }
}

/// 429, for want of a place to wait.
pub(super) fn refused(retry_after: Nanos) -> Response<Body> {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut answer = answer(status, TEXT, usual(status));
    // In whole seconds, by RFC 9110.
    let seconds = retry_after.0.div_ceil(Nanos::SECOND.0);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

fn usual(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        // These have no body.
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => "",
        _ => status.canonical_reason().unwrap_or("No reason"),
    }
}
