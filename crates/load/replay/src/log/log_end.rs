//! End of a log, without reading the log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::AccessFormat;

/// Size of a file's last part that is read, in bytes.
const TAIL_BYTES: u64 = 64 * 1024;

/// Time of the last request of a file, in nanoseconds since 1970; `None` for pipes, packed files and ends that cannot
/// be read. It is an estimate: logs are almost in order.
pub(super) fn end_of(path: &Path, format: &AccessFormat) -> Option<i64> {
    let mut file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|of| of.is_file()))?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let record = tail.lines().rev().find_map(|line| format.record(line.trim()).ok())?;
    Some(record.start_ns(record.time.unix_ns))
}
