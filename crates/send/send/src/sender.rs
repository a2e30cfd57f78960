//! Sender: delivers the jobs of a store on a thread of its own, and reports events to a listener.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;

use super::dispatcher::{self, SenderProgress};
use super::events::Listener;
use super::job::Job;
use super::options::Options;
use super::sender_error::SenderError;
use super::stop_mode::StopMode;
use super::store::{Receipt, Recovery, Store, StoreFuture};
use super::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_machine::clock;
use weir_machine::lock::lock;

/// Sender of the jobs of a store, on a thread of its own. Dropping it ends it at once.
///
/// ```no_run
/// use std::sync::Arc;
/// use weir_send::store::{JobOrder, MemoryStore, QueueBounds};
/// use weir_send::{Job, JobRequest, Options, Sender};
///
/// let store = Arc::new(MemoryStore::new(QueueBounds::default(), JobOrder::Fifo));
/// let sender = Sender::start(store, Options::default(), Box::new(()))?;
/// let request = JobRequest { url: "http://localhost:9001/".into(), ..JobRequest::default() };
/// let request = JobRequest { method: "GET".into(), ..request };
/// sender.submit(vec![Job { request, ..Job::default() }]).wait()?;
/// sender.finish();
/// let ended = sender.join();
/// # Ok::<(), weir_send::SenderError>(())
/// ```
#[derive(Debug)]
pub struct Sender {
    store: Arc<dyn Store>,
    stop_mode: watch::Sender<StopMode>,
    progress: Arc<Mutex<SenderProgress>>,
    recovered: Recovery,
    thread: Option<JoinHandle<Result<(), SenderError>>>,
}

impl Sender {
    /// Starts sending jobs of the store, those submitted later included.
    ///
    /// # Errors
    /// Another process sends from the store, or the system has no thread or timer.
    pub fn start(store: Arc<dyn Store>, options: Options, listener: Box<dyn Listener>) -> Result<Self, SenderError> {
        let recovered = store.start_sending(wall_ms())?;
        let (stop_sender, stop_mode) = watch::channel(StopMode::KeepRunning);
        let progress = Arc::<Mutex<SenderProgress>>::default();
        let (ready_sender, ready) = oneshot::channel();
        let (queue, sender_progress) = (Arc::clone(&store), Arc::clone(&progress));
        let system = |error: std::io::Error| SenderError::System(format!("cannot start the sender: {error}"));
        let run = move || {
            clock::minimize_timer_slack();
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = ready_sender.send(Err(system(error)));
                    return Ok(());
                }
            };
            let ended = LocalSet::new().block_on(
                &runtime,
                dispatcher::run(queue, options, listener, stop_mode, sender_progress, ready_sender),
            );
            // A name lookup that hangs is not waited for.
            runtime.shutdown_background();
            ended
        };
        let thread = thread::Builder::new().name("weir-send".into()).spawn(run).map_err(system)?;
        ready.blocking_recv().unwrap_or_else(|_| Err(SenderError::System("cannot start the sender".into())))?;
        Ok(Self { store, stop_mode: stop_sender, progress, recovered, thread: Some(thread) })
    }

    /// Store of the jobs.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Submits jobs; resolves when they are durable. Waits while the queue is full.
    pub fn submit(&self, jobs: Vec<Job>) -> StoreFuture<Vec<Receipt>> {
        self.store.submit(jobs)
    }

    /// Jobs that a previous sender left leased.
    pub fn recovered(&self) -> Recovery {
        self.recovered
    }

    /// Current progress.
    pub fn progress(&self) -> SenderProgress {
        lock(&self.progress).clone()
    }

    /// Ends the sender when no job is left.
    pub fn finish(&self) {
        self.request_stop(StopMode::WhenEmpty);
    }

    /// Ends the sender when no request is in flight, at the latest after `grace`; nothing new is sent.
    pub fn drain(&self, grace: Nanos) {
        self.request_stop(StopMode::WhenDrained(grace));
    }

    /// Ends the sender at once; requests in flight may have been delivered.
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

    /// Whether the sender has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The error that ended the sender.
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
