//! Submissions: jobs on their way into the store, completed on the store's thread.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::Unconstrained;
use weir::machine::lock::lock;
use weir::send::Job;
use weir::send::store::{Receipt, Store, StoreError, StoreFuture};

use super::group::Group;
use super::registry::Waiters;

/// Batch of jobs that is not accepted yet.
pub(crate) struct Submission {
    /// Pending reply of the store; None after the reply, or after a withdrawal.
    ticket: Mutex<Option<Unconstrained<StoreFuture<Vec<Receipt>>>>>,
    registry: Arc<Waiters>,
    pub(crate) group: Arc<Group>,
    /// Index of the first job in the group; `count` jobs follow.
    pub(crate) first_index: usize,
    pub(crate) count: usize,
    /// Highest job number before the submission; the numbers of new jobs are above it.
    pub(crate) highest_before: u64,
}

impl Submission {
    pub(crate) fn begin(store: &dyn Store, registry: &Arc<Waiters>, group: &Arc<Group>, jobs: Vec<Job>) {
        let count = jobs.len();
        let first = group.with(|jobs| jobs.reserve(count));
        let submission = registry.open(|floor| Self {
            ticket: Mutex::default(),
            registry: Arc::clone(registry),
            group: Arc::clone(group),
            first_index: first,
            count,
            highest_before: floor,
        });
        // Unconstrained, since tokio's budget would run out on a thread without a runtime that refills it.
        *submission.ticket() = Some(tokio::task::unconstrained(store.submit(jobs)));
        submission.poll();
        if registry.has_ended() {
            submission.withdraw();
        }
    }

    fn ticket(&self) -> MutexGuard<'_, Option<Unconstrained<StoreFuture<Vec<Receipt>>>>> {
        lock(&self.ticket)
    }

    /// Completes the submission if the store has replied.
    fn poll(self: &Arc<Self>) {
        let Some(reply) = self.poll_result() else { return };
        self.registry.close(self, reply);
    }

    fn poll_result(self: &Arc<Self>) -> Option<Result<Vec<Receipt>, StoreError>> {
        let mut held = self.ticket();
        let ticket = held.as_mut()?;
        let waker = Waker::from(Arc::clone(self));
        match Pin::new(ticket).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(reply) => {
                *held = None;
                Some(reply)
            }
            Poll::Pending => None,
        }
    }

    /// Withdraws jobs that are not accepted yet.
    pub(crate) fn withdraw(self: &Arc<Self>) {
        let ticket = self.ticket().take();
        if ticket.is_some() {
            self.registry.close(self, Err(StoreError::Closed));
        }
    }
}

impl Wake for Submission {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

impl std::fmt::Debug for Submission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submission")
            .field("first", &self.first_index)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
