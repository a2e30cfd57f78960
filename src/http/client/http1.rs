//! One request and its answer over HTTP/1.1: driven by whoever waits, without a task of its own.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, ReadBuf};

use super::answer::{Body, Brought, Head, Heads};
use super::error::SendError;
use super::incoming::Incoming;
use super::pool::Lease;
use super::request::{Upload, UploadError};
use super::shared::Shared;
use super::socket::Socket;
use super::stall::Stall;
use super::upgraded::Upgraded;
use crate::decide::policy::Kind;

/// Why a connection brought no answer, and what is left for another try.
pub(super) struct Failed {
    pub(super) error: SendError,
    /// The request, if a fresh connection may take it in place of one that had been closed before: the other end took no
    /// byte of it.
    pub(super) again: Option<Upload>,
}

/// Sends a request over a connection and waits for the answer's head; calls `left` when all of it has gone.
pub(super) async fn exchange<'a>(
    shared: &'a Rc<Shared>,
    lease: Lease,
    heads: Heads,
    upload: Upload,
    left: Option<&'a mut dyn FnMut()>,
) -> Result<Response<Incoming>, Failed> {
    let stall = Some(Stall::new(&lease.pool().stalls));
    let mut exchange =
        Exchange { shared, lease: Some(lease), upload, heads, write_error: None, closed: false, stall, left };
    let answer = poll_fn(|cx| exchange.poll(cx)).await;
    answer.map_err(|error| exchange.failed(error))
}

struct Exchange<'a> {
    shared: &'a Rc<Shared>,
    lease: Option<Lease>,
    upload: Upload,
    heads: Heads,
    write_error: Option<SendError>,
    /// Whether the other end has ended the connection in good order.
    closed: bool,
    /// Until the head is there.
    stall: Option<Stall>,
    /// To be called when all has gone.
    left: Option<&'a mut dyn FnMut()>,
}

impl Exchange<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Incoming>, SendError>> {
        let Some(socket) = self.lease.as_mut().and_then(|lease| lease.socket.as_mut()) else {
            return Poll::Ready(Err(SendError::new(Kind::Connect, "no connection")));
        };
        if !self.upload.is_done() && self.write_error.is_none() {
            match self.upload.poll(cx, socket) {
                // The peer may have answered before it closed: that is looked for first.
                Poll::Ready(Err(UploadError::Socket(error))) => self.write_error = Some(SendError::broken(&error)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) => self.left.take().into_iter().for_each(|left| left()),
                Poll::Pending => {}
            }
        }
        let mut scratch = self.shared.scratch();
        loop {
            let read = match poll_read(cx, socket, &mut scratch) {
                Poll::Ready(read) => read,
                Poll::Pending => return waits(cx, self.stall.as_ref(), &mut self.upload),
            };
            let n = match read {
                Ok(0) => {
                    self.closed = true;
                    return Poll::Ready(Err(SendError::new(Kind::Closed, "connection closed before an answer")));
                }
                Ok(n) => n,
                Err(error) => return Poll::Ready(Err(SendError::broken(&error))),
            };
            self.stall.iter().for_each(Stall::came);
            let bytes = &scratch[..n];
            if let Some((head, used)) = self.heads.push(bytes)? {
                let filled = n == scratch.len();
                return Poll::Ready(self.answer(head, &bytes[used..], filled));
            }
        }
    }

    /// Makes an answer of a head and what came with it.
    fn answer(&mut self, head: Head, rest: &[u8], filled: bool) -> Result<Response<Incoming>, SendError> {
        let Some(lease) = self.lease.take() else { return Err(SendError::new(Kind::Connect, "no connection")) };
        let (upload, stall) = (std::mem::take(&mut self.upload), self.stall.take());
        let Head { status, version, headers, mut body, keep_alive } = head;
        let incoming = if status == StatusCode::SWITCHING_PROTOCOLS {
            self.shared.spare(upload);
            Incoming::switched(Upgraded::new(lease, Bytes::copy_from_slice(rest)))
        } else {
            let brought = body.push(rest)?;
            let clean = keep_alive && brought.used == rest.len();
            let shared = Rc::clone(self.shared);
            let mut receiving = Receiving { shared, lease: Some(lease), upload, body, clean, stall };
            if receiving.upload.is_done() {
                self.shared.spare(std::mem::take(&mut receiving.upload));
            } else if !keep_alive || !status.is_success() {
                // Whoever answers so does not want the rest (RFC 9112, 9.5).
                receiving.clean = false;
                receiving.upload = Upload::default();
            }
            receiving.end(filled);
            if receiving.body.is_ended() {
                Incoming::whole(brought.data, brought.trailers)
            } else {
                Incoming::receiving(receiving, brought.data)
            }
        };
        let mut response = Response::new(incoming);
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// A connection that was kept may have been closed by its other end before the request came there. It is replaced in
    /// silence only if that is certain: else one request would be two there, which no budget and no count knows of.
    fn failed(mut self, error: SendError) -> Failed {
        let reused = self.lease.as_ref().is_some_and(|lease| lease.reused);
        let died = matches!(error.kind, Kind::Closed | Kind::Reset) && self.heads.is_untouched();
        let upload = std::mem::take(&mut self.upload);
        // A reset proves nothing: what is read at once is acknowledged later, and a reset acknowledges nothing.
        let socket = self.lease.as_ref().and_then(|lease| lease.socket.as_ref());
        let untaken = match upload.sent() {
            0 => self.write_error.is_some() || self.closed,
            sent => self.closed && socket.is_some_and(|socket| socket.holds_all(sent)),
        };
        let again = reused && died && upload.is_whole() && untaken;
        Failed { error: self.write_error.take().unwrap_or(error), again: again.then_some(upload) }
    }
}

/// Nothing has come. That the other end is waited for counts only if the request has gone to it so far.
fn waits<T>(cx: &Context<'_>, stall: Option<&Stall>, upload: &mut Upload) -> Poll<Result<T, SendError>> {
    let Some(stall) = stall else { return Poll::Pending };
    if upload.has_gone_on() {
        stall.went();
    }
    stall.starves(upload.starves());
    match stall.waits(cx.waker()) {
        Ok(()) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}

fn poll_read(cx: &mut Context<'_>, socket: &mut Socket, room: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// A body whose end has not come yet.
#[derive(Debug)]
pub(super) struct Receiving {
    shared: Rc<Shared>,
    /// Until the end.
    lease: Option<Lease>,
    /// What is still to be sent: an answer may begin before its request has ended.
    upload: Upload,
    body: Body,
    /// Whether the connection may be used again.
    clean: bool,
    stall: Option<Stall>,
}

/// A body of which at least so much is to come is read without a copy, into pieces of up to [`PIECE`].
const LARGE: u64 = 16 * 1024;
const PIECE: usize = 64 * 1024;

impl Receiving {
    pub(super) fn left(&self) -> Option<u64> {
        self.body.left()
    }

    /// The next bytes of the body; without any, and with trailers perhaps, at its end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Brought, SendError>> {
        loop {
            let brought = match self.poll_some(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(brought) => brought,
            };
            match brought {
                Ok(brought) if brought.data.is_empty() && !self.body.is_ended() => {}
                Ok(brought) => return Poll::Ready(Ok(brought)),
                Err(error) => {
                    self.lease = None;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn poll_some(&mut self, cx: &mut Context<'_>) -> Poll<Result<Brought, SendError>> {
        let Some(socket) = self.lease.as_mut().and_then(|lease| lease.socket.as_mut()) else {
            return Poll::Ready(Ok(Brought::default()));
        };
        if !self.upload.is_done() {
            match self.upload.poll(cx, socket) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.shared.spare(std::mem::take(&mut self.upload)),
                Poll::Ready(Err(UploadError::Socket(_))) => {
                    self.clean = false;
                    self.upload = Upload::default();
                }
                // The other end would wait for the rest for ever.
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
        let read = |error: io::Error| SendError::broken(&error);
        let (brought, n, filled) = match self.body.left() {
            Some(left) if left >= LARGE => {
                // One more byte than is wanted: a read that does not fill its buffer shows that nothing more is there.
                let room = usize::try_from(left).unwrap_or(PIECE).min(PIECE) + 1;
                let mut data = BytesMut::zeroed(room);
                let Poll::Ready(n) = poll_read(cx, socket, &mut data) else {
                    return waits(cx, self.stall.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                let used = self.body.take(n);
                data.truncate(used);
                (Brought { used, data: data.freeze(), trailers: None }, n, n == room)
            }
            _ => {
                let mut scratch = self.shared.scratch();
                let Poll::Ready(n) = poll_read(cx, socket, &mut scratch) else {
                    return waits(cx, self.stall.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                (self.body.push(&scratch[..n])?, n, n == scratch.len())
            }
        };
        self.stall.iter().for_each(Stall::came);
        if n == 0 {
            self.body.close()?;
            self.clean = false;
        }
        self.clean &= brought.used == n;
        self.end(filled);
        Poll::Ready(Ok(brought))
    }

    /// Lets go of the connection if all has come; `filled` says that the last read may have left something.
    fn end(&mut self, filled: bool) {
        if self.body.is_ended()
            && let Some(lease) = self.lease.take()
            && self.clean
            && self.upload.is_done()
        {
            self.shared.give_back(lease, filled);
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && self.clean
            && self.upload.is_done()
            && self.body.left().is_some_and(|left| left <= self.shared.options.most_drained as u64)
        {
            let body = std::mem::replace(&mut self.body, Body::ended());
            self.shared.drain(Draining { lease, body });
        }
    }
}

/// An unwanted rest of a body, and its connection.
#[derive(Debug)]
pub(super) struct Draining {
    lease: Lease,
    body: Body,
}

impl Draining {
    /// Reads the rest; gives the connection if it can then be used again.
    pub(super) async fn run(mut self, shared: &Rc<Shared>) -> Option<Lease> {
        poll_fn(|cx| {
            loop {
                let Some(socket) = self.lease.socket.as_mut() else { return Poll::Ready(None) };
                let mut scratch = shared.scratch();
                let Ok(n @ 1..) = ready!(poll_read(cx, socket, &mut scratch)) else { return Poll::Ready(None) };
                let all = self.body.take(n) == n;
                if self.body.is_ended() {
                    return Poll::Ready(all.then_some(n == scratch.len()));
                }
            }
        })
        .await
        .and_then(|filled| {
            let clean = !filled || self.lease.socket.as_mut().is_some_and(Socket::has_nothing);
            clean.then_some(self.lease)
        })
    }
}
