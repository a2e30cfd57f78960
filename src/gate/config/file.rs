//! Files that a configuration names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Longer files are not what is meant.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The whole of a plain file. A pipe or a device might never end.
///
/// # Errors
/// Why not, in words.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let is_file = fs::metadata(path).map_err(|error| error_text(&error))?.is_file();
    if !is_file {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error_text(&error))?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error_text(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(bytes)
}

/// Without the number that nobody knows.
fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
