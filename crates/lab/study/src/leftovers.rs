//! Processes that a measurement, or a study that was killed, has left running.

use weir_machine::processes;

/// Environment variable of every process that a study starts, with the token of the run; leftovers are found by it.
pub(super) const ENV_MARKER: &str = "WEIR_STUDY";

/// Kills all processes with this token, if any are left.
pub(super) fn kill_leftovers(token: &str) {
    let left = || processes::started_with(ENV_MARKER, token);
    if !left().is_empty() {
        processes::kill_all(left);
    }
}
