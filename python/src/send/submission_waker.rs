//! Waker of a submission, which completes it on the store's thread.

use std::sync::Arc;
use std::task::{Wake, Waker};

use weir::send::Job;
use weir::send::store::Store;

use super::group::Group;
use super::registry::Waiters;
use super::submission::Submission;

/// Completes a submission when the store has replied.
struct SubmissionWaker {
    registry: Arc<Waiters>,
    submission: Arc<Submission>,
}

/// Submits jobs of a group.
pub(crate) fn submit(store: &dyn Store, registry: &Arc<Waiters>, group: &Arc<Group>, jobs: Vec<Job>) {
    let count = jobs.len();
    let first = group.with(|jobs| jobs.reserve(count));
    let submission = registry.open(|highest_before| Submission::new(group, first, count, highest_before));
    submission.submit(store, jobs);
    Arc::new(SubmissionWaker { registry: Arc::clone(registry), submission: Arc::clone(&submission) }).wake();
    if registry.has_ended() {
        registry.withdraw_submission(&submission);
    }
}

impl Wake for SubmissionWaker {
    fn wake(self: Arc<Self>) {
        if let Some(reply) = self.submission.poll(&Waker::from(Arc::clone(&self))) {
            self.registry.close(&self.submission, reply);
        }
    }
}
