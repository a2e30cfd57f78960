//! Requests over HTTP/2: hyper's, many streams on a connection, which a task drives.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::dial;
use super::error::SendError;
use super::incoming::IncomingBody;
use super::pool::{Checkout, ConnectionPool, PooledConnection, update_counts};
use super::request::{BodyStream, OutgoingBody, OutgoingRequest, is_allowed_trailer};
use super::shared::ClientState;
use super::stall::{ProgressTimeout, ProgressTimeouts};
use crate::decide::Nanos;
use crate::decide::policy::FailureKind;
use crate::machine::executor::LocalExecutor;

/// The longest list of headers that an answer may have.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// The HTTP/2 connections to one origin.
#[derive(Debug, Default)]
pub(super) struct Http2Connections {
    connections: RefCell<Vec<Rc<Http2Connection>>>,
    connecting: RefCell<Weak<PendingConnect>>,
    /// Whether TLS has agreed on HTTP/1.1 the last time.
    declined: Cell<bool>,
}

#[derive(Debug)]
struct Http2Connection {
    sender: SendRequest<OutgoingFrames>,
    /// Streams now, and as many as the peer lets us have.
    streams: Cell<usize>,
    max_streams: Cell<usize>,
    is_reused: Cell<bool>,
    /// Whether there was a stream since the last sweep, and the sweep up to which there were some.
    was_busy: Cell<bool>,
    since: Cell<Nanos>,
    /// It is to have no more streams.
    retired: Cell<bool>,
}

/// A stream; holds its place on the connection.
#[derive(Debug)]
pub(super) struct Http2Stream {
    connection: Rc<Http2Connection>,
    shared: Rc<Http2StreamState>,
}

/// What a stream's two halves know of one another. hyper would send the rest of a request's body also when its answer is
/// over for us.
#[derive(Debug)]
struct Http2StreamState {
    is_over: Cell<bool>,
    sender_waker: RefCell<Option<Waker>>,
    /// Why the request's body ended early, if it did: whatever comes of the stream is then its caller's fault.
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

    /// Some of the answer has come.
    pub(super) fn on_received(&self) {
        self.shared.progress.on_received();
    }

    /// What has ended the stream, in place of what it looks like from its other half.
    pub(super) fn attribute_error(&self, error: SendError) -> SendError {
        self.shared.body_error.take().map_or(error, SendError::request)
    }

    /// Nothing has come.
    ///
    /// # Errors
    /// When that has been so for too long. Its connection then gets no further streams: perhaps nobody is there.
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

    /// A connection with room; or, where there can be no further one, the one with the fewest streams.
    fn pick(&self, may_dial: bool) -> Option<Rc<Http2Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.sender.is_closed() && !connection.retired.get());
        let least = connections.iter().min_by_key(|connection| connection.streams.get())?;
        let full = least.streams.get() >= least.max_streams.get().max(1);
        (!full || !may_dial).then(|| Rc::clone(least))
    }

    /// Lets go of connections without streams that have had none since `before`; they end in good order.
    pub(super) fn sweep(&self, before: Nanos, now: Nanos) {
        self.connections.borrow_mut().retain(|connection| {
            let streams = connection.streams.get() > 0;
            if connection.was_busy.replace(streams) {
                connection.since.set(now);
            }
            !connection.sender.is_closed() && !connection.retired.get() && (streams || connection.since.get() >= before)
        });
    }

    /// Lets go of all connections; they end with their last stream.
    pub(super) fn close(&self) {
        let connections = self.connections.take();
        drop(connections);
    }
}

/// Sends a request over HTTP/2; or gives it back if the origin speaks HTTP/1.1.
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
    let mut again = true;
    loop {
        let stream = Http2Stream::new(&connection, &pool.progress_timeouts);
        let reused = connection.is_reused.replace(true);
        if reused {
            update_counts(&pool.counts, |counts| counts.reused += 1);
        }
        body.stream = Some(Rc::clone(&stream.shared));
        let mut attempt = Request::new(body);
        (*attempt.method_mut(), *attempt.uri_mut()) = (head.0.clone(), head.1.clone());
        *attempt.headers_mut() = if again { head.2.clone() } else { std::mem::take(&mut head.2) };
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
        // Nothing else is sent twice in silence: a stream that was refused, or that its connection took along, is an
        // attempt that has failed.
        let may = reused && is_after_goaway(&error);
        body = match (unsent, &copy) {
            (Some(unsent), _) if again => unsent,
            (None, Some(copy)) if again && may => copy.clone().into(),
            _ => return Err(stream.attribute_error(failure(&error))),
        };
        again = false;
        update_counts(&pool.counts, |counts| counts.resent += 1);
        drop(stream);
        connection = match self::connection(shared, pool).await? {
            Some(connection) => connection,
            None => return Err(failure(&error)),
        };
    }
}

/// A connection that takes a stream; None if the origin speaks HTTP/1.1.
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
        let dialling = pool.http2.connecting.borrow().upgrade();
        let dialling = match dialling {
            Some(dialling) => dialling,
            None => PendingConnect::begin(shared, pool),
        };
        ConnectWait(dialling).await?;
    }
}

/// A dial that several callers wait for. A task does it, so that none of them can end it for the others; it ends when
/// the last of them has gone.
#[derive(Debug)]
struct PendingConnect {
    task: RefCell<Option<AbortHandle>>,
    done: RefCell<Option<Result<(), SendError>>>,
    wakers: RefCell<Vec<Waker>>,
}

impl PendingConnect {
    fn begin(shared: &Rc<ClientState>, pool: &Rc<ConnectionPool>) -> Rc<Self> {
        let this = Rc::new(Self { task: RefCell::default(), done: RefCell::default(), wakers: RefCell::default() });
        *pool.http2.connecting.borrow_mut() = Rc::downgrade(&this);
        let (shared, pool, weak) = (Rc::clone(shared), Rc::clone(pool), Rc::downgrade(&this));
        let task = tokio::task::spawn_local(async move {
            let dialled = connect_one(&shared, &pool).await;
            *pool.http2.connecting.borrow_mut() = Weak::new();
            let Some(this) = weak.upgrade() else { return };
            *this.done.borrow_mut() = Some(dialled);
            for waker in this.wakers.take() {
                waker.wake();
            }
        });
        *this.task.borrow_mut() = Some(task.abort_handle());
        this
    }
}

impl Drop for PendingConnect {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

struct ConnectWait(Rc<PendingConnect>);

impl Future for ConnectWait {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(done) = &*self.0.done.borrow() {
            return Poll::Ready(done.clone());
        }
        let mut waiting = self.0.wakers.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

async fn connect_one(shared: &Rc<ClientState>, pool: &Rc<ConnectionPool>) -> Result<(), SendError> {
    let mut lease = match pool.check_out_new() {
        Checkout::Connection(lease) => lease,
        Checkout::Wait(waiting) => waiting.await,
    };
    if lease.socket.is_none() {
        lease.socket = Some(dial::connect_origin(&pool.origin, &shared.timer).await?);
        update_counts(&pool.counts, |counts| counts.connected += 1);
    }
    let without_tls = pool.origin.tls.is_none();
    if without_tls || lease.socket.as_ref().is_some_and(super::socket::ClientSocket::negotiated_http2) {
        return adopt(lease, shared.last_sweep()).await;
    }
    if pool.origin.protocol == super::Protocol::Http2 {
        return Err(SendError::new(FailureKind::Tls, "the service does not speak HTTP/2"));
    }
    pool.http2.declined.set(true);
    lease.return_unused(shared.last_sweep());
    Ok(())
}

/// Makes an HTTP/2 connection of a fresh one.
pub(super) async fn adopt(mut lease: PooledConnection, now: Nanos) -> Result<(), SendError> {
    let Some(socket) = lease.socket.take() else { return Err(SendError::new(FailureKind::Connect, "no connection")) };
    let mut builder = Builder::new(LocalExecutor);
    builder.max_header_list_size(MAX_HEADER_LIST_BYTES);
    let (sender, driver) = builder.handshake(TokioIo::new(socket)).await.map_err(|error| failure(&error))?;
    let connection = Rc::new(Http2Connection {
        sender,
        streams: Cell::default(),
        max_streams: Cell::new(driver.current_max_send_streams()),
        is_reused: Cell::default(),
        was_busy: Cell::default(),
        since: Cell::new(now),
        retired: Cell::default(),
    });
    let pool = Rc::clone(lease.pool());
    pool.http2.declined.set(false);
    pool.http2.connections.borrow_mut().push(Rc::clone(&connection));
    let connection = Rc::downgrade(&connection);
    tokio::task::spawn_local(async move {
        {
            let mut driver = pin!(driver);
            // What ended it is told to its streams.
            let _ = poll_fn(|cx| {
                let done = driver.as_mut().poll(cx);
                if let Some(connection) = connection.upgrade() {
                    connection.max_streams.set(driver.current_max_send_streams());
                }
                done
            })
            .await;
        }
        drop(lease);
    });
    Ok(())
}

/// Method, URI and headers as HTTP/2 has them: no Host, and nothing about connections.
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

/// A request's body on its way.
struct OutgoingFrames {
    body: FrameSource,
    stream: Option<Rc<Http2StreamState>>,
}

enum FrameSource {
    Bytes(Bytes),
    /// With what is left of it, if its length was said.
    Stream(BodyStream, Option<u64>),
}

/// A body that is there goes out in such pieces, for each shows that the one before was taken.
const WRITE_CHUNK_BYTES: usize = 64 * 1024;

impl From<Bytes> for OutgoingFrames {
    fn from(bytes: Bytes) -> Self {
        Self { body: FrameSource::Bytes(bytes), stream: None }
    }
}

impl http_body::Body for OutgoingFrames {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let over = this.stream.as_ref();
        if over.is_some_and(|over| over.is_over.get()) {
            return Poll::Ready(Some(Err("its answer is over".into())));
        }
        let frame = match &mut this.body {
            FrameSource::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            FrameSource::Bytes(bytes) => {
                Poll::Ready(Some(Ok(Frame::data(bytes.split_to(WRITE_CHUNK_BYTES.min(bytes.len()))))))
            }
            FrameSource::Stream(stream, left) => stream.as_mut().poll_frame(cx).map(|frame| check_length(frame, left)),
        };
        if let Some(over) = over {
            if let Poll::Ready(Some(Err(error))) = &frame {
                over.body_error.replace(Some(format!("the request's body broke off: {error}")));
            }
            if frame.is_ready() {
                over.progress.on_sent();
            } else {
                over.progress.set_starved(true);
                over.sender_waker.replace(Some(cx.waker().clone()));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            FrameSource::Bytes(bytes) => bytes.is_empty(),
            FrameSource::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            FrameSource::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            FrameSource::Stream(stream, _) => stream.size_hint(),
        }
    }
}

/// A frame that goes out, if the body is as long as it said so far.
fn check_length<E>(
    frame: Option<Result<Frame<Bytes>, E>>,
    left: &mut Option<u64>,
) -> Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    const LENGTH_MISMATCH: &str = "it is not as long as it said";
    let Some(frame) = frame else { return left.filter(|left| *left > 0).map(|_| Err(LENGTH_MISMATCH.into())) };
    if let (Ok(frame), Some(left)) = (&frame, left) {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(length) {
            Some(rest) => *left = rest,
            None => return Some(Err(LENGTH_MISMATCH.into())),
        }
    }
    filter_trailers(frame.map_err(Into::into))
}

/// A frame without the trailers that are not passed on; None if that was all of it, for trailers come last.
fn filter_trailers<E>(frame: Result<Frame<Bytes>, E>) -> Option<Result<Frame<Bytes>, E>> {
    let frame = match frame.map(Frame::into_trailers) {
        Ok(Ok(mut trailers)) => {
            let unwanted: Vec<HeaderName> = trailers.keys().filter(|name| !is_allowed_trailer(name)).cloned().collect();
            for name in unwanted {
                trailers.remove(name);
            }
            return (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)));
        }
        Ok(Err(frame)) => Ok(frame),
        Err(error) => Err(error),
    };
    Some(frame)
}

fn root_cause(error: &hyper::Error) -> &(dyn Error + 'static) {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

/// Whether the connection was going away before this request came: its stream is beyond the last one that the other end
/// takes (RFC 9113, 6.8). Told by h2's words, for its type is not to be had through hyper.
fn is_after_goaway(error: &hyper::Error) -> bool {
    root_cause(error).to_string().starts_with("connection error received: not a result of an error")
}

pub(super) fn failure(error: &hyper::Error) -> SendError {
    let root = root_cause(error);
    let text = root.to_string();
    if let Some(error) = root.downcast_ref::<io::Error>() {
        return SendError::connection_lost(error);
    }
    let kind = if text.starts_with("stream error") {
        FailureKind::Reset
    } else if text.starts_with("connection error detected") || error.is_parse() {
        FailureKind::Protocol
    } else {
        FailureKind::Closed
    };
    SendError::new(kind, format!("HTTP/2: {text}"))
}
