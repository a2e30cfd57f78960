//! Lifecycle of a server: address on stdout, signals, graceful shutdown.

use std::io::{self, Write};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit;

/// Signal listener of a server.
#[derive(Debug)]
pub(super) struct ServerLifecycle {
    signals: Signals,
}

/// Signal that ended a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExitSignal(i32);

impl ServerLifecycle {
    /// Listens for SIGINT and SIGTERM, which end the server, and for `others`. Must be created before the address is
    /// printed: a reader of the address may send a signal at once.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn new(others: &[i32]) -> Result<Self, String> {
        let signals = Signals::new([&[SIGINT, SIGTERM], others].concat());
        Ok(Self { signals: signals.map_err(|error| format!("cannot listen for Ctrl-C: {error}"))? })
    }

    /// Prints the address on stdout, and waits for the signal that ends the server; each SIGHUP before calls `hangup`.
    ///
    /// # Errors
    /// One line, if stdout cannot be written.
    pub(super) fn run_until_signal(&mut self, url: &str, hangup: impl FnMut()) -> Result<ExitSignal, String> {
        self.announce_and_wait(&serde_json::json!({ "listening": url }), hangup)
    }

    /// The same with this line on stdout.
    ///
    /// # Errors
    /// One line, if stdout cannot be written.
    pub(super) fn announce_and_wait(
        &mut self,
        line: &serde_json::Value,
        mut hangup: impl FnMut(),
    ) -> Result<ExitSignal, String> {
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

    /// Stops the server and returns the exit code; a second signal meanwhile calls `at_once`.
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
