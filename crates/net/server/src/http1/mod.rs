//! HTTP/1.x: one request after the other, each with its response.
//!
//! - `request_head`: what a request is, and where it ends; `escaped_target`: targets that URLs do not have;
//!   `response_head`: the same of a response
//! - `request_stream`: the bytes of a connection; `http1_body`: the body of its current request, `body_error`: why it breaks off
//! - `response_writer`: a response on its way into `write_queue`, and out of it
//! - `direct`: requests that their service handles without a future
//! - `buffers`: memory that the connections of an event loop share
//!
//! A connection polls its service, its socket and its response by itself, without a task for either. Between two
//! requests it has no memory but that of its socket.

mod body_error;
pub(super) mod buffers;
mod direct;
mod escaped_target;
pub(super) mod http1_body;
pub(super) mod request_head;
mod request_stream;
mod response_head;
mod response_writer;
mod write_queue;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use http::Response;

use self::buffers::Http1Buffers;
use self::http1_body::Http1Body;
use self::request_head::{HeadError, HeadLimits, ParsedHead};
use self::request_stream::{NoHead, RequestStream};
use self::response_head::FramingRules;
use super::body::ResponseBody;
use super::connection_state::{CloseMode, ConnectionState};
use super::direct::WholeResponse;
use super::request_body::RequestBody;
use super::request_log::RequestRecord;
use super::served_stream::ServedStream;
use super::thread_context::ThreadContext;
use super::{Service, Tunnel};

/// How a connection's HTTP has ended.
#[derive(Debug)]
pub(super) enum Http1End {
    Closed,
    /// The client has sent an invalid request.
    Malformed,
    /// The connection belongs to the tunnel, with the bytes that were read already.
    Upgraded {
        socket: ServedStream,
        read: BytesMut,
        tunnel: Box<dyn Tunnel>,
    },
}

/// Why a connection is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing has come for a while.
    Resting,
    Closed,
    Malformed,
    Upgraded,
}

/// Handles the requests of a connection.
pub(super) async fn serve<S: Service>(
    home: &Rc<ThreadContext<S>>,
    watch: &Rc<ConnectionState>,
    socket: ServedStream,
) -> Http1End {
    let stream = RequestStream::new(socket, Rc::clone(watch), Rc::clone(&home.http1_buffers));
    let stream = Rc::new(RefCell::new(stream));
    // Also when this future is dropped.
    let _closed = StreamGuard(Rc::clone(&stream));
    loop {
        if !poll_fn(|cx| stream.borrow_mut().poll_bytes(cx)).await {
            return Http1End::Closed;
        }
        watch.set_active();
        // The memory of a call is reserved for as long as the connection is in use.
        let phase = Box::pin(handle_requests(home, watch, &stream)).await;
        match phase {
            Left::Resting => {
                watch.set_resting();
                home.memory_reclaimer.record_freed();
            }
            Left::Closed => return Http1End::Closed,
            Left::Malformed => return Http1End::Malformed,
            Left::Upgraded => break,
        }
    }
    let parts = stream.borrow_mut().take_socket();
    match (watch.take_tunnel(), parts) {
        (Some(tunnel), Some((socket, read))) => Http1End::Upgraded { socket, read, tunnel },
        _ => Http1End::Closed,
    }
}

/// Closes the connection when dropped: the body of its last request may live longer.
struct StreamGuard(Rc<RefCell<RequestStream>>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.borrow_mut().close();
    }
}

async fn handle_requests<S: Service>(
    home: &Rc<ThreadContext<S>>,
    watch: &Rc<ConnectionState>,
    stream: &Rc<RefCell<RequestStream>>,
) -> Left {
    let limits = HeadLimits { bytes: home.max_head_bytes, fields: home.max_header_fields };
    loop {
        let passed_names = home.passed_names();
        let head = poll_fn(|cx| {
            let mut stream = stream.borrow_mut();
            match stream.poll_head(cx, limits, passed_names) {
                Poll::Ready(head) => Poll::Ready(Some(head)),
                Poll::Pending if watch.can_rest() && !stream.has_unread() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        let (ParsedHead { request, keep_alive, takes_trailers, .. }, passed) = match head.await {
            Some(Ok(head)) => head,
            Some(Err(NoHead::Closed)) => return Left::Closed,
            Some(Err(NoHead::Invalid(error))) => {
                reject(stream, &home.http1_buffers, error).await;
                return Left::Malformed;
            }
            None => return Left::Resting,
        };
        let mut rules = FramingRules::of(request.method(), request.version());
        rules.takes_trailers = takes_trailers;
        let has_body = stream.borrow().has_body();
        let takes_whole = has_body && home.service.has_direct();
        let whole = if takes_whole { stream.borrow_mut().take_whole_body() } else { None };
        let mut request = request.map(|()| match whole {
            Some(body) => RequestBody::whole(body, passed),
            None => RequestBody::http1(has_body.then(|| Http1Body::new(Rc::clone(stream))), passed),
        });
        let opened = home.open(watch, None, &request);
        let reply = match home.offer(watch, &opened, &mut request) {
            Some(direct) => direct::respond(home, watch, stream, opened, direct).await,
            None => {
                let mut handling = pin!(Rc::clone(home).handle(Rc::clone(watch), opened, request));
                until_client_leaves(stream, |cx| handling.as_mut().poll(cx))
                    .await
                    .and_then(Result::ok)
                    .map(ConcludedReply::Any)
            }
        };
        let Some(reply) = reply else { return Left::Closed };
        rules.keep_alive = keep_alive && watch.close_mode() == CloseMode::Open && stream.borrow().can_continue();
        let written = match reply {
            ConcludedReply::Any(response) => {
                response_writer::write(stream, &home.http1_buffers, &rules, response).await
            }
            ConcludedReply::Whole(response, record) => {
                response_writer::write_whole(stream, &home.http1_buffers, &rules, response, record).await
            }
        };
        let Ok(is_last) = written else { return Left::Closed };
        let has_rest = stream.borrow().has_body();
        if watch.has_tunnel() {
            // The rest of a body is not of the other protocol.
            return if has_rest { Left::Closed } else { Left::Upgraded };
        }
        if is_last || watch.close_mode() != CloseMode::Open || !poll_fn(|cx| stream.borrow_mut().poll_end(cx)).await {
            shut_down(stream).await;
            return Left::Closed;
        }
        if has_rest && !stream.borrow().has_unread() {
            watch.update_timeouts(|timeouts| timeouts.begin_idle(home.accounting.coarse_clock.now()));
        }
    }
}

/// The response to a request.
enum ConcludedReply {
    Any(Response<ResponseBody>),
    /// A response whose body is there, and the record of its request.
    Whole(WholeResponse, RequestRecord),
}

/// What `poll` has; None if the client leaves before.
async fn until_client_leaves<T>(
    stream: &Rc<RefCell<RequestStream>>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(found) => Poll::Ready(Some(found)),
        Poll::Pending if stream.borrow_mut().is_client_gone(cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Responds to an invalid request.
async fn reject(stream: &Rc<RefCell<RequestStream>>, buffers: &Http1Buffers, error: HeadError) {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = error.status();
    let rules = FramingRules::of(&http::Method::GET, http::Version::HTTP_11);
    if response_writer::write(stream, buffers, &rules, response).await.is_ok() {
        shut_down(stream).await;
    }
}

async fn shut_down(stream: &Rc<RefCell<RequestStream>>) {
    stream.borrow_mut().end_reading();
    // An error is an end, too.
    let _ = poll_fn(|cx| stream.borrow_mut().poll_shutdown(cx)).await;
}
