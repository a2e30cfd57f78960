//! Change of the program while it runs: a new process takes the listening sockets, and the old one ends.

use std::env;
use std::process::Command;
use std::time::Duration;

use weir_command::Messages;
use weir_command::service_manager;
use weir_gate::Gate;
use weir_server::{HandoverError, NextProcess};

/// Time in which the new process has to accept connections.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the program anew, as it was started, with the gateway's sockets. Returns whether the new process accepts
/// connections, so that this one is to end; otherwise it goes on.
pub(super) fn start_next(gate: &Gate, messages: &Messages) -> bool {
    let id = match try_start(gate) {
        Ok(id) => id,
        Err(error) => {
            messages.error(&format!("SIGUSR2: {error}; this process goes on"));
            return false;
        }
    };
    service_manager::notify(&format!("MAINPID={id}"));
    messages.note(&format!("process {id} accepts connections from now on; this one ends"));
    true
}

fn try_start(gate: &Gate) -> Result<u32, HandoverError> {
    // Not the file of this process: the name may lead to a newer one by now.
    let mut arguments = env::args_os();
    let mut command = Command::new(arguments.next().unwrap_or_else(|| "weir".into()));
    command.args(arguments);
    let next = NextProcess::start(command, &gate.listen_sockets())?;
    let id = next.id();
    next.wait_ready(READY_TIMEOUT)?;
    Ok(id)
}
