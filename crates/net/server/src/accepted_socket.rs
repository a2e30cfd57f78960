//! Accepted connections of the system: TCP or Unix sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The system's socket of a connection.
#[derive(Debug)]
pub(super) enum AcceptedSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Passes a call on to the socket of either kind.
macro_rules! either {
    ($self:ident, $socket:ident => $call:expr) => {
        match $self {
            AcceptedSocket::Tcp($socket) => $call,
            AcceptedSocket::Unix($socket) => $call,
        }
    };
}

impl AcceptedSocket {
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_read(cx, buffer))
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_read_ready(cx))
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_write_ready(cx))
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => socket.try_read(buffer))
    }

    pub(super) fn try_io<R>(&self, interest: Interest, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        either!(self, socket => socket.try_io(interest, io))
    }
}

impl AsFd for AcceptedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, socket => socket.as_fd())
    }
}
