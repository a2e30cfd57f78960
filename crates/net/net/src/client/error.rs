//! Failures of a request.

use std::borrow::Cow;
use std::{fmt, io};

use crate::wire::WireError;
use weir_base::failure::FailureKind;

/// Reason why a response is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Readable cause, e.g. `connection refused (127.0.0.1:9)`.
    pub text: Cow<'static, str>,
}

impl SendError {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A request that cannot be sent as it is: the caller's fault, not the origin's.
    pub(super) fn request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FailureKind::Request, text)
    }

    pub(super) fn protocol(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FailureKind::Protocol, text)
    }

    /// The failure of an established connection. Never [`FailureKind::Tls`], which means that nothing was sent.
    pub(super) fn connection_lost(error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, UnexpectedEof};
        match error.kind() {
            ConnectionReset | BrokenPipe | ConnectionAborted => Self::new(FailureKind::Reset, "connection reset"),
            UnexpectedEof => Self::new(FailureKind::Closed, "TLS ended without its closing alert"),
            InvalidData => Self::protocol(format!("TLS failed: {}", error_message(error))),
            _ => Self::new(FailureKind::Reset, error_message(error)),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SendError {}

impl From<WireError> for SendError {
    fn from(error: WireError) -> Self {
        let kind = if error == WireError::Truncated { FailureKind::Closed } else { FailureKind::Protocol };
        Self::new(kind, error.to_string())
    }
}

/// A system error's message without its number.
pub(super) fn error_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}
