//! Changes of a file, by looking at it regularly.

use std::io;
use std::path::Path;

use super::super::clock::{Clock, monotonic};
use weir_base::Nanos;

/// Interval of looks.
const INTERVAL: Nanos = Nanos::from_millis(5);

/// Watcher of one file, which leaves the look to its user: times of change are too coarse on many file systems, and a file
/// may be written with the bytes that it has.
#[derive(Debug)]
pub struct RegularLooks;

impl RegularLooks {
    /// Watches a file from now on.
    ///
    /// # Errors
    /// None; other systems may not find it.
    pub fn new(_: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    /// Blocks until it is time for a look.
    ///
    /// # Errors
    /// None; other systems may fail.
    pub fn wait(&self) -> io::Result<()> {
        let clock = Clock::starting_at(monotonic());
        clock.sleep_until(clock.now() + INTERVAL);
        Ok(())
    }
}
