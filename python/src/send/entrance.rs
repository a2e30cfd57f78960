//! Jobs on their way into the store: who accepts them says so on a thread of its own, and is listened to there.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::Unconstrained;
use weir::send::Job;
use weir::send::store::{Receipt, Store, StoreError, StoreFuture};

use super::group::Group;
use super::registry::Waiters;

/// Jobs that are not accepted yet.
pub(crate) struct Submission {
    /// Gone once it has answered, or nobody asks any more: what is not in by then stays out.
    ticket: Mutex<Option<Unconstrained<StoreFuture<Vec<Receipt>>>>>,
    registry: Arc<Waiters>,
    pub(crate) group: Arc<Group>,
    /// The first one's place in the group, and how many they are.
    pub(crate) first_index: usize,
    pub(crate) count: usize,
    /// The highest number that was known before: theirs are above it.
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
        // On the thread of an event loop, too: its budget would run out, and nobody would fill it again.
        *submission.ticket() = Some(tokio::task::unconstrained(store.submit(jobs)));
        submission.poll();
        if registry.has_ended() {
            submission.withdraw();
        }
    }

    fn ticket(&self) -> MutexGuard<'_, Option<Unconstrained<StoreFuture<Vec<Receipt>>>>> {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether they are accepted.
    fn poll(self: &Arc<Self>) {
        let Some(answer) = self.poll_result() else { return };
        self.registry.close(self, answer);
    }

    fn poll_result(self: &Arc<Self>) -> Option<Result<Vec<Receipt>, StoreError>> {
        let mut held = self.ticket();
        let ticket = held.as_mut()?;
        let waker = Waker::from(Arc::clone(self));
        match Pin::new(ticket).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => {
                *held = None;
                Some(answer)
            }
            Poll::Pending => None,
        }
    }

    /// Nobody wants them any more.
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
