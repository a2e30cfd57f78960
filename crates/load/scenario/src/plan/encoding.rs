//! Encodings of values at their place in a request.

use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::IgnoredAny;

/// Encoding of a value at its place in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceEncoding {
    /// Bytes as they are: bodies.
    Verbatim,
    /// Part of a URL, which is encoded as a whole later; control characters are an error.
    Url,
    /// Value of a parameter in the text of a URL: it cannot begin another parameter. Escapes stay, since values that
    /// were captured from a URL have them.
    UrlValue,
    /// Value in a query string or a form: all but unreserved characters are percent-encoded.
    Parameter,
    /// Value of a header; control characters are an error.
    HeaderValue,
    /// Value of a cookie: a header's, and a semicolon is percent-encoded, since it would begin another cookie.
    CookieValue,
    /// Name of a header: a token.
    HeaderName,
    /// Text within a JSON string.
    JsonString,
    /// Value in a JSON text.
    JsonValue,
    /// Name in a part of a multipart body, within quotes.
    QuotedName,
    /// Base64 of the value.
    Base64,
}

/// Reason why a value cannot be at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingError {
    /// Line break or another control character in a URL.
    ControlInUrl,
    /// Line break or another control character in a header.
    ControlInHeader,
    /// Name of a header that is not a token.
    HeaderName,
    /// Text that is no JSON in place of a value.
    JsonValue,
}

impl fmt::Display for EncodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ControlInUrl => "a line break or control character in a URL",
            Self::ControlInHeader => "a line break or control character in a header",
            Self::HeaderName => "an invalid name of a header",
            Self::JsonValue => "a text that is no JSON as a value in JSON; put it in quotes",
        })
    }
}

const UNRESERVED: [bool; 256] = table(b"-._~");
const TOKEN: [bool; 256] = table(b"!#$%&'*+-.^_`|~");
const UPPER_HEX: [u8; 16] = *b"0123456789ABCDEF";
const LOWER_HEX: [u8; 16] = *b"0123456789abcdef";

/// Table of letters, digits and other bytes.
const fn table(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = true;
        }
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}

impl PieceEncoding {
    /// Encodes the bytes of `out` from `start` on, in place. Most values need no change.
    ///
    /// # Errors
    /// If the bytes cannot be at this place.
    pub(super) fn encode_tail(self, out: &mut Vec<u8>, start: usize) -> Result<(), EncodingError> {
        let tail = out.get(start..).unwrap_or_default();
        let is_plain = match self {
            Self::Verbatim => true,
            Self::Url | Self::UrlValue if tail.iter().any(|byte| is_url_control(*byte)) => {
                return Err(EncodingError::ControlInUrl);
            }
            Self::UrlValue => !tail.iter().any(|byte| is_delimiter(*byte)),
            Self::Parameter => tail.iter().all(|byte| UNRESERVED[usize::from(*byte)]),
            Self::HeaderValue | Self::CookieValue if tail.iter().any(|byte| is_control(*byte)) => {
                return Err(EncodingError::ControlInHeader);
            }
            Self::CookieValue => !tail.contains(&b';'),
            Self::HeaderName if tail.is_empty() || !tail.iter().all(|byte| TOKEN[usize::from(*byte)]) => {
                return Err(EncodingError::HeaderName);
            }
            Self::JsonValue if serde_json::from_slice::<IgnoredAny>(tail).is_err() => {
                return Err(EncodingError::JsonValue);
            }
            Self::Url | Self::HeaderValue | Self::HeaderName | Self::JsonValue => true,
            Self::JsonString => !tail.iter().any(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')),
            Self::QuotedName => !tail.iter().any(|byte| matches!(byte, b'"' | b'\r' | b'\n')),
            Self::Base64 => tail.is_empty(),
        };
        if is_plain {
            return Ok(());
        }
        let end = out.len();
        match self {
            Self::Base64 => push_base64(start, out),
            Self::JsonString => push_each(start..end, out, push_json),
            Self::QuotedName => {
                push_each(start..end, out, |byte, out| push_percent(byte, !matches!(byte, b'"' | b'\r' | b'\n'), out));
            }
            Self::CookieValue => push_each(start..end, out, |byte, out| push_percent(byte, byte != b';', out)),
            Self::UrlValue => push_each(start..end, out, |byte, out| push_percent(byte, !is_delimiter(byte), out)),
            Self::Verbatim | Self::Parameter | Self::Url | Self::HeaderValue | Self::HeaderName | Self::JsonValue => {
                push_each(start..end, out, |byte, out| push_percent(byte, UNRESERVED[usize::from(byte)], out));
            }
        }
        out.drain(start..end);
        Ok(())
    }
}

/// Appends the bytes of a range of `out` in an encoding.
fn push_each(range: Range<usize>, out: &mut Vec<u8>, push: impl Fn(u8, &mut Vec<u8>)) {
    for index in range {
        let byte = out[index];
        push(byte, out);
    }
}

/// Appends the bytes from `start` on in Base64.
fn push_base64(start: usize, out: &mut Vec<u8>) {
    let end = out.len();
    out.resize(end + (end - start).div_ceil(3) * 4, 0);
    let (value, encoded) = out.split_at_mut(end);
    let written = BASE64_STANDARD.encode_slice(&value[start..], encoded).unwrap_or_default();
    out.truncate(end + written);
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// Whether the byte ends a parameter in a query.
fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'&' | b';' | b'#')
}

fn is_url_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

fn push_percent(byte: u8, is_plain: bool, out: &mut Vec<u8>) {
    if is_plain {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', hex_digit(byte >> 4, &UPPER_HEX), hex_digit(byte, &UPPER_HEX)]);
    }
}

fn push_json(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        byte if byte < 0x20 => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[hex_digit(byte >> 4, &LOWER_HEX), hex_digit(byte, &LOWER_HEX)]);
        }
        byte => out.push(byte),
    }
}

fn hex_digit(value: u8, digits: &[u8; 16]) -> u8 {
    digits[usize::from(value & 0xf)]
}
