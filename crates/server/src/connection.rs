//! One connection, from accept to close.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use super::accepted_socket::AcceptedSocket;
use super::connection_state::{CloseMode, ConnectionOrigin, ConnectionState};
use super::listen::ListenerRules;
use super::opening::{self, OpenedConnection, OpeningFailure};
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
    let ended = match is_http2 {
        true => serve_http2(home, watch, stream).await,
        false => serve_http1(home, watch, stream).await,
    };
    if ended.is_err_and(|error| error.is_parse()) {
        home.accounting.metrics.record_end("malformed");
    }
}

async fn serve_http2<S: Service>(
    home: &Rc<ThreadContext<S>>,
    watch: &Rc<ConnectionState>,
    stream: ServedStream,
) -> hyper::Result<()> {
    let service = service_fn(|request| Rc::clone(home).handle(Rc::clone(watch), request));
    let mut builder = http2::Builder::new(LocalExecutor);
    builder.max_header_list_size(home.max_head_bytes as u32).max_concurrent_streams(250);
    let connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = drive_until_closed(watch, connection, http2::Connection::graceful_shutdown, || false).await;
    // It never rests.
    ended.unwrap_or(Ok(()))
}

async fn serve_http1<S: Service>(
    home: &Rc<ThreadContext<S>>,
    watch: &Rc<ConnectionState>,
    mut stream: ServedStream,
) -> hyper::Result<()> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(home.max_head_bytes).max_headers(home.max_header_fields).half_close(false);
    // With a part of the next head read, a new connection would be replaced again at once, endlessly.
    let mut may_rest = true;
    loop {
        let service = service_fn(|request| Rc::clone(home).handle(Rc::clone(watch), request));
        let mut connection = builder.serve_connection(TokioIo::new(stream), service);
        let leave = http1::Connection::graceful_shutdown;
        let ended = drive_until_closed(watch, Pin::new(&mut connection), leave, || may_rest && watch.can_rest()).await;
        if let Some(ended) = ended {
            if let Some(tunnel) = watch.take_tunnel().filter(|_| ended.is_ok()) {
                let parts = connection.into_parts();
                run_tunnel(home, watch, parts.io.into_inner(), &parts.read_buf, tunnel).await;
            }
            return ended;
        }
        // hyper keeps the memory of the largest head or body, and that of a call in progress. Between two requests a
        // connection is only its socket, so it is replaced by a new one when more comes.
        let parts = connection.into_parts();
        stream = parts.io.into_inner();
        may_rest = parts.read_buf.is_empty();
        stream.unread(&parts.read_buf);
        drop(parts.read_buf);
        watch.set_resting();
        home.memory_reclaimer.record_freed();
        // An end is one here, with or without an error.
        if may_rest && !stream.wait_for_bytes().await.unwrap_or(false) {
            return Ok(());
        }
        watch.set_active();
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

/// Ends the connection after its pending responses, once that is decided. None: it `rests`, and continues.
async fn drive_until_closed<C: Future>(
    watch: &ConnectionState,
    mut connection: Pin<&mut C>,
    leave: fn(Pin<&mut C>),
    rests: impl Fn() -> bool,
) -> Option<C::Output> {
    let mut told = false;
    poll_fn(|cx| {
        if watch.close_mode() == CloseMode::Drain && !told {
            told = true;
            leave(connection.as_mut());
        }
        match connection.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if rests() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
