//! One request and its response.

use super::event::ResponseTotals;
use crate::flow::{ReceiveWindow, SendWindow};

/// A stream, open or half-closed. A closed one keeps its place in the table until the older ones are closed too.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientStream {
    pub(super) number: u32,
    /// Key of the caller.
    pub(super) key: u32,
    pub(super) is_open: bool,
    /// Whether the response has no content, since the request was HEAD.
    pub(super) is_head: bool,
    pub(super) wants_head: bool,
    /// Whether it waits in the queue of bodies.
    pub(super) is_queued: bool,
    /// Status of the final head; 0 before it.
    pub(super) status: u16,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    /// Bytes of the request's body left to send, ...
    pub(super) body_left: u64,
    /// ... and sent.
    pub(super) body_sent: u64,
    /// Length of the response's content, if announced.
    pub(super) content_length: Option<u64>,
    /// Code of gRPC of the last fields.
    pub(super) grpc_status: Option<u16>,
    /// Bytes of the response's content so far.
    pub(super) body: u64,
    /// Bytes of the response's frames so far.
    pub(super) wire: u64,
}

impl ClientStream {
    /// Whether the final head has come.
    pub(super) fn has_head(&self) -> bool {
        self.status != 0
    }

    /// Sizes of the response.
    pub(super) fn totals(&self) -> ResponseTotals {
        let Self { status, grpc_status, body, wire, body_sent, .. } = *self;
        ResponseTotals { status, grpc_status, body, wire, body_sent }
    }
}
