//! All processes that descend from one that this process has started.
//!
//! Programs fork, double-fork and change their sessions, so killing a process group misses some of them.

use std::io;
use std::process::Command;

use rustix::process::{Signal, getpid, set_child_subreaper};

use super::super::processes::{self, ProcessStat};

/// From here on all descendants stay below this process, also those whose parent has ended (a *subreaper*).
///
/// # Errors
/// The system denies it.
pub fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Prepares the program whose descendants are meant.
pub fn prepare(command: &mut Command) -> &mut Command {
    command
}

/// Sends a signal to all descendants of this process.
pub fn signal(_: u32, signal: Signal) {
    family().iter().for_each(|stat| processes::signal(stat.pid, signal));
}

/// Kills all descendants of this process.
pub fn kill(_: u32) {
    processes::kill_all(family);
}

/// Nothing: all descendants are this process's children in the end, and none is left.
pub fn wait_for_others(_: u32) {}

fn family() -> Vec<ProcessStat> {
    processes::descendants(std::process::id())
}
