//! Thread that reads a file ahead of a load.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Time that the reader has for its end, once the load has ended.
const READER_GRACE: Duration = Duration::from_secs(1);

/// Thread that reads a file ahead of a load.
#[derive(Debug)]
pub struct FeederThread {
    /// Its source, such as `log`.
    what: &'static str,
    /// Signalled when the first batch is ready, or by disconnection at the end of the file.
    primed: Receiver<()>,
    /// Disconnected, or signalled, once the reader has ended.
    ended: Option<Receiver<()>>,
}

impl FeederThread {
    /// Thread that is not started yet, and what its reader signals the first batch with.
    pub fn new(what: &'static str) -> (Self, Sender<()>) {
        let (send_primed, primed) = mpsc::channel();
        (Self { what, primed, ended: None }, send_primed)
    }

    /// Starts the thread, and waits for its first arrivals, which are due at once.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub fn start(&mut self, read: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let (ended, has_ended) = mpsc::channel::<()>();
        let spawned = thread::Builder::new().name(format!("weir-{}", self.what)).spawn(move || {
            read();
            let _ = ended.send(());
        });
        spawned.map_err(|error| format!("cannot start the thread that reads the {}: {error}", self.what))?;
        self.ended = Some(has_ended);
        // Disconnected, the file has ended.
        let _ = self.primed.recv();
        Ok(())
    }

    /// Waits for the end of the thread, whose queues end with the plan. A pipe without an end is not waited for; its
    /// last lines were not needed.
    ///
    /// # Errors
    /// One line: the thread has panicked.
    pub fn finish(&self) -> Result<(), String> {
        let ended = self.ended.as_ref().map(|ended| ended.recv_timeout(READER_GRACE));
        if ended == Some(Err(RecvTimeoutError::Disconnected)) {
            return Err(format!("the thread that reads the {} failed", self.what));
        }
        Ok(())
    }
}
