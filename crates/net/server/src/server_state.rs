//! State shared by all threads of a server: its shutdown, and counts of what that has cut off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_base::Nanos;

/// Signal to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownRequest {
    Run,
    /// Deadline of pending responses.
    DrainUntil(Nanos),
    /// As `DrainUntil` while another process listens: idle connections wait for one more request until then.
    LeaveUntil(Nanos),
    Now,
}

/// Requests and tunnels cut off by the end of a server's grace time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopReport {
    /// Requests whose responses were not complete.
    pub requests: u64,
    /// Upgraded connections (WebSocket) that were open.
    pub tunnels: u64,
}

/// State shared by all threads of a server.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    /// Whether the server is about to stop, so that load balancers are to send nothing more.
    pub(super) is_draining: AtomicBool,
    /// Whether HTTP/1 connections end after their next response.
    pub(super) closes_connections: AtomicBool,
    /// Requests and upgraded connections that the end of the grace time has cut off.
    pub(super) cut_requests: AtomicU64,
    pub(super) cut_tunnels: AtomicU64,
}

impl ServerState {
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub(super) fn closes_connections(&self) -> bool {
        self.closes_connections.load(Ordering::Relaxed)
    }

    pub(super) fn report(&self) -> StopReport {
        StopReport {
            requests: self.cut_requests.load(Ordering::Relaxed),
            tunnels: self.cut_tunnels.load(Ordering::Relaxed),
        }
    }
}
