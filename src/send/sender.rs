//! A sender on a thread of its own: jobs go in at a store, and what becomes of them is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;

use super::dispatcher::{self, Progress};
use super::job::{Job, UnixMs};
use super::news::Listener;
use super::options::Options;
use super::store::{Receipt, Recovered, Store, StoreError, Ticket};
use crate::decide::Nanos;
use crate::machine::clock;

/// How long a sender goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Until {
    /// Until it is told otherwise.
    Told,
    /// Until no job is left.
    Empty,
    /// Until what is out has been answered, or for so long at most.
    Drained(Nanos),
    /// It ends at once.
    Now,
}

/// Sends the jobs of a store, on a thread of its own.
///
/// ```no_run
/// use std::sync::Arc;
/// use weir::send::store::{Bounds, Memory, Order};
/// use weir::send::{Job, Options, Request, Sender};
///
/// let store = Arc::new(Memory::new(Bounds::default(), Order::FirstIn));
/// let sender = Sender::start(store, Options::default(), Box::new(()))?;
/// let request = Request { method: "GET".into(), url: "http://localhost:9001/".into(), ..Request::default() };
/// sender.submit(vec![Job { request, ..Job::default() }]).wait()?;
/// sender.finish();
/// let ended = sender.join();
/// # Ok::<(), weir::send::SendFailed>(())
/// ```
#[derive(Debug)]
pub struct Sender {
    store: Arc<dyn Store>,
    until: watch::Sender<Until>,
    progress: Arc<Mutex<Progress>>,
    recovered: Recovered,
    thread: Option<JoinHandle<Result<(), SendFailed>>>,
}

/// Why a sender ended before it was told to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendFailed {
    /// The store.
    Store(StoreError),
    /// All that is left are jobs for keys that are not there, or are used no more.
    Stranded {
        /// How many; they stay in the store.
        jobs: u64,
        /// The names of the keys.
        keys: Vec<String>,
    },
    /// The listener could not keep what it was told.
    Listener(String),
    /// The system has no thread or timer for it.
    System(String),
    /// The service takes none of the keys any more.
    NoKeys(String),
}

impl std::fmt::Display for SendFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Listener(why) | Self::System(why) => f.write_str(why),
            Self::Stranded { jobs, keys } => {
                let (count, keys) =
                    (if *jobs == 1 { "1 job waits".into() } else { format!("{jobs} jobs wait") }, keys.join(", "));
                write!(
                    f,
                    "{count} for keys that cannot be used: {keys}; give these keys, or have others send it with 'weir send edit'"
                )
            }
            Self::NoKeys(why) => write!(f, "the service takes no key any more: {why}; check the keys and the limits"),
        }
    }
}

impl std::error::Error for SendFailed {}

impl From<StoreError> for SendFailed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Sender {
    /// Begins to send what is in the store, and what will be.
    ///
    /// # Errors
    /// Another sender is at the store, or the system refuses a thread or a timer.
    pub fn start(store: Arc<dyn Store>, options: Options, listener: Box<dyn Listener>) -> Result<Self, SendFailed> {
        let recovered = store.start_sending(wall_ms())?;
        let (until, told) = watch::channel(Until::Told);
        let progress = Arc::<Mutex<Progress>>::default();
        let (says, ready) = oneshot::channel();
        let (queue, shown) = (Arc::clone(&store), Arc::clone(&progress));
        let system = |error: std::io::Error| SendFailed::System(format!("cannot begin to send: {error}"));
        let run = move || {
            clock::sharpen_sleeps();
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = says.send(Err(system(error)));
                    return Ok(());
                }
            };
            let ended =
                LocalSet::new().block_on(&runtime, dispatcher::run(queue, options, listener, told, shown, says));
            // Nobody waits for the system to give up on a name.
            runtime.shutdown_background();
            ended
        };
        let thread = thread::Builder::new().name("weir-send".into()).spawn(run).map_err(system)?;
        ready.blocking_recv().unwrap_or_else(|_| Err(SendFailed::System("cannot begin to send".into())))?;
        Ok(Self { store, until, progress, recovered, thread: Some(thread) })
    }

    /// The queue.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Takes jobs in; the answer comes when they are durable. While the queue is full it waits.
    pub fn submit(&self, jobs: Vec<Job>) -> Ticket<Vec<Receipt>> {
        self.store.submit(jobs)
    }

    /// What it was left with by a sender before it.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Where it is.
    pub fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// Has it end when no job is left.
    pub fn finish(&self) {
        self.raise(Until::Empty);
    }

    /// Has it end when what is out has been answered, or after `grace`.
    pub fn drain(&self, grace: Nanos) {
        self.raise(Until::Drained(grace));
    }

    /// Has it end at once; what is out may have been sent.
    pub fn stop(&self) {
        self.raise(Until::Now);
    }

    fn raise(&self, until: Until) {
        self.until.send_if_modified(|now| {
            let more = *now < until;
            if more {
                *now = until;
            }
            more
        });
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Why it ended before it was told to.
    pub fn join(mut self) -> Result<Progress, SendFailed> {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(ended)) => ended?,
            _ => return Err(SendFailed::System("the sender's thread has ended".into())),
        }
        Ok(self.progress())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall clock in milliseconds.
pub fn wall_ms() -> UnixMs {
    UnixMs(clock::wall().0 / 1_000_000)
}
