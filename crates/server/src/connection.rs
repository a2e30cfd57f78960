//! One connection, from accept to close.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use super::accepted_socket::AcceptedSocket;
use super::connection_state::{CloseMode, ConnectionOrigin, ConnectionState};
use super::http1::{self, Http1End};
use super::listen::ListenerRules;
use super::opening::{self, OpenedConnection, OpeningFailure};
use super::request_body::RequestBody;
use super::served_stream::ServedStream;
use super::socket::ConnectionSocket;
use super::thread_context::ThreadContext;
use super::{Service, Tunnel};
use weir_machine::executor::LocalExecutor;

/// Drives a connection until it ends or its end is decided.
pub(super) async fn drive<S: Service>(
    home: Rc<ThreadContext<S>>,
    listener: Rc<ListenerRules>,
    stream: AcceptedSocket,
    origin: ConnectionOrigin,
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

/// Reads what comes before HTTP.
async fn open<S: Service>(
    home: &ThreadContext<S>,
    listener: &ListenerRules,
    watch: &Rc<ConnectionState>,
    mut socket: ConnectionSocket,
) -> Result<OpenedConnection, OpeningFailure> {
    if listener.proxy_protocol.contains(watch.peer().ip()) {
        opening::read_proxy_header(&mut socket, watch).await?;
    }
    match &listener.tls {
        Some(tls) => opening::open_tls(socket, tls, watch).await,
        None => {
            let opened = opening::open_plain(socket).await?;
            if home.uses_receive_timestamps
                && let ServedStream::Plain(socket) = &opened.stream
            {
                watch.set_receive_delay(socket.receive_age());
            }
            Ok(opened)
        }
    }
}

async fn serve<S: Service>(
    home: &Rc<ThreadContext<S>>,
    listener: &ListenerRules,
    watch: &Rc<ConnectionState>,
    socket: ConnectionSocket,
) {
    let OpenedConnection { stream, is_http2 } = match open(home, listener, watch, socket).await {
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
    let service = service_fn(|request: Request<Incoming>| {
        Rc::clone(home).handle(Rc::clone(watch), request.map(RequestBody::from))
    });
    let mut builder = http2::Builder::new(LocalExecutor);
    builder.max_header_list_size(home.max_head_bytes as u32).max_concurrent_streams(250);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    let ended = poll_fn(|cx| {
        if watch.close_mode() == CloseMode::Drain && !told {
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    if ended.await.is_err_and(|error| error.is_parse()) {
        home.accounting.metrics.record_end("malformed");
    }
}

async fn serve_http1<S: Service>(home: &Rc<ThreadContext<S>>, watch: &Rc<ConnectionState>, stream: ServedStream) {
    match http1::serve(home, watch, stream).await {
        Http1End::Closed => {}
        Http1End::Malformed => home.accounting.metrics.record_end("malformed"),
        Http1End::Upgraded { socket, read, tunnel } => run_tunnel(home, watch, socket, &read, tunnel).await,
    }
}

/// Forwards the bytes of an upgraded connection in both directions, until both ends are done or one fails.
async fn run_tunnel<S: Service>(
    home: &ThreadContext<S>,
    watch: &ConnectionState,
    mut socket: ServedStream,
    read: &[u8],
    mut tunnel: Box<dyn Tunnel>,
) {
    watch.update_timeouts(|timeouts| timeouts.switched(home.accounting.coarse_clock.now()));
    socket.start_tunnel();
    // A failed end closes the other one, too; there is nothing to report it to.
    if tunnel.write_all(read).await.is_ok() {
        let _ = tokio::io::copy_bidirectional(&mut socket, &mut tunnel).await;
    }
}
