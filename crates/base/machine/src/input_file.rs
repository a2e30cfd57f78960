//! Files that this process reads as its input, so that no output is written over one of them, whatever the names of both:
//! a file is known by its device and inode, also through links.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use crate::lock::lock;

/// Identity of a regular file: its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity(u64, u64);

/// Inputs that are remembered; enough for a folder of recordings, and little memory.
const MAX_INPUTS: usize = 100_000;

fn inputs() -> &'static Mutex<HashSet<FileIdentity>> {
    static INPUTS: OnceLock<Mutex<HashSet<FileIdentity>>> = OnceLock::new();
    INPUTS.get_or_init(Mutex::default)
}

impl FileIdentity {
    /// Identity of an open file; None of devices and pipes.
    pub fn of(file: &File) -> Option<Self> {
        file.metadata().ok().and_then(|of| Self::of_metadata(&of))
    }

    /// Identity of the file that a path leads to; None without one.
    pub fn of_path(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().and_then(|of| Self::of_metadata(&of))
    }

    fn of_metadata(of: &Metadata) -> Option<Self> {
        of.is_file().then(|| Self(of.dev(), of.ino()))
    }

    /// Whether this process has read it as an input.
    pub fn is_input(self) -> bool {
        lock(inputs()).contains(&self)
    }
}

/// Takes note of an input that is open.
pub fn note(file: &File) {
    let mut inputs = lock(inputs());
    if let Some(identity) = FileIdentity::of(file).filter(|_| inputs.len() < MAX_INPUTS) {
        inputs.insert(identity);
    }
}

/// Opens an input.
///
/// # Errors
/// The file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path).inspect(note)
}

/// Content of an input.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path.as_ref())?.read_to_end(&mut content)?;
    Ok(content)
}

/// Text of an input.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read(path)?).map_err(not_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("input"), "x").unwrap();
        fs::write(path("other"), "x").unwrap();
        fs::hard_link(path("input"), path("hard")).unwrap();
        std::os::unix::fs::symlink(path("input"), path("soft")).unwrap();
        assert!(!FileIdentity::of_path(&path("hard")).unwrap().is_input());
        assert_eq!(read_to_string(path("input")).unwrap(), "x");
        for name in ["input", "hard", "soft"] {
            assert!(FileIdentity::of_path(&path(name)).unwrap().is_input(), "{name}");
        }
        assert!(!FileIdentity::of_path(&path("other")).unwrap().is_input());
        drop(open(&path("other")).unwrap());
        assert!(FileIdentity::of(&File::open(path("other")).unwrap()).unwrap().is_input());
        assert_eq!((FileIdentity::of_path(folder.path()), FileIdentity::of_path(&path("none"))), (None, None));
    }
}
