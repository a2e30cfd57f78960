//! N threads that do jobs in the order in which these came, fed by event loops.
//!
//! ```text
//!     event loops                        threads
//!  ask ──────► line: backlog, queue ───► [■][■][■]
//!   ▲                (bounded)             │
//!   └── pump ◄────── trays ◄───────────────┘
//! ```
//!
//! - [`Pool`]: the threads; [`Job`]: what they do; [`Desk`]: an event loop's end
//! - `state`: who does what next, under the one lock
//!
//! To wake a thread and to be woken by it costs more than what many jobs do. So the event loop itself does a job that is
//! [brief](Job::is_brief) if a thread is free for it, in that thread's place. Nobody is overtaken; with several event
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

pub use self::desk::{Asked, Desk};
use self::state::{Done, State};

/// What a thread of a pool does.
pub trait Job: Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it, on a thread of the pool.
    fn run(self) -> Self::Answer;

    /// Whether it surely takes no longer than a thread takes to wake.
    fn is_brief(&self) -> bool {
        false
    }
}

/// What becomes of those who find the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// They wait in front of it.
    #[default]
    Wait,
    /// They are refused.
    Refuse,
}

/// Why a job has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It panicked; its thread goes on.
    Broken,
    /// The queue was full.
    Refused,
}

/// The threads. They end when it is dropped; one that is at a job then is left alone with it.
pub struct Pool<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// What threads and event loops have in common.
struct Shared<J: Job> {
    state: Mutex<State<J>>,
    /// There is work.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
    /// No thread is at a job.
    rested: Notify,
}

impl<J: Job> Pool<J> {
    /// A pool of `threads` >= 1, and a queue that `room` >= 1 jobs may wait in.
    ///
    /// # Errors
    /// When the system has not so many threads for us.
    pub fn new(threads: usize, room: usize, overflow: Overflow) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(room.max(1), overflow)),
            work: Condvar::new(),
            ended: Condvar::new(),
            rested: Notify::new(),
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for number in 1..=threads.max(1) {
            pool.shared.lock().threads += 1;
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(format!("pool-{number}")).spawn(move || shared.work());
            pool.threads.push(thread.inspect_err(|_| pool.shared.lock().threads -= 1)?);
        }
        Ok(pool)
    }

    /// An event loop's end of it; made on that event loop.
    pub fn desk(&self) -> Desk<J> {
        Desk::new(Arc::clone(&self.shared))
    }

    /// Adds the pool's figures to `/metrics`.
    pub fn count(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(count::Count(Arc::clone(&self.shared))));
    }
}

/// Does a job; None if it panicked.
fn run<J: Job>(job: J) -> Option<J::Answer> {
    catch_unwind(AssertUnwindSafe(|| job.run())).ok()
}

impl<J: Job> Shared<J> {
    /// A job that panics does so without the lock, so what the lock guards is always whole.
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's life.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.begin() {
                drop(state);
                let answer = run(next.job);
                state = self.lock();
                let done = Done { ticket: next.ticket, place: next.home.place, answer };
                let bell = state.end(next.home.desk, done);
                let rested = state.busy == 0;
                drop(state);
                if let Some(bell) = bell {
                    bell.notify_one();
                }
                if rested {
                    self.rested.notify_waiters();
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
        self.ended.notify_all();
    }

    /// Sleeps until this thread is called.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<J>>) -> MutexGuard<'a, State<J>> {
        state.lie_down();
        while !state.closed && !state.is_called() {
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

impl<J: Job> Drop for Pool<J> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.line);
        self.shared.work.notify_all();
        // Threads that do nothing are gone in a moment.
        let state = self.shared.ended.wait_while(state, |state| state.threads > state.busy);
        let all = state.unwrap_or_else(PoisonError::into_inner).threads == 0;
        drop(waiting);
        for thread in self.threads.drain(..) {
            if all || thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

impl<J: Job> fmt::Debug for Pool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.threads.len())
    }
}
