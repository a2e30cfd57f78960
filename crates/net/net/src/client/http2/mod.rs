//! Requests over HTTP/2: hyper's, with many streams per connection and a task for each connection.

mod body;
mod connect;
pub(super) mod connection;
pub(super) mod connections;
pub(super) mod error;
mod pending_connect;
mod stream_state;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};

use self::body::{FrameSource, OutgoingFrames};
pub(super) use self::connect::adopt;
use self::connect::connect;
use self::connection::{Http2Connection, Http2Stream};
use self::error::{failure, is_after_goaway};
use self::pending_connect::ConnectWait;
use super::body::IncomingBody;
use super::client_state::ClientState;
use super::error::{FailurePoint, SendError};
use super::origin::display_address;
use super::pool::{ConnectionPool, update_counts};
use super::request::{OutgoingBody, OutgoingRequest};
use super::step_timer::StepTimer;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::executor::BoxedFuture;

/// Sends a request over HTTP/2; returns it if the origin speaks HTTP/1.1. Requests over HTTP/1.1 do not carry its state.
pub(super) fn send<'a>(
    shared: &'a Rc<ClientState>,
    pool: &'a Rc<ConnectionPool>,
    request: OutgoingRequest<'a>,
) -> BoxedFuture<'a, Result<Result<Response<IncomingBody>, OutgoingRequest<'a>>, SendError>> {
    Box::pin(exchange(shared, pool, request))
}

async fn exchange<'a>(
    shared: &Rc<ClientState>,
    pool: &Rc<ConnectionPool>,
    request: OutgoingRequest<'a>,
) -> Result<Result<Response<IncomingBody>, OutgoingRequest<'a>>, SendError> {
    let connect_timeout = request.wire.timeouts.connect;
    let Some(mut connection) = connection(shared, pool, connect_timeout).await? else { return Ok(Err(request)) };
    if request.upgrade {
        return Err(SendError::request("HTTP/2 has no Upgrade"));
    }
    let length = request.length()?;
    let timeouts = request.wire.timeouts;
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
        let stream = Http2Stream::new(&connection, &pool.progress_timeouts, body.body.step());
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
        let (mut steps, mut taken) = (StepTimer::new(&shared.timer, timeouts), 0);
        let sent = poll_fn(|cx| match sent.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Ok(sent)),
            Poll::Pending => {
                if let Some(steps) = &mut steps {
                    stream.check_steps(cx, steps, &mut taken)?;
                }
                stream.check_timeout(cx.waker()).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
        });
        let sent = sent.await.map_err(|error| stream.attribute_error(error))?;
        let mut error = match sent {
            Ok(response) => {
                stream.on_received();
                return Ok(Ok(response.map(|body| IncomingBody::http2(body, stream))));
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
        connection = match self::connection(shared, pool, connect_timeout).await? {
            Some(connection) => connection,
            None => return Err(failure(&error)),
        };
    }
}

/// A connection for a stream within a time; None if the origin speaks HTTP/1.1.
async fn connection(
    shared: &Rc<ClientState>,
    pool: &Rc<ConnectionPool>,
    timeout: Nanos,
) -> Result<Option<Rc<Http2Connection>>, SendError> {
    let until = if timeout == Nanos::NEVER { timeout } else { shared.timer.now() + timeout };
    loop {
        if let Some(connection) = pool.http2.pick(pool.has_capacity()) {
            return Ok(Some(connection));
        }
        if pool.http2.declined() {
            return Ok(None);
        }
        let pending = pool.http2.pending_connect().unwrap_or_else(|| connect(shared, pool));
        // A task makes the connection, for requests whose timeouts differ.
        tokio::select! {
            biased;
            connected = ConnectWait(pending) => connected?,
            () = shared.timer.sleep_until(until), if until != Nanos::NEVER => {
                let text = format!("no connection within {timeout} ({})", display_address(&pool.origin.address));
                return Err(SendError::new(FailureKind::Connect, text).at(FailurePoint::ConnectTimeout));
            }
        }
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
    if let Some(passed) = request.wire.passed {
        passed.append_to(&mut headers);
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
