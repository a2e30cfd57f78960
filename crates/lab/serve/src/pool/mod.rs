//! Thread pool: N threads run jobs of event loops, first come first served.
//!
//! ```text
//!     event loops                        threads
//!  submit ───► backlog, queue       ───► [■][■][■]
//!   ▲                (bounded)             │
//!   └───── completion queues ◄───────────────┘
//! ```
//!
//! - [`ThreadPool`]: the threads; [`PoolJob`]: a job; [`PoolHandle`]: an event loop's side of the pool
//! - `state`: queue, counts and completions, behind one lock
//!
//! Waking a thread and being woken by it costs more than many jobs. So the event loop itself runs a job that is
//! [brief](PoolJob::is_brief) in place of a free thread; if none is free, the job queues like all others. With several
//! event loops, brief jobs can run beside N others for some microseconds. A thread notifies an event loop once until
//! that has fetched its completions.

mod handle;
mod metrics;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use prometheus_client::registry::Registry;
use tokio::sync::Notify;

pub use self::handle::{JobFuture, PoolHandle};
use self::state::{JobCompletion, State};
use weir_machine::lock::{lock, wait};

/// Job of a pool.
pub trait PoolJob: Send + 'static {
    /// Result of the job.
    type Output: Send + 'static;

    /// Runs the job, on a thread of the pool or in place of one.
    fn run(self) -> Self::Output;

    /// Whether the job certainly takes less time than waking a thread.
    fn is_brief(&self) -> bool {
        false
    }
}

/// Behaviour of a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolOverflow {
    /// Jobs wait in front of the queue.
    #[default]
    Wait,
    /// Jobs are rejected.
    Reject,
}

impl PoolOverflow {
    /// Names of all.
    pub const NAMES: [&str; 2] = ["wait", "reject"];
}

/// By its name; an error names what to write instead.
impl FromStr for PoolOverflow {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "wait" => Ok(Self::Wait),
            "reject" => Ok(Self::Reject),
            _ => Err(format!("choose {}", Self::NAMES.join(" or "))),
        }
    }
}

/// Reason why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobError {
    /// The job panicked; its thread continues.
    Panicked,
    /// The queue was full.
    Rejected,
}

/// Threads of a pool. They end when it is dropped; running jobs are abandoned to their threads.
pub struct ThreadPool<J: PoolJob> {
    shared: Arc<PoolShared<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// State that threads and event loops share.
struct PoolShared<J: PoolJob> {
    /// Consistent also after a panic: jobs run without the lock.
    state: Mutex<State<J>>,
    /// Signalled when a job is queued for a sleeping thread.
    work_available: Condvar,
    /// Signalled when a thread ends.
    thread_ended: Condvar,
    /// Notified when no thread runs a job.
    idle: Notify,
}

impl<J: PoolJob> ThreadPool<J> {
    /// Pool of at least one thread, with a queue of at least one job.
    ///
    /// # Errors
    /// A thread that the system cannot start.
    pub fn new(threads: usize, max_queue: usize, overflow: PoolOverflow) -> io::Result<Self> {
        let shared = Arc::new(PoolShared {
            state: Mutex::new(State::new(max_queue.max(1), overflow)),
            work_available: Condvar::new(),
            thread_ended: Condvar::new(),
            idle: Notify::new(),
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for number in 1..=threads.max(1) {
            lock(&pool.shared.state).threads += 1;
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(format!("pool-{number}")).spawn(move || shared.run_thread());
            pool.threads.push(thread.inspect_err(|_| lock(&pool.shared.state).threads -= 1)?);
        }
        Ok(pool)
    }

    /// Handle for the event loop of this thread.
    pub fn handle(&self) -> PoolHandle<J> {
        PoolHandle::new(Arc::clone(&self.shared))
    }

    /// Adds the pool's metrics to `/metrics`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(metrics::PoolMetrics(Arc::clone(&self.shared))));
    }
}

/// Runs a job; none if it panicked.
fn run<J: PoolJob>(job: J) -> Option<J::Output> {
    catch_unwind(AssertUnwindSafe(|| job.run())).ok()
}

impl<J: PoolJob> PoolShared<J> {
    /// Main loop of a thread.
    fn run_thread(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.start_next() {
                drop(state);
                let output = run(next.job);
                state = lock(&self.state);
                let done = JobCompletion { ticket: next.ticket, slot: next.reply_to.slot, output };
                let notify = state.complete(next.reply_to.handle, done);
                let idle = state.busy == 0;
                drop(state);
                if let Some(notify) = notify {
                    notify.notify_one();
                }
                if idle {
                    self.idle.notify_waiters();
                }
                state = lock(&self.state);
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

    /// Blocks until this thread is woken for work.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<J>>) -> MutexGuard<'a, State<J>> {
        state.mark_sleeping();
        while !state.closed && !state.take_wakeup() {
            state = wait(&self.work_available, state);
        }
        state
    }
}

impl<J: PoolJob> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.closed = true;
        let waiting = std::mem::take(&mut state.queue);
        self.shared.work_available.notify_all();
        // Idle threads end at once.
        while state.threads > state.busy {
            state = wait(&self.shared.thread_ended, state);
        }
        let all_ended = state.threads == 0;
        drop(state);
        drop(waiting);
        for thread in self.threads.drain(..) {
            if all_ended || thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

impl<J: PoolJob> fmt::Debug for ThreadPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadPool({})", self.threads.len())
    }
}
