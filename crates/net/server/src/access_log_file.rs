//! The file of an access log, over full disks, rotation, and readers of a pipe that go and come back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use prometheus_client::metrics::counter::Counter;
use rustix::fs::OFlags;
use rustix::io::Errno;

use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::input_file::FileIdentity;
use weir_machine::line_file::{LineFile, LostLines, count_lines};
use weir_machine::logger::Logger;

/// Minimum time between two messages about failures.
const MESSAGE_INTERVAL: Nanos = Nanos::from_secs(10);

/// The file of an access log. What cannot be written is dropped and counted, and the next lines are tried again.
#[derive(Debug)]
pub(super) struct AccessLogFile {
    path: PathBuf,
    /// None while it cannot be opened: its folder is gone, or the pipe has no reader.
    file: Option<LineFile>,
    /// Whether the path is to be opened anew: another program has moved or removed the file.
    is_stale: bool,
    dropped: Counter,
    failure: Option<LossPeriod>,
    logger: Logger,
    clock: Clock,
    /// Time of the last message about a failure.
    last_message: Option<Nanos>,
}

/// A time in which lines are dropped.
#[derive(Debug)]
struct LossPeriod {
    lines: u64,
    /// Whether there was a message about it.
    is_logged: bool,
}

impl AccessLogFile {
    /// Opens the file, to which lines are appended; `-` is stderr.
    ///
    /// # Errors
    /// It cannot be opened. A pipe without a reader can: it gets its lines from when there is one.
    pub(super) fn open(path: &Path, logger: &Logger, dropped: Counter) -> io::Result<Self> {
        let file = match open_file(path) {
            Err(error) if has_no_reader(&error) => None,
            opened => Some(LineFile::new(opened?)),
        };
        let (path, logger, clock) = (path.to_owned(), logger.clone(), Clock::starting_in(Nanos::ZERO));
        Ok(Self { path, file, is_stale: false, dropped, failure: None, logger, clock, last_message: None })
    }

    /// Opens the path anew. If that fails, the file of before stays in use, and the path is tried again with the next
    /// lines.
    pub(super) fn reopen(&mut self) {
        self.is_stale = true;
        if let Err(error) = self.refresh() {
            self.logger.log(&format!("access log {} not reopened: {error}; it is tried again", self.path.display()));
        }
    }

    /// Writes whole lines, or drops and counts them.
    pub(super) fn write(&mut self, lines: &[u8]) {
        self.is_stale |= self.is_removed();
        let refreshed = self.refresh();
        // Lines of messages and of the log do not mix.
        let messages_lock = is_stderr(&self.path).then(|| io::stderr().lock());
        let written = match (&mut self.file, refreshed) {
            (Some(file), _) => file.write(lines),
            (None, Err(error)) => Err(LostLines { lines: count_lines(lines), error }),
            (None, Ok(())) => Ok(()),
        };
        drop(messages_lock);
        match written {
            Ok(()) => self.recover(),
            Err(LostLines { lines, error }) => {
                // The next reader of a pipe opens it anew.
                if error.kind() == io::ErrorKind::BrokenPipe && !is_stderr(&self.path) {
                    self.file = None;
                }
                self.lose(lines, &error);
            }
        }
    }

    /// Completes the last line, if it was torn.
    pub(super) fn finish(mut self) {
        self.close_file();
    }

    fn close_file(&mut self) {
        if let Some(file) = self.file.take() {
            self.dropped.inc_by(file.finish());
        }
    }

    /// Opens the path if there is no file, or another one.
    fn refresh(&mut self) -> io::Result<()> {
        if self.file.is_some() && !self.is_stale {
            return Ok(());
        }
        let opened = open_file(&self.path)?;
        self.close_file();
        self.file = Some(LineFile::new(opened));
        self.is_stale = false;
        Ok(())
    }

    /// Whether the file has no name any more.
    fn is_removed(&self) -> bool {
        let removed = |file: &File| file.metadata().is_ok_and(|file| file.is_file() && file.nlink() == 0);
        self.file.as_ref().is_some_and(|file| removed(file.file()))
    }

    fn lose(&mut self, lines: u64, error: &io::Error) {
        self.dropped.inc_by(lines);
        let failure = self.failure.get_or_insert(LossPeriod { lines: 0, is_logged: false });
        failure.lines += lines;
        let now = self.clock.now();
        if !failure.is_logged && self.last_message.is_none_or(|last| now >= last + MESSAGE_INTERVAL) {
            failure.is_logged = true;
            self.last_message = Some(now);
            let path = self.path.display();
            self.logger.log(&format!("access log {path}: {error}; lines are dropped until it can be written"));
        }
    }

    fn recover(&mut self) {
        if let Some(LossPeriod { lines, is_logged: true }) = self.failure.take() {
            let path = self.path.display();
            self.logger.log(&format!("access log {path} is written again; lines dropped: {lines}"));
        }
    }
}

fn is_stderr(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a file to append to it, without waiting for the reader of a pipe.
fn open_file(path: &Path) -> io::Result<File> {
    if is_stderr(path) {
        return io::stderr().as_fd().try_clone_to_owned().map(File::from);
    }
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)?;
    match FileIdentity::of(&file).is_some_and(FileIdentity::is_input) {
        true => Err(io::Error::other("it is an input; give another file")),
        false => Ok(file),
    }
}

fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}
