//! Ctrl-Z: the terminal is given back before the process stops, and taken again when it goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGTSTP;
use signal_hook::{flag, low_level};

/// Requests of the terminal to stop the process.
#[derive(Debug)]
pub(super) struct JobControl {
    is_requested: Arc<AtomicBool>,
    /// Whether the signal stops the process at once, as by default.
    is_over: Arc<AtomicBool>,
}

impl JobControl {
    /// Takes the signal, so that it is seen before the process stops.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn take() -> io::Result<Self> {
        let (is_requested, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        flag::register_conditional_default(SIGTSTP, Arc::clone(&is_over))?;
        flag::register(SIGTSTP, Arc::clone(&is_requested))?;
        Ok(Self { is_requested, is_over })
    }

    /// Whether the process is to stop; once for each request.
    pub(super) fn take_request(&self) -> bool {
        self.is_requested.swap(false, Ordering::Relaxed)
    }

    /// Stops the process; returns when it goes on.
    pub(super) fn stop() {
        // Without a stop the load just goes on.
        let _ = low_level::emulate_default_handler(SIGTSTP);
    }
}

impl Drop for JobControl {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if self.take_request() {
            Self::stop();
        }
    }
}
