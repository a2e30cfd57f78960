//! Buffers of large reads, which are used again once nothing refers to what was read into them.
//!
//! New ones would be new pages from the system each time, which costs more than what is read.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use weir_machine::lock::lock;

/// Size of a buffer: a read of 64 KiB, and a byte that shows that more is there.
pub(super) const LARGE_READ_BYTES: usize = 64 * 1024 + 1;

/// Buffers that are kept: as many as a reader may be behind.
const MAX_KEPT: usize = 8;

/// Buffers of the reads of a thread; what was read may be dropped on others.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadPool(Arc<Mutex<Vec<Vec<u8>>>>);

impl ReadPool {
    /// A buffer with anything in it.
    pub(super) fn take(&self) -> LargeRead {
        let kept = lock(&self.0).pop();
        let buffer = kept.unwrap_or_else(|| vec![0; LARGE_READ_BYTES]);
        LargeRead { buffer, filled: 0, pool: self.clone() }
    }
}

/// A buffer of a pool, to which it returns.
#[derive(Debug)]
pub(super) struct LargeRead {
    buffer: Vec<u8>,
    filled: usize,
    pool: ReadPool,
}

impl LargeRead {
    /// All of the buffer.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The first `filled` bytes, without a copy.
    pub(super) fn freeze(mut self, filled: usize) -> Bytes {
        self.filled = filled.min(self.buffer.len());
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for LargeRead {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl Drop for LargeRead {
    fn drop(&mut self) {
        // In a child of a fork a thread of its parent may have it for ever.
        if let Ok(mut kept) = self.pool.0.try_lock()
            && kept.len() < MAX_KEPT
        {
            kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_after_the_last_reference_and_holds_what_was_read() {
        let pool = ReadPool::default();
        let mut read = pool.take();
        read.room()[..3].copy_from_slice(b"abc");
        let bytes = read.freeze(3);
        let (at, part) = (bytes.as_ptr(), bytes.slice(1..));
        drop(bytes);
        assert_ne!(pool.take().buffer.as_ptr(), at, "a part is still there");
        assert_eq!(part, "bc"[..]);
        std::thread::spawn(move || drop(part)).join().expect("dropped elsewhere");
        assert_eq!(pool.take().buffer.as_ptr(), at);
    }

    #[test]
    fn no_more_buffers_are_kept_than_a_reader_may_be_behind() {
        let pool = ReadPool::default();
        drop((0..2 * MAX_KEPT).map(|_| pool.take()).collect::<Vec<_>>());
        assert_eq!(lock(&pool.0).len(), MAX_KEPT);
        assert!(lock(&pool.0).iter().all(|buffer| buffer.len() == LARGE_READ_BYTES));
    }
}
