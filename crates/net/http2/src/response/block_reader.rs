//! Reader of a block's fields: what a client has to note, and the violations that make a message malformed.

use crate::field::{digits, is_field_value, is_lower_token, trim};
use crate::hpack::{FieldSink, field_size};

/// Number of codes of gRPC.
const GRPC_CODES: u64 = 17;
/// Code of UNKNOWN.
const GRPC_UNKNOWN: u16 = 2;

/// Reason why a message is malformed: an error of its stream alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldViolation {
    /// A field is invalid, forbidden or in the wrong place.
    Malformed(&'static str),
    /// The fields together are larger than the client accepts.
    TooLarge,
}

/// Values of a block's fields: of a head, or of trailers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFields {
    /// The status, 100..=999; trailers have none.
    pub status: Option<u16>,
    /// Length of the content, as announced.
    pub content_length: Option<u64>,
    /// Whether it sets a cookie.
    pub sets_cookie: bool,
    /// Whether the content, or the messages of gRPC in it, have a coding.
    pub is_encoded: bool,
    /// Code of gRPC, 0 to 16; one without a name is 2, UNKNOWN.
    pub grpc_status: Option<u16>,
    /// First violation.
    pub violation: Option<FieldViolation>,
}

/// Fields that a block inserted into the table, to insert them again: lengths of names and values, and the bytes.
#[derive(Debug, Default)]
pub(super) struct InsertedFields {
    lengths: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

impl InsertedFields {
    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        self.bytes.clear();
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        self.lengths.push((name.len() as u32, value.len() as u32));
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.clear();
        self.lengths.extend_from_slice(&other.lengths);
        self.bytes.extend_from_slice(&other.bytes);
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn each(&self, mut hand_on: impl FnMut(&[u8], &[u8])) {
        let mut rest = self.bytes.as_slice();
        for (name_length, value_length) in &self.lengths {
            let (name, behind) = rest.split_at(*name_length as usize);
            let (value, after) = behind.split_at(*value_length as usize);
            hand_on(name, value);
            rest = after;
        }
    }
}

/// Sink for the fields of one block: checks them, and collects what a response needs.
#[derive(Debug)]
pub(super) struct BlockReader<'a> {
    pub(super) fields: ResponseFields,
    /// The head as text, if wanted.
    pub(super) text: Option<&'a mut Vec<u8>>,
    /// Insertions, as far as they may be repeated.
    pub(super) inserted: &'a mut InsertedFields,
    /// Size that is left of the maximum, in bytes.
    pub(super) left: usize,
    /// Bytes that may still be noted of insertions.
    pub(super) insertable: usize,
    pub(super) has_regular: bool,
}

impl FieldSink for BlockReader<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], is_inserted: bool) {
        if is_inserted && self.inserted.byte_count() <= self.insertable {
            self.inserted.push(name, value);
        }
        // After a violation only the table matters, whatever the fields would expand to.
        if self.fields.violation.is_some() {
            return;
        }
        let size = field_size(name, value);
        if size > self.left {
            self.fields.violation = Some(FieldViolation::TooLarge);
            return;
        }
        self.left -= size;
        if let Err(reason) = self.read(name, value) {
            self.fields.violation = Some(FieldViolation::Malformed(reason));
        }
    }
}

impl BlockReader<'_> {
    fn read(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if name.first() == Some(&b':') {
            return self.pseudo(name, value);
        }
        self.has_regular = true;
        if !is_lower_token(name) {
            return Err("a field's name is empty, or has upper-case letters or invalid characters");
        }
        if !is_field_value(value) {
            return Err("a field's value has invalid characters or white space around it");
        }
        match name {
            b"content-length" => {
                // Equal values may be repeated (RFC 9110 section 8.6).
                for length in value.split(|byte| *byte == b',').map(trim) {
                    let length = digits(length).ok_or("content-length is not a number")?;
                    if self.fields.content_length.replace(length).is_some_and(|earlier| earlier != length) {
                        return Err("content-length is given twice");
                    }
                }
            }
            b"set-cookie" => self.fields.sets_cookie = true,
            b"content-encoding" => self.fields.is_encoded = true,
            // Messages in another encoding are not read, and none was accepted.
            b"grpc-encoding" => self.fields.is_encoded |= value == b"gzip",
            b"grpc-status" => {
                let code = digits(value).filter(|code| *code < GRPC_CODES);
                self.fields.grpc_status = Some(code.map_or(GRPC_UNKNOWN, |code| code as u16));
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                return Err("a response has a field about the connection, which HTTP/2 forbids");
            }
            b"te" if value != b"trailers" => return Err("te has another value than trailers"),
            _ => {}
        }
        if let Some(text) = &mut self.text {
            for part in [name, b": ", value, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
        Ok(())
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if name != b":status" {
            return Err("a response has a pseudo-header field other than :status");
        }
        if self.has_regular {
            return Err(":status comes behind a field");
        }
        if self.fields.status.is_some() {
            return Err(":status is given twice");
        }
        let [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = value else {
            return Err(":status is not a number of three digits");
        };
        self.fields.status = digits(value).and_then(|status| u16::try_from(status).ok());
        if let Some(text) = &mut self.text {
            for part in [b"HTTP/2 ", value, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
        Ok(())
    }
}
