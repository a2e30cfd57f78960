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
    requested: Arc<AtomicBool>,
    /// It was SIGTERM.
    sigterm: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Installs the handlers.
    ///
    /// # Errors
    /// When the system refuses them.
    pub(super) fn install() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let term = Arc::new(AtomicBool::new(false));
        let mut handlers = vec![flag::register(SIGTERM, Arc::clone(&term))?];
        for signal in [SIGINT, SIGTERM] {
            // In this order, or the first signal would already end the process.
            handlers.push(flag::register_conditional_shutdown(signal, exit::INTERRUPTED.into(), Arc::clone(&asked))?);
            handlers.push(flag::register(signal, Arc::clone(&asked))?);
        }
        Ok(Self { requested: asked, sigterm: term, handlers })
    }

    /// Whether one of the signals has come.
    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Whether it was SIGTERM, which asks for an end in good order.
    pub(super) fn is_sigterm(&self) -> bool {
        self.sigterm.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
