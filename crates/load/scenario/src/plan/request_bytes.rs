//! Bytes of a request to send.

use std::sync::Arc;

/// Size from which a body that never changes is shared by all requests instead of copied into each, in bytes.
const MIN_SHARED_BYTES: usize = 16 << 10;

/// Bytes of a request: those that are written for it, and behind them a large body that all requests of the step share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBytes {
    /// Head, and a body of its own.
    pub written: Vec<u8>,
    /// Body that never changes.
    pub shared_body: Option<Arc<[u8]>>,
}

impl RequestBytes {
    /// Shares a body, if it is large.
    pub(super) fn share(body: &[u8]) -> Option<Arc<[u8]>> {
        (body.len() >= MIN_SHARED_BYTES).then(|| body.into())
    }

    /// Drops all bytes; buffers stay.
    pub fn clear(&mut self) {
        self.written.clear();
        self.shared_body = None;
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.written.len() + self.shared().len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes from an offset on, in two parts; either may be empty.
    #[inline]
    pub fn parts_from(&self, offset: usize) -> [&[u8]; 2] {
        match self.written.get(offset..) {
            Some(written) => [written, self.shared()],
            None => [&[], self.shared().get(offset - self.written.len()..).unwrap_or_default()],
        }
    }

    /// All bytes in one buffer.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.written, self.shared()].concat()
    }

    fn shared(&self) -> &[u8] {
        self.shared_body.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_bytes_from_an_offset_on() {
        let with = |shared_body| RequestBytes { written: b"head".to_vec(), shared_body };
        for bytes in [with(None), with(Some(b"shared".as_slice().into())), RequestBytes::default()] {
            let all = bytes.to_vec();
            assert_eq!((bytes.len(), bytes.is_empty()), (all.len(), all.is_empty()));
            for offset in 0..=all.len() {
                assert_eq!(bytes.parts_from(offset).concat(), all[offset..], "{offset} of {bytes:?}");
            }
            assert_eq!(bytes.parts_from(all.len() + 1).concat(), b"");
        }
    }
}
