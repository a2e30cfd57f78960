//! Processes that cannot outlive the test that started them, however it ends.
#![allow(dead_code, reason = "each that includes this uses its part of it")]
#![allow(unsafe_code, reason = "what is to happen between fork and exec can be said in no other way")]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// What ties a program to the thread that starts it and then becomes that program; of util-linux.
const TIE: &str = "/usr/bin/setpriv";

/// A command of a program for [`spawn_tied`] that needs no step between fork and exec. With one, the system has to copy
/// the tables of all memory of the test program at each start: that took a tenth of the time of tests of the binary.
pub fn tied_command(program: &Path) -> Command {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    if !*IS_THERE.get_or_init(|| Path::new(TIE).exists()) {
        return Command::new(program);
    }
    let mut command = Command::new(TIE);
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Starts a command that the system kills when the thread that called this ends: after a test that passed, failed, or
/// was itself killed. What has to live longer than the thread is not started here.
pub fn spawn_tied(command: &mut Command) -> io::Result<Child> {
    if command.get_program() == TIE {
        return command.spawn();
    }
    // SAFETY: between fork and exec only what is safe in a signal handler may be called; this is one system call, which
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(|| set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)) };
    command.spawn()
}

/// The processes that run in a folder, or below it: those that were started there by whatever was started, too.
pub fn running_in(folder: &Path) -> Vec<Pid> {
    let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_there = |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(folder));
    numbers.filter(is_there).filter_map(Pid::from_raw).collect()
}

/// Whether a process runs; a zombie does not.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// The processes that a process has started, as long as it lives.
pub fn children(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|of| of.trim() == parent.to_string()))
    };
    numbers.filter(is_child).collect()
}

/// Kills all that runs in a folder.
pub fn kill_in(folder: &Path) {
    loop {
        let left = running_in(folder);
        if left.is_empty() {
            return;
        }
        for pid in left {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::yield_now();
    }
}
