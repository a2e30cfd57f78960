//! Reasons why a head cannot be sent.

use std::fmt;

/// Reason why a head cannot be translated; the fault of the request's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHeadError {
    /// The first line is not `METHOD target HTTP/1.1`.
    RequestLine,
    /// A tunnel, which has other pseudo-header fields.
    Connect,
    /// A line is not `Name: value`, or has a character that no field may have.
    Field,
    /// No empty line at the end, or something behind it.
    End,
    /// The head is longer than a gigabyte.
    TooLarge,
}

impl fmt::Display for RequestHeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestLine => "the first line of the request is not \"METHOD /path HTTP/1.1\"",
            Self::Connect => "CONNECT cannot be sent over HTTP/2; send it over HTTP/1.1",
            Self::Field => "a header of the request is not \"Name: value\"",
            Self::End => "the head of the request does not end with one empty line",
            Self::TooLarge => "the head of the request is too large",
        })
    }
}
