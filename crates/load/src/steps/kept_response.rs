//! Response that is kept while it arrives: its head, and its body where a step looks into it.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};

/// Maximum size of a kept body, in bytes, and of a decompressed one.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Response that is kept while it arrives.
#[derive(Debug, Default)]
pub(in crate::steps) struct KeptResponse {
    head: Vec<u8>,
    body: Vec<u8>,
    keeps_body: bool,
    is_cut: bool,
}

impl KeptResponse {
    /// Empties it for the next response.
    pub(in crate::steps) fn clear(&mut self, keeps_body: bool) {
        self.head.clear();
        self.body.clear();
        (self.keeps_body, self.is_cut) = (keeps_body, false);
    }

    /// Frees the memory of a head and body that are larger.
    pub(in crate::steps) fn shrink_to(&mut self, bytes: usize) {
        self.clear(false);
        self.head.shrink_to(bytes);
        self.body.shrink_to(bytes);
    }

    /// Takes the head.
    pub(in crate::steps) fn set_head(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(head);
    }

    /// Takes the next bytes of the body.
    pub(in crate::steps) fn push_body(&mut self, bytes: &[u8]) {
        if !self.keeps_body {
            return;
        }
        if self.body.len() + bytes.len() > MAX_BODY_BYTES {
            self.is_cut = true;
        } else {
            self.body.extend_from_slice(bytes);
        }
    }

    /// Head, as it came.
    pub(in crate::steps) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Body as it came, without framing.
    pub(in crate::steps) fn raw_body(&self) -> &[u8] {
        &self.body
    }

    /// Body, decompressed if `encoding` is a known one.
    ///
    /// # Errors
    /// Reason why the body cannot be looked into.
    pub(in crate::steps) fn decoded_body(&self, encoding: Option<&[u8]>) -> Result<Cow<'_, [u8]>, String> {
        if self.is_cut {
            return Err(format!("the body is larger than {} MiB, of which no check can be made", MAX_BODY_BYTES >> 20));
        }
        let Some(encoding) = encoding.filter(|_| !self.body.is_empty()) else { return Ok(Cow::Borrowed(&self.body)) };
        let decoded = match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
            b"identity" | b"" => return Ok(Cow::Borrowed(&self.body)),
            b"gzip" | b"x-gzip" => decompressed(GzDecoder::new(&self.body[..])),
            b"deflate" => decompressed(ZlibDecoder::new(&self.body[..])),
            other => return Err(format!("unknown content encoding '{}'", other.escape_ascii())),
        };
        decoded.map(Cow::Owned).map_err(|error| format!("the body does not decompress: {error}"))
    }
}

fn decompressed(mut from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    from.by_ref().take(MAX_BODY_BYTES as u64).read_to_end(&mut body)?;
    Ok(body)
}
