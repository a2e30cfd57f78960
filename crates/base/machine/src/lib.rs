//! Access to the machine: clocks, limits, memory, processes, timers.
//!
//! - [`clock`]: the only module that reads the time
//! - [`dashboard`]: lines on a terminal that are drawn again
//! - [`doctor`]: what of this machine distorts a measurement
//! - [`executor`]: tasks of one thread
//! - [`input_file`]: files that the process reads as its input, which no output is written over
//! - [`line_file`]: a file that lines are appended to, over full disks and slow readers
//! - [`lock`]: locks whose poison is ignored
//! - [`logger`]: logger for the operator of a program
//! - [`memory`]: return of freed memory to the system
//! - [`parallel()`]: work that is shared among the cores
//! - [`private_file`]: files that only their owner reads
//! - [`supervisor`]: supervisor process of a program
//! - [`process_tree`]: sampling of a process tree's use of resources; [`processes`]: processes and their descendants
//! - [`timer`]: exact timers on an event loop
//! - [`system`]: the system's own interfaces, those of Linux or portable ones; [`readiness_event`]: what a poller reports

pub mod clock;
pub mod dashboard;
pub mod doctor;
pub mod executor;
pub mod input_file;
pub mod line_file;
pub mod lock;
pub mod logger;
pub mod memory;
mod parallel;
pub mod private_file;
pub mod process_tree;
pub mod processes;
pub mod readiness_event;
pub mod supervisor;
#[cfg(all(target_os = "linux", not(weir_portable)))]
#[path = "linux/mod.rs"]
pub mod system;
#[cfg(not(all(target_os = "linux", not(weir_portable))))]
#[path = "portable/mod.rs"]
pub mod system;
pub mod timer;

pub use self::parallel::parallel;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of cores that this process may use.
pub fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// Open files besides connections: standard streams, pollers, result files, shared libraries of an embedding Python.
const RESERVED_FILES: u64 = 128;

/// Maximum number of connections within the limit of open files.
pub fn max_connections() -> u64 {
    getrlimit(Resource::Nofile).maximum.map_or(u64::MAX, connections_within)
}

/// Maximum number of connections within a limit of open files.
fn connections_within(files: u64) -> u64 {
    files.saturating_sub(RESERVED_FILES)
}

/// Raises the limit of open files to `wanted`, plus those that the process has anyway.
///
/// # Errors
/// The maximum number, if that is less.
pub fn allow_open_files(wanted: u64) -> Result<(), u64> {
    let needed = wanted + RESERVED_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|n| n >= needed) {
        return Ok(());
    }
    // Root may also raise the hard limit.
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum.map(|m| m.max(needed)) };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(max_connections())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
