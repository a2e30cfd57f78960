//! Outgoing requests.

use std::fmt;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body::Body as _;
use tokio::io::AsyncWrite;

use super::error::SendError;
use super::origin::Origin;
use super::response::ResponseContext;
use super::socket::ClientSocket;
use super::upload_error::UploadError;
use super::wire_options::{StepTimeouts, WireOptions};
use crate::wire::{content_length, push_digits};
use weir_request::request_framing::has_close;

/// Request to send to an origin; the body is sent as it becomes available.
#[derive(Debug)]
pub struct OutgoingRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// Headers. Host may be among them, else it is the origin's. Framing headers are added here and ignored
    /// in these, and Connection but for `close`, which ends the connection over HTTP/1.1; other hop-by-hop headers are
    /// the caller's to remove.
    pub headers: &'a HeaderMap,
    /// Additional headers.
    pub extra_headers: &'a [(HeaderName, HeaderValue)],
    /// The body.
    pub body: OutgoingBody,
    /// Whether it requests the protocol of its Upgrade header. Not over HTTP/2.
    pub upgrade: bool,
    /// What most requests have no need of.
    pub wire: WireOptions<'a>,
}

/// A request's body as a stream.
pub type BodyStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>>>>;

/// A request's body.
pub enum OutgoingBody {
    /// No body.
    Empty,
    /// The whole body; can be sent again.
    Bytes(Bytes),
    /// A stream; can be sent once.
    Stream(BodyStream),
}

impl fmt::Debug for OutgoingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl OutgoingRequest<'_> {
    pub(super) fn response_context(&self) -> ResponseContext {
        ResponseContext {
            is_head: *self.method == Method::HEAD,
            upgrade: self.upgrade,
            keeps_head: self.wire.keeps_head,
        }
    }

    /// The protocol that it asks for.
    pub(super) fn protocol(&self) -> Option<HeaderValue> {
        if !self.upgrade {
            return None;
        }
        let extra = || self.extra_headers.iter().find(|(name, _)| *name == UPGRADE).map(|(_, protocol)| protocol);
        self.headers.get(UPGRADE).or_else(extra).cloned()
    }

    /// Length of the body, if known.
    pub(super) fn length(&self) -> Result<Option<u64>, SendError> {
        match &self.body {
            OutgoingBody::Empty => Ok(Some(0)),
            OutgoingBody::Bytes(bytes) => Ok(Some(bytes.len() as u64)),
            OutgoingBody::Stream(stream) => match (stream.size_hint().exact(), self.headers.get(CONTENT_LENGTH)) {
                (Some(length), _) => Ok(Some(length)),
                (None, Some(value)) => {
                    let length = content_length(value.as_bytes());
                    length.map(Some).ok_or_else(|| SendError::request("invalid Content-Length of the request"))
                }
                (None, None) => Ok(None),
            },
        }
    }

    pub(super) fn check_target(&self) -> Result<(), SendError> {
        let fine = !self.target.is_empty() && self.target.bytes().all(|b| b > b' ' && b != 0x7f);
        if fine { Ok(()) } else { Err(SendError::request("invalid target of the request")) }
    }
}

/// Maximum size of a body, in bytes, that is copied behind the head and sent with it.
const MAX_INLINE_BODY_BYTES: usize = 8 * 1024;

/// A request that is being written to a socket.
#[derive(Debug, Default)]
pub(super) struct RequestWriter {
    /// Head or framing, and small data.
    buffer: Vec<u8>,
    body: Bytes,
    tail: &'static [u8],
    /// Written bytes of these three.
    written: usize,
    /// Written bytes in total.
    sent_bytes: u64,
    stream: Option<UploadStream>,
    /// Whether the body was a stream: its data is gone, so it cannot be sent again.
    had_stream: bool,
    /// Whether TLS may have buffered data.
    unflushed: bool,
    /// Whether the connection ends with the request, since its headers say so.
    pub(super) closes: bool,
    /// Whether bytes were written since the last check.
    has_progressed: bool,
    /// Timeouts of the exchange's steps.
    pub(super) timeouts: StepTimeouts,
}

struct UploadStream {
    body: BodyStream,
    /// Remaining bytes, if the length was declared.
    remaining: Option<u64>,
}

impl fmt::Debug for UploadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?})", self.remaining)
    }
}

impl RequestWriter {
    /// A writer with the head in `buffer`.
    pub(super) fn new(origin: &Origin, request: OutgoingRequest<'_>, mut buffer: Vec<u8>) -> Result<Self, SendError> {
        let length = request.length()?;
        buffer.clear();
        let (mut host, mut closes) = (false, false);
        append(&mut buffer, &[request.method.as_str().as_bytes(), b" ", request.target.as_bytes(), b" HTTP/1.1\r\n"]);
        if let Some(lines) = request.wire.header_lines {
            append(&mut buffer, &[lines]);
            host = request.headers.contains_key(HOST);
            closes = request.headers.get_all(CONNECTION).iter().any(|value| has_close(value.as_bytes()));
        }
        let mut add = |name: &HeaderName, value: &HeaderValue, buffer: &mut Vec<u8>| {
            if *name == HOST {
                if std::mem::replace(&mut host, true) {
                    return;
                }
            } else if *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING {
                return;
            } else if *name == CONNECTION {
                closes |= has_close(value.as_bytes());
                return;
            }
            append(buffer, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        };
        if request.wire.header_lines.is_none() {
            request.headers.iter().for_each(|(name, value)| add(name, value, &mut buffer));
        }
        request.extra_headers.iter().for_each(|(name, value)| add(name, value, &mut buffer));
        if let Some(passed) = request.wire.passed {
            append(&mut buffer, &[passed.lines()]);
        }
        if !host {
            append(&mut buffer, &[b"host: ", origin.host.as_bytes(), b"\r\n"]);
        }
        if request.upgrade {
            append(&mut buffer, &[b"connection: upgrade\r\n"]);
        } else if closes {
            append(&mut buffer, &[b"connection: close\r\n"]);
        }
        let means_body = matches!(*request.method, Method::POST | Method::PUT | Method::PATCH);
        match length {
            Some(0) if !means_body => {}
            Some(length) => {
                append(&mut buffer, &[b"content-length: "]);
                push_digits(&mut buffer, length);
                append(&mut buffer, &[b"\r\n"]);
            }
            None => append(&mut buffer, &[b"transfer-encoding: chunked\r\n"]),
        }
        append(&mut buffer, &[b"\r\n"]);
        let (mut body, mut stream) = (Bytes::new(), None);
        match request.body {
            OutgoingBody::Empty => {}
            OutgoingBody::Bytes(bytes) if bytes.len() <= MAX_INLINE_BODY_BYTES => append(&mut buffer, &[&bytes]),
            OutgoingBody::Bytes(bytes) => body = bytes,
            OutgoingBody::Stream(body) => stream = Some(UploadStream { body, remaining: length }),
        }
        let streamed = stream.is_some();
        Ok(Self {
            buffer,
            body,
            tail: b"",
            written: 0,
            sent_bytes: 0,
            stream,
            had_stream: streamed,
            unflushed: false,
            closes,
            has_progressed: false,
            timeouts: request.wire.timeouts,
        })
    }

    /// Whether the request is written.
    pub(super) fn is_done(&self) -> bool {
        self.pending() == 0 && self.stream.is_none() && !self.unflushed
    }

    /// Whether it can be sent again.
    pub(super) fn is_resendable(&self) -> bool {
        !self.had_stream
    }

    /// Restarts from the beginning, if [`Self::is_resendable`].
    pub(super) fn rewind(&mut self) {
        (self.written, self.sent_bytes, self.unflushed) = (0, 0, false);
    }

    /// The buffer, for the next request.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Written bytes, framing included.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether bytes were written since the last call.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed)
    }

    /// Whether there is nothing to write until its body continues.
    pub(super) fn is_starved(&self) -> bool {
        self.stream.is_some() && self.pending() == 0 && !self.unflushed
    }

    fn pending(&self) -> usize {
        self.buffer.len() + self.body.len() + self.tail.len() - self.written
    }

    /// Writes as much as the socket accepts and the body has; ready when all is written.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, socket: &mut ClientSocket) -> Poll<Result<(), UploadError>> {
        loop {
            while self.pending() > 0 {
                let written = ready!(self.poll_write(cx, socket)).map_err(UploadError::Socket)?;
                if written == 0 {
                    return Poll::Ready(Err(UploadError::Socket(io::ErrorKind::BrokenPipe.into())));
                }
                self.written += written;
                self.sent_bytes += written as u64;
                self.has_progressed = true;
                self.unflushed = true;
            }
            match self.poll_next(cx) {
                Poll::Ready(Some(more)) => more?,
                waits => {
                    if self.unflushed {
                        ready!(Pin::new(&mut *socket).poll_flush(cx)).map_err(UploadError::Socket)?;
                        self.unflushed = false;
                    }
                    ready!(waits);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, socket: &mut ClientSocket) -> Poll<io::Result<usize>> {
        let socket = Pin::new(socket);
        if self.body.is_empty() && self.tail.is_empty() {
            return socket.poll_write(cx, &self.buffer[self.written..]);
        }
        let mut skip = self.written;
        let parts = [&self.buffer[..], &self.body, self.tail].map(|part| {
            let from = skip.min(part.len());
            skip -= from;
            IoSlice::new(&part[from..])
        });
        let first = parts.iter().position(|part| !part.is_empty()).unwrap_or(0);
        socket.poll_write_vectored(cx, &parts[first..])
    }

    /// The next piece of a streamed body; None at its end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), UploadError>>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let frame = ready!(stream.body.as_mut().poll_frame(cx));
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(UploadError::Body(error.to_string())))),
            None if stream.remaining.is_some_and(|left| left > 0) => {
                return Poll::Ready(Some(Err(UploadError::Length)));
            }
            None => {
                let end: &[u8] = if stream.remaining.is_none() { b"0\r\n\r\n" } else { b"" };
                self.stream = None;
                self.set_chunk(end, Bytes::new(), b"");
                return Poll::Ready(Some(Ok(())));
            }
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                // Trailers exist in the chunked coding only.
                if let (Ok(trailers), None) = (frame.into_trailers(), stream.remaining) {
                    self.stream = None;
                    self.set_chunk(b"0\r\n", Bytes::new(), b"");
                    for (name, value) in trailers.iter().filter(|(name, _)| is_allowed_trailer(name)) {
                        append(&mut self.buffer, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
                    }
                    append(&mut self.buffer, &[b"\r\n"]);
                }
                return Poll::Ready(Some(Ok(())));
            }
        };
        let length = data.len();
        match &mut stream.remaining {
            // An empty chunk would end the body.
            None if length == 0 => {}
            None => {
                self.set_chunk(b"", data, b"\r\n");
                // Writing to memory does not fail.
                let _ = write!(self.buffer, "{length:x}\r\n");
            }
            Some(left) => match left.checked_sub(length as u64) {
                Some(rest) => {
                    *left = rest;
                    self.set_chunk(b"", data, b"");
                }
                None => return Poll::Ready(Some(Err(UploadError::Length))),
            },
        }
        Poll::Ready(Some(Ok(())))
    }

    fn set_chunk(&mut self, framing: &[u8], body: Bytes, tail: &'static [u8]) {
        self.buffer.clear();
        self.buffer.extend_from_slice(framing);
        (self.body, self.tail, self.written) = (body, tail, 0);
    }
}

/// Whether a trailer is passed on. A service that treats trailers as headers would otherwise read something else than
/// the head (RFC 9110, 6.5.1).
pub(super) fn is_allowed_trailer(name: &HeaderName) -> bool {
    const FORBIDDEN_TRAILERS: [&str; 24] = [
        "authorization",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "max-forwards",
        "pragma",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-http-method",
        "x-http-method-override",
    ];
    let name = name.as_str();
    !FORBIDDEN_TRAILERS.contains(&name) && !name.starts_with("if-") && !name.starts_with("x-forwarded-")
}

fn append(buffer: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        buffer.extend_from_slice(part);
    }
}
