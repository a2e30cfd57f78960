//! Bytes of a response that the system has and the peer has not: the system reports room only once a third of its
//! buffer is free, which a slow reader may not manage in time.

use std::cell::Cell;
use std::os::fd::BorrowedFd;

use weir_machine::system::unacknowledged;

/// Measure of what a peer takes that accepts no further bytes.
#[derive(Debug, Default)]
pub(super) struct OutstandingBytes {
    is_asked_for: Cell<bool>,
    last: Cell<u64>,
}

impl OutstandingBytes {
    /// Requests one measurement by the connection's task.
    pub(super) fn ask(&self) {
        self.is_asked_for.set(true);
    }

    /// Bytes that the peer has taken since the last measure; None unless a measurement was requested.
    pub(super) fn measure(&self, socket: BorrowedFd<'_>) -> Option<u64> {
        if !self.is_asked_for.take() {
            return None;
        }
        let outstanding = unacknowledged::outstanding(socket).unwrap_or_default();
        Some(self.last.replace(outstanding).saturating_sub(outstanding))
    }
}
