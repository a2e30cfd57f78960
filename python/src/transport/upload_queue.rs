//! Pieces of a request's body that wait to be sent.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// Most bytes of a request that wait to be sent.
const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// Pieces of a request's body that wait to be sent.
#[derive(Default)]
pub(crate) struct UploadQueue {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    end: Option<Result<(), String>>,
    waker: Option<Waker>,
}

impl UploadQueue {
    /// Adds a piece, and returns the waker of the task if it waits for one.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Option<Waker> {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
        self.waker.take()
    }

    /// Whether another piece may be added.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < MAX_QUEUED_BYTES
    }

    /// Ends the body, or breaks it off for this reason.
    pub(crate) fn finish(&mut self, end: Result<(), String>) -> Option<Waker> {
        self.end.get_or_insert(end);
        self.waker.take()
    }

    /// The next piece, for the task; it is woken when one is added.
    pub(super) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= chunk.len();
            return Poll::Ready(Some(Ok(chunk)));
        }
        match &self.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(cause)) => Poll::Ready(Some(Err(cause.clone()))),
            None => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
