//! Result lines of Anthropic's Message Batches. Errors have the types that the provider's libraries read: another one, of
//! a compatible service, becomes that of its status, with its message.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ending::{Ending, MissingResponse, body_text, object_body};
use weir_send::FinishedJob;

#[derive(Debug, Serialize)]
struct BatchResultLine<'a> {
    custom_id: &'a str,
    result: BatchResult<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BatchResult<'a> {
    Succeeded { message: Box<RawValue> },
    Errored { error: ErrorBody<'a> },
    Canceled,
    Expired,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: ErrorObject<'a>,
    request_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
struct ErrorObject<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: Cow<'a, str>,
}

/// Error that a service responds with; compatible ones have some of it.
#[derive(Debug, Deserialize)]
struct GivenError<'a> {
    #[serde(borrow)]
    error: Option<GivenErrorObject<'a>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct GivenErrorObject<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
}

/// Types of errors that the provider's libraries read.
const ERROR_TYPES: [&str; 9] = [
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "rate_limit_error",
    "timeout_error",
    "api_error",
    "overloaded_error",
];

/// Writes the line of a job.
pub(super) fn write_line(ended: &FinishedJob, to: &mut Vec<u8>) {
    let request_id = ended.last_attempt.as_ref().and_then(|last| last.request_id.as_deref()).map(Cow::Borrowed);
    let errored = |kind, message, request_id| BatchResult::Errored {
        error: ErrorBody { kind: "error", error: ErrorObject { kind, message }, request_id },
    };
    let result = match Ending::of(ended) {
        Ending::Succeeded => match object_body(&ended.body) {
            Some(message) => BatchResult::Succeeded { message },
            None => errored("api_error", body_text(&ended.body), request_id),
        },
        Ending::Rejected(status) => {
            let given: Option<GivenError<'_>> = serde_json::from_slice(&ended.body).ok();
            let (error, own_id) = given.map_or((None, None), |given| (given.error, given.request_id));
            let (kind, message) = error.map_or((None, None), |error| (error.kind, error.message));
            let known = kind.and_then(|kind| ERROR_TYPES.into_iter().find(|known| *known == kind));
            let message = message.unwrap_or_else(|| match body_text(&ended.body) {
                text if text.is_empty() => Cow::Owned(format!("status {status} without a body")),
                text => text,
            });
            errored(known.unwrap_or_else(|| error_type(status)), message, own_id.or(request_id))
        }
        Ending::FailedCheck(_, check) => errored("api_error", check.into(), request_id),
        Ending::Failed(kind) => {
            let of_kind = match kind {
                MissingResponse::Timeout => "timeout_error",
                MissingResponse::InvalidRequest => "invalid_request_error",
                MissingResponse::Connection | MissingResponse::MaybeSent => "api_error",
            };
            errored(of_kind, ended.failure().unwrap_or_default().into(), request_id)
        }
        Ending::Expired => BatchResult::Expired,
        Ending::Canceled => BatchResult::Canceled,
    };
    let custom_id = ended.entry.job.id.as_deref().unwrap_or_default();
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *to, &BatchResultLine { custom_id, result });
    to.push(b'\n');
}

/// Type of an error by its status.
const fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}
