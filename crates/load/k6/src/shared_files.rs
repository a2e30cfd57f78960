//! Files that a script reads. The content of those that all users share is kept once.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weir_machine::input_file;
use weir_machine::lock::lock;

/// Files of a script.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles {
    /// Those that are kept, by their paths.
    kept: Mutex<Vec<(PathBuf, Arc<[u8]>)>>,
    /// Paths of all that were read.
    read: Mutex<BTreeSet<PathBuf>>,
}

impl SharedFiles {
    /// Reads a file for the caller alone.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = input_file::read(path)?;
        lock(&self.read).insert(path.to_owned());
        Ok(bytes)
    }

    /// Paths of all files that were read, as the script has them.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        lock(&self.read).iter().cloned().collect()
    }

    /// Number and length of a file, which is read unless it was before.
    ///
    /// # Errors
    /// One line, if it cannot be read.
    pub(crate) fn open(&self, path: &Path) -> Result<(usize, usize), String> {
        let mut files = lock(&self.kept);
        if let Some(number) = files.iter().position(|(known, _)| known == path) {
            return Ok((number, files[number].1.len()));
        }
        let bytes = self.read(path).map_err(|error| format!("cannot open '{}': {error}", path.display()))?;
        files.push((path.to_owned(), bytes.into()));
        let number = files.len() - 1;
        Ok((number, files[number].1.len()))
    }

    /// Content of a file.
    pub(crate) fn content(&self, number: usize) -> Option<Arc<[u8]>> {
        lock(&self.kept).get(number).map(|(_, bytes)| Arc::clone(bytes))
    }
}
