//! Result lines of OpenAI's Batch API: delivered jobs are lines of the output file, the others of the error file.
//!
//! A response with a status of failure is a `response`, and `error` is null: so the API writes it, whatever its reference
//! says. `error` is for requests without a response. A response that failed its check is both, since the provider has
//! no word for it, and what was paid for is not to be lost.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::ending::{Ending, MissingResponse, body_text, object_body};
use weir_send::FinishedJob;
use weir_send::api_key::fingerprint;

#[derive(Debug, Serialize)]
struct OutputLine<'a> {
    id: &'a str,
    custom_id: &'a str,
    response: Option<OutputResponse<'a>>,
    error: Option<OutputError<'a>>,
}

#[derive(Debug, Serialize)]
struct OutputResponse<'a> {
    status_code: u16,
    request_id: &'a str,
    body: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct OutputError<'a> {
    code: &'static str,
    message: Cow<'a, str>,
}

/// Writes the line of a job; returns whether it is one of the error file.
pub(super) fn write_line(ended: &FinishedJob, to: &mut Vec<u8>) -> bool {
    let custom_id = ended.entry.job.id.as_deref().unwrap_or_default();
    let id = format!("batch_req_{:012x}{:016x}", ended.ended_at.0, fingerprint(custom_id.as_bytes()));
    let ending = Ending::of(ended);
    let given = ended.last_attempt.as_ref().and_then(|last| last.request_id.as_deref());
    let response = |status_code| OutputResponse {
        status_code,
        // The field is a text: where the service has no name for its request, it is that of the line.
        request_id: given.unwrap_or(&id),
        body: response_body(status_code, &ended.body),
    };
    let (response, error) = match ending {
        Ending::Succeeded => (ended.status().map(response), None),
        Ending::Rejected(status) => (Some(response(status)), None),
        Ending::FailedCheck(status, check) => (Some(response(status)), Some(("check_failed", check.into()))),
        Ending::Failed(kind) => (None, Some((code(kind), ended.failure().unwrap_or_default().into()))),
        Ending::Expired => {
            let message = "This request could not be executed before its time to live ended.";
            (None, Some(("batch_expired", Cow::Borrowed(message))))
        }
        Ending::Canceled => (None, Some(("batch_cancelled", ended.failure().unwrap_or_default().into()))),
    };
    let error = error.map(|(code, message)| OutputError { code, message });
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *to, &OutputLine { id: &id, custom_id, response, error });
    to.push(b'\n');
    ending != Ending::Succeeded
}

/// Machine-readable code of a request without a response; the first is of the provider.
const fn code(kind: MissingResponse) -> &'static str {
    match kind {
        MissingResponse::Timeout => "request_timeout",
        MissingResponse::Connection => "connection_error",
        MissingResponse::InvalidRequest => "invalid_request",
        MissingResponse::MaybeSent => "maybe_sent",
    }
}

/// Body as an object: one of its own, or an error with what came.
fn response_body(status: u16, body: &[u8]) -> Box<RawValue> {
    object_body(body).unwrap_or_else(|| {
        let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
        let text = body_text(body);
        let message = if text.is_empty() { Cow::Owned(format!("status {status} without a body")) } else { text };
        let error = json!({ "error": { "message": message, "type": kind, "param": null, "code": null } });
        serde_json::value::to_raw_value(&error).unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}
