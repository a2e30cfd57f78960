//! The socket of a connection, between the kernel and HTTP.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::writev;
use rustix::net::{SendAncillaryBuffer, send, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use super::accepted_socket::AcceptedSocket;
use super::coarse_clock::CoarseClock;
use super::connection_state::ConnectionState;
use super::static_body::StaticBody;
use weir_base::Nanos;
use weir_machine::system::receive_age;
use weir_machine::system::sockets::{SEND, SEND_MORE};

/// Preface of every HTTP/2 connection (RFC 9113, 3.4), which is not a valid HTTP/1 request.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that reports its reads and writes to its [`ConnectionState`], and sends parts of a [`StaticBody`]
/// without a copy.
#[derive(Debug)]
pub(super) struct ConnectionSocket {
    stream: AcceptedSocket,
    connection: Rc<ConnectionState>,
    coarse_clock: CoarseClock,
    static_body: Option<Arc<StaticBody>>,
    /// Bytes read before the protocol was known.
    prefetched: Vec<u8>,
    /// Number of these that were read again.
    consumed: usize,
    send_state: SendState,
}

#[derive(Clone, Copy, Debug)]
enum SendState {
    Open,
    /// Write side closed; awaiting the other end's close.
    Draining {
        remaining: usize,
    },
    Closed,
    /// Whether the connection is upgraded: the last bytes of each end are forwarded.
    Tunnel,
}

/// Maximum number of bytes discarded so that a response arrives.
const MAX_DRAINED_BYTES: usize = 1 << 20;

impl ConnectionSocket {
    pub(super) fn new(
        stream: AcceptedSocket,
        connection: Rc<ConnectionState>,
        coarse_clock: CoarseClock,
        static_body: Option<Arc<StaticBody>>,
    ) -> Self {
        Self {
            stream,
            connection,
            coarse_clock,
            static_body,
            prefetched: Vec::new(),
            consumed: 0,
            send_state: SendState::Open,
        }
    }

    /// Coarse time of the event loop.
    pub(super) fn now(&self) -> Nanos {
        self.coarse_clock.now()
    }

    /// From now on a shutdown does not close the connection: the other end may continue.
    pub(super) fn start_tunnel(&mut self) {
        self.send_state = SendState::Tunnel;
    }

    /// Whether the other end speaks HTTP/2; awaits as many bytes as needed.
    pub(super) async fn detect_http2(&mut self) -> io::Result<bool> {
        loop {
            let first = self.prefetched();
            let known = first.len().min(HTTP2_PREFACE.len());
            if first[..known] != HTTP2_PREFACE[..known] {
                return Ok(false);
            }
            if known == HTTP2_PREFACE.len() {
                return Ok(true);
            }
            if self.prefetch().await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Bytes that were read before the protocol was known.
    pub(super) fn prefetched(&self) -> &[u8] {
        &self.prefetched[self.consumed..]
    }

    /// Awaits further bytes before the protocol is known; their number, 0 at the end.
    pub(super) async fn prefetch(&mut self) -> io::Result<usize> {
        let length = poll_fn(|cx| self.poll_prefetch(cx)).await?;
        if length > 0 {
            self.connection.received(self.coarse_clock.now(), length as u64);
        }
        Ok(length)
    }

    /// Removes the first of these bytes, which belong to a protocol below HTTP.
    pub(super) fn discard_prefetched(&mut self, length: usize) {
        self.prefetched.drain(..self.consumed + length);
        self.consumed = 0;
    }

    /// Age of the last received bytes.
    pub(super) fn receive_age(&self) -> Nanos {
        receive_age::age(self.stream.as_fd())
    }

    /// Reads through the stack, so that a waiting connection has no buffer.
    fn poll_prefetch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        ready!(self.stream.poll_read(cx, &mut buffer))?;
        self.prefetched.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_send(&self, cx: &mut Context<'_>, mut send: impl FnMut() -> io::Result<usize>) -> Poll<io::Result<usize>> {
        loop {
            match self.stream.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    let now = self.coarse_clock.now();
                    self.connection.update_timeouts(|timeouts| timeouts.stalled(now));
                    if let Some(taken) = self.connection.outstanding.measure(self.stream.as_fd()) {
                        self.connection.update_timeouts(|timeouts| timeouts.drained(now, taken));
                        self.connection.streams.record_drained(now, taken);
                    }
                    return Poll::Pending;
                }
            }
            match self.stream.try_io(Interest::WRITABLE, &mut send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    let length = sent.as_ref().map_or(0, |length| *length as u64);
                    self.connection.update_timeouts(|timeouts| timeouts.wrote(self.coarse_clock.now(), length));
                    return Poll::Ready(sent);
                }
            }
        }
    }
}

impl ConnectionSocket {
    fn poll_send_parts(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !self.connection.is_last_write() {
            return match parts {
                // Costs the system less than a list of one.
                [part] => self.poll_send(cx, || Ok(send(&self.stream, part, SEND)?)),
                parts => self.poll_send(cx, || Ok(writev(&self.stream, parts)?)),
            };
        }
        // The end of the stream follows at once, in the packet of the last bytes: one packet and one wake-up of the other
        // end in place of two.
        self.poll_send(cx, || Ok(sendmsg(&self.stream, parts, &mut SendAncillaryBuffer::default(), SEND_MORE)?))
    }
}

impl Drop for ConnectionSocket {
    fn drop(&mut self) {
        if self.connection.is_reset() {
            // With a linger time of 0 a close is a reset.
            let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(std::time::Duration::ZERO));
        }
    }
}

impl AsyncRead for ConnectionSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.consumed < this.prefetched.len() {
            let length = (this.prefetched.len() - this.consumed).min(buffer.remaining());
            buffer.put_slice(&this.prefetched[this.consumed..this.consumed + length]);
            this.consumed += length;
            if this.consumed == this.prefetched.len() {
                this.prefetched = Vec::new();
                this.consumed = 0;
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(this.stream.poll_read(cx, buffer))?;
        let length = buffer.filled().len() - before;
        if length == 0 {
            if !matches!(this.send_state, SendState::Tunnel) {
                this.send_state = SendState::Closed;
            }
        } else {
            this.connection.received(this.coarse_clock.now(), length as u64);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(page) = &self.static_body else { return self.poll_send_parts(cx, parts) };
        let paged = parts.iter().position(|part| page.offset_of(part).is_some());
        match paged {
            None => self.poll_send_parts(cx, parts),
            Some(0) => {
                let offset = page.offset_of(&parts[0]).unwrap_or_default();
                self.poll_send(cx, || page.send(&self.stream, offset, &parts[0]))
            }
            // Bytes before the page go first, in one packet with the page's first bytes.
            Some(_) => self.poll_send(cx, || Ok(send(&self.stream, &parts[0], SEND_MORE)?)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is buffered. But while the service does not want the request's body, nothing is read, and only here can it be
    /// learnt that the other end has left.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gone = self.connection.expects_bytes() && self.stream.try_io(Interest::ERROR, || Ok(())).is_ok();
        Poll::Ready(if gone { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) })
    }

    /// A close of a socket with unread bytes is a reset, which discards what was not sent and can overtake what was: so
    /// the write side is closed first, and bytes that are there are read and discarded, up to a limit. The last response
    /// goes out here, with the end of the stream ([`Self::poll_send_parts`]).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.connection.is_tunnel() {
            // The connection stays open until the other direction has ended, too, and its bytes are forwarded.
            return Poll::Ready(Ok(rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?));
        }
        let mut bytes = [0; 4096];
        loop {
            match this.send_state {
                SendState::Open => {
                    rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?;
                    let expects_bytes = this.connection.expects_bytes();
                    // Not readable by the event loop: so there is nothing, without a system call. What comes after this
                    // finds a response that is sent.
                    let is_readable = expects_bytes || this.stream.poll_read_ready(cx).is_ready();
                    this.send_state = match is_readable.then(|| this.stream.try_read(&mut bytes)) {
                        None | Some(Ok(0)) => SendState::Closed,
                        Some(Err(_)) if !expects_bytes => SendState::Closed,
                        Some(read) => {
                            let length = read.unwrap_or_default() as u64;
                            this.connection.received(this.coarse_clock.now(), length);
                            SendState::Draining { remaining: MAX_DRAINED_BYTES }
                        }
                    };
                }
                SendState::Draining { remaining: left } => {
                    let mut buffer = ReadBuf::new(&mut bytes);
                    ready!(this.stream.poll_read(cx, &mut buffer))?;
                    this.send_state = match left.checked_sub(buffer.filled().len()) {
                        Some(left) if !buffer.filled().is_empty() => SendState::Draining { remaining: left },
                        _ => SendState::Closed,
                    };
                }
                SendState::Closed => return Poll::Ready(Ok(())),
                SendState::Tunnel => {
                    rustix::net::shutdown(&this.stream, rustix::net::Shutdown::Write)?;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}
