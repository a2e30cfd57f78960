//! File that lines are appended to, some at a time: all of them, or none.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_machine::private_file::private_options;

/// File of lines; it is new with its first line, unless it is created.
#[derive(Debug)]
pub(super) struct AppendedFile {
    path: PathBuf,
    file: Option<File>,
    /// Length of the complete lines in the file, in bytes.
    length: u64,
    /// Lines that are not written yet.
    pub(super) buffer: Vec<u8>,
}

impl AppendedFile {
    /// File at this path, with the results that it has added to the earlier ones. A last line without an end is cut off:
    /// the store has not recorded the end of its job. A new file is private, since responses may have secrets.
    ///
    /// # Errors
    /// One line.
    pub(super) fn open(
        path: &Path,
        is_created: bool,
        add: impl FnOnce(&File) -> Result<u64, String>,
    ) -> Result<Self, String> {
        let mut opened = Self { path: path.to_owned(), file: None, length: 0, buffer: Vec::new() };
        if !is_created && !path.exists() {
            return Ok(opened);
        }
        let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let file = opened.create().map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_file() {
            opened.length = add(file)?;
            if opened.length < metadata.len() {
                let length = opened.length;
                opened.create().and_then(|file| file.set_len(length)).map_err(cannot)?;
            }
        }
        Ok(opened)
    }

    fn create(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => private_options().read(true).append(true).create(true).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    /// Writes the lines of the buffer.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.buffer);
        let written = self.create().and_then(|file| file.write_all(&lines));
        self.buffer = lines;
        written
    }

    /// Keeps what was written.
    pub(super) fn keep(&mut self) {
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
    }

    /// Cuts off what was written since; a pipe cannot be cut.
    pub(super) fn cut(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.set_len(self.length);
        }
        self.buffer.clear();
    }
}
