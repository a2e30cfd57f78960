//! Where results go: files, and stdout. Files are opened before the work begins: a path that cannot be written is told before
//! ten minutes of load.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::live::takes_escapes;
use crate::report::jtl;

/// A file to write; `-` is stdout.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    /// The file; what was in it is there still.
    pub(super) file: File,
    /// Whether it was not there before: if nothing comes of the work, it goes again.
    is_new: bool,
}

impl OutputFile {
    /// The file, if one was asked for. It is not emptied yet: work that cannot begin must not cost an earlier result.
    ///
    /// # Errors
    /// It cannot be written: why, in one line.
    pub(super) fn open(path: Option<&Path>) -> Result<Option<Self>, String> {
        let Some(path) = path else { return Ok(None) };
        let opened = if is_stdout(path) {
            io::stdout().as_fd().try_clone_to_owned().map(|stdout| (File::from(stdout), false))
        } else {
            let new = File::options().write(true).create_new(true).open(path).map(|file| (file, true));
            let open = || File::options().write(true).create(true).truncate(false).open(path);
            new.or_else(|_| open().map(|file| (file, false)))
        };
        match opened {
            Ok((file, is_new)) => Ok(Some(Self { path: path.to_owned(), file, is_new })),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }

    /// Refuses outputs that would overwrite each other, or mix.
    ///
    /// # Errors
    /// Which two, in one line.
    pub(super) fn ensure_distinct(all: &[(&str, Option<&Self>)]) -> Result<(), String> {
        let there = || all.iter().filter_map(|(flag, output)| Some((*flag, (*output)?)));
        for (at, (flag, output)) in there().enumerate() {
            if let Some((other, _)) = there().take(at).find(|(_, other)| output.is_same(other)) {
                let place = if output.is_stdout() { "stdout".into() } else { output.path.display().to_string() };
                return Err(format!("{other} and {flag} both write to {place}; give each a file of its own"));
            }
        }
        Ok(())
    }

    /// Refuses to write over what is to be read.
    ///
    /// # Errors
    /// Which output it is, in one line.
    pub(super) fn ensure_not_input(&self, flag: &str, input: &Path) -> Result<(), String> {
        let read = fs::metadata(input).ok().filter(Metadata::is_file).map(|of| (of.dev(), of.ino()));
        if read.is_some() && self.identity() == read {
            return Err(format!(
                "{flag} would write over {}, which is to be read; give it another file",
                input.display()
            ));
        }
        Ok(())
    }

    /// Which file it is, if it is one; a device or a pipe takes what it gets.
    fn identity(&self) -> Option<(u64, u64)> {
        self.file.metadata().ok().filter(Metadata::is_file).map(|of| (of.dev(), of.ino()))
    }

    /// Whether both are stdout, or one file under whatever names.
    fn is_same(&self, other: &Self) -> bool {
        (self.is_stdout() && other.is_stdout()) || self.identity().is_some_and(|own| other.identity() == Some(own))
    }

    /// Whether it is stdout, where nothing else has a place then.
    pub(super) fn is_stdout(&self) -> bool {
        is_stdout(&self.path)
    }

    /// Writes the text in place of what was there.
    ///
    /// # Errors
    /// It cannot be written: why, in one line.
    pub(super) fn write(mut self, text: &str) -> Result<(), String> {
        // What stdout goes to may hold more than ours.
        let emptied = if self.is_stdout() { Ok(()) } else { jtl::truncate(&self.file) };
        let written = emptied.and_then(|()| self.file.write_all(text.as_bytes())).and_then(|()| sync(&self.file));
        self.finish(written)
    }

    /// The work is done: what became of the file, as a person is told. A reader of stdout that has gone away is no fault.
    ///
    /// # Errors
    /// It could not be written: why, in one line.
    pub(super) fn finish(mut self, written: io::Result<()>) -> Result<(), String> {
        self.is_new = false;
        match written {
            Err(error) if self.is_stdout() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("cannot write {}: {error}", self.path.display())),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        let is_empty = || self.file.metadata().is_ok_and(|of| of.is_file() && of.len() == 0);
        if self.is_new && is_empty() {
            // What cannot be taken away stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether stdout gets colours.
pub(super) fn colors() -> bool {
    io::stdout().is_terminal() && takes_escapes()
}

/// Prints a report on stdout, or on stderr where stdout has been given to something else. A reader that has gone away
/// (`| head`) is no fault.
///
/// # Errors
/// It cannot be written: why, in one line.
pub(super) fn print(report: &str, stdout_is_taken: bool) -> Result<(), String> {
    let written = if stdout_is_taken {
        io::stderr().lock().write_all(report.as_bytes())
    } else {
        let mut out = io::stdout().lock();
        out.write_all(report.as_bytes()).and_then(|()| out.flush())
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !stdout_is_taken => {
            Err(format!("cannot write the report to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

/// Some file systems say only now that they are full; a pipe or a terminal has nothing to say.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}
