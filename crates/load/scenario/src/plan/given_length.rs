//! Length of a request's body: the one that a file gives is the body's, or the request is not sent.

use weir_hurl::TextPosition;
use weir_request::request_framing::CallerFraming;

use super::piece::PieceList;
use super::render_error::RenderError;
use super::request_template::RenderSource;

/// Content-Length that a file gives.
#[derive(Clone, Debug)]
pub(super) struct GivenLength {
    pub(super) value: PieceList,
    pub(super) position: TextPosition,
}

impl GivenLength {
    /// Framing by the given length, checked against the body; `out` is left as it is.
    pub(super) fn framing(
        &self,
        source: &mut RenderSource<'_, '_>,
        out: &mut Vec<u8>,
        (method, body_bytes): (&str, usize),
    ) -> Result<CallerFraming, RenderError> {
        let start = out.len();
        self.value.render(source, out)?;
        let mut framing = CallerFraming::default();
        let taken = framing.take(b"Content-Length", &out[start..]);
        out.truncate(start);
        let checked = taken.and_then(|_| framing.has_length(method, body_bytes as u64));
        checked.map_err(|error| RenderError::Framing { error, position: self.position })?;
        Ok(framing)
    }

    /// The length as it is written, if it and the body never change and it is another.
    pub(super) fn mistake(&self, method: &str, body: Option<&[u8]>) -> Option<String> {
        let (value, body) = (self.value.as_fixed()?, body?);
        let mut framing = CallerFraming::default();
        let taken = framing.take(b"Content-Length", value);
        let is_wrong = taken.and_then(|_| framing.has_length(method, body.len() as u64)).is_err();
        is_wrong.then(|| format!("'Content-Length: {}'", String::from_utf8_lossy(value).escape_debug()))
    }
}

/// Appends the length of a body, where a method, a body or the caller needs it, and the end of the head.
pub(super) fn write_length((framing, method): (CallerFraming, &str), length: usize, out: &mut Vec<u8>) {
    if framing.has_length(method, length as u64).unwrap_or(true) {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

fn push_decimal(mut value: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 || start == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
