//! Where a library's own tasks run.

use std::future::Future;

/// Runs what HTTP/2 starts beside a connection on the same thread.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor
where
    F::Output: 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
