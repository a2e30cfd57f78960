//! Options of sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt};

/// A write to a connection that the other end has closed is an error, and no signal.
pub const SEND: SendFlags = SendFlags::NOSIGNAL;

/// More bytes, or the end of the connection, follow at once, in the same packet.
pub const SEND_MORE: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::MORE);

/// Discards received bytes of TCP, without a copy (`MSG_TRUNC`), if there is such a flag.
pub const DISCARD: Option<RecvFlags> = Some(RecvFlags::TRUNC);

/// Whether the system distributes connections over sockets that share an address (`SO_REUSEPORT`).
pub const BALANCES_SHARED_ADDRESSES: bool = true;

/// Non-blocking stream socket, which is not inherited by programs that are started.
///
/// # Errors
/// As `socket`.
pub fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?)
}

/// Whether a socket listens.
///
/// # Errors
/// It is not a socket.
pub fn is_listening(socket: impl AsFd) -> io::Result<bool> {
    Ok(sockopt::socket_acceptconn(socket)?)
}
