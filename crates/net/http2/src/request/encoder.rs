//! Encoder of requests, and its cache of blocks.

use super::{RequestHead, RequestHeadError};
use crate::hpack::HpackEncoder;

/// Templates whose last block is kept.
const MAX_CACHED_TEMPLATES: usize = 16;
/// Maximum size of a head, and of its block, that is kept, in bytes.
const MAX_CACHED_HEAD_BYTES: usize = 4096;

/// Encoder of a connection's requests.
///
/// A load sends the same head again and again. Its block is the same too, as soon as all that repeats is in the table,
/// and as long as the table is the same: then the block is copied, which costs the comparison of the head.
#[derive(Debug)]
pub struct RequestEncoder {
    encoder: HpackEncoder,
    scheme: &'static str,
    head: RequestHead,
    /// By template.
    cached: Vec<CachedRequest>,
}

/// Facts about an encoded request that its response depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodedRequest {
    /// Whether its method is HEAD, so that the response has no content.
    pub is_head: bool,
}

/// Block of a template's last head.
#[derive(Debug, Default)]
struct CachedRequest {
    head: Vec<u8>,
    block: Vec<u8>,
    /// Generation of the table under which the block holds.
    generation: u64,
    request: EncodedRequest,
}

impl RequestEncoder {
    /// Encoder with this table; `is_tls`: the scheme is https.
    pub fn new(encoder: HpackEncoder, is_tls: bool) -> Self {
        let scheme = if is_tls { "https" } else { "http" };
        Self { encoder, scheme, head: RequestHead::default(), cached: Vec::new() }
    }

    /// Applies the maximum size of the table that the peer has set, in bytes.
    pub fn limit_table(&mut self, max_size: usize) {
        self.encoder.limit_table(max_size);
    }

    /// Appends the block of a head; `template` is a number of what the head was rendered from, small, to find the
    /// block that it had before.
    ///
    /// # Errors
    /// If the text is not the head of a request. Nothing has changed then.
    #[inline]
    pub fn encode(
        &mut self,
        text: &[u8],
        template: u32,
        out: &mut Vec<u8>,
    ) -> Result<EncodedRequest, RequestHeadError> {
        let slot = template as usize % MAX_CACHED_TEMPLATES;
        if let Some(cached) = self.cached.get(slot)
            && cached.generation == self.encoder.table().generation()
            && cached.head == text
            && !cached.head.is_empty()
            && !self.encoder.must_resize()
        {
            out.extend_from_slice(&cached.block);
            return Ok(cached.request);
        }
        self.encode_anew(text, slot, out)
    }

    fn encode_anew(&mut self, text: &[u8], slot: usize, out: &mut Vec<u8>) -> Result<EncodedRequest, RequestHeadError> {
        self.head.parse(text)?;
        let start = out.len();
        self.encoder.begin(out);
        self.head.fields(text, self.scheme.as_bytes(), |name, value| self.encoder.field(name, value, out));
        let request = EncodedRequest { is_head: self.head.is_head(text) };
        let block = &out[start..];
        if self.encoder.is_stable() && text.len() <= MAX_CACHED_HEAD_BYTES && block.len() <= MAX_CACHED_HEAD_BYTES {
            if self.cached.len() <= slot {
                self.cached.resize_with(slot + 1, CachedRequest::default);
            }
            let cached = &mut self.cached[slot];
            cached.head.clear();
            cached.head.extend_from_slice(text);
            cached.block.clear();
            cached.block.extend_from_slice(block);
            (cached.generation, cached.request) = (self.encoder.table().generation(), request);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_repeats_costs_a_byte_for_each_field_from_the_third_time_on() {
        let mut encoder = RequestEncoder::new(HpackEncoder::default(), true);
        let text = b"GET /items HTTP/1.1\r\nHost: shop:8080\r\nUser-Agent: weir/1\r\nX-Mark: 7\r\n\r\n";
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let mut block = Vec::new();
            encoder.encode(text, 3, &mut block).expect("valid");
            lengths.push(block.len());
        }
        assert_eq!(lengths[2..], [6, 6]);
        assert!(lengths[0] > 25 && lengths[1] > 15, "{lengths:?}");
        assert_eq!(encoder.cached[3].head, text);
    }

    #[test]
    fn an_invalid_head_leaves_the_table_alone() {
        let mut encoder = RequestEncoder::new(HpackEncoder::default(), true);
        let before = encoder.encoder.table().generation();
        let mut block = Vec::new();
        let text = b"GET /items HTTP/1.1\r\nX-New: 1\r\nno colon\r\n\r\n";
        assert_eq!(encoder.encode(text, 0, &mut block), Err(RequestHeadError::Field));
        assert_eq!((encoder.encoder.table().generation(), block), (before, Vec::new()));
    }
}
