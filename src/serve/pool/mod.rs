//! N threads that do jobs in the order in which these came, fed by event loops.
//!
//! ```text
//!     event loops                        threads
//!  ask ──────► line: backlog, queue ───► [■][■][■]
//!   ▲                (bounded)             │
//!   └── pump ◄────── trays ◄───────────────┘
//! ```
//!
//! - [`ThreadPool`]: the threads; [`PoolJob`]: what they do; [`PoolHandle`]: an event loop's end
//! - `state`: who does what next, under the one lock
//!
//! To wake a thread and to be woken by it costs more than what many jobs do. So the event loop itself does a job that is
//! [brief](PoolJob::is_brief) if a thread is free for it, in that thread's place. Nobody is overtaken; with several event
//! loops brief jobs may go on beside N others, for the microseconds that they take. A thread rings for an event loop once, until that has looked.

mod count;
mod desk;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use prometheus_client::registry::Registry;
use tokio::sync::Notify;

pub use self::desk::{JobFuture, PoolHandle};
use self::state::{JobCompletion, State};

/// What a thread of a pool does.
pub trait PoolJob: Send + 'static {
    /// What comes of it.
    type Output: Send + 'static;

    /// Does it, on a thread of the pool.
    fn run(self) -> Self::Output;

    /// Whether it surely takes no longer than a thread takes to wake.
    fn is_brief(&self) -> bool {
        false
    }
}

/// What becomes of those who find the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolOverflow {
    /// They wait in front of it.
    #[default]
    Wait,
    /// They are refused.
    Reject,
}

/// Why a job has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobError {
    /// It panicked; its thread goes on.
    Panicked,
    /// The queue was full.
    Rejected,
}

/// The threads. They end when it is dropped; one that is at a job then is left alone with it.
pub struct ThreadPool<J: PoolJob> {
    shared: Arc<PoolShared<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// What threads and event loops have in common.
struct PoolShared<J: PoolJob> {
    state: Mutex<State<J>>,
    /// There is work.
    work_available: Condvar,
    /// A thread has ended.
    thread_ended: Condvar,
    /// No thread is at a job.
    idle: Notify,
}

impl<J: PoolJob> ThreadPool<J> {
    /// A pool of `threads` >= 1, and a queue that `room` >= 1 jobs may wait in.
    ///
    /// # Errors
    /// When the system has not so many threads for us.
    pub fn new(threads: usize, room: usize, overflow: PoolOverflow) -> io::Result<Self> {
        let shared = Arc::new(PoolShared {
            state: Mutex::new(State::new(room.max(1), overflow)),
            work_available: Condvar::new(),
            thread_ended: Condvar::new(),
            idle: Notify::new(),
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for number in 1..=threads.max(1) {
            pool.shared.lock().threads += 1;
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(format!("pool-{number}")).spawn(move || shared.run_thread());
            pool.threads.push(thread.inspect_err(|_| pool.shared.lock().threads -= 1)?);
        }
        Ok(pool)
    }

    /// An event loop's end of it; made on that event loop.
    pub fn handle(&self) -> PoolHandle<J> {
        PoolHandle::new(Arc::clone(&self.shared))
    }

    /// Adds the pool's figures to `/metrics`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(count::PoolMetrics(Arc::clone(&self.shared))));
    }
}

/// Does a job; None if it panicked.
fn run<J: PoolJob>(job: J) -> Option<J::Output> {
    catch_unwind(AssertUnwindSafe(|| job.run())).ok()
}

impl<J: PoolJob> PoolShared<J> {
    /// A job that panics does so without the lock, so what the lock guards is always whole.
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's life.
    fn run_thread(&self) {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.start_next() {
                drop(state);
                let answer = run(next.job);
                state = self.lock();
                let done = JobCompletion { ticket: next.ticket, slot: next.reply_to.slot, output: answer };
                let bell = state.complete(next.reply_to.handle, done);
                let rested = state.busy == 0;
                drop(state);
                if let Some(bell) = bell {
                    bell.notify_one();
                }
                if rested {
                    self.idle.notify_waiters();
                }
                state = self.lock();
            } else if state.closed {
                break;
            } else {
                state = self.sleep(state);
            }
        }
        state.threads -= 1;
        drop(state);
        self.thread_ended.notify_all();
    }

    /// Sleeps until this thread is called.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<J>>) -> MutexGuard<'a, State<J>> {
        state.mark_sleeping();
        while !state.closed && !state.take_wakeup() {
            state = self.work_available.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

impl<J: PoolJob> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.queue);
        self.shared.work_available.notify_all();
        // Threads that do nothing are gone in a moment.
        let state = self.shared.thread_ended.wait_while(state, |state| state.threads > state.busy);
        let all = state.unwrap_or_else(PoisonError::into_inner).threads == 0;
        drop(waiting);
        for thread in self.threads.drain(..) {
            if all || thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

impl<J: PoolJob> fmt::Debug for ThreadPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.threads.len())
    }
}
