//! Bytes of a response on their way to the socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::AsyncWrite;

/// Parts up to this size are copied behind one another, in bytes: one part costs the system less than two.
const COPIED_BYTES: usize = 4096;
/// Bytes and parts above which nothing more is taken before some are written.
const MAX_BYTES: usize = 64 * 1024;
const MAX_PARTS: usize = 16;

/// A queue of bytes.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    /// The first bytes.
    flat: Vec<u8>,
    /// Number of these that are written.
    written: usize,
    /// Further bytes, uncopied.
    parts: VecDeque<Bytes>,
    /// Bytes in `parts`.
    part_bytes: usize,
}

impl WriteQueue {
    /// A queue that uses the memory of `buffer`.
    pub(super) fn with_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { flat: buffer, ..Self::default() }
    }

    /// The buffer of an empty queue.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.flat
    }

    /// Buffer to write a head to; only before any part.
    pub(super) fn flat(&mut self) -> &mut Vec<u8> {
        &mut self.flat
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written == self.flat.len() && self.parts.is_empty()
    }

    /// Whether more is to be written before more is taken.
    pub(super) fn is_full(&self) -> bool {
        self.parts.len() >= MAX_PARTS || self.flat.len() - self.written + self.part_bytes >= MAX_BYTES
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if self.parts.is_empty() && bytes.len() <= COPIED_BYTES {
            self.flat.extend_from_slice(&bytes);
        } else if !bytes.is_empty() {
            self.part_bytes += bytes.len();
            self.parts.push_back(bytes);
        }
    }

    /// Appends a few bytes.
    pub(super) fn push_copy(&mut self, bytes: &[u8]) {
        if self.parts.is_empty() {
            self.flat.extend_from_slice(bytes);
        } else {
            self.push(Bytes::copy_from_slice(bytes));
        }
    }

    /// Writes until the queue is empty.
    pub(super) fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let rest = &self.flat[self.written..];
            let length = if self.parts.is_empty() {
                ready!(Pin::new(&mut *socket).poll_write(cx, rest))?
            } else {
                let mut slices = [IoSlice::new(&[]); MAX_PARTS + 2];
                let mut count = 0;
                let parts = self.parts.iter().map(|part| &part[..]);
                for bytes in std::iter::once(rest).chain(parts).filter(|bytes| !bytes.is_empty()).take(slices.len()) {
                    slices[count] = IoSlice::new(bytes);
                    count += 1;
                }
                ready!(Pin::new(&mut *socket).poll_write_vectored(cx, &slices[..count]))?
            };
            if length == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(length);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut length: usize) {
        let flat = length.min(self.flat.len() - self.written);
        self.written += flat;
        length -= flat;
        // Also while more is appended, or it would have all of a long response.
        if self.written == self.flat.len() || self.written >= MAX_BYTES {
            self.flat.drain(..self.written);
            self.written = 0;
        }
        self.part_bytes -= length;
        while length > 0 {
            let Some(first) = self.parts.front_mut() else { return };
            let step = length.min(first.len());
            first.advance(step);
            length -= step;
            if first.is_empty() {
                self.parts.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A socket that takes these numbers of bytes; 0: it is not ready once.
    struct Slow {
        steps: Vec<usize>,
        taken: Vec<u8>,
    }

    impl AsyncWrite for Slow {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let step = self.steps.pop().unwrap_or(usize::MAX);
            if step == 0 {
                return Poll::Pending;
            }
            let before = self.taken.len();
            for part in parts {
                let room = step - (self.taken.len() - before);
                self.taken.extend_from_slice(&part[..part.len().min(room)]);
            }
            Poll::Ready(Ok(self.taken.len() - before))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    proptest! {
        #[test]
        fn bytes_leave_in_their_order_whatever_the_socket_takes(
            pushes in proptest::collection::vec((0..9_000_usize, any::<bool>()), 1..40),
            steps in proptest::collection::vec(0..5_000_usize, 0..60),
        ) {
            let mut queue = WriteQueue::with_buffer(vec![1, 2, 3]);
            let mut socket = Slow { steps, taken: Vec::new() };
            let mut expected = Vec::new();
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for (number, (length, is_copied)) in pushes.into_iter().enumerate() {
                let bytes = vec![number as u8; length];
                expected.extend_from_slice(&bytes);
                if is_copied { queue.push_copy(&bytes) } else { queue.push(bytes.into()) }
                if queue.is_full() {
                    let _ = queue.poll_write(&mut cx, &mut socket);
                }
            }
            while queue.poll_write(&mut cx, &mut socket).is_pending() {}
            prop_assert!(queue.is_empty() && !queue.is_full());
            prop_assert_eq!(queue.part_bytes, 0);
            prop_assert!(socket.taken == expected);
        }
    }

    #[test]
    fn a_long_response_in_small_parts_takes_no_more_memory_than_a_queue() {
        let mut queue = WriteQueue::default();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for _ in 0..2_000 {
            while !queue.is_full() {
                queue.push(Bytes::from_static(&[1; 1000]));
            }
            // It never takes all.
            let mut socket = Slow { steps: vec![0, 20_000], taken: Vec::new() };
            assert!(queue.poll_write(&mut cx, &mut socket).is_pending());
            assert!(queue.flat.capacity() <= 4 * MAX_BYTES, "{}", queue.flat.capacity());
        }
    }
}
