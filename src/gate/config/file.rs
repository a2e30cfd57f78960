//! Files that a configuration names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Longer files are not what is meant.
const MOST: u64 = 16 << 20;

/// The whole of a plain file. A pipe or a device might never end.
///
/// # Errors
/// Why not, in words.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let is_file = fs::metadata(path).map_err(|error| plain(&error))?.is_file();
    if !is_file {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| plain(&error))?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| plain(&error))?;
    if bytes.len() as u64 > MOST {
        return Err(format!("it is longer than {} MiB", MOST >> 20));
    }
    Ok(bytes)
}

/// Without the number that nobody knows.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
