//! The life of what serves: it says where it is, heeds signals, and ends in good order.

use std::io::{self, Write};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit;

/// Listens for signals from the moment it is made.
#[derive(Debug)]
pub(super) struct ServerLifecycle {
    signals: Signals,
}

/// Which signal ended it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExitSignal(i32);

impl ServerLifecycle {
    /// To be made before the service says that it is there: whoever reads that may send a signal at once. SIGINT and
    /// SIGTERM end it, `others` do not.
    ///
    /// # Errors
    /// When the system refuses to tell of signals.
    pub(super) fn new(others: &[i32]) -> Result<Self, String> {
        let signals = Signals::new([&[SIGINT, SIGTERM], others].concat());
        Ok(Self { signals: signals.map_err(|error| format!("cannot listen for Ctrl-C: {error}"))? })
    }

    /// Says on stdout where it listens, and waits for the signal that ends it; each SIGHUP before is a call of `hangup`.
    ///
    /// # Errors
    /// When nobody takes what stdout says.
    pub(super) fn run_until_signal(&mut self, url: &str, mut hangup: impl FnMut()) -> Result<ExitSignal, String> {
        let line = serde_json::json!({ "listening": url });
        writeln!(io::stdout(), "{line}")
            .and_then(|()| io::stdout().flush())
            .map_err(|error| format!("cannot write to stdout: {error}"))?;
        loop {
            match self.signals.forever().next() {
                Some(SIGHUP) => hangup(),
                other => return Ok(ExitSignal(other.unwrap_or(SIGTERM))),
            }
        }
    }

    /// Stops, and says with which code to exit; if a second signal comes meanwhile, `at_once` has it end.
    pub(super) fn finish(self, end: ExitSignal, at_once: impl FnOnce() + Send, stop: impl FnOnce()) -> u8 {
        let mut signals = self.signals;
        let handle = signals.handle();
        thread::scope(|scope| {
            scope.spawn(move || {
                if signals.forever().any(|signal| signal != SIGHUP) {
                    at_once();
                }
            });
            stop();
            handle.close();
        });
        if end.0 == SIGINT { exit::INTERRUPTED } else { exit::OK }
    }
}
