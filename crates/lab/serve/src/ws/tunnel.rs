//! A future as the peer of an upgraded connection.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that wait to be read by the future, or to be sent, above which the other side waits.
const MAX_WAITING_BYTES: usize = 256 * 1024;

/// Both directions of a connection, for the future that is its peer.
#[derive(Clone, Debug, Default)]
pub(super) struct TunnelChannel(Rc<RefCell<TunnelBuffers>>);

#[derive(Debug, Default)]
struct TunnelBuffers {
    received: Vec<u8>,
    has_ended: bool,
    sent: Vec<u8>,
    /// Waker of a writer that waits until the received bytes are taken.
    writer: Option<Waker>,
}

/// How a future ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunnelEnd {
    /// What was sent is followed by the end of this direction.
    Closed,
    /// The connection ends in both directions at once.
    Cut,
}

impl TunnelChannel {
    /// Next received bytes; empty at the end.
    ///
    /// The future is polled whenever the connection is, so that no waker is needed.
    pub(super) async fn read(&self) -> Vec<u8> {
        poll_fn(|_| {
            let mut buffers = self.0.borrow_mut();
            if buffers.received.is_empty() && !buffers.has_ended {
                return Poll::Pending;
            }
            if let Some(writer) = buffers.writer.take() {
                writer.wake();
            }
            Poll::Ready(std::mem::take(&mut buffers.received))
        })
        .await
    }

    /// Whether bytes, or the end, have been received.
    pub(super) fn has_received(&self) -> bool {
        let buffers = self.0.borrow();
        !buffers.received.is_empty() || buffers.has_ended
    }

    /// Sends bytes; waits while the client takes none.
    pub(super) async fn send(&self, bytes: &[u8]) {
        poll_fn(|_| if self.0.borrow().sent.len() < MAX_WAITING_BYTES { Poll::Ready(()) } else { Poll::Pending }).await;
        self.0.borrow_mut().sent.extend_from_slice(bytes);
    }
}

/// Peer of an upgraded connection: a future that reads and writes its channel.
pub(super) struct FutureTunnel {
    channel: TunnelChannel,
    future: Option<Pin<Box<dyn Future<Output = TunnelEnd>>>>,
    end: TunnelEnd,
}

impl fmt::Debug for FutureTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureTunnel").finish_non_exhaustive()
    }
}

impl FutureTunnel {
    pub(super) fn new<F: Future<Output = TunnelEnd> + 'static>(play: impl FnOnce(TunnelChannel) -> F) -> Self {
        let channel = TunnelChannel::default();
        let future = play(channel.clone());
        Self { channel, future: Some(Box::pin(future)), end: TunnelEnd::Closed }
    }

    fn poll_future(&mut self, cx: &mut Context<'_>) {
        if let Some(future) = &mut self.future
            && let Poll::Ready(end) = future.as_mut().poll(cx)
        {
            self.future = None;
            self.end = end;
        }
    }
}

impl AsyncRead for FutureTunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.channel.0.borrow().sent.is_empty() {
            self.poll_future(cx);
        }
        let mut buffers = self.channel.0.borrow_mut();
        if buffers.sent.is_empty() {
            return match (&self.future, self.end) {
                (Some(_), _) => Poll::Pending,
                (None, TunnelEnd::Closed) => Poll::Ready(Ok(())),
                (None, TunnelEnd::Cut) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            };
        }
        let length = buffers.sent.len().min(buffer.remaining());
        buffer.put_slice(&buffers.sent[..length]);
        buffers.sent.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FutureTunnel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut buffers = self.channel.0.borrow_mut();
        // What comes behind the end of the future is discarded.
        if self.future.is_some() {
            if buffers.received.len() >= MAX_WAITING_BYTES {
                buffers.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            buffers.received.extend_from_slice(bytes);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.channel.0.borrow_mut().has_ended = true;
        Poll::Ready(Ok(()))
    }
}
