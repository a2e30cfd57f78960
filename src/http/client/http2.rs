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
use super::incoming::Incoming;
use super::pool::{Found, Lease, Pool, count};
use super::request::{OutBody, Outgoing, Streamed, may_trail};
use super::shared::Shared;
use super::stall::{Stall, Stalls};
use crate::decide::Nanos;
use crate::decide::policy::Kind;
use crate::machine::executor::Here;

/// The longest list of headers that an answer may have.
const MOST_HEAD: u32 = 64 * 1024;

/// The HTTP/2 connections to one origin.
#[derive(Debug, Default)]
pub(super) struct Multiplexed {
    connections: RefCell<Vec<Rc<Connection>>>,
    dialling: RefCell<Weak<Dialling>>,
    /// Whether TLS has agreed on HTTP/1.1 the last time.
    declined: Cell<bool>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<OutFrames>,
    /// Streams now, and as many as the peer lets us have.
    streams: Cell<usize>,
    most: Cell<usize>,
    carried: Cell<bool>,
    /// Whether there was a stream since the last sweep, and the sweep up to which there were some.
    busy: Cell<bool>,
    since: Cell<Nanos>,
    /// It is to have no more streams.
    retired: Cell<bool>,
}

/// A stream; holds its place on the connection.
#[derive(Debug)]
pub(super) struct Stream {
    connection: Rc<Connection>,
    over: Rc<Over>,
}

/// What a stream's two halves know of one another. hyper would send the rest of a request's body also when its answer is
/// over for us.
#[derive(Debug)]
struct Over {
    is: Cell<bool>,
    sending: RefCell<Option<Waker>>,
    /// Why the request's body ended early, if it did: whatever comes of the stream is then its caller's fault.
    broke: RefCell<Option<String>>,
    stall: Stall,
}

impl Stream {
    fn new(connection: &Rc<Connection>, stalls: &Rc<Stalls>) -> Self {
        connection.streams.set(connection.streams.get() + 1);
        connection.busy.set(true);
        let (is, sending, broke) = (Cell::default(), RefCell::default(), RefCell::default());
        let over = Over { is, sending, broke, stall: Stall::new(stalls) };
        Self { connection: Rc::clone(connection), over: Rc::new(over) }
    }

    /// Some of the answer has come.
    pub(super) fn came(&self) {
        self.over.stall.came();
    }

    /// What has ended the stream, in place of what it looks like from its other half.
    pub(super) fn blamed(&self, error: SendError) -> SendError {
        self.over.broke.take().map_or(error, SendError::request)
    }

    /// Nothing has come.
    ///
    /// # Errors
    /// When that has been so for too long. Its connection then gets no further streams: perhaps nobody is there.
    pub(super) fn waits(&self, waker: &Waker) -> Result<(), SendError> {
        self.over.stall.waits(waker).inspect_err(|_| self.connection.retired.set(true))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.streams.set(self.connection.streams.get().saturating_sub(1));
        self.over.is.set(true);
        if let Some(waker) = self.over.sending.take() {
            waker.wake();
        }
    }
}

impl Multiplexed {
    pub(super) fn declined(&self) -> bool {
        self.declined.get()
    }

    /// A connection with room; or, where there can be no further one, the one with the fewest streams.
    fn pick(&self, may_dial: bool) -> Option<Rc<Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.sender.is_closed() && !connection.retired.get());
        let least = connections.iter().min_by_key(|connection| connection.streams.get())?;
        let full = least.streams.get() >= least.most.get().max(1);
        (!full || !may_dial).then(|| Rc::clone(least))
    }

    /// Lets go of connections without streams that have had none since `before`; they end in good order.
    pub(super) fn sweep(&self, before: Nanos, now: Nanos) {
        self.connections.borrow_mut().retain(|connection| {
            let streams = connection.streams.get() > 0;
            if connection.busy.replace(streams) {
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
    shared: &Rc<Shared>,
    pool: &Rc<Pool>,
    request: Outgoing<'a>,
) -> Result<Result<Response<Incoming>, Outgoing<'a>>, SendError> {
    let Some(mut connection) = connection(shared, pool).await? else { return Ok(Err(request)) };
    if request.upgrade {
        return Err(SendError::request("HTTP/2 has no Upgrade"));
    }
    let length = request.length()?;
    let mut head = head(pool, &request, length)?;
    let (mut body, copy) = match request.body {
        OutBody::Empty => (OutFrames::from(Bytes::new()), Some(Bytes::new())),
        OutBody::Bytes(bytes) => (bytes.clone().into(), Some(bytes)),
        OutBody::Stream(stream) => (OutFrames { body: Frames::Stream(stream, length), over: None }, None),
    };
    let mut again = true;
    loop {
        let stream = Stream::new(&connection, &pool.stalls);
        let reused = connection.carried.replace(true);
        if reused {
            count(&pool.tally, |counts| counts.reused += 1);
        }
        body.over = Some(Rc::clone(&stream.over));
        let mut attempt = Request::new(body);
        (*attempt.method_mut(), *attempt.uri_mut()) = (head.0.clone(), head.1.clone());
        *attempt.headers_mut() = if again { head.2.clone() } else { std::mem::take(&mut head.2) };
        let mut sender = connection.sender.clone();
        let mut sent = pin!(sender.try_send_request(attempt));
        let sent = poll_fn(|cx| match sent.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Ok(sent)),
            Poll::Pending => stream.waits(cx.waker()).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending),
        });
        let sent = sent.await.map_err(|error| stream.blamed(error))?;
        let mut error = match sent {
            Ok(answer) => {
                stream.came();
                return Ok(Ok(answer.map(|body| Incoming::stream(body, stream))));
            }
            Err(error) => error,
        };
        let unsent = error.take_message().map(Request::into_body);
        let error = error.into_error();
        // Nothing else is sent twice in silence: a stream that was refused, or that its connection took along, is an
        // attempt that has failed.
        let may = reused && is_beyond_the_last(&error);
        body = match (unsent, &copy) {
            (Some(unsent), _) if again => unsent,
            (None, Some(copy)) if again && may => copy.clone().into(),
            _ => return Err(stream.blamed(failure(&error))),
        };
        again = false;
        count(&pool.tally, |counts| counts.repeated += 1);
        drop(stream);
        connection = match self::connection(shared, pool).await? {
            Some(connection) => connection,
            None => return Err(failure(&error)),
        };
    }
}

/// A connection that takes a stream; None if the origin speaks HTTP/1.1.
async fn connection(shared: &Rc<Shared>, pool: &Rc<Pool>) -> Result<Option<Rc<Connection>>, SendError> {
    loop {
        if let Some(connection) = pool.http2.pick(pool.has_room()) {
            return Ok(Some(connection));
        }
        if pool.http2.declined() {
            return Ok(None);
        }
        let dialling = pool.http2.dialling.borrow().upgrade();
        let dialling = match dialling {
            Some(dialling) => dialling,
            None => Dialling::begin(shared, pool),
        };
        Dialled(dialling).await?;
    }
}

/// A dial that several callers wait for. A task does it, so that none of them can end it for the others; it ends when
/// the last of them has gone.
#[derive(Debug)]
struct Dialling {
    task: RefCell<Option<AbortHandle>>,
    done: RefCell<Option<Result<(), SendError>>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Dialling {
    fn begin(shared: &Rc<Shared>, pool: &Rc<Pool>) -> Rc<Self> {
        let this = Rc::new(Self { task: RefCell::default(), done: RefCell::default(), waiting: RefCell::default() });
        *pool.http2.dialling.borrow_mut() = Rc::downgrade(&this);
        let (shared, pool, weak) = (Rc::clone(shared), Rc::clone(pool), Rc::downgrade(&this));
        let task = tokio::task::spawn_local(async move {
            let dialled = dial_one(&shared, &pool).await;
            *pool.http2.dialling.borrow_mut() = Weak::new();
            let Some(this) = weak.upgrade() else { return };
            *this.done.borrow_mut() = Some(dialled);
            for waker in this.waiting.take() {
                waker.wake();
            }
        });
        *this.task.borrow_mut() = Some(task.abort_handle());
        this
    }
}

impl Drop for Dialling {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

struct Dialled(Rc<Dialling>);

impl Future for Dialled {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(done) = &*self.0.done.borrow() {
            return Poll::Ready(done.clone());
        }
        let mut waiting = self.0.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

async fn dial_one(shared: &Rc<Shared>, pool: &Rc<Pool>) -> Result<(), SendError> {
    let mut lease = match pool.fresh() {
        Found::Lease(lease) => lease,
        Found::Wait(waiting) => waiting.await,
    };
    if lease.socket.is_none() {
        lease.socket = Some(dial::dial(&pool.origin, &shared.timer).await?);
        count(&pool.tally, |counts| counts.dialled += 1);
    }
    let without_tls = pool.origin.tls.is_none();
    if without_tls || lease.socket.as_ref().is_some_and(super::socket::Socket::agreed_on_http2) {
        return adopt(lease, shared.now()).await;
    }
    if pool.origin.protocol == super::Protocol::Http2 {
        return Err(SendError::new(Kind::Tls, "the service does not speak HTTP/2"));
    }
    pool.http2.declined.set(true);
    lease.give_back_unused(shared.now());
    Ok(())
}

/// Makes an HTTP/2 connection of a fresh one.
pub(super) async fn adopt(mut lease: Lease, now: Nanos) -> Result<(), SendError> {
    let Some(socket) = lease.socket.take() else { return Err(SendError::new(Kind::Connect, "no connection")) };
    let mut builder = Builder::new(Here);
    builder.max_header_list_size(MOST_HEAD);
    let (sender, driver) = builder.handshake(TokioIo::new(socket)).await.map_err(|error| failure(&error))?;
    let connection = Rc::new(Connection {
        sender,
        streams: Cell::default(),
        most: Cell::new(driver.current_max_send_streams()),
        carried: Cell::default(),
        busy: Cell::default(),
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
                    connection.most.set(driver.current_max_send_streams());
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
fn head(pool: &Pool, request: &Outgoing<'_>, length: Option<u64>) -> Result<(Method, Uri, HeaderMap), SendError> {
    let mut headers = HeaderMap::with_capacity(request.headers.len() + request.more.len() + 1);
    let mut host = None;
    let more = request.more.iter().map(|(name, value)| (name, value));
    for (name, value) in request.headers.iter().chain(more) {
        if *name == HOST {
            host = host.or(Some(value));
        } else if !of_the_connection(name) && (*name != TE || value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
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

fn of_the_connection(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == TRANSFER_ENCODING
        || *name == CONNECTION
        || *name == UPGRADE
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// A request's body on its way.
struct OutFrames {
    body: Frames,
    over: Option<Rc<Over>>,
}

enum Frames {
    Whole(Bytes),
    /// With what is left of it, if its length was said.
    Stream(Streamed, Option<u64>),
}

/// A body that is there goes out in such pieces, for each shows that the one before was taken.
const PIECE: usize = 64 * 1024;

impl From<Bytes> for OutFrames {
    fn from(bytes: Bytes) -> Self {
        Self { body: Frames::Whole(bytes), over: None }
    }
}

impl http_body::Body for OutFrames {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let over = this.over.as_ref();
        if over.is_some_and(|over| over.is.get()) {
            return Poll::Ready(Some(Err("its answer is over".into())));
        }
        let frame = match &mut this.body {
            Frames::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Frames::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes.split_to(PIECE.min(bytes.len())))))),
            Frames::Stream(stream, left) => stream.as_mut().poll_frame(cx).map(|frame| counted(frame, left)),
        };
        if let Some(over) = over {
            if let Poll::Ready(Some(Err(error))) = &frame {
                over.broke.replace(Some(format!("the request's body broke off: {error}")));
            }
            if frame.is_ready() {
                over.stall.went();
            } else {
                over.stall.starves(true);
                over.sending.replace(Some(cx.waker().clone()));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Frames::Whole(bytes) => bytes.is_empty(),
            Frames::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Frames::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Frames::Stream(stream, _) => stream.size_hint(),
        }
    }
}

/// A frame that goes out, if the body is as long as it said so far.
fn counted<E>(
    frame: Option<Result<Frame<Bytes>, E>>,
    left: &mut Option<u64>,
) -> Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    const WRONG: &str = "it is not as long as it said";
    let Some(frame) = frame else { return left.filter(|left| *left > 0).map(|_| Err(WRONG.into())) };
    if let (Ok(frame), Some(left)) = (&frame, left) {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(length) {
            Some(rest) => *left = rest,
            None => return Some(Err(WRONG.into())),
        }
    }
    passed_on(frame.map_err(Into::into))
}

/// A frame without the trailers that are not passed on; None if that was all of it, for trailers come last.
fn passed_on<E>(frame: Result<Frame<Bytes>, E>) -> Option<Result<Frame<Bytes>, E>> {
    let frame = match frame.map(Frame::into_trailers) {
        Ok(Ok(mut trailers)) => {
            let unwanted: Vec<HeaderName> = trailers.keys().filter(|name| !may_trail(name)).cloned().collect();
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

fn root(error: &hyper::Error) -> &(dyn Error + 'static) {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

/// Whether the connection was going away before this request came: its stream is beyond the last one that the other end
/// takes (RFC 9113, 6.8). Told by h2's words, for its type is not to be had through hyper.
fn is_beyond_the_last(error: &hyper::Error) -> bool {
    root(error).to_string().starts_with("connection error received: not a result of an error")
}

pub(super) fn failure(error: &hyper::Error) -> SendError {
    let root = root(error);
    let text = root.to_string();
    if let Some(error) = root.downcast_ref::<io::Error>() {
        return SendError::broken(error);
    }
    let kind = if text.starts_with("stream error") {
        Kind::Reset
    } else if text.starts_with("connection error detected") || error.is_parse() {
        Kind::Protocol
    } else {
        Kind::Closed
    };
    SendError::new(kind, format!("HTTP/2: {text}"))
}
