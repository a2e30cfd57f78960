//! The machine that we run on: its clocks, what it lets us have, what a manifest says about it.
//!
//! - [`clock`]: the only place that asks what time it is
//! - [`executor`]: where a library's own tasks run
//! - [`memory`]: what is free and still ours
//! - [`guard`]: a process that sees to it that nothing of a program is left
//! - [`process_tree`]: what a service and its children use, sampled; [`processes`]: who is there
//! - [`timer`]: waiting for an exact time on an event loop

pub mod clock;
pub mod executor;
pub mod guard;
pub mod memory;
pub mod process_tree;
pub mod processes;
#[cfg(test)]
mod shell;
pub mod timer;

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

use crate::measure::run::Manifest;

/// Cores that this process may use.
pub fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// Open files that a process has beside its connections: standard streams, pollers, result files, the shared libraries
/// of a Python around us.
const RESERVED_FILES: u64 = 128;

/// The most connections that the system lets us have.
pub fn max_connections() -> u64 {
    getrlimit(Resource::Nofile).maximum.map_or(u64::MAX, |most| most.saturating_sub(RESERVED_FILES))
}

/// Makes room for `wanted` open files beside those that the process has anyway.
///
/// # Errors
/// The most that can be had, when that is not enough.
pub fn allow_open_files(wanted: u64) -> Result<(), u64> {
    let needed = wanted + RESERVED_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|n| n >= needed) {
        return Ok(());
    }
    // Root may also raise the upper limit; everyone else goes as far as it.
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum.map(|m| m.max(needed)) };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(max_connections())
}

/// What the manifest says about the machine.
pub fn describe() -> Manifest {
    let name = uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    Manifest {
        hostname: text(name.nodename()),
        os: format!("{} {}", text(name.sysname()), text(name.release())),
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| text(name.machine())),
        cores: cores(),
        memory_mib: field("/proc/meminfo", "MemTotal")
            .and_then(|kb| kb.split_whitespace().next()?.parse::<u64>().ok())
            .map_or(0, |kb| kb / 1024),
        ..Manifest::default()
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
