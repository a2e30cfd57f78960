//! A service's access to a request while it handles it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use serde_json::value::RawValue;

use super::access_log_format::AccessLogFormat;
use super::connection_state::{CloseMode, ConnectionState, TlsPeer};
use super::request_body::RequestBody;
use super::request_info::RequestLogInfo;
use super::request_log::{RequestAccounting, RequestRecord};
use super::stream_progress::StreamProgress;
use super::{BodyError, ServiceReply};
use weir_base::Nanos;
use weir_machine::timer::{Sleep, Timer};

/// Server's side of a request for its service: connection, timer, deadlines and log.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub(super) accounting: Rc<RequestAccounting>,
    pub(super) timer: Timer,
    pub(super) connection: Rc<ConnectionState>,
    stream: Option<Rc<StreamProgress>>,
    began: Nanos,
    log_info: Option<Rc<RequestLogInfo>>,
}

/// A request's body, read up to a size.
#[derive(Debug)]
pub enum BodyPrefix {
    /// The whole body.
    Complete(Bytes),
    /// A longer body, as a stream that includes the beginning.
    Streaming(RequestBodyStream),
}

/// Stream of a request's remaining body, whose bytes are counted.
#[derive(Debug)]
pub struct RequestBodyStream {
    prefix: Bytes,
    remaining: RequestBody,
    accounting: Rc<RequestAccounting>,
    connection: Rc<ConnectionState>,
}

/// Reason why a request's body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBodyError {
    /// The body exceeds the limit.
    TooLong,
    /// The body ended early, or is malformed.
    Broken,
}

impl RequestContext {
    pub(super) fn new(
        ledger: &Rc<RequestAccounting>,
        timer: &Timer,
        watch: &Rc<ConnectionState>,
        entry: &RequestRecord,
    ) -> Self {
        Self {
            accounting: Rc::clone(ledger),
            timer: timer.clone(),
            connection: Rc::clone(watch),
            stream: entry.stream().cloned(),
            began: entry.began(),
            log_info: entry.log_info(),
        }
    }

    /// Whether there is an access log for an attempt log.
    pub fn is_logged(&self) -> bool {
        self.accounting.access_log.as_ref().is_some_and(|log| *log.format() == AccessLogFormat::Json)
    }

    /// Whether the request is described in a log or a list, for [`Self::set_progress`].
    pub fn is_described(&self) -> bool {
        self.log_info.is_some()
    }

    /// Sets what the request belongs to and waits for, in the list of requests in flight.
    pub fn set_progress(&self, route: Option<&Arc<str>>, stage: &'static str) {
        if let Some(info) = &self.log_info {
            info.set_progress(route, stage);
        }
    }

    /// Names the caller in the request's line in the access log, if lines have it.
    pub fn set_caller(&self, name: impl FnOnce() -> String) {
        let is_shown = self.accounting.access_log.as_ref().is_some_and(|log| log.format().has_caller());
        if let Some(info) = self.log_info.as_ref().filter(|_| is_shown) {
            info.caller.replace(Some(name()));
        }
    }

    /// Adds an attempt log to the request's line in the access log.
    pub fn log_attempts(&self, attempts: Box<RawValue>) {
        if let Some(log_info) = &self.log_info {
            log_info.set_attempts(attempts);
        }
    }

    /// Whether this end closes the connection or the stream: after a timeout, or at a stop.
    pub fn is_server_abort(&self) -> bool {
        self.connection.close_mode() == CloseMode::Abort || self.stream.as_ref().is_some_and(|stream| stream.is_cut())
    }

    /// Time since the server's start.
    pub fn now(&self) -> Nanos {
        self.accounting.clock.now()
    }

    /// Address of the client: the peer's, or what a trusted proxy has named by the PROXY protocol. Over a Unix socket
    /// 127.0.0.1.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// Index of the listener that the connection came to.
    pub fn listener(&self) -> usize {
        self.connection.listener
    }

    /// Number of the connection, if it is of HTTP/2 and may have several requests in flight.
    pub fn http2_connection(&self) -> Option<u32> {
        self.stream.is_some().then_some(self.connection.number)
    }

    /// TLS of the connection; None without.
    pub fn tls(&self) -> Option<&TlsPeer> {
        self.connection.tls()
    }

    /// The client's address without port, as a header value.
    pub fn client_address(&self) -> &HeaderValue {
        self.connection.client_address()
    }

    /// Time when the request's head was complete, since the server's start.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// Timer of the event loop.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Ends `length` from now, exactly.
    pub fn sleep(&self, length: Nanos) -> Sleep {
        self.timer.sleep(length)
    }

    /// Ends at `until`, exactly.
    pub fn sleep_until(&self, until: Nanos) -> Sleep {
        self.timer.sleep_until(until)
    }

    /// Never ends: the request gets no response, and its connection stays open until the client or the server closes
    /// it.
    pub async fn hang(&self) -> ServiceReply {
        self.connection.hang().await
    }

    /// Takes a request's body of which nothing is still to come, as of every request that the service handles
    /// [without a future](super::Service::direct). None leaves it as it is.
    pub fn take_whole_body(&self, body: &mut RequestBody) -> Option<Bytes> {
        let whole = body.take_whole()?;
        self.connection.set_unread_body(false);
        Some(whole)
    }

    /// Reads a request's body of at most `most` bytes.
    ///
    /// # Errors
    /// [`ReadBodyError`]. A peer that exceeds the timeout is disconnected, and this never ends.
    pub async fn read_body(&self, body: RequestBody, most: usize) -> Result<Bytes, ReadBodyError> {
        if body.size_hint().lower() > most as u64 {
            return Err(ReadBodyError::TooLong);
        }
        match self.read_prefix(body, most).await? {
            BodyPrefix::Complete(bytes) => Ok(bytes),
            BodyPrefix::Streaming(_) => Err(ReadBodyError::TooLong),
        }
    }

    /// Reads a request's body if it has at most `most` bytes; otherwise only its beginning.
    ///
    /// # Errors
    /// [`ReadBodyError::Broken`]. A peer that exceeds the timeout is disconnected, and this never ends.
    pub async fn read_prefix(&self, mut body: RequestBody, most: usize) -> Result<BodyPrefix, ReadBodyError> {
        let upload = |first, rest| {
            let (ledger, watch) = (Rc::clone(&self.accounting), Rc::clone(&self.connection));
            Ok(BodyPrefix::Streaming(RequestBodyStream {
                prefix: first,
                remaining: rest,
                accounting: ledger,
                connection: watch,
            }))
        };
        if body.size_hint().lower() > most as u64 {
            return upload(Bytes::new(), body);
        }
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        self.connection.wants_body(self.accounting.coarse_clock.now());
        let read = loop {
            let Some(frame) = body.frame().await else { break Ok(true) };
            let Ok(frame) = frame else { break Err(ReadBodyError::Broken) };
            let Ok(data) = frame.into_data() else { continue };
            let length = first.len() + rest.len() + data.len();
            if first.is_empty() {
                first = data;
            } else {
                rest.extend_from_slice(&data);
            }
            if length > most {
                break Ok(false);
            }
        };
        self.connection.has_body(self.accounting.coarse_clock.now());
        let whole = read?;
        // Only a body in several pieces is copied.
        let bytes = if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() };
        if !whole {
            return upload(bytes, body);
        }
        self.connection.set_unread_body(false);
        Ok(BodyPrefix::Complete(bytes))
    }
}

impl Body for RequestBodyStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.prefix.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.prefix)))));
        }
        let Poll::Ready(frame) = Pin::new(&mut self.remaining).poll_frame(cx) else {
            self.connection.wants_body(self.accounting.coarse_clock.now());
            return Poll::Pending;
        };
        self.connection.has_body(self.accounting.coarse_clock.now());
        if frame.is_none() {
            self.connection.set_unread_body(false);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.remaining.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, first) = (self.remaining.size_hint(), self.prefix.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}
