//! The bytes of a connection as HTTP sees them: with TLS or without.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::connection_state::ConnectionState;
use super::socket::ConnectionSocket;

/// A connection below HTTP.
#[derive(Debug)]
pub(super) enum ServedStream {
    Plain(ConnectionSocket),
    Tls(Box<DecryptedStream>),
}

/// A connection with TLS, after its handshake.
#[derive(Debug)]
pub(super) struct DecryptedStream {
    stream: TlsStream<ConnectionSocket>,
    connection: Rc<ConnectionState>,
    /// Decrypted bytes that were read and not parsed.
    unread: Vec<u8>,
    /// Number of these that were read again.
    consumed: usize,
}

impl DecryptedStream {
    pub(super) fn new(stream: TlsStream<ConnectionSocket>, connection: Rc<ConnectionState>) -> Self {
        Self { stream, connection, unread: Vec::new(), consumed: 0 }
    }
}

impl ServedStream {
    /// Takes back bytes that were read and not parsed.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(socket) => socket.unread(bytes),
            Self::Tls(tls) => {
                tls.unread = [bytes, &tls.unread[tls.consumed..]].concat();
                tls.consumed = 0;
            }
        }
    }

    /// Waits for the next bytes without holding a buffer for them; returns whether there are any, or else the end.
    pub(super) async fn wait_for_bytes(&mut self) -> io::Result<bool> {
        poll_fn(|cx| {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut *self).poll_read(cx, &mut buffer))?;
            self.unread(buffer.filled());
            Poll::Ready(Ok(!buffer.filled().is_empty()))
        })
        .await
    }

    /// From now on a shutdown does not close the connection: the other end may continue.
    pub(super) fn start_tunnel(&mut self) {
        match self {
            Self::Plain(socket) => socket.start_tunnel(),
            Self::Tls(tls) => tls.stream.get_mut().0.start_tunnel(),
        }
    }
}

/// Passes a call on to the stream of either kind.
macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            ServedStream::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            ServedStream::Tls(tls) => {
                let $stream = Pin::new(&mut tls.stream);
                $call
            }
        }
    };
}

impl AsyncRead for ServedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(tls) => {
                let rest = &tls.unread[tls.consumed..];
                if !rest.is_empty() {
                    let length = rest.len().min(buffer.remaining());
                    buffer.put_slice(&rest[..length]);
                    tls.consumed += length;
                    if tls.consumed == tls.unread.len() {
                        tls.unread = Vec::new();
                        tls.consumed = 0;
                    }
                    return Poll::Ready(Ok(()));
                }
                tls.connection.record_buffer_bytes(buffer.remaining());
                Pin::new(&mut tls.stream).poll_read(cx, buffer)
            }
        }
    }
}

impl AsyncWrite for ServedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
