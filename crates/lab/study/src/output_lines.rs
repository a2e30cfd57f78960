//! Last lines of the output of a program that failed, for a terminal.

use super::measurement::Measurement;
use weir_report::sanitize;

/// Maximum number of lines.
const MAX_LINES: usize = 8;

/// Last lines of the output of a variant in a failed measurement; empty without any.
pub(super) fn last_lines(variant: &str, failed: &Measurement) -> String {
    let lines = failed.failure.as_ref().map(|failure| failure.last_lines.as_slice()).unwrap_or_default();
    let last = lines.iter().skip(lines.len().saturating_sub(MAX_LINES));
    let last: String = last.map(|line| format!("    {}\n", sanitize(line))).collect();
    if last.is_empty() { last } else { format!("\nlast lines of {variant}:\n{last}") }
}
