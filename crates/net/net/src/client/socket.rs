//! The socket of a connection: TCP or Unix, plain or TLS.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use weir_machine::system::unacknowledged::outstanding;

/// The plain socket, also below TLS.
#[derive(Debug)]
pub(super) enum PlainSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(super) enum ClientSocket {
    Plain(PlainSocket),
    Tls(Box<TlsStream<PlainSocket>>),
}

/// Passes a call on to the stream of any kind.
macro_rules! each {
    ($self:ident, $kind:ident, $($variant:ident)|+, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            $($kind::$variant($stream) => { let $stream = Pin::new($stream); $call })+
        }
    };
}

impl ClientSocket {
    /// Whether the peer has neither closed nor sent anything, by the event loop's knowledge; a system call is made only
    /// where that has an event.
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_readable = match self {
            Self::Plain(plain) => plain.is_readable(),
            Self::Tls(stream) => stream.get_ref().0.is_readable(),
        };
        !is_readable || self.has_nothing()
    }

    /// Reads into `room`; the number of bytes, 0 at the end.
    pub(super) fn poll_read_into(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        ready!(Pin::new(self).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Whether a read finds neither data nor the end. Under TLS, session tickets do not count.
    pub(super) fn has_nothing(&mut self) -> bool {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        Pin::new(self).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer).is_pending()
    }

    /// Whether the other end has taken none of the last `sent` bytes of a request, by the unacknowledged bytes. Under
    /// TLS these are more. Unknown on a Unix socket.
    pub(super) fn is_unacknowledged(&self, sent: u64) -> bool {
        let plain = match self {
            Self::Plain(plain) => plain,
            Self::Tls(stream) => stream.get_ref().0,
        };
        match plain {
            PlainSocket::Tcp(stream) => outstanding(stream.as_fd()).is_some_and(|held| held >= sent),
            PlainSocket::Unix(_) => false,
        }
    }

    /// Whether TLS has negotiated HTTP/2.
    pub(super) fn negotiated_http2(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2"))
    }
}

impl PlainSocket {
    /// Whether the event loop has an event of the socket, without a system call.
    fn is_readable(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, || Ok(())).is_ok(),
            Self::Unix(stream) => stream.try_io(Interest::READABLE, || Ok(())).is_ok(),
        }
    }
}

impl AsyncRead for PlainSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Tcp | Unix, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for PlainSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, Self, Tcp | Unix, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, Self, Tcp | Unix, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Tcp | Unix, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Tcp | Unix, stream => stream.poll_shutdown(cx))
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Plain | Tls, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, Self, Plain | Tls, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, Self, Plain | Tls, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Plain | Tls, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Self, Plain | Tls, stream => stream.poll_shutdown(cx))
    }
}
