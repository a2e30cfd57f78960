//! Wall clock of jobs and keys.

use crate::job::UnixMs;
use weir_machine::clock;

/// Wall clock, in milliseconds since 1970.
pub fn wall_ms() -> UnixMs {
    UnixMs(clock::wall().0 / 1_000_000)
}
