//! All processes of a program that this process has started: its process group, which misses those that leave it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use weir_base::Nanos;

use super::super::clock::{Clock, monotonic};

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

/// Interval between checks of the group.
const INTERVAL: Nanos = Nanos::from_millis(5);

/// Sends a signal to the group of this program.
pub fn signal(program: u32, signal: Signal) {
    if let Some(group) = group_of(program) {
        let _ = kill_process_group(group, signal);
    }
}

/// Kills the group of this program.
pub fn kill(program: u32) {
    signal(program, Signal::KILL);
}

/// Waits until no process of the group is left: those whose parent has ended are not this process's children.
pub fn wait_for_others(program: u32) {
    let clock = Clock::starting_at(monotonic());
    while group_of(program).is_some_and(|group| test_kill_process_group(group).is_ok()) {
        clock.sleep_until(clock.now() + INTERVAL);
    }
}

fn group_of(program: u32) -> Option<Pid> {
    i32::try_from(program).ok().and_then(Pid::from_raw)
}
