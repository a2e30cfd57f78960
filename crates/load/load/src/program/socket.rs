//! Sockets of programs: WebSocket connections that users hold beside their requests.
//!
//! A program gives [`SocketCommand`]s in any of its calls, several at a time, and gets [`SocketEvent`]s whenever
//! something has come, also while its user waits for a response or a time: it answers with what the user does next, or
//! with [`Await`](super::ProgramAction::Await), which leaves the wait as it is. A user may have several sockets.

use weir_base::failure::FailureKind;

use super::{CallCommand, ProgramSend};

/// Number of a socket, which its program has chosen: unique among all that its user opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// Command of a program to a socket. Commands for one that has ended do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketCommand {
    /// Opens it; [`SocketEvent::Opened`] or [`SocketEvent::Ended`] follows.
    Open(Box<SocketOpening>),
    /// Sends a message.
    Send(SocketMessage),
    /// Sends a ping; [`SocketEvent::Pong`] follows.
    Ping {
        /// The socket.
        socket: SocketId,
        /// Content, 125 bytes at most.
        data: Vec<u8>,
    },
    /// Records the message whose reply is awaited as a failure, such as a timeout.
    FailReply {
        /// The socket.
        socket: SocketId,
        /// Kind of the failure.
        kind: FailureKind,
    },
    /// Closes it; [`SocketEvent::Ended`] follows.
    Close {
        /// The socket.
        socket: SocketId,
        /// Close code.
        code: u16,
        /// Reason, 123 bytes at most.
        reason: String,
    },
    /// Goes on with a call of gRPC that is a stream.
    Call(CallCommand),
}

/// Socket to open. Its upgrade is a request of a step: a success once it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOpening {
    /// The socket.
    pub socket: SocketId,
    /// Step, destination, intended start and timeout of the upgrade.
    pub send: ProgramSend,
    /// Bytes of a GET without a body; the fields of the upgrade are added to it.
    pub request: Vec<u8>,
    /// Subprotocols to offer, the preferred one first.
    pub subprotocols: Vec<String>,
}

/// Message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketMessage {
    /// The socket.
    pub socket: SocketId,
    /// Whether it is text.
    pub is_text: bool,
    /// Content.
    pub data: Vec<u8>,
    /// Intended start.
    pub intended: weir_base::Nanos,
    /// Step that it is a request of, whose response is the next message that comes; without one it is counted alone.
    pub step: Option<u32>,
}

/// Event of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent<'a> {
    /// It is open.
    Opened {
        /// The socket.
        socket: SocketId,
        /// Subprotocol that the service has selected.
        subprotocol: Option<&'a str>,
        /// Head of the response to its upgrade.
        head: &'a [u8],
    },
    /// A message has come.
    Message {
        /// The socket.
        socket: SocketId,
        /// Whether it is text.
        is_text: bool,
        /// Content.
        data: &'a [u8],
    },
    /// A ping has come, which has its pong.
    Ping {
        /// The socket.
        socket: SocketId,
    },
    /// A pong has come.
    Pong {
        /// The socket.
        socket: SocketId,
        /// Content.
        data: &'a [u8],
    },
    /// It has ended, or could not be opened; nothing follows.
    Ended {
        /// The socket.
        socket: SocketId,
        /// How.
        end: SocketEnd<'a>,
    },
}

/// End of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEnd<'a> {
    /// Close frames of both sides, or of the service.
    Closed {
        /// Code of the service; 1005 without one.
        code: u16,
        /// Its reason.
        reason: &'a str,
    },
    /// An upgrade with another status than 101.
    Rejected {
        /// The status.
        status: u16,
    },
    /// A failure of the connection, or of the protocol.
    Failed {
        /// Its kind.
        kind: FailureKind,
    },
}

impl SocketEvent<'_> {
    /// The socket that it is about.
    pub fn socket(&self) -> SocketId {
        match self {
            Self::Opened { socket, .. }
            | Self::Message { socket, .. }
            | Self::Ping { socket }
            | Self::Pong { socket, .. }
            | Self::Ended { socket, .. } => *socket,
        }
    }
}
