//! Channel of an agent's events to its coordinator.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;

use super::protocol::AgentEvent;
use weir_machine::lock::lock;

/// Channel of an agent's events to its coordinator: what was its stdout.
#[derive(Debug)]
pub(super) struct EventChannel(Mutex<File>);

impl EventChannel {
    /// Takes the process's stdout: what scripts print goes to stderr from now on.
    pub(super) fn take_stdout() -> io::Result<Self> {
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self(Mutex::new(own.into())))
    }

    /// Sends an event.
    pub(super) fn send(&self, event: &AgentEvent) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        lock(&self.0).write_all(line.as_bytes())
    }
}
