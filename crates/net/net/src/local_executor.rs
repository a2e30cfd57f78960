//! Executor of hyper's own tasks.

use std::future::Future;

/// Executor that runs the tasks of an HTTP/2 connection on the same thread.
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
