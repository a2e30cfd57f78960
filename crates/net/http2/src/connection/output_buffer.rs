//! Bytes to be written to the peer.

/// Pending output from which on no request and no body is added, in bytes.
pub(super) const MAX_REQUESTED_BYTES: usize = 64 * 1024;
/// Pending output from which on a peer that causes more of it has stopped reading, in bytes.
pub(super) const MAX_PENDING_BYTES: usize = 1024 * 1024;

/// Bytes to be written, of which the first ones may be written already.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    written: usize,
}

impl OutputBuffer {
    /// The buffer to append to.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes not yet written.
    #[inline]
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Bytes that requests and bodies may add.
    #[inline]
    pub(super) fn room(&self) -> usize {
        MAX_REQUESTED_BYTES.saturating_sub(self.bytes.len() - self.written)
    }

    /// Drops the first pending bytes.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.bytes.len());
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        } else if self.written > MAX_REQUESTED_BYTES {
            self.bytes.copy_within(self.written.., 0);
            self.bytes.truncate(self.bytes.len() - self.written);
            self.written = 0;
        }
    }
}
