//! N threads that do jobs in the order in which these came, fed by one event loop.
//!
//! ```text
//!        event loop                              threads
//!  ask ──► backlog ──► pump ──► queue ─────────► [■][■][■]
//!   ▲                   ▲       (bounded)          │
//!   └───── answers ─────┴──────── done ◄───────────┘
//! ```
//!
//! - [`Pool`]: the threads; [`Job`]: what they do; [`Desk`]: the event loop's end
//! - `state`: who does what next, under the one lock
//!
//! A job may take less time than it takes to wake a thread, so waking is what is saved here. The event loop hands over
//! all jobs of a round under one lock, and calls no more threads than it needs. A thread takes one job at a time, and
//! rings for the event loop when it has nothing more to do, not for each brief job.

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
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::sync::Notify;

pub use self::desk::{Asked, Broken, Desk};
use self::state::{Done, State};

/// What a thread of a pool does.
pub trait Job: Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it, on a thread of the pool.
    fn run(self) -> Self::Answer;

    /// Whether it surely takes no longer than a thread takes to wake. One thread does all brief jobs of a moment; each
    /// other job has a thread called for it.
    fn is_brief(&self) -> bool {
        false
    }
}

/// The threads. They end when it is dropped.
pub struct Pool<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
    patience: Duration,
}

/// What threads and event loop have in common.
struct Shared<J: Job> {
    state: Mutex<State<J>>,
    /// There is work.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
    /// There is something for the event loop.
    bell: Notify,
}

/// Brief jobs that a thread does before it hands on what came of them.
const AT_ONCE: usize = 16;

impl<J: Job> Pool<J> {
    /// A pool of `threads` >= 1, and a queue that `room` >= 1 jobs may wait in; the others wait at the event loop. When
    /// it is dropped, jobs that have begun and that nobody waits for any more have `patience`; then they are left alone.
    ///
    /// # Errors
    /// When the system has not so many threads for us.
    pub fn new(threads: usize, room: usize, patience: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(room.max(1))),
            work: Condvar::new(),
            ended: Condvar::new(),
            bell: Notify::new(),
        });
        let mut pool = Self { shared, threads: Vec::new(), patience };
        for number in 1..=threads.max(1) {
            pool.shared.lock().threads += 1;
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(format!("pool-{number}")).spawn(move || shared.work());
            pool.threads.push(thread.inspect_err(|_| pool.shared.lock().threads -= 1)?);
        }
        Ok(pool)
    }

    /// The event loop's end of it; there is one. It is made on the event loop.
    ///
    /// # Errors
    /// When there is one already.
    pub fn desk(&self) -> io::Result<Desk<J>> {
        if std::mem::replace(&mut self.shared.lock().has_desk, true) {
            return Err(io::Error::other("a pool is fed by one event loop"));
        }
        Ok(Desk::new(Arc::clone(&self.shared)))
    }

    /// Adds the pool's figures to `/metrics`.
    pub fn count(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(count::Count(Arc::clone(&self.shared))));
    }
}

impl<J: Job> Shared<J> {
    /// A job that panics does so without the lock, so what the lock guards is always whole.
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes as many threads as were called under the lock. After it: a thread that wakes to a lock sleeps again.
    fn wake(&self, calls: usize) {
        for _ in 0..calls {
            self.work.notify_one();
        }
    }

    /// One thread's life.
    fn work(&self) {
        let mut finished = Vec::with_capacity(AT_ONCE);
        let mut ring = false;
        let mut state = self.lock();
        loop {
            if let Some(next) = state.begin() {
                let (brief, ticket, place) = (next.brief, next.ticket, next.place);
                if !brief {
                    ring |= state.hand_on(&mut finished);
                }
                drop(state);
                if std::mem::take(&mut ring) {
                    self.bell.notify_one();
                }
                let answer = catch_unwind(AssertUnwindSafe(|| next.job.run())).ok();
                finished.push(Done { ticket, place, answer });
                state = self.lock();
                state.end(brief);
                if !brief || finished.len() >= AT_ONCE {
                    ring |= state.hand_on(&mut finished);
                }
            } else if ring || !finished.is_empty() {
                ring |= state.hand_on(&mut finished);
                drop(state);
                if std::mem::take(&mut ring) {
                    self.bell.notify_one();
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
        state.sleeping += 1;
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
        let waiting = std::mem::take(&mut state.queue);
        self.shared.work.notify_all();
        let ended = &self.shared.ended;
        // Threads that do nothing, or something brief, are gone in a moment.
        let mut state = ended.wait_while(state, |s| s.threads > s.at_length).unwrap_or_else(PoisonError::into_inner);
        // Who still waited for an answer has had all the patience that there was.
        if !state.cut_off {
            let waited = ended.wait_timeout_while(state, self.patience, |s| s.threads > 0);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let all = state.threads == 0;
        drop(state);
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
