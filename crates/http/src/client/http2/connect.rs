//! New HTTP/2 connections.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::super::error::SendError;
use super::super::pool::{Checkout, ConnectionPool, PooledConnection, update_counts};
use super::super::{Protocol, socket};
use super::{Http2Connection, failure};
use crate::client::client_state::ClientState;
use crate::client::connect;
use weir_decide::Nanos;
use weir_decide::base::failure::FailureKind;
use weir_machine::executor::LocalExecutor;

/// Maximum size of a response's header list, in bytes.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// A pending connection that several requests wait for. A task makes it, so that no request can cancel it for the
/// others; it ends when the last of them has gone.
#[derive(Debug)]
pub(super) struct PendingConnect {
    task: RefCell<Option<AbortHandle>>,
    done: RefCell<Option<Result<(), SendError>>>,
    wakers: RefCell<Vec<Waker>>,
}

impl PendingConnect {
    pub(super) fn begin(shared: &Rc<ClientState>, pool: &Rc<ConnectionPool>) -> Rc<Self> {
        let this = Rc::new(Self { task: RefCell::default(), done: RefCell::default(), wakers: RefCell::default() });
        *pool.http2.connecting.borrow_mut() = Rc::downgrade(&this);
        let (shared, pool, weak) = (Rc::clone(shared), Rc::clone(pool), Rc::downgrade(&this));
        let task = tokio::task::spawn_local(async move {
            let connected = connect_one(&shared, &pool).await;
            *pool.http2.connecting.borrow_mut() = Weak::new();
            let Some(this) = weak.upgrade() else { return };
            *this.done.borrow_mut() = Some(connected);
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

pub(super) struct ConnectWait(pub(super) Rc<PendingConnect>);

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
        lease.socket = Some(connect::connect_origin(&pool.origin, &shared.timer).await?);
        update_counts(&pool.counts, |counts| counts.connected += 1);
    }
    let without_tls = pool.origin.tls.is_none();
    if without_tls || lease.socket.as_ref().is_some_and(socket::ClientSocket::negotiated_http2) {
        return adopt(lease, shared.last_sweep()).await;
    }
    if pool.origin.protocol == Protocol::Http2 {
        return Err(SendError::new(FailureKind::Tls, "the service does not speak HTTP/2"));
    }
    pool.http2.declined.set(true);
    lease.return_unused(shared.last_sweep());
    Ok(())
}

/// Starts HTTP/2 on a new connection.
pub(in crate::client) async fn adopt(mut lease: PooledConnection, now: Nanos) -> Result<(), SendError> {
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
            // The streams report the cause of the end.
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
