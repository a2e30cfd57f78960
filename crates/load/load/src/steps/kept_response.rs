//! Response that is kept while it arrives: its head, and its body where a step looks into it.

use std::borrow::Cow;
use std::io::{self, Read};

use super::body_budget::{BodyShare, MAX_TOTAL_BYTES};
use weir_net::content_coding;

/// Maximum size of a kept body, in bytes, and of a decompressed one.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Why a body is not kept.
const TOO_LARGE: &str = "the body is larger than 64 MiB, the maximum of a body that a check or a task looks into";
const TOO_LARGE_TOGETHER: &str =
    "bodies that checks or tasks look into need more than 512 MiB at the same time; use fewer users, or smaller bodies";
const _: () = assert!(MAX_BODY_BYTES == 64 << 20 && MAX_TOTAL_BYTES == 512 << 20);
/// Maximum size of what is kept of the body of an error, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 4096;

/// Part of a response's body that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::steps) enum KeptBody {
    /// Nothing.
    #[default]
    Nothing,
    /// The start, if the status is 400 or above.
    OfErrors,
    /// All of it.
    Whole,
}

/// Response that is kept while it arrives.
#[derive(Debug, Default)]
pub(in crate::steps) struct KeptResponse {
    head: Vec<u8>,
    body: Vec<u8>,
    keeps: KeptBody,
    /// Maximum size of the body, in bytes; what is behind it is dropped.
    max_bytes: usize,
    /// Memory of the body among that of all.
    share: BodyShare,
    /// Reason why a part of the body is not kept.
    is_cut: Option<&'static str>,
}

impl KeptResponse {
    /// Empties it for the next response.
    pub(in crate::steps) fn clear(&mut self, keeps: KeptBody) {
        self.head.clear();
        self.body.clear();
        (self.keeps, self.is_cut) = (keeps, None);
        self.max_bytes = if keeps == KeptBody::Whole { MAX_BODY_BYTES } else { 0 };
    }

    /// Empties it for the next response, of which the same parts are kept.
    pub(in crate::steps) fn clear_same(&mut self) {
        self.clear(self.keeps);
    }

    /// Empties it for a response of which another one's parts are kept.
    pub(in crate::steps) fn clear_as(&mut self, other: &Self) {
        self.clear(other.keeps);
    }

    /// Whether more of the body is kept.
    pub(in crate::steps) fn keeps_body(&self) -> bool {
        self.body.len() < self.max_bytes
    }

    /// Frees the memory of a head and body that are larger.
    pub(in crate::steps) fn shrink_to(&mut self, bytes: usize) {
        self.clear(KeptBody::Nothing);
        self.head.shrink_to(bytes);
        self.body.shrink_to(bytes);
        self.share.release();
    }

    /// Takes the head.
    pub(in crate::steps) fn set_head(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(head);
        if self.keeps == KeptBody::OfErrors && is_error(head) {
            self.max_bytes = MAX_ERROR_BODY_BYTES;
        }
    }

    /// Adds trailers to the fields of the head.
    pub(in crate::steps) fn push_trailers(&mut self, text: &[u8]) {
        let fields = self.head.strip_suffix(b"\r\n").map_or(0, <[u8]>::len);
        if fields > 0 {
            self.head.truncate(fields);
            self.head.extend_from_slice(text);
        }
    }

    /// Takes the next bytes of the body.
    pub(in crate::steps) fn push_body(&mut self, bytes: &[u8]) {
        let room = self.max_bytes.saturating_sub(self.body.len());
        match self.keeps {
            KeptBody::Nothing => {}
            KeptBody::Whole if self.is_cut.is_some() => {}
            KeptBody::OfErrors => self.body.extend_from_slice(&bytes[..bytes.len().min(room)]),
            KeptBody::Whole if bytes.len() > room => self.cut(TOO_LARGE),
            KeptBody::Whole if !self.share.make_room(&mut self.body, bytes.len()) => self.cut(TOO_LARGE_TOGETHER),
            KeptBody::Whole => self.body.extend_from_slice(bytes),
        }
    }

    /// Drops the body, and what follows of it: a part of it is of no use.
    #[cold]
    fn cut(&mut self, reason: &'static str) {
        self.is_cut = Some(reason);
        self.body = Vec::new();
        self.max_bytes = 0;
        self.share.release();
    }

    /// Reason why the body was not kept, although it is looked into.
    pub(in crate::steps) fn cut_reason(&self) -> Option<&'static str> {
        self.is_cut
    }

    /// Head, as it came.
    pub(in crate::steps) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Body as it came, without framing.
    pub(in crate::steps) fn raw_body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the head names another encoding of characters than UTF-8 for a body that is there.
    pub(in crate::steps) fn has_other_charset(&self) -> bool {
        const NAME: &[u8] = b"charset";
        let mut equals = self.head.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| at);
        !self.body.is_empty()
            && equals.any(|at| {
                let (before, value) = (&self.head[..at], &self.head[at + 1..]);
                let name = before.get(before.len().saturating_sub(NAME.len())..).unwrap_or_default();
                let value = value.strip_prefix(b"\"").unwrap_or(value);
                name.eq_ignore_ascii_case(NAME) && !value.get(..5).is_some_and(|v| v.eq_ignore_ascii_case(b"utf-8"))
            })
    }

    /// Body, decompressed if `encoding` is a known one.
    ///
    /// # Errors
    /// Reason why the body cannot be looked into.
    pub(in crate::steps) fn decoded_body(&self, encoding: Option<&[u8]>) -> Result<Cow<'_, [u8]>, String> {
        if let Some(reason) = self.is_cut {
            return Err(reason.to_owned());
        }
        decoded_body(&self.body, encoding)
    }
}

/// Whether the status of a head is 400 or above.
fn is_error(head: &[u8]) -> bool {
    let status = head.iter().position(|byte| *byte == b' ').and_then(|at| head.get(at + 1));
    matches!(status, Some(b'4'..=b'9'))
}

/// Body, decompressed if `encoding`, the value of Content-Encoding, is a known one.
///
/// # Errors
/// Reason why the body does not decompress.
pub fn decoded_body<'b>(raw: &'b [u8], encoding: Option<&[u8]>) -> Result<Cow<'b, [u8]>, String> {
    let encoding = encoding.unwrap_or_default();
    content_coding::decoded(raw, encoding, decompressed).map_err(|error| error.to_string())
}

/// Content of a compressed body. A small one may have any size: memory is taken as content comes, up to the bounds.
fn decompressed(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let (mut body, mut share) = (Vec::new(), BodyShare::default());
    let mut part = [0; 16 << 10];
    loop {
        let length = match from.read(&mut part) {
            Ok(0) => return Ok(body),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if body.len() + length > MAX_BODY_BYTES {
            return Err(io::Error::other("its content is larger than 64 MiB"));
        }
        if !share.make_room(&mut body, length) {
            return Err(io::Error::other(TOO_LARGE_TOGETHER));
        }
        body.extend_from_slice(&part[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_an_error_is_kept_and_nothing_of_a_success() {
        let mut kept = KeptResponse::default();
        for (head, expected) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], 0),
            (b"HTTP/1.1 401 Unauthorized\r\n\r\n", MAX_ERROR_BODY_BYTES),
            (b"HTTP/2 503\r\n\r\n", MAX_ERROR_BODY_BYTES),
            (b"HTTP/1.1", 0),
        ] {
            kept.clear(KeptBody::OfErrors);
            kept.set_head(head);
            (0..3).for_each(|_| kept.push_body(&[b'x'; 3000]));
            assert_eq!((kept.raw_body().len(), kept.is_cut), (expected, None));
        }
        kept.clear(KeptBody::Whole);
        kept.set_head(b"HTTP/1.1 200 OK\r\n\r\n");
        (0..3).for_each(|_| kept.push_body(&[b'x'; 3000]));
        assert_eq!(kept.raw_body().len(), 9000);
    }

    #[test]
    fn a_body_that_is_too_large_is_dropped_whole() {
        let mut kept = KeptResponse::default();
        kept.clear(KeptBody::Whole);
        kept.set_head(b"HTTP/1.1 200 OK\r\n\r\n");
        let part = vec![b'x'; 1 << 20];
        (0..65).for_each(|_| kept.push_body(&part));
        kept.push_body(b"x");
        assert_eq!((kept.raw_body().len(), kept.body.capacity(), kept.keeps_body()), (0, 0, false));
        assert_eq!(kept.decoded_body(None).map(Cow::into_owned), Err(TOO_LARGE.to_owned()));
        kept.clear(KeptBody::Whole);
        kept.push_body(b"x");
        assert_eq!(kept.decoded_body(None).map(Cow::into_owned), Ok(b"x".to_vec()));
    }

    #[test]
    fn a_small_body_with_a_large_content_is_an_error() {
        use std::io::Write as _;
        let compressed = |further: &[u8]| {
            let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let part = vec![0; 1 << 20];
            (0..64).for_each(|_| bomb.write_all(&part).expect("memory"));
            bomb.write_all(further).expect("memory");
            bomb.finish().expect("memory")
        };
        let decoded = decoded_body(&compressed(b""), Some(b"gzip")).map(|body| body.len());
        assert_eq!(decoded, Ok(MAX_BODY_BYTES));
        let error = decoded_body(&compressed(b"0"), Some(b"gzip")).expect_err("too large");
        assert!(error.contains("larger than 64 MiB"), "{error}");
    }
}
