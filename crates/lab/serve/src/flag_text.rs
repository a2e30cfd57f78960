//! Delays and bodies as flags have them: as text, or as `@FILE`.

use weir_machine::input_file;
use weir_workload::delay::Delay;

/// Reads a delay distribution: text in the syntax of [`Delay::read`], or `@FILE` with one sample per line.
///
/// # Errors
/// The invalid text and what to write instead, or the file that cannot be read, in one line.
pub fn read_delay(text: &str) -> Result<Delay, String> {
    let Some(path) = text.strip_prefix('@') else { return Delay::read(text) };
    Delay::samples(&file(path)?).map_err(|reason| format!("{path}: {reason}"))
}

/// Reads a body: text as it is, or `@FILE`, which is UTF-8.
///
/// # Errors
/// The file that cannot be read, in one line.
pub fn read_body(text: &str) -> Result<String, String> {
    text.strip_prefix('@').map_or_else(|| Ok(text.to_owned()), file)
}

fn file(path: &str) -> Result<String, String> {
    input_file::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}
