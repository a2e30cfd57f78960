//! Why the body of a request ends early.

use std::fmt;

/// Reason why a request's body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http1BodyError {
    /// The client closed the connection.
    Closed,
    /// The chunks or trailers are malformed.
    Malformed,
}

impl std::error::Error for Http1BodyError {}

impl fmt::Display for Http1BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the connection was closed before the end of the body",
            Self::Malformed => "the body's chunks are malformed",
        })
    }
}
