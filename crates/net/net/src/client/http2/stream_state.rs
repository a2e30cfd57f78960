//! State of an HTTP/2 stream.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use crate::client::progress_timeout::ProgressTimeout;

/// State shared by the two halves of a stream. Without it hyper would send the rest of a request's body even after its
/// response was dropped.
#[derive(Debug)]
pub(super) struct Http2StreamState {
    pub(super) is_over: Cell<bool>,
    pub(super) sender_waker: RefCell<Option<Waker>>,
    /// Reason why the request's body ended early: then a failure of the stream is the caller's fault.
    pub(super) body_error: RefCell<Option<String>>,
    pub(super) progress: ProgressTimeout,
}
