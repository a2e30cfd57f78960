//! A pending HTTP/2 connection that several requests wait for.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::task::AbortHandle;

use crate::client::error::SendError;

/// A pending connection. A task makes it, so that no request can cancel it for the others; it ends when the last of
/// them has gone.
#[derive(Debug, Default)]
pub(super) struct PendingConnect {
    task: RefCell<Option<AbortHandle>>,
    done: RefCell<Option<Result<(), SendError>>>,
    wakers: RefCell<Vec<Waker>>,
}

impl PendingConnect {
    /// Sets the task that makes the connection.
    pub(super) fn set_task(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }

    /// Sets the result, and wakes the requests.
    pub(super) fn complete(&self, connected: Result<(), SendError>) {
        *self.done.borrow_mut() = Some(connected);
        for waker in self.wakers.take() {
            waker.wake();
        }
    }
}

impl Drop for PendingConnect {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// A request's wait for a pending connection.
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
