//! A sender on a thread of its own: jobs go in at a store, and what becomes of them is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;

use super::dispatcher::{self, SenderProgress};
use super::job::{Job, UnixMs};
use super::news::Listener;
use super::options::Options;
use super::store::{Receipt, Recovery, Store, StoreError, StoreFuture};
use crate::decide::Nanos;
use crate::machine::clock;

/// How long a sender goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopMode {
    /// Until it is told otherwise.
    KeepRunning,
    /// Until no job is left.
    WhenEmpty,
    /// Until what is out has been answered, or for so long at most.
    WhenDrained(Nanos),
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
    stop_mode: watch::Sender<StopMode>,
    progress: Arc<Mutex<SenderProgress>>,
    recovered: Recovery,
    thread: Option<JoinHandle<Result<(), SenderError>>>,
}

/// Why a sender ended before it was told to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderError {
    /// The store.
    Store(StoreError),
    /// All that is left are jobs for keys that are not there, or are used no more.
    Unsendable {
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

impl std::fmt::Display for SenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Listener(why) | Self::System(why) => f.write_str(why),
            Self::Unsendable { jobs, keys } => {
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

impl std::error::Error for SenderError {}

impl From<StoreError> for SenderError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Sender {
    /// Begins to send what is in the store, and what will be.
    ///
    /// # Errors
    /// Another sender is at the store, or the system refuses a thread or a timer.
    pub fn start(store: Arc<dyn Store>, options: Options, listener: Box<dyn Listener>) -> Result<Self, SenderError> {
        let recovered = store.start_sending(wall_ms())?;
        let (until, told) = watch::channel(StopMode::KeepRunning);
        let progress = Arc::<Mutex<SenderProgress>>::default();
        let (says, ready) = oneshot::channel();
        let (queue, shown) = (Arc::clone(&store), Arc::clone(&progress));
        let system = |error: std::io::Error| SenderError::System(format!("cannot begin to send: {error}"));
        let run = move || {
            clock::minimize_timer_slack();
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
        ready.blocking_recv().unwrap_or_else(|_| Err(SenderError::System("cannot begin to send".into())))?;
        Ok(Self { store, stop_mode: until, progress, recovered, thread: Some(thread) })
    }

    /// The queue.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Takes jobs in; the answer comes when they are durable. While the queue is full it waits.
    pub fn submit(&self, jobs: Vec<Job>) -> StoreFuture<Vec<Receipt>> {
        self.store.submit(jobs)
    }

    /// What it was left with by a sender before it.
    pub fn recovered(&self) -> Recovery {
        self.recovered
    }

    /// Where it is.
    pub fn progress(&self) -> SenderProgress {
        lock(&self.progress).clone()
    }

    /// Has it end when no job is left.
    pub fn finish(&self) {
        self.request_stop(StopMode::WhenEmpty);
    }

    /// Has it end when what is out has been answered, or after `grace`.
    pub fn drain(&self, grace: Nanos) {
        self.request_stop(StopMode::WhenDrained(grace));
    }

    /// Has it end at once; what is out may have been sent.
    pub fn stop(&self) {
        self.request_stop(StopMode::Now);
    }

    fn request_stop(&self, until: StopMode) {
        self.stop_mode.send_if_modified(|now| {
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
    pub fn join(mut self) -> Result<SenderProgress, SenderError> {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(ended)) => ended?,
            _ => return Err(SenderError::System("the sender's thread has ended".into())),
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

pub(super) fn lock(progress: &Mutex<SenderProgress>) -> MutexGuard<'_, SenderProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall clock in milliseconds.
pub fn wall_ms() -> UnixMs {
    UnixMs(clock::wall().0 / 1_000_000)
}
