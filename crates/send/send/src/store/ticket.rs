//! Futures of replies of a store.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::oneshot;

use super::StoreError;

/// Reply of a store, to await on any event loop, or to [`StoreFuture::wait`] for on a thread.
///
/// Dropping it withdraws what has not been done yet.
#[derive(Debug)]
#[must_use = "the outcome is unknown until the reply"]
pub struct StoreFuture<T>(oneshot::Receiver<Result<T, StoreError>>);

/// Sending half of a ticket, for the thread that does the work.
#[derive(Debug)]
pub(super) struct ReplySender<T>(oneshot::Sender<Result<T, StoreError>>);

impl<T> StoreFuture<T> {
    pub(super) fn new() -> (ReplySender<T>, Self) {
        let (reply, ticket) = oneshot::channel();
        (ReplySender(reply), Self(ticket))
    }

    pub(super) fn ready(result: Result<T, StoreError>) -> Self {
        let (reply, ticket) = Self::new();
        reply.send(result);
        ticket
    }

    /// Blocks until the reply.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn wait(self) -> Result<T, StoreError> {
        let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
        // Unconstrained, since tokio's budget would run out on a thread without a runtime that refills it.
        let mut this = pin!(tokio::task::unconstrained(self));
        loop {
            if let Poll::Ready(reply) = this.as_mut().poll(&mut Context::from_waker(&waker)) {
                return reply;
            }
            thread::park();
        }
    }
}

impl<T> Future for StoreFuture<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|reply| reply.unwrap_or(Err(StoreError::Closed)))
    }
}

impl<T> ReplySender<T> {
    pub(super) fn send(self, reply: Result<T, StoreError>) {
        // The receiver may be dropped.
        let _ = self.0.send(reply);
    }

    /// Whether the receiver is dropped.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
