//! Requests over HTTP/2: hyper's, with many streams per connection and a task for each connection.

mod body;
mod connect;
mod error;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::client::conn::http2::SendRequest;

use self::body::{FrameSource, OutgoingFrames};
pub(super) use self::connect::adopt;
use self::connect::{ConnectWait, PendingConnect};
pub(super) use self::error::failure;
use self::error::is_after_goaway;
use super::body::IncomingBody;
use super::client_state::ClientState;
use super::error::SendError;
use super::pool::{ConnectionPool, update_counts};
use super::progress_timeout::{ProgressTimeout, ProgressTimeouts};
use super::request::{OutgoingBody, OutgoingRequest};
use weir_decide::Nanos;

/// The HTTP/2 connections to one origin.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    connections: RefCell<Vec<Rc<Http2Connection>>>,
    connecting: RefCell<Weak<PendingConnect>>,
    /// Whether TLS negotiated HTTP/1.1 the last time.
    declined: Cell<bool>,
}

#[derive(Debug)]
struct Http2Connection {
    sender: SendRequest<OutgoingFrames>,
    /// Current streams, and the peer's maximum.
    streams: Cell<usize>,
    max_streams: Cell<usize>,
    is_reused: Cell<bool>,
    /// Whether there was a stream since the last sweep, and the time of the last sweep with one.
    was_busy: Cell<bool>,
    since: Cell<Nanos>,
    /// Whether the connection gets no more streams.
    retired: Cell<bool>,
}

/// A stream, which holds its slot on the connection.
#[derive(Debug)]
pub(super) struct Http2Stream {
    connection: Rc<Http2Connection>,
    shared: Rc<Http2StreamState>,
}

/// State shared by the two halves of a stream. Without it hyper would send the rest of a request's body even after its
/// response was dropped.
#[derive(Debug)]
struct Http2StreamState {
    is_over: Cell<bool>,
    sender_waker: RefCell<Option<Waker>>,
    /// Reason why the request's body ended early: then a failure of the stream is the caller's fault.
    body_error: RefCell<Option<String>>,
    progress: ProgressTimeout,
}

impl Http2Stream {
    fn new(connection: &Rc<Http2Connection>, stalls: &Rc<ProgressTimeouts>) -> Self {
        connection.streams.set(connection.streams.get() + 1);
        connection.was_busy.set(true);
        let (is, sending, broke) = (Cell::default(), RefCell::default(), RefCell::default());
        let over = Http2StreamState {
            is_over: is,
            sender_waker: sending,
            body_error: broke,
            progress: ProgressTimeout::new(stalls),
        };
        Self { connection: Rc::clone(connection), shared: Rc::new(over) }
    }

    /// Records received bytes.
    pub(super) fn on_received(&self) {
        self.shared.progress.on_received();
    }

    /// The cause of the stream's end, which may be the request's body.
    pub(super) fn attribute_error(&self, error: SendError) -> SendError {
        self.shared.body_error.take().map_or(error, SendError::request)
    }

    /// Checks the progress timeout while nothing has come.
    ///
    /// # Errors
    /// If the timeout is exceeded. The connection then gets no further streams, since its peer may be gone.
    pub(super) fn check_timeout(&self, waker: &Waker) -> Result<(), SendError> {
        self.shared.progress.check(waker).inspect_err(|_| self.connection.retired.set(true))
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection.streams.set(self.connection.streams.get().saturating_sub(1));
        self.shared.is_over.set(true);
        if let Some(waker) = self.shared.sender_waker.take() {
            waker.wake();
        }
    }
}

impl Http2Connections {
    pub(super) fn declined(&self) -> bool {
        self.declined.get()
    }

    /// A connection with a free stream; without a way to a further connection, the one with the fewest streams.
    fn pick(&self, may_dial: bool) -> Option<Rc<Http2Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.sender.is_closed() && !connection.retired.get());
        let least = connections.iter().min_by_key(|connection| connection.streams.get())?;
        let full = least.streams.get() >= least.max_streams.get().max(1);
        (!full || !may_dial).then(|| Rc::clone(least))
    }

    /// Drops connections without streams since `before`; they close in an orderly way.
    pub(super) fn sweep(&self, before: Nanos, now: Nanos) {
        self.connections.borrow_mut().retain(|connection| {
            let streams = connection.streams.get() > 0;
            if connection.was_busy.replace(streams) {
                connection.since.set(now);
            }
            !connection.sender.is_closed() && !connection.retired.get() && (streams || connection.since.get() >= before)
        });
    }

    /// Drops all connections; they end with their last stream.
    pub(super) fn close(&self) {
        let connections = self.connections.take();
        drop(connections);
    }
}

/// Sends a request over HTTP/2; returns it if the origin speaks HTTP/1.1.
pub(super) async fn send<'a>(
    shared: &Rc<ClientState>,
    pool: &Rc<ConnectionPool>,
    request: OutgoingRequest<'a>,
) -> Result<Result<Response<IncomingBody>, OutgoingRequest<'a>>, SendError> {
    let Some(mut connection) = connection(shared, pool).await? else { return Ok(Err(request)) };
    if request.upgrade {
        return Err(SendError::request("HTTP/2 has no Upgrade"));
    }
    let length = request.length()?;
    let mut head = request_head(pool, &request, length)?;
    let (mut body, copy) = match request.body {
        OutgoingBody::Empty => (OutgoingFrames::from(Bytes::new()), Some(Bytes::new())),
        OutgoingBody::Bytes(bytes) => (bytes.clone().into(), Some(bytes)),
        OutgoingBody::Stream(stream) => {
            (OutgoingFrames { body: FrameSource::Stream(stream, length), stream: None }, None)
        }
    };
    let mut is_first = true;
    loop {
        let stream = Http2Stream::new(&connection, &pool.progress_timeouts);
        let reused = connection.is_reused.replace(true);
        if reused {
            update_counts(&pool.counts, |counts| counts.reused += 1);
        }
        body.stream = Some(Rc::clone(&stream.shared));
        let mut attempt = Request::new(body);
        (*attempt.method_mut(), *attempt.uri_mut()) = (head.0.clone(), head.1.clone());
        *attempt.headers_mut() = if is_first { head.2.clone() } else { std::mem::take(&mut head.2) };
        let mut sender = connection.sender.clone();
        let mut sent = pin!(sender.try_send_request(attempt));
        let sent = poll_fn(|cx| match sent.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Ok(sent)),
            Poll::Pending => {
                stream.check_timeout(cx.waker()).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
        });
        let sent = sent.await.map_err(|error| stream.attribute_error(error))?;
        let mut error = match sent {
            Ok(answer) => {
                stream.on_received();
                return Ok(Ok(answer.map(|body| IncomingBody::http2(body, stream))));
            }
            Err(error) => error,
        };
        let unsent = error.take_message().map(Request::into_body);
        let error = error.into_error();
        // Nothing else is sent twice: a stream that was reset, or that ended with its connection, is a failed attempt.
        let may = reused && is_after_goaway(&error);
        body = match (unsent, &copy) {
            (Some(unsent), _) if is_first => unsent,
            (None, Some(copy)) if is_first && may => copy.clone().into(),
            _ => return Err(stream.attribute_error(failure(&error))),
        };
        is_first = false;
        update_counts(&pool.counts, |counts| counts.resent += 1);
        drop(stream);
        connection = match self::connection(shared, pool).await? {
            Some(connection) => connection,
            None => return Err(failure(&error)),
        };
    }
}

/// A connection for a stream; None if the origin speaks HTTP/1.1.
async fn connection(
    shared: &Rc<ClientState>,
    pool: &Rc<ConnectionPool>,
) -> Result<Option<Rc<Http2Connection>>, SendError> {
    loop {
        if let Some(connection) = pool.http2.pick(pool.has_capacity()) {
            return Ok(Some(connection));
        }
        if pool.http2.declined() {
            return Ok(None);
        }
        let pending = pool.http2.connecting.borrow().upgrade();
        let pending = match pending {
            Some(pending) => pending,
            None => PendingConnect::begin(shared, pool),
        };
        ConnectWait(pending).await?;
    }
}

/// Method, URI and headers in HTTP/2: without Host and connection headers.
fn request_head(
    pool: &ConnectionPool,
    request: &OutgoingRequest<'_>,
    length: Option<u64>,
) -> Result<(Method, Uri, HeaderMap), SendError> {
    let mut headers = HeaderMap::with_capacity(request.headers.len() + request.extra_headers.len() + 1);
    let mut host = None;
    let more = request.extra_headers.iter().map(|(name, value)| (name, value));
    for (name, value) in request.headers.iter().chain(more) {
        if *name == HOST {
            host = host.or(Some(value));
        } else if !is_hop_by_hop(name) && (*name != TE || value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            headers.append(name, value.clone());
        }
    }
    let means_body = matches!(*request.method, Method::POST | Method::PUT | Method::PATCH);
    if let Some(length) = length.filter(|length| *length > 0 || means_body) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let scheme = if pool.origin.tls.is_some() { "https" } else { "http" };
    let authority = host.unwrap_or(&pool.origin.host).as_bytes();
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(request.target).build();
    let uri = uri.map_err(|error| SendError::request(format!("the request's target or host is malformed: {error}")))?;
    Ok((request.method.clone(), uri, headers))
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == TRANSFER_ENCODING
        || *name == CONNECTION
        || *name == UPGRADE
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}
