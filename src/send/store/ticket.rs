//! What is handed out for a question whose answer is still to come.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::oneshot;

use super::StoreError;

/// The answer to come: await it on any event loop, or [`StoreFuture::wait`] for it on a thread of your own.
///
/// Dropping it takes back what has not been done yet.
#[derive(Debug)]
#[must_use = "nothing is known before the answer is there"]
pub struct StoreFuture<T>(oneshot::Receiver<Result<T, StoreError>>);

/// Where the answer is put.
#[derive(Debug)]
pub(super) struct ReplySender<T>(oneshot::Sender<Result<T, StoreError>>);

impl<T> StoreFuture<T> {
    pub(super) fn new() -> (ReplySender<T>, Self) {
        let (reply, ticket) = oneshot::channel();
        (ReplySender(reply), Self(ticket))
    }

    pub(super) fn ready(answer: Result<T, StoreError>) -> Self {
        let (reply, ticket) = Self::new();
        reply.send(answer);
        ticket
    }

    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// What the store says.
    pub fn wait(self) -> Result<T, StoreError> {
        let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
        // On a thread that runs an event loop, too: its budget would run out, and nobody would fill it again.
        let mut this = pin!(tokio::task::unconstrained(self));
        loop {
            if let Poll::Ready(answer) = this.as_mut().poll(&mut Context::from_waker(&waker)) {
                return answer;
            }
            thread::park();
        }
    }
}

impl<T> Future for StoreFuture<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
    }
}

impl<T> ReplySender<T> {
    pub(super) fn send(self, answer: Result<T, StoreError>) {
        // Whoever asked may be gone.
        let _ = self.0.send(answer);
    }

    /// Nobody waits for it any more.
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
