//! Failures of a request.

use std::borrow::Cow;
use std::{fmt, io};

use crate::wire::WireError;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

/// Reason why a response is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Readable cause, e.g. `connection refused (127.0.0.1:9)`.
    pub text: Cow<'static, str>,
    /// What failed, where the kind does not say it.
    pub point: FailurePoint,
}

/// What failed of an exchange, where clients of other libraries have an error of its own for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePoint {
    /// What the kind says.
    #[default]
    Other,
    /// There was no connection within its timeout.
    ConnectTimeout,
    /// The request was not taken within its timeout.
    WriteTimeout,
    /// A stream of HTTP/2 was reset, and not its connection.
    Stream,
    /// The response's Content-Length is invalid.
    ContentLength,
    /// The response broke off, or is malformed, behind its head.
    Body,
    /// The response is longer than its maximum.
    TooLong,
    /// Nothing was sent, since the place of a rate limit was unreachable.
    RateLimit,
}

impl FailurePoint {
    /// Name, as bindings have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::ConnectTimeout => "connect_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::Stream => "stream",
            Self::ContentLength => "content_length",
            Self::Body => "body",
            Self::TooLong => "too_long",
            Self::RateLimit => "rate_limit",
        }
    }
}

impl SendError {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into(), point: FailurePoint::Other }
    }

    /// The same failure, of this point.
    #[must_use]
    pub fn at(self, point: FailurePoint) -> Self {
        Self { point, ..self }
    }

    /// A request of which the other end has taken nothing for this time.
    pub fn not_taken(timeout: Nanos) -> Self {
        Self::new(FailureKind::Timeout, format!("the request was not taken within {timeout}"))
            .at(FailurePoint::WriteTimeout)
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
        let point = match error {
            WireError::BadLength => FailurePoint::ContentLength,
            WireError::Truncated | WireError::BadChunk => FailurePoint::Body,
            _ => FailurePoint::Other,
        };
        Self::new(kind, error.to_string()).at(point)
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
