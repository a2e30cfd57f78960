//! All processes of a program that this process has started: its process group, which misses those that leave it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group};

/// Nothing: a process whose parent has ended is the system's.
///
/// # Errors
/// None; other systems may deny it.
pub fn adopt() -> io::Result<()> {
    Ok(())
}

/// Gives the program a process group of its own.
pub fn prepare(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Sends a signal to the group of this program.
pub fn signal(program: u32, signal: Signal) {
    if let Some(group) = i32::try_from(program).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// Kills the group of this program.
pub fn kill(program: u32) {
    signal(program, Signal::KILL);
}
