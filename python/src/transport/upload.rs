//! Body of a request: given whole, or in pieces while it is sent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::exchange::Exchange;
use super::task::ChangeNotice;

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
}

/// Body of a request that takes its pieces from an exchange's queue.
pub(super) struct QueuedBody {
    pub(super) exchange: Arc<Exchange>,
    pub(super) notice: ChangeNotice,
}

impl Body for QueuedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut next = Poll::Pending;
        self.notice.change(&self.exchange, |state| {
            let queue = &mut state.upload;
            if let Some(chunk) = queue.chunks.pop_front() {
                queue.bytes -= chunk.len();
                next = Poll::Ready(Some(Ok(Frame::data(chunk))));
            } else {
                match &queue.end {
                    Some(Ok(())) => next = Poll::Ready(None),
                    Some(Err(cause)) => next = Poll::Ready(Some(Err(cause.clone().into()))),
                    None => queue.waker = Some(cx.waker().clone()),
                }
            }
        });
        next
    }
}
