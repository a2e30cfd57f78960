//! Arrival times of received bytes: these are for Linux.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::net::{RecvFlags, recv as receive};
use weir_base::WallNanos;

/// Enables receive timestamps for a socket.
///
/// # Errors
/// Always: there are none.
pub fn enable(_: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether there are receive timestamps.
pub const ARE_SUPPORTED: bool = false;

/// Reads into `buffer`; returns the number of bytes, and no arrival.
///
/// # Errors
/// As `recv`.
pub fn recv(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<WallNanos>)> {
    let (_, bytes) = receive(socket, buffer, RecvFlags::empty())?;
    Ok((bytes, None))
}
