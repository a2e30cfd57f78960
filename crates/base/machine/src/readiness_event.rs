//! Readiness of a connection, as a poller reports it.

/// Event of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ReadinessEvent {
    /// Key, as given when the connection was registered.
    pub key: u64,
    /// Whether data can be read, or the peer has closed.
    pub readable: bool,
    /// Whether data can be written.
    pub writable: bool,
    /// Whether the peer has closed or the connection failed: the next read shows which.
    pub hung_up: bool,
}

/// Maximum number of events at a time: a batch is processed in well under a millisecond, so that sends due meanwhile
/// are not later than that.
pub(crate) const MAX_EVENTS_PER_WAIT: usize = 128;
