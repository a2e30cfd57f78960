//! Files that all users share: the content is kept once.

use std::sync::{Arc, Mutex};

use weir_machine::input_file;
use weir_machine::lock::lock;

/// Files of a script, by their paths.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles(Mutex<Vec<(String, Arc<[u8]>)>>);

impl SharedFiles {
    /// Number and length of a file, which is read unless it was before.
    ///
    /// # Errors
    /// One line, if it cannot be read.
    pub(crate) fn open(&self, path: &str) -> Result<(usize, usize), String> {
        let mut files = lock(&self.0);
        if let Some(number) = files.iter().position(|(known, _)| known == path) {
            return Ok((number, files[number].1.len()));
        }
        let bytes = input_file::read(path).map_err(|error| format!("cannot open '{path}': {error}"))?;
        files.push((path.to_owned(), bytes.into()));
        let number = files.len() - 1;
        Ok((number, files[number].1.len()))
    }

    /// Content of a file.
    pub(crate) fn content(&self, number: usize) -> Option<Arc<[u8]>> {
        lock(&self.0).get(number).map(|(_, bytes)| Arc::clone(bytes))
    }
}
