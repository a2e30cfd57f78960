//! One connection, from accept to close.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::BytesMut;
use http::Request;
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;

use super::accepted_socket::AcceptedSocket;
use super::connection_limits::ConnectionPlaces;
use super::connection_state::{CloseMode, ConnectionOrigin, ConnectionState};
use super::http1::{self, Http1End};
use super::http2::{self, Http2End, Http2Response};
use super::listen::ListenerRules;
use super::opening::{self, OpenedConnection};
use super::request_body::RequestBody;
use super::served_stream::ServedStream;
use super::socket::ConnectionSocket;
use super::stream_progress::StreamProgress;
use super::thread_context::ThreadContext;
use super::{Service, Tunnel};
use weir_machine::executor::BoxedFuture;

/// Drives a connection until it ends or its end is decided.
pub(super) async fn drive<S: Service>(
    home: Rc<ThreadContext<S>>,
    listener: Rc<ListenerRules>,
    stream: AcceptedSocket,
    origin: ConnectionOrigin,
    _places: ConnectionPlaces,
) {
    let watch = Rc::new(ConnectionState::new(origin, listener.index, home.accounting.coarse_clock.now()));
    let key = home.connections.borrow_mut().insert(Rc::clone(&watch));
    home.accounting.metrics.connections.inc();
    home.accounting.metrics.open.inc();
    let socket = ConnectionSocket::new(
        stream,
        Rc::clone(&watch),
        home.accounting.coarse_clock.clone(),
        home.static_body.clone(),
    );
    {
        let mut served = pin!(serve(&home, &listener, &watch, socket));
        poll_fn(|cx| {
            watch.set_task(cx.waker());
            if watch.close_mode() == CloseMode::Abort {
                return Poll::Ready(());
            }
            served.as_mut().poll(cx)
        })
        .await;
    }
    home.memory_reclaimer.record_freed();
    home.accounting.metrics.open.dec();
    home.connections.borrow_mut().remove(key);
    home.connection_ended.notify_one();
}

async fn serve<S: Service>(
    home: &Rc<ThreadContext<S>>,
    listener: &ListenerRules,
    watch: &Rc<ConnectionState>,
    socket: ConnectionSocket,
) {
    let OpenedConnection { stream, is_http2 } =
        match opening::open(listener, watch, socket, home.uses_receive_timestamps).await {
            Ok(opened) => opened,
            Err(failure) => {
                if let Some(cause) = failure.cause() {
                    home.accounting.metrics.record_end(cause);
                }
                return;
            }
        };
    watch.set_opened(is_http2);
    if is_http2 {
        serve_http2(home, watch, stream).await;
    } else {
        serve_http1(home, watch, stream).await;
    }
}

async fn serve_http2<S: Service>(home: &Rc<ThreadContext<S>>, watch: &Rc<ConnectionState>, stream: ServedStream) {
    let (home, context) = (Rc::clone(home), Rc::clone(watch));
    let (accounting, max_head_bytes) = (Rc::clone(&home.accounting), home.max_head_bytes);
    let coarse_clock = accounting.coarse_clock.clone();
    let respond = move |request: Request<Incoming>, progress: Rc<StreamProgress>| -> Http2Response {
        let request = request.map(|body| RequestBody::http2(body, Rc::clone(&progress)));
        let opened = home.open(&context, Some(progress), &request);
        Box::pin(Rc::clone(&home).handle(Rc::clone(&context), opened, request))
    };
    match http2::serve(stream, max_head_bytes, watch, coarse_clock, Rc::new(respond)).await {
        Http2End::Closed => {}
        Http2End::Malformed => accounting.metrics.record_end("malformed"),
        Http2End::ControlFlood => accounting.metrics.record_end("control_frames"),
    }
}

async fn serve_http1<S: Service>(home: &Rc<ThreadContext<S>>, watch: &Rc<ConnectionState>, stream: ServedStream) {
    match http1::serve(home, watch, stream).await {
        Http1End::Closed => {}
        Http1End::Malformed => home.accounting.metrics.record_end("malformed"),
        Http1End::Upgraded { socket, read, tunnel } => {
            watch.update_timeouts(|timeouts| timeouts.switched(home.accounting.coarse_clock.now()));
            run_tunnel(socket, read, tunnel).await;
        }
    }
}

/// Forwards the bytes of an upgraded connection in both directions, until both ends are done or one fails.
fn run_tunnel(mut socket: ServedStream, read: BytesMut, mut tunnel: Box<dyn Tunnel>) -> BoxedFuture<'static, ()> {
    Box::pin(async move {
        socket.start_tunnel();
        // A failed end closes the other one, too; there is nothing to report it to.
        if tunnel.write_all(&read).await.is_ok() {
            let _ = tokio::io::copy_bidirectional(&mut socket, &mut tunnel).await;
        }
    })
}
