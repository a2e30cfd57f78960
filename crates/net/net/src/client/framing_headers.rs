//! Fields of a response that decide where it ends (RFC 9112, 6.3), and whether its connection does.

use super::error::SendError;
use crate::wire::{BodyDecoder, Chunked, WireError, content_length, has_token, printable, tokens};

/// Fields that decide where a response ends, and whether its connection does.
#[derive(Clone, Debug, Default)]
pub(super) struct FramingHeaders {
    length: Option<u64>,
    has_transfer_coding: bool,
    chunked: bool,
    keep_alive: bool,
}

impl FramingHeaders {
    /// Without fields: HTTP/1.1 keeps connections.
    pub(super) fn new(is_1_1: bool) -> Self {
        Self { keep_alive: is_1_1, ..Self::default() }
    }

    /// Whether there was a Transfer-Encoding.
    pub(super) fn has_transfer_coding(&self) -> bool {
        self.has_transfer_coding
    }

    /// Reads a Content-Length.
    pub(super) fn add_length(&mut self, value: &[u8]) -> Result<(), SendError> {
        let length = content_length(value).ok_or(WireError::BadLength)?;
        if self.length.replace(length).is_some_and(|earlier| earlier != length) {
            return Err(WireError::BadLength.into());
        }
        Ok(())
    }

    /// Reads a Transfer-Encoding.
    pub(super) fn add_codings(&mut self, value: &[u8]) -> Result<(), SendError> {
        for coding in tokens(value).filter(|coding| !coding.is_empty()) {
            // Chunked twice, or below another coding, is a sign of smuggling.
            if self.chunked || !coding.eq_ignore_ascii_case(b"chunked") {
                let coding = printable(value);
                return Err(SendError::protocol(format!("transfer coding \"{coding}\" was not asked for")));
            }
            self.chunked = true;
        }
        self.has_transfer_coding = true;
        Ok(())
    }

    /// Reads a Connection.
    pub(super) fn add_connection(&mut self, value: &[u8]) {
        if has_token(value, b"close") {
            self.keep_alive = false;
        } else if has_token(value, b"keep-alive") {
            self.keep_alive = true;
        }
    }

    /// Decoder of the body.
    pub(super) fn body(&self) -> BodyDecoder {
        match self.length {
            _ if self.chunked => BodyDecoder::chunked(Chunked::lenient()),
            _ if self.has_transfer_coding => BodyDecoder::until_close(),
            Some(length) => BodyDecoder::length(length),
            None => BodyDecoder::until_close(),
        }
    }

    /// Contradictory framing, or chunked in HTTP/1.0, enables response smuggling: RFC 9112 (6.1, 6.3) has the
    /// connection closed after it.
    pub(super) fn allows_keep_alive(&self, is_1_1: bool) -> bool {
        self.keep_alive && !(self.has_transfer_coding && (self.length.is_some() || !is_1_1))
    }
}
