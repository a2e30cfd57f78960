//! Ctrl-C and SIGTERM: the first ends the run cleanly, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use super::exit;

/// Whether somebody wants the run to end. The handlers go when it is dropped.
#[derive(Debug)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Installs the handlers.
    ///
    /// # Errors
    /// When the system refuses them.
    pub(super) fn install() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let mut handlers = Vec::new();
        for signal in [SIGINT, SIGTERM] {
            // In this order, or the first signal would already end the process.
            handlers.push(flag::register_conditional_shutdown(signal, exit::INTERRUPTED.into(), Arc::clone(&asked))?);
            handlers.push(flag::register(signal, Arc::clone(&asked))?);
        }
        Ok(Self { asked, handlers })
    }

    /// Whether one of the signals has come.
    pub(super) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
