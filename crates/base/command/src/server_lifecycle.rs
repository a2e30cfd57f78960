//! Lifecycle of a server: address on stdout, signals, graceful shutdown.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit;
use crate::service_manager;

/// Signal listener of a server.
#[derive(Debug)]
pub struct ServerLifecycle {
    signals: Signals,
}

/// Signal that ended a server.
#[derive(Clone, Copy, Debug)]
pub struct ExitSignal(i32);

impl ServerLifecycle {
    /// Listens for SIGINT and SIGTERM, which end the server, and for `others`. Must be created before the address is
    /// printed: a reader of the address may send a signal at once.
    ///
    /// # Errors
    /// An error of the system.
    pub fn new(others: &[i32]) -> Result<Self, String> {
        let signals = Signals::new([&[SIGINT, SIGTERM], others].concat());
        Ok(Self { signals: signals.map_err(|error| format!("cannot listen for Ctrl-C: {error}"))? })
    }

    /// Prints the address on stdout, and waits for the signal that ends the server.
    ///
    /// # Errors
    /// One line, if stdout cannot be written.
    pub fn run_until_signal(&mut self, url: &str) -> Result<ExitSignal, String> {
        self.announce(&serde_json::json!({ "listening": url }))?;
        Ok(self.wait(|_| ControlFlow::Continue(())))
    }

    /// Prints the server's addresses as a line on stdout, and notifies systemd.
    ///
    /// # Errors
    /// One line, if stdout cannot be written.
    pub fn announce(&self, line: &serde_json::Value) -> Result<(), String> {
        writeln!(io::stdout(), "{line}")
            .and_then(|()| io::stdout().flush())
            .map_err(|error| format!("cannot write to stdout: {error}"))?;
        service_manager::notify("READY=1");
        Ok(())
    }

    /// Waits for the signal that ends the server; each of the others before calls `on_other`, which may end it, too.
    pub fn wait(&mut self, mut on_other: impl FnMut(i32) -> ControlFlow<()>) -> ExitSignal {
        loop {
            match self.signals.forever().next() {
                None => return ExitSignal(SIGTERM),
                Some(signal @ (SIGINT | SIGTERM)) => return ExitSignal(signal),
                Some(other) if on_other(other).is_break() => return ExitSignal(other),
                Some(_) => {}
            }
        }
    }

    /// Stops the server and returns the exit code; another SIGINT or SIGTERM meanwhile calls `at_once`.
    pub fn finish(self, end: ExitSignal, at_once: impl FnOnce() + Send, stop: impl FnOnce()) -> u8 {
        if matches!(end.0, SIGINT | SIGTERM) {
            service_manager::notify("STOPPING=1");
        }
        let mut signals = self.signals;
        let handle = signals.handle();
        thread::scope(|scope| {
            scope.spawn(move || {
                if signals.forever().any(|signal| matches!(signal, SIGINT | SIGTERM)) {
                    at_once();
                }
            });
            stop();
            handle.close();
        });
        if end.0 == SIGINT { exit::INTERRUPTED } else { exit::OK }
    }
}
