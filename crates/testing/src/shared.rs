//! State that a scripted service shares with its connections: the script, and what has been counted and seen.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustls::ServerConfig;

use super::reply::Reply;
use super::seen::Seen;

/// Counts of the service.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Connections accepted, the probe's before the run included.
    pub connections: u64,
    /// Of these, the ones that brought a request.
    pub used: u64,
    pub open: u64,
    pub most_open: u64,
    pub requests: u64,
    /// The most requests that lay on one connection at once, unanswered.
    pub deepest: u64,
    pub bytes_sent: u64,
}

#[derive(Debug, Default)]
pub struct State {
    pub counts: Counts,
    pub seen: Vec<Seen>,
    pub names: Vec<Option<String>>,
    pub stopped: bool,
}

pub struct Shared {
    pub state: Mutex<State>,
    pub changed: Condvar,
    pub script: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    pub greeting: Option<Reply>,
    pub to_head: Option<Reply>,
    pub tls: Option<Arc<ServerConfig>>,
    pub idle: Option<Duration>,
    pub reads_every: Option<Duration>,
    pub batch: usize,
}
