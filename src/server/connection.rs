//! One connection, from accept to close.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::home::Home;
use super::socket::Socket;
use super::watch::{Fate, Watch};
use super::{Service, Tunnel};
use crate::machine::executor::Here;

/// Drives a connection until it ends or its fate is decided.
pub(super) async fn drive<S: Service>(home: Rc<Home<S>>, stream: TcpStream, peer: SocketAddr) {
    let watch = Rc::new(Watch::new(peer, home.ledger.tick.now()));
    let key = home.connections.borrow_mut().insert(Rc::clone(&watch));
    home.ledger.metrics.connections.inc();
    home.ledger.metrics.open.inc();
    let socket = Socket::new(stream, Rc::clone(&watch), home.ledger.tick.clone(), home.page.clone());
    {
        let mut served = pin!(serve(&home, &watch, socket));
        poll_fn(|cx| {
            watch.runs_in(cx.waker());
            if watch.fate() == Fate::Die {
                return Poll::Ready(());
            }
            served.as_mut().poll(cx)
        })
        .await;
    }
    home.freed.one_more();
    home.ledger.metrics.open.dec();
    home.connections.borrow_mut().remove(key);
    home.ended.notify_one();
}

async fn serve<S: Service>(home: &Rc<Home<S>>, watch: &Rc<Watch>, mut socket: Socket) {
    let Ok(http2) = socket.speaks_http2().await else { return };
    if home.asks_arrivals {
        watch.has_waited(socket.age());
    }
    let service = || service_fn(|request| Rc::clone(home).answer(Rc::clone(watch), request));
    let mut io = TokioIo::new(socket);
    let ended = if http2 {
        let mut builder = http2::Builder::new(Here);
        builder.max_header_list_size(home.most_head as u32).max_concurrent_streams(250);
        let connection = pin!(builder.serve_connection(io, service()));
        let ended = until_it_leaves(watch, connection, http2::Connection::graceful_shutdown, || false).await;
        // It never shrinks.
        ended.unwrap_or(Ok(()))
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(home.most_head).max_headers(home.most_fields).half_close(false);
        // With a part of the next head in hand a new connection would rest again at once, for ever.
        let mut may_shrink = true;
        let (connection, ended) = loop {
            let mut connection = builder.serve_connection(io, service());
            let leave = http1::Connection::graceful_shutdown;
            let ended =
                until_it_leaves(watch, Pin::new(&mut connection), leave, || may_shrink && watch.can_shrink()).await;
            if let Some(ended) = ended {
                break (connection, ended);
            }
            // hyper keeps the room that the largest head or body took. A connection between two requests is nothing but
            // its socket, so another one is put in its place.
            let parts = connection.into_parts();
            let mut socket = parts.io.into_inner();
            may_shrink = parts.read_buf.is_empty();
            socket.unread(&parts.read_buf);
            io = TokioIo::new(socket);
            watch.has_shrunk();
            home.freed.one_more();
        };
        if let Some(tunnel) = watch.take_tunnel().filter(|_| ended.is_ok()) {
            let parts = connection.into_parts();
            pass_on(home, watch, parts.io.into_inner(), &parts.read_buf, tunnel).await;
        }
        ended
    };
    if ended.is_err_and(|error| error.is_parse()) {
        home.ledger.metrics.ended("malformed");
    }
}

/// Passes the bytes of a connection that speaks another protocol by now, in both directions, until both ends are done
/// or one breaks off.
async fn pass_on<S: Service>(
    home: &Home<S>,
    watch: &Watch,
    mut socket: Socket,
    read: &[u8],
    mut tunnel: Box<dyn Tunnel>,
) {
    watch.note(|patience| patience.switched(home.ledger.tick.now()));
    socket.switches();
    // An end that breaks off ends the other one, too; there is nobody to tell.
    if tunnel.write_all(read).await.is_ok() {
        let _ = tokio::io::copy_bidirectional(&mut socket, &mut tunnel).await;
    }
}

/// Has the connection end after the answers it owes, once that is its fate. None: it `rests`, and goes on.
async fn until_it_leaves<C: Future>(
    watch: &Watch,
    mut connection: Pin<&mut C>,
    leave: fn(Pin<&mut C>),
    rests: impl Fn() -> bool,
) -> Option<C::Output> {
    let mut told = false;
    poll_fn(|cx| {
        if watch.fate() == Fate::Leave && !told {
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
