//! Ctrl-C and SIGTERM: the first ends the run gracefully, the second at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Signals of the start, for the first [`Interrupt`].
static OF_START: Mutex<Option<EarlySignals>> = Mutex::new(None);

/// Signals that come before the handlers of an [`Interrupt`] are complete: one between two of them would be lost.
#[derive(Debug)]
struct EarlySignals {
    requested: Arc<AtomicBool>,
    sigterm: Arc<AtomicBool>,
    handlers: [SigId; 3],
}

impl EarlySignals {
    fn listen() -> io::Result<Self> {
        let (requested, sigterm) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let handlers = [
            flag::register(SIGTERM, Arc::clone(&sigterm))?,
            flag::register(SIGTERM, Arc::clone(&requested))?,
            flag::register(SIGINT, Arc::clone(&requested))?,
        ];
        Ok(Self { requested, sigterm, handlers })
    }

    /// Takes what has come over into handlers that are complete.
    fn hand_over(self, interrupt: &Interrupt) {
        self.handlers.into_iter().for_each(|handler| _ = low_level::unregister(handler));
        interrupt.sigterm.fetch_or(self.sigterm.load(Ordering::Relaxed), Ordering::Relaxed);
        interrupt.requested.fetch_or(self.requested.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Lets Ctrl-C and SIGTERM end the process with a line until an [`Interrupt`] is installed: for a start that asks a
/// server, which may take its time.
///
/// # Errors
/// An error of the system.
pub fn exit_on_interrupt(messages: &Messages) -> io::Result<()> {
    *OF_START.lock().unwrap_or_else(PoisonError::into_inner) = Some(EarlySignals::listen()?);
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
        let of_start = OF_START.lock().unwrap_or_else(PoisonError::into_inner).take();
        let early = of_start.map_or_else(EarlySignals::listen, Ok)?;
        HAS_BEGUN.store(true, Ordering::Relaxed);
        let asked = Arc::new(AtomicBool::new(false));
        let term = Arc::new(AtomicBool::new(false));
        let mut handlers = vec![flag::register(SIGTERM, Arc::clone(&term))?];
        for signal in [SIGINT, SIGTERM] {
            // In this order; otherwise the first signal would end the process.
            handlers.push(flag::register_conditional_shutdown(signal, exit::INTERRUPTED.into(), Arc::clone(&asked))?);
            handlers.push(flag::register(signal, Arc::clone(&asked))?);
        }
        let interrupt = Self { requested: asked, sigterm: term, handlers };
        early.hand_over(&interrupt);
        Ok(interrupt)
    }

    /// Removes the handlers; signals from now on, and one that was not looked at, are for the next [`Interrupt`].
    ///
    /// # Errors
    /// An error of the system.
    pub fn hand_over(self) -> io::Result<()> {
        let early = EarlySignals::listen()?;
        early.requested.fetch_or(self.is_requested(), Ordering::Relaxed);
        early.sigterm.fetch_or(self.is_sigterm(), Ordering::Relaxed);
        *OF_START.lock().unwrap_or_else(PoisonError::into_inner) = Some(early);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_before_the_handlers_are_complete_is_not_lost() {
        *OF_START.lock().unwrap() = Some(EarlySignals::listen().unwrap());
        low_level::raise(SIGTERM).unwrap();
        let first = Interrupt::install().unwrap();
        assert!(first.is_requested() && first.is_sigterm());
        drop(first);
        // It was that of the first, and no other's.
        let second = Interrupt::install().unwrap();
        assert!(!second.is_requested() && !second.is_sigterm());
        low_level::raise(SIGINT).unwrap();
        assert!(second.is_requested() && !second.is_sigterm());
        // Those of a setup are for the load after it, also what comes between them.
        second.hand_over().unwrap();
        let third = Interrupt::install().unwrap();
        assert!(third.is_requested() && !third.is_sigterm());
        drop(third);
        Interrupt::install().unwrap().hand_over().unwrap();
        low_level::raise(SIGTERM).unwrap();
        assert!(Interrupt::install().unwrap().is_sigterm());
    }
}
