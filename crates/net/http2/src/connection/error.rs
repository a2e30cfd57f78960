//! The end of a connection by a violation.

use std::fmt;

use crate::error_code::ErrorCode;
use crate::flow::FlowViolation;
use crate::hpack::HpackError;

/// Violation that ends the connection; GOAWAY with its code is in the output. Always the peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// Code for the peer.
    pub code: ErrorCode,
    /// The violation in words.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(super) const FLOOD: Self =
        Self::new(ErrorCode::ENHANCE_YOUR_CALM, "it sends thousands of frames without content");

    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    pub(super) const fn frame_size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FRAME_SIZE_ERROR, reason)
    }
}

impl From<HpackError> for ConnectionError {
    fn from(error: HpackError) -> Self {
        Self::new(ErrorCode::COMPRESSION_ERROR, error.text())
    }
}

impl From<FlowViolation> for ConnectionError {
    fn from(FlowViolation: FlowViolation) -> Self {
        Self::new(ErrorCode::FLOW_CONTROL_ERROR, "it exceeds a window of flow control")
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service violates HTTP/2: {} ({})", self.reason, self.code)
    }
}
