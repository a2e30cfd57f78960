//! New HTTP/2 connections.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};

use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioIo;

use super::connection::Http2Connection;
use super::error::failure;
use super::pending_connect::PendingConnect;
use crate::client::client_state::ClientState;
use crate::client::connect::connect_origin;
use crate::client::error::SendError;
use crate::client::origin::Protocol;
use crate::client::pool::{Checkout, ConnectionPool, PooledConnection, update_counts};
use crate::client::socket::ClientSocket;
use crate::local_executor::LocalExecutor;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::executor::{BoxedFuture, spawn_task};

/// Maximum size of a response's header list, in bytes.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// Window of flow control of a connection that hyper has by default, in bytes.
const DEFAULT_CONNECTION_WINDOW_BYTES: u32 = 5 << 20;

/// Connects on a task of its own.
pub(super) fn connect(shared: &Rc<ClientState>, pool: &Rc<ConnectionPool>) -> Rc<PendingConnect> {
    let pending = Rc::new(PendingConnect::default());
    *pool.http2.connecting.borrow_mut() = Rc::downgrade(&pending);
    let (shared, pool, weak) = (Rc::clone(shared), Rc::clone(pool), Rc::downgrade(&pending));
    let task = spawn_task(async move {
        let connected = connect_one(&shared, &pool).await;
        *pool.http2.connecting.borrow_mut() = Weak::new();
        if let Some(pending) = weak.upgrade() {
            pending.complete(connected);
        }
    });
    pending.set_task(task.abort_handle());
    pending
}

async fn connect_one(shared: &Rc<ClientState>, pool: &Rc<ConnectionPool>) -> Result<(), SendError> {
    let mut connection = match pool.check_out_new() {
        Checkout::Connection(connection) => connection,
        Checkout::Wait(waiting) => waiting.await,
    };
    if connection.socket.is_none() {
        connection.socket = Some(connect_origin(&pool.origin, &shared.timer, Nanos::NEVER).await?);
        connection.connected = shared.last_sweep();
        update_counts(&pool.counts, |counts| counts.connected += 1);
    }
    let without_tls = pool.origin.tls.is_none();
    if without_tls || connection.socket.as_ref().is_some_and(ClientSocket::negotiated_http2) {
        return start(connection, shared.last_sweep()).await;
    }
    if pool.origin.protocol == Protocol::Http2 {
        return Err(SendError::new(FailureKind::Tls, "the service does not speak HTTP/2"));
    }
    pool.http2.declined.set(true);
    connection.return_unused(shared.last_sweep());
    Ok(())
}

/// Starts HTTP/2 on a new connection.
pub(in crate::client) fn adopt(
    connection: PooledConnection,
    now: Nanos,
) -> BoxedFuture<'static, Result<(), SendError>> {
    Box::pin(start(connection, now))
}

async fn start(mut pooled: PooledConnection, now: Nanos) -> Result<(), SendError> {
    let Some(socket) = pooled.socket.take() else { return Err(SendError::new(FailureKind::Connect, "no connection")) };
    let mut builder = Builder::new(LocalExecutor);
    builder.max_header_list_size(MAX_HEADER_LIST_BYTES);
    let limits = pooled.pool().origin.http2;
    if let Some(window) = limits.window_bytes {
        builder.initial_stream_window_size(window);
        // One stream alone may use its whole window.
        builder.initial_connection_window_size(window.max(DEFAULT_CONNECTION_WINDOW_BYTES));
    }
    let most = limits.streams.unwrap_or(usize::MAX);
    let (sender, driver) = builder.handshake(TokioIo::new(socket)).await.map_err(|error| failure(&error))?;
    let connection = Rc::new(Http2Connection {
        sender,
        streams: Cell::default(),
        max_streams: Cell::new(driver.current_max_send_streams().min(most)),
        is_reused: Cell::default(),
        was_busy: Cell::default(),
        since: Cell::new(now),
        retired: Cell::default(),
    });
    let pool = Rc::clone(pooled.pool());
    pool.http2.declined.set(false);
    pool.http2.connections.borrow_mut().push(Rc::clone(&connection));
    let connection = Rc::downgrade(&connection);
    spawn_task(async move {
        {
            let mut driver = pin!(driver);
            // The streams report the cause of the end.
            let _ = poll_fn(|cx| {
                let done = driver.as_mut().poll(cx);
                if let Some(connection) = connection.upgrade() {
                    connection.max_streams.set(driver.current_max_send_streams().min(most));
                }
                done
            })
            .await;
        }
        drop(pooled);
    });
    Ok(())
}
