//! One call in flight: what its task and Python tell each other.
//!
//! The task is on an event loop, Python on any thread. Python asks for the next thing, and where it is not there yet it
//! waits for a change; the task tells of a change only then.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use pyo3::prelude::*;
use tokio::task::AbortHandle;
use weir::call::CallBodyError;
use weir::machine::lock::lock;
use weir::net::client::FailurePoint;

use super::upload_queue::UploadQueue;
use crate::client::engine::ClientCallOutcome;
use crate::client::kin;

/// Most bytes of a response that are received ahead of their reader.
const MAX_AHEAD_BYTES: usize = 512 * 1024;

/// Most bytes of pieces that Python gets as one. Larger ones would be new memory from the system each time.
const MAX_JOINED_BYTES: usize = 64 * 1024;

/// One call in flight.
pub(crate) struct StreamedCall {
    /// Process that made it: a child of a fork must not lock it.
    generation: u64,
    state: Mutex<StreamedCallState>,
    /// Signalled to a blocked thread.
    changed: Condvar,
}

/// State of a call in flight.
#[derive(Default)]
pub(crate) struct StreamedCallState {
    /// Outcome of the call; its body may follow in pieces.
    pub(crate) outcome: Option<ClientCallOutcome>,
    chunks: VecDeque<Bytes>,
    chunk_bytes: usize,
    pub(crate) end: Option<BodyEnd>,
    pub(crate) upload: UploadQueue,
    /// Waker of the task, while it waits for room.
    room: Option<Waker>,
    /// Whether Python waits for a change.
    is_awaited: bool,
    /// Future of asyncio by which it waits.
    future: Option<Py<PyAny>>,
    is_closed: bool,
    task: Option<AbortHandle>,
    /// Bytes of the request that were sent while the response came, and those of which Python knows.
    sent_bytes: u64,
    known_sent_bytes: u64,
    /// Whether all of the response has come, and the rest of the request is still to be sent.
    is_whole: bool,
}

/// End of a response's body.
#[derive(Debug)]
pub(crate) enum BodyEnd {
    Complete(Option<Box<HeaderMap>>),
    Failed(BodyFailure),
}

/// Failure of a response's body.
#[derive(Clone, Debug)]
pub(crate) struct BodyFailure {
    /// Name of its kind; also `deadline` and `cancelled`.
    pub(crate) kind: &'static str,
    pub(crate) point: FailurePoint,
    pub(crate) text: String,
}

impl BodyFailure {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, point: FailurePoint::Other, text: text.into() }
    }
}

impl From<CallBodyError> for BodyFailure {
    fn from(error: CallBodyError) -> Self {
        match error {
            CallBodyError::DeadlineExceeded => Self::new("deadline", error.to_string()),
            CallBodyError::Upstream(error) => {
                Self { kind: error.kind.name(), point: error.point, text: error.text.into() }
            }
        }
    }
}

/// What comes next of a response's body.
pub(crate) enum NextChunk {
    /// All that has come, at least one.
    Data(Vec<Bytes>),
    End,
    Failed(BodyFailure),
    /// It has not come yet.
    Pending,
}

impl StreamedCall {
    pub(crate) fn new(upload: UploadQueue) -> Arc<Self> {
        let state = Mutex::new(StreamedCallState { upload, ..StreamedCallState::default() });
        Arc::new(Self { generation: kin::generation(), state, changed: Condvar::new() })
    }

    /// Whether this process made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.generation == kin::generation()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, StreamedCallState> {
        lock(&self.state)
    }

    /// Changes the state on behalf of the task; returns whether Python waits for that, by a future. A blocked thread is
    /// signalled here.
    #[must_use]
    pub(crate) fn change(&self, change: impl FnOnce(&mut StreamedCallState)) -> bool {
        let mut state = self.state();
        change(&mut state);
        if !std::mem::take(&mut state.is_awaited) {
            return false;
        }
        let has_future = state.future.is_some();
        drop(state);
        if !has_future {
            self.changed.notify_all();
        }
        has_future
    }

    /// Sets the task, or ends it if the call was closed before it began.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            task.abort();
        } else {
            state.task = Some(task);
        }
    }

    /// Whether the call was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Closes the call: the task is dropped with all that it holds.
    pub(crate) fn close(&self) {
        if !self.is_ours() {
            return;
        }
        let mut state = self.state();
        state.is_closed = true;
        state.chunks.clear();
        state.chunk_bytes = 0;
        let task = state.task.take();
        // A future is set by the end of the task: another task of asyncio may wait for it.
        let future = if task.is_some() { None } else { state.future.take() };
        if state.future.is_none() {
            state.is_awaited = false;
        }
        drop(state);
        self.changed.notify_all();
        drop(future);
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Blocks until something has changed since Python found nothing; false after `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let (state, waited) = self
            .changed
            .wait_timeout_while(self.state(), timeout, |state| state.is_awaited)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        drop(state);
        !waited.timed_out()
    }

    /// Whether the reader has room for more of the body.
    pub(crate) fn has_room(&self) -> bool {
        self.state().chunk_bytes < MAX_AHEAD_BYTES
    }

    /// Whether there are pieces that were not read yet.
    pub(crate) fn has_chunks(&self) -> bool {
        !self.state().chunks.is_empty()
    }

    /// Adds a piece of the body, of which a change tells.
    pub(crate) fn push_chunk(&self, chunk: Bytes) {
        let mut state = self.state();
        state.chunk_bytes += chunk.len();
        state.chunks.push_back(chunk);
    }

    /// Notes how much of the request was sent while the response came.
    pub(crate) fn set_sent_bytes(&self, bytes: u64) {
        self.state().sent_bytes = bytes;
    }

    /// Notes that all of the response has come before the end of its request.
    pub(crate) fn set_whole(&self) {
        self.state().is_whole = true;
    }

    /// Whether the call waits for its request, and not for its response: more of it was sent since the last call, or
    /// the response is whole.
    pub(crate) fn is_sending(&self) -> bool {
        let mut state = self.state();
        let sent = state.sent_bytes;
        std::mem::replace(&mut state.known_sent_bytes, sent) != sent || state.is_whole
    }

    /// Ready once the reader has room for more of the body.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.chunk_bytes < MAX_AHEAD_BYTES {
            return Poll::Ready(());
        }
        state.room = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next piece of the body, for Python; `arm` marks that it waits for a change without one.
    pub(crate) fn next_chunk(&self, arm: bool) -> NextChunk {
        let mut state = self.state();
        if !state.chunks.is_empty() {
            let chunks = state.take_chunks();
            let waker = if state.chunk_bytes <= MAX_AHEAD_BYTES / 2 { state.room.take() } else { None };
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            return NextChunk::Data(chunks);
        }
        match &state.end {
            Some(BodyEnd::Complete(_)) => NextChunk::End,
            Some(BodyEnd::Failed(failure)) => NextChunk::Failed(failure.clone()),
            None if state.is_closed => NextChunk::Failed(BodyFailure::new("cancelled", "the response was closed")),
            None => {
                state.is_awaited |= arm;
                NextChunk::Pending
            }
        }
    }
}

impl StreamedCallState {
    /// Takes a piece, and those behind it as far as they are small.
    fn take_chunks(&mut self) -> Vec<Bytes> {
        let mut bytes = 0;
        let taken = self.chunks.iter().position(|chunk| {
            bytes += chunk.len();
            bytes > MAX_JOINED_BYTES
        });
        let chunks: Vec<Bytes> = self.chunks.drain(..taken.unwrap_or(self.chunks.len()).max(1)).collect();
        self.chunk_bytes -= chunks.iter().map(Bytes::len).sum::<usize>();
        chunks
    }

    /// Marks that Python waits for a change.
    pub(crate) fn await_change(&mut self) {
        self.is_awaited = true;
    }

    /// Whether Python still waits for a change.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    pub(crate) fn set_future(&mut self, future: Py<PyAny>) {
        self.future = Some(future);
    }

    pub(crate) fn take_future(&mut self) -> Option<Py<PyAny>> {
        self.future.take()
    }

    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        match &self.end {
            Some(BodyEnd::Complete(trailers)) => trailers.as_deref(),
            _ => None,
        }
    }
}
