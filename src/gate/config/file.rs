//! Files that a configuration names.

use std::fs;
use std::path::Path;

/// Longer files are not what is meant.
const MOST: u64 = 16 << 20;

/// The whole of a plain file. A pipe or a device might never end.
///
/// # Errors
/// Why not, in words.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let about = fs::metadata(path).map_err(|error| plain(&error))?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() > MOST {
        return Err(format!("it is longer than {} MiB", MOST >> 20));
    }
    fs::read(path).map_err(|error| plain(&error))
}

/// Without the number that nobody knows.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
