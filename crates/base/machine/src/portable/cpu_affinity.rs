//! Cores of threads: threads are pinned on Linux only.

use std::io;

/// Cores that this thread may use, by number: none is reported, so that services and loads share all.
pub fn available_cpus() -> Vec<usize> {
    Vec::new()
}

/// Pins this thread, and those that it starts from now on, to these cores; empty: no change.
///
/// # Errors
/// Cores are named, and cannot be chosen.
pub fn pin_to(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}
