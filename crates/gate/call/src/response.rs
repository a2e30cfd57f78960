//! Outcome of a call: its response or failure.

use http::response::Parts;

use super::attempt_log::CallTrace;
use super::body::CallBody;
use weir_net::wire::PassedFields;
use weir_resilience::admission::Rejection;

/// Response of an upstream.
#[derive(Debug)]
pub struct UpstreamResponse {
    /// Status and headers, as the upstream sent them.
    pub head: Parts,
    /// Further headers, if the request has them passed on unread.
    pub passed: PassedFields,
    /// Body of the response.
    pub body: CallBody,
}

/// Response of a successful call.
#[derive(Debug)]
pub struct CallResponse {
    /// Status and headers, as the upstream sent them.
    pub head: Parts,
    /// Further headers, if the request has them passed on unread.
    pub passed: PassedFields,
    /// Body of the response.
    pub body: CallBody,
    /// Attempt log of the call.
    pub call_trace: CallTrace,
}

/// Failure of a call: no attempt succeeded, or nothing was sent.
#[derive(Debug)]
pub struct CallFailure {
    /// Reason of the failure.
    pub reason: CallFailureReason,
    /// Last response, if there was one.
    pub last_response: Option<UpstreamResponse>,
    /// Attempt log of the call.
    pub call_trace: CallTrace,
}

impl CallFailure {
    /// The failure of a call that had ended already.
    pub(super) fn after_end() -> Self {
        Self { reason: CallFailureReason::AllFailed, last_response: None, call_trace: CallTrace::default() }
    }
}

/// Reason of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailureReason {
    /// All attempts failed, and the policy allows no more.
    AllFailed,
    /// The deadline passed.
    DeadlineExceeded,
    /// The call was rejected; nothing was sent.
    Rejected(Rejection),
}
