//! The bytes of a connection of HTTP/2, with a budget for frames that carry nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::coarse_clock::CoarseClock;
use super::connection_state::ConnectionState;
use super::served_stream::ServedStream;
use crate::control_budget::{ControlFrameBudget, FrameBoundary};

/// ENHANCE_YOUR_CALM (RFC 9113, 7).
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// A connection that ends with GOAWAY when its peer exceeds the budget.
#[derive(Debug)]
pub(super) struct BudgetedStream {
    stream: ServedStream,
    connection: Rc<ConnectionState>,
    coarse_clock: CoarseClock,
    budget: ControlFrameBudget,
    sent: FrameBoundary,
    is_exceeded: bool,
}

impl BudgetedStream {
    pub(super) fn new(stream: ServedStream, connection: Rc<ConnectionState>, coarse_clock: CoarseClock) -> Self {
        let budget = ControlFrameBudget::new(coarse_clock.now());
        Self { stream, connection, coarse_clock, budget, sent: FrameBoundary::default(), is_exceeded: false }
    }

    /// Ends the connection. The peer gets the reason, unless it does not read or a frame is half written.
    fn exceed(&mut self, cx: &mut Context<'_>) -> io::Error {
        self.is_exceeded = true;
        self.connection.set_control_flood();
        if self.sent.is_between_frames() {
            let mut goaway = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
            goaway.extend(self.budget.last_stream().to_be_bytes());
            goaway.extend(ENHANCE_YOUR_CALM.to_be_bytes());
            // What does not go out now is not awaited.
            let _ = Pin::new(&mut self.stream).poll_write(cx, &goaway);
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
        io::ErrorKind::ConnectionAborted.into()
    }

    fn record_sent<'a>(&mut self, length: usize, parts: impl Iterator<Item = &'a [u8]>) {
        self.budget.sent(length);
        let mut left = length;
        for part in parts {
            let written = part.len().min(left);
            self.sent.pass(&part[..written]);
            left -= written;
        }
    }
}

impl AsyncRead for BudgetedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_exceeded {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        let now = this.coarse_clock.now();
        this.budget.received(&buffer.filled()[before..]);
        this.connection.update_timeouts(|timeouts| timeouts.set_in_head(now, this.budget.is_in_head()));
        Poll::Ready(if this.budget.is_exceeded(now) { Err(this.exceed(cx)) } else { Ok(()) })
    }
}

impl AsyncWrite for BudgetedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.record_sent(length, std::iter::once(bytes));
        Poll::Ready(Ok(length))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts))?;
        self.record_sent(length, parts.iter().map(|part| &**part));
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
