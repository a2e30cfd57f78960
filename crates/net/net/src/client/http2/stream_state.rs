//! State of an HTTP/2 stream.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use crate::client::progress_timeout::ProgressTimeout;
use crate::client::step_timer::ExchangeStep;

/// State shared by the two halves of a stream. Without it hyper would send the rest of a request's body even after its
/// response was dropped.
#[derive(Debug)]
pub(super) struct Http2StreamState {
    pub(super) is_over: Cell<bool>,
    pub(super) sender_waker: RefCell<Option<Waker>>,
    /// Reason why the request's body ended early: then a failure of the stream is the caller's fault.
    pub(super) body_error: RefCell<Option<String>>,
    pub(super) progress: ProgressTimeout,
    /// Pieces of the request's body that were taken.
    pub(super) taken_pieces: Cell<u64>,
    /// The step that the exchange is in; None while the request waits for its own body.
    pub(super) step: Cell<Option<ExchangeStep>>,
    /// Waker of the exchange, whose timer depends on its step.
    pub(super) exchange_waker: RefCell<Option<Waker>>,
}

impl Http2StreamState {
    /// Sets the step that the exchange is in.
    pub(super) fn set_step(&self, step: Option<ExchangeStep>) {
        if self.step.replace(step) != step
            && let Some(waker) = self.exchange_waker.take()
        {
            waker.wake();
        }
    }
}
