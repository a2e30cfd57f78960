//! One HTTP/2 connection, and its streams.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

use hyper::client::conn::http2::SendRequest;

use super::body::OutgoingFrames;
use super::stream_state::Http2StreamState;
use crate::client::error::SendError;
use crate::client::progress_timeout::{ProgressTimeout, ProgressTimeouts};
use crate::client::step_timer::{ExchangeStep, StepTimer};
use weir_base::Nanos;

/// A connection, which a task of its own drives.
#[derive(Debug)]
pub(in crate::client) struct Http2Connection {
    pub(super) sender: SendRequest<OutgoingFrames>,
    /// Current streams, and the peer's maximum.
    pub(super) streams: Cell<usize>,
    pub(super) max_streams: Cell<usize>,
    pub(super) is_reused: Cell<bool>,
    /// Whether there was a stream since the last sweep, and the time of the last sweep with one.
    pub(super) was_busy: Cell<bool>,
    pub(super) since: Cell<Nanos>,
    /// Whether the connection gets no more streams.
    pub(super) retired: Cell<bool>,
}

/// A stream, which holds its slot on the connection.
#[derive(Debug)]
pub(in crate::client) struct Http2Stream {
    connection: Rc<Http2Connection>,
    pub(super) shared: Rc<Http2StreamState>,
}

impl Http2Stream {
    pub(super) fn new(connection: &Rc<Http2Connection>, stalls: &Rc<ProgressTimeouts>, step: ExchangeStep) -> Self {
        connection.streams.set(connection.streams.get() + 1);
        connection.was_busy.set(true);
        let state = Http2StreamState {
            is_over: Cell::default(),
            sender_waker: RefCell::default(),
            body_error: RefCell::default(),
            progress: ProgressTimeout::new(stalls),
            taken_pieces: Cell::default(),
            step: Cell::new(Some(step)),
            exchange_waker: RefCell::default(),
        };
        Self { connection: Rc::clone(connection), shared: Rc::new(state) }
    }

    /// Records received bytes.
    pub(in crate::client) fn on_received(&self) {
        self.shared.progress.on_received();
    }

    /// The cause of the stream's end, which may be the request's body.
    pub(in crate::client) fn attribute_error(&self, error: SendError) -> SendError {
        self.shared.body_error.take().map_or(error, SendError::request)
    }

    /// Checks the timeouts of the exchange's steps while its response's head is awaited.
    ///
    /// # Errors
    /// If one is exceeded.
    pub(super) fn check_steps(
        &self,
        cx: &mut Context<'_>,
        steps: &mut StepTimer,
        taken_before: &mut u64,
    ) -> Result<(), SendError> {
        let taken = self.shared.taken_pieces.get();
        if std::mem::replace(taken_before, taken) != taken {
            steps.on_progress();
        }
        self.shared.exchange_waker.replace(Some(cx.waker().clone()));
        steps.poll(cx, self.shared.step.get())
    }

    /// Checks the progress timeout while nothing has come.
    ///
    /// # Errors
    /// If the timeout is exceeded. The connection then gets no further streams, since its peer may be gone.
    pub(in crate::client) fn check_timeout(&self, waker: &Waker) -> Result<(), SendError> {
        self.shared.progress.check(waker).inspect_err(|_| self.connection.retired.set(true))
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection.streams.set(self.connection.streams.get().saturating_sub(1));
        self.shared.is_over.set(true);
        if let Some(waker) = self.shared.sender_waker.take() {
            waker.wake();
        }
    }
}
