//! Encoding of requests and decoding of responses. No socket is opened here, so everything is tested and fuzzed on
//! plain bytes.

mod body;
mod chunked;
mod decoder;
mod head;
mod passed_fields;
mod passed_names;
mod request;

pub use body::{BodyDecoder, DecodedBody};
pub use chunked::Chunked;
pub use decoder::{DecodeStep, DecodedResponse, Decoder, ResponseObserver};
pub use head::{HeadCache, HeadNotes, WireHead, digits, has_token, lenient_parser, push_digits, shared_part, tokens};
pub(crate) use head::{MAX_HEAD_BYTES, MAX_HEADERS, content_length, no_head, printable};
pub use passed_fields::PassedFields;
pub(crate) use passed_fields::is_line;
pub use passed_names::PassedNames;
pub use request::{HeaderLine, RequestError, WireRequest, parse_header};

use std::fmt;

/// Reason why bytes are not an HTTP/1.x response; always the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The head does not parse; with its beginning, made printable.
    NotHttp(String),
    /// A header is invalid; with its line, made printable.
    BadHeader(String),
    /// The head is longer than 64 KiB or has more than 256 headers.
    HeadTooLarge,
    /// Content-Length is not a number, or two of them differ.
    BadLength,
    /// A chunk's size or end is malformed, or its line or the trailers are too long.
    BadChunk,
    /// Unsolicited bytes, without a request.
    Unsolicited,
    /// The connection was closed before the whole response: truncated, not malformed.
    Truncated,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp(start) => write!(f, "the response is not HTTP/1.1: it begins with \"{start}\""),
            Self::BadHeader(line) => write!(f, "the response has an invalid header, \"{line}\""),
            Self::HeadTooLarge => {
                write!(
                    f,
                    "the response's head is over {} KiB or {} headers",
                    head::MAX_HEAD_BYTES / 1024,
                    head::MAX_HEADERS
                )
            }
            Self::BadLength => f.write_str("the response's Content-Length is malformed or given twice"),
            Self::BadChunk => f.write_str("the response's chunked body is malformed"),
            Self::Unsolicited => f.write_str("bytes came that no request had asked for"),
            Self::Truncated => f.write_str("the connection was closed before the whole response"),
        }
    }
}
