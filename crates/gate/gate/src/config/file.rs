//! Reads files that a configuration names.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use weir_machine::input_file;

/// Maximum size of such a file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads a whole regular file. Pipes and devices are rejected, since they might not end.
///
/// # Errors
/// The reason, without the path.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let is_file = fs::metadata(path).map_err(|error| error_text(&error))?.is_file();
    if !is_file {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = input_file::open(path).map_err(|error| error_text(&error))?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error_text(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("longer than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(bytes)
}

fn error_text(error: &io::Error) -> String {
    without_number(&error.to_string()).to_owned()
}

/// The text of an error of the system without its number.
pub(super) fn without_number(text: &str) -> &str {
    text.split(" (os error").next().unwrap_or_default()
}
