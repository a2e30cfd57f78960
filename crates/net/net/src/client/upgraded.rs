//! A connection that has switched to another protocol.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pool::PooledConnection;
use super::socket::ClientSocket;

/// The raw connection after a 101. Counts as open until it is dropped.
#[derive(Debug)]
pub struct UpgradedConnection {
    connection: PooledConnection,
    /// Bytes read behind the response.
    buffered: Bytes,
}

impl UpgradedConnection {
    pub(super) fn new(connection: PooledConnection, buffered: Bytes) -> Self {
        Self { connection, buffered }
    }

    fn socket(&mut self) -> io::Result<Pin<&mut ClientSocket>> {
        self.connection.socket.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for UpgradedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.buffered.is_empty() {
            let length = self.buffered.len().min(buffer.remaining());
            buffer.put_slice(&self.buffered[..length]);
            self.buffered.advance(length);
            return Poll::Ready(Ok(()));
        }
        self.socket()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for UpgradedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_shutdown(cx)
    }
}
