//! Delays as flags have them.

use weir_machine::input_file;
use weir_workload::delay::Delay;

/// Reads a delay distribution: text in the syntax of [`Delay::read`], or `@FILE` with one sample per line.
///
/// # Errors
/// The invalid text and what to write instead, or the file that cannot be read, in one line.
pub fn read_delay(text: &str) -> Result<Delay, String> {
    let Some(path) = text.strip_prefix('@') else { return Delay::read(text) };
    let samples = input_file::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    Delay::samples(&samples).map_err(|reason| format!("{path}: {reason}"))
}
