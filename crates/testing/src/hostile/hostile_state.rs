//! State that all connections of the server share.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::counts::HostileCounts;
use super::options::HostileOptions;

/// State that all connections share.
#[derive(Debug)]
pub(super) struct HostileState {
    pub(super) options: HostileOptions,
    pub(super) counts: Mutex<HostileCounts>,
    /// Number of the next request.
    pub(super) next: AtomicU64,
    /// Number of the next violation.
    pub(super) violations: AtomicU64,
    pub(super) stopped: AtomicBool,
    pub(super) streams: Mutex<HashMap<u64, TcpStream>>,
}
