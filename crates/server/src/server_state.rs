//! What all threads of a server share: its end, and what that has cut off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_decide::Nanos;

/// Signal to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownRequest {
    Run,
    /// Deadline of pending responses.
    DrainUntil(Nanos),
    Now,
}

/// What all threads of a server share.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    /// Whether the server is about to stop, so that load balancers are to send nothing more.
    pub(super) is_draining: AtomicBool,
    /// Requests and upgraded connections that the end of the grace time has cut off.
    pub(super) cut_requests: AtomicU64,
    pub(super) cut_tunnels: AtomicU64,
}

impl ServerState {
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}
