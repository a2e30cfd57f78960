//! Tasks of one thread, boxed so that the runtime's code for them is compiled once.

use std::future::Future;
use std::pin::Pin;

use tokio::task::JoinHandle;

/// Future of any kind. What returns one is compiled where it stands; an `async fn` is compiled by each crate that
/// awaits it, with all that it awaits.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Starts a task on this thread. In a box, tasks of all kinds share the code of the runtime for them.
///
/// # Panics
/// If called outside of a `LocalSet`.
pub fn spawn_task(task: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
    spawn_boxed(Box::pin(task))
}

fn spawn_boxed(task: BoxedFuture<'static, ()>) -> JoinHandle<()> {
    tokio::task::spawn_local(task)
}
