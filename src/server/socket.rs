//! A connection's bytes, between the kernel and hyper.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::writev;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::arrival;
use super::page::Page;
use super::tick::Tick;
use super::watch::Watch;
use crate::decide::Nanos;

/// What every HTTP/2 connection begins with (RFC 9113, 3.4), and no HTTP/1 request.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that tells its [`Watch`] what goes over it, and that sends parts of a [`Page`] without copying them.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    watch: Rc<Watch>,
    tick: Tick,
    page: Option<Arc<Page>>,
    /// Read already, while the protocol was not known yet.
    first: Vec<u8>,
    /// How much of `first` has been given out.
    given: usize,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Open,
    /// We send nothing more, and wait for the other end to see it.
    Draining {
        left: usize,
    },
    Closed,
    /// Another protocol is spoken: what each end says last is passed on as it is.
    Tunnel,
}

/// Bytes that are thrown away at most for an answer to arrive.
const MOST_DRAINED: usize = 1 << 20;

impl Socket {
    pub(super) fn new(stream: TcpStream, watch: Rc<Watch>, tick: Tick, page: Option<Arc<Page>>) -> Self {
        Self { stream, watch, tick, page, first: Vec::new(), given: 0, end: End::Open }
    }

    /// From now on no close follows a shutdown: the other end may go on.
    pub(super) fn switches(&mut self) {
        self.end = End::Tunnel;
    }

    /// Whether the other end speaks HTTP/2; as many bytes are awaited as it takes to know.
    pub(super) async fn speaks_http2(&mut self) -> io::Result<bool> {
        loop {
            let known = self.first.len().min(PREFACE.len());
            if self.first[..known] != PREFACE[..known] {
                return Ok(false);
            }
            if known == PREFACE.len() {
                return Ok(true);
            }
            if poll_fn(|cx| self.poll_first(cx)).await? == 0 {
                return Ok(false);
            }
            self.watch.note(|patience| patience.came(self.tick.now()));
        }
    }

    /// Takes back what was read and not looked at.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.first = [bytes, &self.first[self.given..]].concat();
        self.given = 0;
    }

    /// How long ago the last bytes came.
    pub(super) fn age(&self) -> Nanos {
        arrival::age(self.stream.as_fd())
    }

    /// Reads into `first`, by way of the stack: a connection that waits here costs nothing.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        self.first.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_send(&self, cx: &mut Context<'_>, mut send: impl FnMut() -> io::Result<usize>) -> Poll<io::Result<usize>> {
        loop {
            match self.stream.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    self.watch.note(|patience| patience.stalled(self.tick.now()));
                    return Poll::Pending;
                }
            }
            match self.stream.try_io(Interest::WRITABLE, &mut send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    self.watch.note(|patience| patience.wrote(self.tick.now()));
                    return Poll::Ready(sent);
                }
            }
        }
    }
}

impl Socket {
    fn poll_send_parts(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !self.watch.is_at_the_end() {
            return self.poll_send(cx, || Ok(writev(&self.stream, parts)?));
        }
        // The close comes at once, and goes out in the packet of these last bytes: one packet and one wake-up of the
        // other end in place of two.
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        self.poll_send(cx, || Ok(sendmsg(&self.stream, parts, &mut SendAncillaryBuffer::default(), flags)?))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.watch.is_reset() {
            // Without lingering a close is a reset.
            let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(std::time::Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.given < this.first.len() {
            let length = (this.first.len() - this.given).min(buffer.remaining());
            buffer.put_slice(&this.first[this.given..this.given + length]);
            this.given += length;
            if this.given == this.first.len() {
                this.first = Vec::new();
                this.given = 0;
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        this.watch.has_room(buffer.remaining());
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() == before {
            if !matches!(this.end, End::Tunnel) {
                this.end = End::Closed;
            }
        } else {
            this.watch.note(|patience| patience.came(this.tick.now()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(page) = &self.page else { return self.poll_send_parts(cx, parts) };
        let paged = parts.iter().position(|part| page.offset_of(part).is_some());
        match paged {
            None => self.poll_send_parts(cx, parts),
            Some(0) => {
                let offset = page.offset_of(&parts[0]).unwrap_or_default();
                self.poll_send(cx, || page.send(&self.stream, offset, parts[0].len()))
            }
            // What stands before goes first, and with the page's first bytes in one packet.
            Some(_) => {
                let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
                self.poll_send(cx, || Ok(send(&self.stream, &parts[0], flags)?))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is held back. But while nobody wants more of a request's body hyper does not read, and only here can it
    /// be told that the other end has gone.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gone = self.watch.expects_bytes() && self.stream.try_io(Interest::ERROR, || Ok(())).is_ok();
        Poll::Ready(if gone { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) })
    }

    /// The close that follows tells the other end, too. But a socket that is closed with bytes unread sends a reset,
    /// which can overtake the answer: then what still comes is taken and thrown away first, up to a bound.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.watch.has_switched() {
            // No close follows before the other direction has ended, too, and what comes there is to be passed on.
            return Poll::Ready(Ok(rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?));
        }
        let mut bytes = [0; 4096];
        loop {
            match this.end {
                // Not ready to be read: so nothing is there, and it takes no system call to know.
                End::Open if !this.watch.expects_bytes() && this.stream.poll_read_ready(cx).is_pending() => {
                    this.end = End::Closed;
                }
                End::Open => match this.stream.try_read(&mut bytes) {
                    Err(_) if !this.watch.expects_bytes() => this.end = End::Closed,
                    Err(_) | Ok(1..) => {
                        rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?;
                        this.watch.note(|patience| patience.came(this.tick.now()));
                        this.end = End::Draining { left: MOST_DRAINED };
                    }
                    Ok(0) => this.end = End::Closed,
                },
                End::Draining { left } => {
                    let mut buffer = ReadBuf::new(&mut bytes);
                    ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer))?;
                    this.end = match left.checked_sub(buffer.filled().len()) {
                        Some(left) if !buffer.filled().is_empty() => End::Draining { left },
                        _ => End::Closed,
                    };
                }
                End::Closed => return Poll::Ready(Ok(())),
                End::Tunnel => {
                    rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}
