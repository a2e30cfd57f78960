//! Folder of files that were uploaded: scenarios, data and bodies, under names that cannot lead out of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_machine::private_file::private_options;

/// Maximum size of a file, in bytes.
pub(crate) const MAX_UPLOAD_BYTES: usize = 16 << 20;
/// Maximum number of files.
const MAX_FILES: usize = 200;
/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Kinds of files. Programs are not among them: a page may choose a script of this machine, but bring none.
const EXTENSIONS: [&str; 11] = ["bin", "csv", "har", "http", "hurl", "json", "jsonl", "pem", "toml", "txt", "xml"];

/// Folder of files that were uploaded; made with the first one.
#[derive(Debug)]
pub(crate) struct UploadFolder(pub(crate) PathBuf);

impl UploadFolder {
    /// Saves a file in place of an earlier one of the same name, and returns its path.
    ///
    /// # Errors
    /// One line: a name that is not allowed, too many files, or a folder that cannot be written.
    pub(crate) fn save(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        check_name(name)?;
        let path = self.0.join(name);
        let write = || -> io::Result<Option<()>> {
            fs::create_dir_all(&self.0)?;
            let is_full = !path.exists() && fs::read_dir(&self.0)?.count() >= MAX_FILES;
            if is_full {
                return Ok(None);
            }
            // All of it or nothing, also for a run that reads the earlier one.
            let unfinished = self.0.join(format!(".{name}.{}", std::process::id()));
            let written = private_options().write(true).create(true).truncate(true).open(&unfinished);
            let done = written.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&unfinished, &path));
            if done.is_err() {
                // On a full disk a part would keep the place of others.
                let _ = fs::remove_file(&unfinished);
            }
            done.map(Some)
        };
        match write() {
            Ok(Some(())) => Ok(path),
            Ok(None) => Err(format!("{} has {MAX_FILES} files; remove some", self.0.display())),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with(['.', '-']) || !name.bytes().all(is_plain) {
        return Err(format!(
            "invalid name '{name}' of a file; write letters, digits and -._, {MAX_NAME_BYTES} at most"
        ));
    }
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()) {
        let known = EXTENSIONS.map(|extension| format!(".{extension}")).join(", ");
        return Err(format!("'{name}' cannot be uploaded; choose a file of {known}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_in_the_folder_and_no_program() {
        for name in ["shop.hurl", "Mix-2.toml", "a.b.csv", "body.json", "CA.PEM"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = format!("{}.hurl", "x".repeat(96));
        for name in
            ["", ".", "..", ".hurl", "../a.hurl", "a/b.hurl", "-a.hurl", "a b.hurl", "a\0.hurl", "ä.hurl", &long]
        {
            assert!(check_name(name).is_err_and(|why| why.starts_with("invalid name")), "{name}");
        }
        for name in ["a.py", "a.lua", "hurl", "a.hurl.sh", "a.exe", "a."] {
            assert!(check_name(name).is_err_and(|why| why.contains("cannot be uploaded")), "{name}");
        }
    }
}
