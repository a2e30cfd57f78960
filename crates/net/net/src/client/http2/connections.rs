//! The HTTP/2 connections to one origin.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::connection::Http2Connection;
use super::pending_connect::PendingConnect;
use weir_base::Nanos;

/// The HTTP/2 connections to one origin.
#[derive(Debug, Default)]
pub(in crate::client) struct Http2Connections {
    pub(super) connections: RefCell<Vec<Rc<Http2Connection>>>,
    pub(super) connecting: RefCell<Weak<PendingConnect>>,
    /// Whether TLS negotiated HTTP/1.1 the last time.
    pub(super) declined: Cell<bool>,
}

impl Http2Connections {
    pub(in crate::client) fn declined(&self) -> bool {
        self.declined.get()
    }

    /// The pending connection, if there is one.
    pub(super) fn pending_connect(&self) -> Option<Rc<PendingConnect>> {
        self.connecting.borrow().upgrade()
    }

    /// A connection with a free stream; without a way to a further connection, the one with the fewest streams.
    pub(super) fn pick(&self, may_dial: bool) -> Option<Rc<Http2Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.sender.is_closed() && !connection.retired.get());
        let least = connections.iter().min_by_key(|connection| connection.streams.get())?;
        let full = least.streams.get() >= least.max_streams.get().max(1);
        (!full || !may_dial).then(|| Rc::clone(least))
    }

    /// Drops connections without streams since `before`; they close in an orderly way.
    pub(in crate::client) fn sweep(&self, before: Nanos, now: Nanos) {
        self.connections.borrow_mut().retain(|connection| {
            let streams = connection.streams.get() > 0;
            if connection.was_busy.replace(streams) {
                connection.since.set(now);
            }
            !connection.sender.is_closed() && !connection.retired.get() && (streams || connection.since.get() >= before)
        });
    }

    /// Drops all connections; they end with their last stream.
    pub(in crate::client) fn close(&self) {
        let connections = self.connections.take();
        drop(connections);
    }
}
