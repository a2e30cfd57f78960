//! Options of sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, socket, sockopt};

/// A write to a connection that the other end has closed is an error, and no signal: Rust programs ignore that.
pub const SEND: SendFlags = SendFlags::empty();

/// More bytes, or the end of the connection, follow at once; they may be in another packet.
pub const SEND_MORE: SendFlags = SendFlags::empty();

/// Discards received bytes without a copy: there is no such flag.
pub const DISCARD: Option<RecvFlags> = None;

/// Whether the system distributes connections over sockets that share an address. macOS gives all to the last one.
pub const BALANCES_SHARED_ADDRESSES: bool = false;

/// Non-blocking stream socket, which is not inherited by programs that are started.
///
/// # Errors
/// As `socket`.
pub fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Whether a socket listens; on macOS, which does not report it, whether it is a socket.
///
/// # Errors
/// It is not a socket.
pub fn is_listening(socket: impl AsFd) -> io::Result<bool> {
    #[cfg(target_vendor = "apple")]
    return Ok(sockopt::socket_type(socket).map(|_| true)?);
    #[cfg(not(target_vendor = "apple"))]
    Ok(sockopt::socket_acceptconn(socket)?)
}
