//! Ctrl-C and SIGTERM: the first ends the run gracefully, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{SigId, flag, low_level};

use crate::exit;
use crate::messages::Messages;

/// Signal handlers that request the end of a run; removed on drop.
#[derive(Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    /// Whether the signal was SIGTERM.
    sigterm: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

/// Whether handlers were installed.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Lets Ctrl-C and SIGTERM end the process with a line until an [`Interrupt`] is installed: for a start that asks a
/// server, which may take its time.
///
/// # Errors
/// An error of the system.
pub fn exit_on_interrupt(messages: &Messages) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let messages = *messages;
    thread::Builder::new().name("weir-start".into()).spawn(move || {
        if signals.forever().next().is_some() && !HAS_BEGUN.load(Ordering::Relaxed) {
            messages.error("interrupted before the start; nothing was sent");
            exit::at_once(exit::INTERRUPTED);
        }
    })?;
    Ok(())
}

impl Interrupt {
    /// Installs the handlers.
    ///
    /// # Errors
    /// An error of the system.
    pub fn install() -> io::Result<Self> {
        HAS_BEGUN.store(true, Ordering::Relaxed);
        let asked = Arc::new(AtomicBool::new(false));
        let term = Arc::new(AtomicBool::new(false));
        let mut handlers = vec![flag::register(SIGTERM, Arc::clone(&term))?];
        for signal in [SIGINT, SIGTERM] {
            // In this order; otherwise the first signal would end the process.
            handlers.push(flag::register_conditional_shutdown(signal, exit::INTERRUPTED.into(), Arc::clone(&asked))?);
            handlers.push(flag::register(signal, Arc::clone(&asked))?);
        }
        Ok(Self { requested: asked, sigterm: term, handlers })
    }

    /// Whether a signal was received.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Whether the signal was SIGTERM, a request for a graceful shutdown.
    pub fn is_sigterm(&self) -> bool {
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
