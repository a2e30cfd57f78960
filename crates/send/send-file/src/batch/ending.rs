//! How a job ended, in the words that both providers have.

use std::borrow::Cow;

use serde_json::value::RawValue;

use weir_base::failure::FailureKind;
use weir_base::terminal_text::beginning;
use weir_delivery::dispatch::DispatchFailure;
use weir_send::FinishedJob;
use weir_send::state::State;

/// Longest text of a response without JSON that goes into a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4096;

/// End of a job, as a provider sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending<'a> {
    /// Delivered.
    Succeeded,
    /// A response with another status than one of success.
    Rejected(u16),
    /// Status of success, and a content that failed this check.
    FailedCheck(u16, &'a str),
    /// No response, for this kind of reason.
    Failed(MissingResponse),
    /// Not executed within its time to live.
    Expired,
    /// Given up with its host, and never sent.
    Canceled,
}

/// Kind of the reason why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingResponse {
    /// The timeout of the request.
    Timeout,
    /// A connection that broke, or what came was no response.
    Connection,
    /// A request that cannot be sent as it is.
    InvalidRequest,
    /// Maybe sent before a crash, and not sent again.
    MaybeSent,
}

impl<'a> Ending<'a> {
    pub(super) fn of(ended: &'a FinishedJob) -> Self {
        match (ended.state, ended.status()) {
            (State::Done, _) => Self::Succeeded,
            (State::Expired, _) => Self::Expired,
            (_, Some(status)) => match ended.failed_check() {
                Some(check) => Self::FailedCheck(status, check),
                None => Self::Rejected(status),
            },
            (_, None) => match ended.cause {
                Some(DispatchFailure::HostDown) => Self::Canceled,
                Some(DispatchFailure::Expired) => Self::Expired,
                Some(DispatchFailure::MaybeSent) => Self::Failed(MissingResponse::MaybeSent),
                Some(DispatchFailure::NoResponse(FailureKind::Timeout | FailureKind::Stalled)) => {
                    Self::Failed(MissingResponse::Timeout)
                }
                Some(DispatchFailure::NoResponse(FailureKind::Request) | DispatchFailure::TooHeavy) | None => {
                    Self::Failed(MissingResponse::InvalidRequest)
                }
                // What was never sent costs no attempt, so that only giving up ends it.
                Some(DispatchFailure::NoResponse(kind)) if kind.is_unsent() => Self::Canceled,
                Some(DispatchFailure::NoResponse(_) | DispatchFailure::Response(_)) => {
                    Self::Failed(MissingResponse::Connection)
                }
            },
        }
    }
}

/// Body as an object of JSON on one line; None if it is not one.
pub(super) fn object_body(body: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(body).ok()?.trim();
    if !text.starts_with('{') {
        return None;
    }
    // Within a string a line break is an escape: those that stand here are between values.
    let line = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], "") } else { text.to_owned() };
    RawValue::from_string(line).ok()
}

/// Beginning of a body that is not JSON, for a message.
pub(super) fn body_text(body: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(body) {
        Cow::Borrowed(text) => Cow::Borrowed(beginning(text.trim(), MAX_MESSAGE_BYTES)),
        Cow::Owned(text) => Cow::Owned(beginning(text.trim(), MAX_MESSAGE_BYTES).to_owned()),
    }
}
