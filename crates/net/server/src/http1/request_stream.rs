//! The bytes of one connection: requests and their bodies are read from it, responses are written to it.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use weir_net::wire::{BodyDecoder, DecodedBody, PassedFields, PassedNames};

use super::body_error::Http1BodyError;
use super::buffers::Http1Buffers;
use super::request_head::{HeadError, HeadLimits, ParsedHead, has_empty_line};
use super::write_queue::WriteQueue;
use crate::connection_state::ConnectionState;
use crate::served_stream::ServedStream;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Bytes of an unwanted body that are read to keep its connection, if they are there already.
const MAX_SKIPPED_BYTES: usize = 256 * 1024;

/// A connection of HTTP/1. Between two requests it has no buffer.
#[derive(Debug)]
pub(super) struct RequestStream {
    /// None once the connection has ended, which a body may outlive.
    socket: Option<ServedStream>,
    connection: Rc<ConnectionState>,
    buffers: Rc<Http1Buffers>,
    /// Bytes that were read and not used.
    unread: BytesMut,
    /// Decoder of the current request's remaining body.
    body: BodyDecoder,
    /// Whether the service still has the body.
    has_reader: bool,
    /// Whether the client still waits for `100 Continue` before it sends its body.
    owes_continue: bool,
    /// Rest of an interim response.
    interim: &'static [u8],
    /// Whether the connection's task waits for the end of the body, which another task may read.
    awaits_body: bool,
    /// Task that waits for more of the body.
    reader: Option<Waker>,
    /// Whether the client has closed the connection.
    is_read_closed: bool,
    /// Whether a body was malformed: where the next request begins is not known.
    is_broken: bool,
}

/// Why there is no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHead {
    Closed,
    Invalid(HeadError),
}

impl RequestStream {
    pub(super) fn new(socket: ServedStream, connection: Rc<ConnectionState>, buffers: Rc<Http1Buffers>) -> Self {
        Self {
            socket: Some(socket),
            connection,
            buffers,
            unread: BytesMut::new(),
            body: BodyDecoder::ended(),
            has_reader: false,
            owes_continue: false,
            interim: b"",
            awaits_body: false,
            reader: None,
            is_read_closed: false,
            is_broken: false,
        }
    }

    /// Takes the socket, and bytes of another protocol that were read from it.
    pub(super) fn take_socket(&mut self) -> Option<(ServedStream, BytesMut)> {
        Some((self.socket.take()?, std::mem::take(&mut self.unread)))
    }

    /// Makes the close a reset.
    pub(super) fn set_reset(&self) {
        self.connection.set_reset();
    }

    /// Closes the socket.
    pub(super) fn close(&mut self) {
        self.end_reading();
        self.socket = None;
    }

    /// Ends a body that is still read: it breaks off.
    pub(super) fn end_reading(&mut self) {
        self.is_read_closed = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Reads into the loop's buffer and hands the bytes on; returns what that returns, or None at the end.
    fn poll_read<T>(
        &mut self,
        cx: &mut Context<'_>,
        hand_on: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> Poll<io::Result<Option<T>>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Ok(None)) };
        let buffers = Rc::clone(&self.buffers);
        let mut room = buffers.read.borrow_mut();
        let mut read = ReadBuf::uninit(&mut room);
        ready!(Pin::new(socket).poll_read(cx, &mut read))?;
        if read.filled().is_empty() {
            self.is_read_closed = true;
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(Ok(Some(hand_on(self, read.filled()))))
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Waits for bytes; false at the end.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.unread.is_empty() {
            return Poll::Ready(true);
        }
        let read = ready!(self.poll_read(cx, Self::keep));
        Poll::Ready(matches!(read, Ok(Some(()))))
    }

    /// Whether a part of a request is there.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Reads the head of the next request; fields of these names are returned beside it.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: HeadLimits,
        passed_names: PassedNames,
    ) -> Poll<Result<(ParsedHead, PassedFields), NoHead>> {
        // Taken once there are bytes: a connection waits here for its next request.
        let mut memory = None;
        let mut may_be_whole = self.has_unread();
        loop {
            // They would be passed over again with each piece of the head.
            self.skip_empty_lines();
            if may_be_whole {
                let fields = memory.get_or_insert_with(|| self.buffers.head_fields(passed_names));
                let unread = std::mem::take(&mut self.unread);
                let parsed = ParsedHead::parse(&unread, limits, fields).map_err(NoHead::Invalid)?;
                self.unread = unread;
                if let Some((head, length)) = parsed {
                    self.consume(length);
                    return Poll::Ready(Ok((self.begin(head), std::mem::take(&mut fields.passed))));
                }
            }
            let read = self.poll_read(cx, |this, bytes| {
                if !this.unread.is_empty() {
                    let before = this.unread.len();
                    this.keep(bytes);
                    return Ok(Err(this.unread.len() >= limits.bytes || has_empty_line(&this.unread, before)));
                }
                let fields = memory.get_or_insert_with(|| this.buffers.head_fields(passed_names));
                let parsed = ParsedHead::parse(bytes, limits, fields)?;
                this.keep(&bytes[parsed.as_ref().map_or(0, |(_, length)| *length)..]);
                Ok(parsed.map(|(head, _)| (head, std::mem::take(&mut fields.passed))).ok_or(false))
            });
            let Poll::Ready(read) = read else {
                memory.into_iter().for_each(|fields| self.buffers.recycle_fields(fields));
                return Poll::Pending;
            };
            match read {
                Ok(Some(Ok(Ok((head, passed))))) => return Poll::Ready(Ok((self.begin(head), passed))),
                Ok(Some(Ok(Err(again)))) => may_be_whole = again,
                Ok(Some(Err(error))) => return Poll::Ready(Err(NoHead::Invalid(error))),
                Ok(None) | Err(_) => return Poll::Ready(Err(NoHead::Closed)),
            }
        }
    }

    /// Removes empty lines before a request (RFC 9112, 2.2).
    fn skip_empty_lines(&mut self) {
        while let [b'\r', b'\n', ..] | [b'\n', ..] = self.unread[..] {
            let line = if self.unread[0] == b'\n' { 1 } else { 2 };
            self.consume(line);
        }
    }

    /// Takes the framing of a request whose head was read.
    fn begin(&mut self, mut head: ParsedHead) -> ParsedHead {
        self.body = std::mem::replace(&mut head.body, BodyDecoder::ended());
        self.has_reader = !self.body.is_ended();
        self.owes_continue = head.expects_continue;
        head
    }

    /// Remaining bytes of the body, if known.
    pub(super) fn remaining_body(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// The request's body, if all of it was read with the head, and the client does not wait for a 100.
    pub(super) fn take_whole_body(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.body.remaining()?).ok()?;
        if self.owes_continue || !(1..=self.unread.len()).contains(&length) {
            return None;
        }
        self.has_reader = false;
        Some(self.decode_unread().ok()?.data)
    }

    /// Records that the service has no use for the body any more.
    pub(super) fn end_reader(&mut self) {
        self.has_reader = false;
        self.reader = None;
        if std::mem::take(&mut self.awaits_body) {
            self.connection.wake();
        }
    }

    /// Whether the request has a body that was not read to its end.
    pub(super) fn has_body(&self) -> bool {
        !self.body.is_ended()
    }

    fn consume(&mut self, length: usize) {
        self.unread.advance(length);
        if self.unread.is_empty() {
            // The memory of what came ahead of its time.
            self.unread = BytesMut::new();
        }
    }

    /// The next part of the request's body.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<DecodedBody, Http1BodyError>>> {
        let part = self.poll_body_part(cx);
        if part.is_pending() && !self.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            self.reader = Some(cx.waker().clone());
        }
        part
    }

    fn poll_body_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<DecodedBody, Http1BodyError>>> {
        loop {
            if self.body.is_ended() {
                return Poll::Ready(None);
            }
            if self.is_read_closed {
                return self.end_body(Http1BodyError::Closed);
            }
            if std::mem::take(&mut self.owes_continue) {
                self.interim = CONTINUE;
            }
            // The socket of a client that waits takes so few bytes at once; what it does not take goes before the
            // response.
            self.poll_interim(cx);
            let decoded = if self.has_unread() { self.decode_unread() } else { ready!(self.poll_decode(cx)) };
            self.note_end();
            match decoded {
                Ok(decoded) if decoded.data.is_empty() && decoded.trailers.is_none() => {}
                Ok(decoded) => return Poll::Ready(Some(Ok(decoded))),
                Err(error) => return self.end_body(error),
            }
        }
    }

    fn poll_interim(&mut self, cx: &mut Context<'_>) {
        while !self.interim.is_empty()
            && let Some(socket) = &mut self.socket
            && let Poll::Ready(Ok(length @ 1..)) = Pin::new(socket).poll_write(cx, self.interim)
        {
            self.interim = &self.interim[length..];
        }
    }

    /// Decodes bytes that were read with the head.
    fn decode_unread(&mut self) -> Result<DecodedBody, Http1BodyError> {
        if self.body.remaining().is_some() {
            let used = self.body.consume(self.unread.len());
            let data = self.unread.split_to(used).freeze();
            self.consume(0);
            return Ok(DecodedBody { used, data, trailers: None });
        }
        let unread = std::mem::take(&mut self.unread);
        let decoded = self.body.push(&unread).map_err(|_| Http1BodyError::Malformed);
        self.unread = unread;
        self.consume(decoded.as_ref().map_or(0, |decoded| decoded.used));
        decoded
    }

    fn poll_decode(&mut self, cx: &mut Context<'_>) -> Poll<Result<DecodedBody, Http1BodyError>> {
        let read = ready!(self.poll_read(cx, |this, bytes| {
            let decoded = this.body.push(bytes).map_err(|_| Http1BodyError::Malformed)?;
            this.keep(&bytes[decoded.used..]);
            Ok(decoded)
        }));
        match read {
            Ok(Some(decoded)) => Poll::Ready(decoded),
            Ok(None) | Err(_) => {
                self.is_read_closed = true;
                Poll::Ready(Err(Http1BodyError::Closed))
            }
        }
    }

    /// Ends a body that is broken: nothing behind it can be read.
    fn end_body(&mut self, error: Http1BodyError) -> Poll<Option<Result<DecodedBody, Http1BodyError>>> {
        self.is_broken = true;
        self.body = BodyDecoder::ended();
        self.note_end();
        Poll::Ready(Some(Err(error)))
    }

    fn note_end(&mut self) {
        if self.body.is_ended() {
            self.reader = None;
            if std::mem::take(&mut self.awaits_body) {
                self.connection.wake();
            }
        }
    }

    /// Whether the client has closed the connection, while a response is prepared or written. Reads the beginning of
    /// the next request.
    pub(super) fn is_client_gone(&mut self, cx: &mut Context<'_>) -> bool {
        if self.has_body() {
            // The reader of the body sees its end. While it is not read only an error of the socket tells.
            self.awaits_body = true;
            let Some(socket) = &mut self.socket else { return true };
            return matches!(Pin::new(socket).poll_flush(cx), Poll::Ready(Err(_)));
        }
        if self.is_read_closed {
            return true;
        }
        if self.has_unread() || self.is_broken {
            return false;
        }
        match self.poll_read(cx, Self::keep) {
            Poll::Pending | Poll::Ready(Ok(Some(()))) => false,
            Poll::Ready(Ok(None) | Err(_)) => true,
        }
    }

    /// Whether another request may follow.
    pub(super) fn can_continue(&self) -> bool {
        !self.is_read_closed && !self.is_broken
    }

    /// Moves an unsent rest of an interim response before a response.
    pub(super) fn begin_response(&mut self, queue: &mut WriteQueue) {
        self.owes_continue = false;
        queue.push_copy(std::mem::take(&mut self.interim));
    }

    /// Writes what is in the queue, and hands it on to the system.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, queue: &mut WriteQueue) -> Poll<io::Result<()>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        ready!(queue.poll_write(cx, socket))?;
        Pin::new(socket).poll_flush(cx)
    }

    /// After a response: waits until the service has no use for the request's body any more; returns whether another
    /// request can follow. A rest of the body that is there is skipped.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut skipped = 0;
        while self.has_body() && self.can_continue() {
            if self.has_reader {
                return if self.is_client_gone(cx) { Poll::Ready(false) } else { Poll::Pending };
            }
            match self.poll_body(cx) {
                Poll::Ready(Some(Ok(decoded))) => skipped += decoded.data.len(),
                Poll::Ready(None | Some(Err(_))) => {}
                Poll::Pending => return Poll::Ready(false),
            }
            if skipped > MAX_SKIPPED_BYTES {
                return Poll::Ready(false);
            }
        }
        if self.can_continue() {
            self.connection.set_unread_body(false);
        }
        Poll::Ready(self.can_continue())
    }

    /// Closes the connection so that the last response arrives.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.as_mut().map_or(Poll::Ready(Ok(())), |socket| Pin::new(socket).poll_shutdown(cx))
    }
}
