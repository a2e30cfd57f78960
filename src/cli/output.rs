//! A file that a result goes to. It is opened before the work begins: a path that cannot be written is told before ten
//! minutes of load.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::report::jtl;

/// A file to write.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// The file; what was in it is there still.
    pub(super) file: File,
}

impl Output {
    /// The file, if one was asked for. It is not emptied yet: work that cannot begin must not cost an earlier result.
    ///
    /// # Errors
    /// It cannot be written: why, in one line.
    pub(super) fn open(path: Option<&Path>) -> Result<Option<Self>, String> {
        let Some(path) = path else { return Ok(None) };
        match File::options().write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), file })),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }

    /// Writes the text in place of what was there.
    ///
    /// # Errors
    /// It cannot be written: why, in one line.
    pub(super) fn write(mut self, text: &str) -> Result<(), String> {
        let written = jtl::empty(&self.file).and_then(|()| self.file.write_all(text.as_bytes()));
        let written = written.and_then(|()| sync(&self.file));
        self.told(written)
    }

    /// What became of it, as a person is told.
    ///
    /// # Errors
    /// It could not be written: why, in one line.
    pub(super) fn told(&self, written: io::Result<()>) -> Result<(), String> {
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// Some file systems say only now that they are full; a pipe or a terminal has nothing to say.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}
