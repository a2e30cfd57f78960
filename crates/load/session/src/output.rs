//! Output files. They are opened before the work starts, so that an unwritable path is an error before ten
//! minutes of load.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_command::stdout::own_stdout;
use weir_load::request_log;
use weir_machine::input_file::FileIdentity;
use weir_machine::private_file::private_options;

/// Output file; `-` is stdout.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Open file, not truncated before the write.
    pub file: File,
    /// Whether the file was created here: it is removed if it stays empty.
    is_new: bool,
}

impl OutputFile {
    /// Opens the file, if `path` is given. It is not truncated yet: a run that cannot start keeps an earlier result.
    ///
    /// # Errors
    /// One line, if the file cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Option<Self>, String> {
        Self::open_with(path, private_options())
    }

    /// Opens a page or a summary, which other programs read and show: its mode is the umask's. It has no more of a run
    /// than anyone may see.
    ///
    /// # Errors
    /// One line, if the file cannot be written.
    pub fn open_page(path: Option<&Path>) -> Result<Option<Self>, String> {
        Self::open_with(path, File::options())
    }

    fn open_with(path: Option<&Path>, mut options: OpenOptions) -> Result<Option<Self>, String> {
        let Some(path) = path else { return Ok(None) };
        let opened = if is_stdout(path) {
            own_stdout().map(|stdout| (stdout, false))
        } else {
            let new = options.write(true).create_new(true).open(path).map(|file| (file, true));
            let open = || File::options().write(true).create(true).truncate(false).open(path);
            new.or_else(|_| open().map(|file| (file, false)))
        };
        match opened {
            Ok((file, is_new)) => Ok(Some(Self { path: path.to_owned(), file, is_new })),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }

    /// Rejects two outputs in one file or both on stdout.
    ///
    /// # Errors
    /// One line with both flags.
    pub fn ensure_distinct(all: &[(&str, Option<&Self>)]) -> Result<(), String> {
        let there = || all.iter().filter_map(|(flag, output)| Some((*flag, (*output)?)));
        for (at, (flag, output)) in there().enumerate() {
            if let Some((other, _)) = there().take(at).find(|(_, other)| output.is_same(other)) {
                let place = if output.is_stdout() { "stdout".into() } else { output.path.display().to_string() };
                return Err(format!("{other} and {flag} both write to {place}; give each its own file"));
            }
        }
        Ok(())
    }

    /// Rejects an output that is also the input.
    ///
    /// # Errors
    /// One line with the flag.
    pub fn ensure_not_input(&self, flag: &str, input: &Path) -> Result<(), String> {
        let read = FileIdentity::of_path(input);
        if read.is_some() && self.identity() == read {
            return Err(format!("{flag} would write over {}, which is an input; give another file", input.display()));
        }
        Ok(())
    }

    /// Rejects an output that this process has read as an input: a file that the command line names, or one that a
    /// scenario, a mix, a study or an import names.
    ///
    /// # Errors
    /// One line with the flag.
    pub fn ensure_not_read(&self, flag: &str) -> Result<(), String> {
        match self.is_input() {
            true => Err(format!("{flag} would write over {}, which is an input; give another file", self.name())),
            false => Ok(()),
        }
    }

    fn is_input(&self) -> bool {
        self.identity().is_some_and(FileIdentity::is_input)
    }

    /// Rejects an output that another argument of the command line names, too: its content would be lost.
    ///
    /// # Errors
    /// One line with the flag.
    pub fn ensure_not_argument(&self, flag: &str, args: &[OsString]) -> Result<(), String> {
        let Some(own) = self.identity() else { return Ok(()) };
        let is_own = |text: &str| FileIdentity::of_path(Path::new(text.strip_prefix('@').unwrap_or(text))) == Some(own);
        let names_own = |arg: &&OsString| {
            let text = arg.to_string_lossy();
            let value = text.split_once('=').map(|(_, value)| value);
            // Of `-oFILE`; `--csv` names no file `csv`.
            let attached = text.strip_prefix('-').filter(|flag| !flag.starts_with('-')).and_then(|flag| flag.get(1..));
            [Some(&*text), value, attached].into_iter().flatten().any(is_own)
        };
        match args.iter().filter(names_own).count() > 1 {
            true => Err(format!("{flag} would write over {}, which is an input; give another file", self.name())),
            false => Ok(()),
        }
    }

    /// Device and inode of a regular file; none for devices and pipes.
    fn identity(&self) -> Option<FileIdentity> {
        FileIdentity::of(&self.file)
    }

    /// Whether both are stdout, or the same file under any names.
    fn is_same(&self, other: &Self) -> bool {
        (self.is_stdout() && other.is_stdout()) || self.identity().is_some_and(|own| other.identity() == Some(own))
    }

    /// Name for messages.
    pub fn name(&self) -> String {
        if self.is_stdout() { "stdout".to_owned() } else { self.path.display().to_string() }
    }

    /// Whether it is stdout; the report then goes to stderr.
    pub fn is_stdout(&self) -> bool {
        is_stdout(&self.path)
    }

    /// Replaces the content by the text.
    ///
    /// # Errors
    /// One line, if the file cannot be written.
    pub fn write(mut self, text: &str) -> Result<(), String> {
        if !self.is_stdout() && self.is_input() {
            return Err(format!("{} is an input, and is not written over; give another file", self.name()));
        }
        // stdout may be a file with other content, which stays.
        let emptied = if self.is_stdout() { Ok(()) } else { request_log::truncate(&self.file) };
        let written = emptied.and_then(|()| self.file.write_all(text.as_bytes())).and_then(|()| sync(&self.file));
        self.finish(written)
    }

    /// Result of a write, as an error message. A closed pipe at stdout is not an error.
    ///
    /// # Errors
    /// One line, if the file could not be written.
    pub fn finish(mut self, written: io::Result<()>) -> Result<(), String> {
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
            // A file that cannot be removed stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Syncs the file, since some file systems report only then that they are full; pipes and terminals cannot sync.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}
