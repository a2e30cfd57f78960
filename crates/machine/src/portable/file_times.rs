//! Changes of a file, by looking at it again and again.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::super::clock::{Clock, monotonic};
use weir_decide::Nanos;

/// Interval of looks.
const INTERVAL: Nanos = Nanos::from_millis(5);

/// Watcher of one small file.
#[derive(Debug)]
pub struct FileTimes {
    file: File,
    seen: Cell<(i64, i64, [u8; 8])>,
}

impl FileTimes {
    /// Watches a file's first bytes and its time of change from now on.
    ///
    /// # Errors
    /// There is no such file.
    pub fn new(path: &Path) -> io::Result<Self> {
        let watcher = Self { file: File::open(path)?, seen: Cell::default() };
        watcher.seen.set(watcher.look()?);
        Ok(watcher)
    }

    /// Blocks until the file is written, also with the bytes that it has; two such writes at nearly the same time count
    /// as one.
    ///
    /// # Errors
    /// As `fstat`.
    pub fn wait(&self) -> io::Result<()> {
        let clock = Clock::starting_at(monotonic());
        loop {
            let now = self.look()?;
            if self.seen.replace(now) != now {
                return Ok(());
            }
            clock.sleep_until(clock.now() + INTERVAL);
        }
    }

    fn look(&self) -> io::Result<(i64, i64, [u8; 8])> {
        let metadata = self.file.metadata()?;
        let mut bytes = [0; 8];
        // A new file is empty.
        let _ = self.file.read_at(&mut bytes, 0)?;
        Ok((metadata.mtime(), metadata.mtime_nsec(), bytes))
    }
}
