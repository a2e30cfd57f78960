//! The unwanted rest of a response's body, which is read to reuse its connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, ready};

use super::pool::PooledConnection;
use super::socket::ClientSocket;
use crate::wire::BodyDecoder;

/// The unwanted rest of a body, and its connection.
#[derive(Debug)]
pub(super) struct BodyDrain {
    pub(super) connection: PooledConnection,
    pub(super) body: BodyDecoder,
}

impl BodyDrain {
    /// Reads the rest by way of a buffer for reads; returns the connection if it can be reused.
    pub(super) async fn run(mut self, read_buffer: &RefCell<Vec<u8>>) -> Option<PooledConnection> {
        poll_fn(|cx| {
            loop {
                let Some(socket) = self.connection.socket.as_mut() else { return Poll::Ready(None) };
                let mut scratch = read_buffer.borrow_mut();
                let Ok(n @ 1..) = ready!(socket.poll_read_into(cx, &mut scratch)) else { return Poll::Ready(None) };
                let all = self.body.consume(n) == n;
                if self.body.is_ended() {
                    return Poll::Ready(all.then_some(n == scratch.len()));
                }
            }
        })
        .await
        .and_then(|filled| {
            let is_reusable = !filled || self.connection.socket.as_mut().is_some_and(ClientSocket::has_nothing);
            is_reusable.then_some(self.connection)
        })
    }
}
