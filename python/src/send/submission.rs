//! A batch of jobs on its way into the store.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tokio::task::Unconstrained;
use weir::machine::lock::lock;
use weir::send::Job;
use weir::send::store::{Receipt, Store, StoreError, StoreFuture};

use super::group::Group;

/// Pending reply of the store.
type PendingReply = Unconstrained<StoreFuture<Vec<Receipt>>>;

/// Batch of jobs that is not accepted yet.
pub(crate) struct Submission {
    /// None before the jobs are submitted, and after the reply or a withdrawal.
    reply: Mutex<Option<PendingReply>>,
    pub(crate) group: Arc<Group>,
    /// Index of the first job in the group; `count` jobs follow.
    pub(crate) first_index: usize,
    pub(crate) count: usize,
    /// Highest job number before the submission; the numbers of new jobs are above it.
    pub(crate) highest_before: u64,
}

impl Submission {
    /// A submission of jobs that have their places in the group.
    pub(crate) fn new(group: &Arc<Group>, first_index: usize, count: usize, highest_before: u64) -> Self {
        Self { reply: Mutex::default(), group: Arc::clone(group), first_index, count, highest_before }
    }

    fn reply(&self) -> MutexGuard<'_, Option<PendingReply>> {
        lock(&self.reply)
    }

    /// Submits the jobs.
    pub(crate) fn submit(&self, store: &dyn Store, jobs: Vec<Job>) {
        // Unconstrained, since tokio's budget would run out on a thread without a runtime that refills it.
        *self.reply() = Some(tokio::task::unconstrained(store.submit(jobs)));
    }

    /// The reply of the store, once; None while it is pending, and after a withdrawal.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Result<Vec<Receipt>, StoreError>> {
        let mut held = self.reply();
        match Pin::new(held.as_mut()?).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(reply) => {
                *held = None;
                Some(reply)
            }
            Poll::Pending => None,
        }
    }

    /// Withdraws jobs that are not accepted yet; returns the pending reply, if there was one.
    pub(crate) fn withdraw(&self) -> Option<PendingReply> {
        self.reply().take()
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
