//! Socket of a user that a program drives: its connection as WebSocket.

use super::exchange::WebSocketExchange;
use super::upgrade_response::UpgradeResponse;
use crate::program::{SocketId, SocketOpening};
use weir_base::Nanos;
use weir_websocket::handshake::{HandshakeKey, HandshakeOffer};

/// Bytes that wait to be written above which a further message fails the connection.
const MAX_UNWRITTEN_BYTES: usize = 16 << 20;

/// Socket of a user that a program drives.
#[derive(Debug)]
pub(crate) struct UserSocket {
    pub(crate) id: SocketId,
    /// Bytes of its request, until it is written.
    request: Vec<u8>,
    pub(crate) offer: HandshakeOffer,
    /// Response to its upgrade, and the key; none before the upgrade, and behind it.
    pub(crate) upgrade: Option<(UpgradeResponse, HandshakeKey)>,
    /// Its frames.
    pub(crate) framed: WebSocketExchange,
    /// Message whose reply is awaited.
    pub(crate) awaited: Option<AwaitedReply>,
    /// Time since when its user closes it.
    pub(crate) closing_since: Option<Nanos>,
}

/// Message whose reply is awaited.
#[derive(Clone, Debug)]
pub(crate) struct AwaitedReply {
    pub(crate) step: u32,
    pub(crate) intended: Nanos,
    pub(crate) sent: Nanos,
    /// Length of its frame, in bytes.
    pub(crate) bytes: u64,
    /// Its content, if it is shown.
    pub(crate) shown: Vec<u8>,
}

impl UserSocket {
    pub(crate) fn new(opening: SocketOpening) -> Self {
        Self {
            id: opening.socket,
            request: opening.request,
            offer: HandshakeOffer { subprotocols: opening.subprotocols, deflate: None },
            upgrade: None,
            framed: WebSocketExchange::default(),
            awaited: None,
            closing_since: None,
        }
    }

    /// Begins the upgrade with this key: its request is to be written. Returns its length.
    pub(crate) fn begin_upgrade(&mut self, key: HandshakeKey) -> usize {
        let mut request = std::mem::take(&mut self.request);
        // The empty line comes last.
        request.truncate(request.len().saturating_sub(2));
        for (name, value) in self.offer.header_lines(&key) {
            request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        self.upgrade = Some((UpgradeResponse::default(), key));
        self.framed.out = request;
        self.framed.out.len()
    }

    /// Whether it is open for messages of its user.
    pub(crate) fn is_open(&self) -> bool {
        self.upgrade.is_none() && !self.framed.close.has_begun()
    }

    /// Whether more waits to be written than a service that reads would leave.
    pub(crate) fn is_overfull(&self) -> bool {
        self.framed.pending().len() > MAX_UNWRITTEN_BYTES
    }
}
