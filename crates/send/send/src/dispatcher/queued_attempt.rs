//! Attempt to be sent, and its response.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use weir_base::Nanos;
use weir_delivery::dispatch::JobId;

/// Attempt that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedAttempt {
    pub(super) job: JobId,
    pub(super) key: usize,
    pub(super) attempt: u32,
    pub(super) nonce: u64,
    /// Time at which it could have been sent.
    pub(super) due: Nanos,
}

/// Status, headers and whole body of a response.
pub(super) type AttemptResponse = (StatusCode, HeaderMap, Bytes);
