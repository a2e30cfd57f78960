//! A file that lines are appended to while a program runs: a disk that is full for a while, or a pipe whose reader is
//! slow or gone, costs the lines of that time and no other.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A file of lines, each of which is in it as a whole or not at all. A line of which a part was written is completed
/// before the next one.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    /// Remaining bytes of a partly written line, its line feed included.
    rest: Vec<u8>,
    /// Length of a regular file with the beginning of that line.
    torn_length: Option<u64>,
    /// Whether a reader was too slow, so that no time is given to it until it reads again.
    is_stalled: bool,
}

/// Lines that were not written.
#[derive(Debug)]
pub struct LostLines {
    /// Number of lines.
    pub lines: u64,
    /// Why the last one was not.
    pub error: io::Error,
}

/// Time for a reader of a full pipe, in ms.
const READER_TIMEOUT_MS: i64 = 500;

impl LineFile {
    /// A file that is open for writing, at the beginning of a line.
    pub fn new(file: File) -> Self {
        Self { file, rest: Vec::new(), torn_length: None, is_stalled: false }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes whole lines, each with its end.
    ///
    /// # Errors
    /// Lines that were lost, and why. Those before them are in the file.
    pub fn write(&mut self, lines: &[u8]) -> Result<(), LostLines> {
        let mut lost = 0;
        if !self.rest.is_empty() && !self.is_torn_line_last() {
            // Another program has emptied the file, or written behind the part.
            self.rest.clear();
            lost += 1;
        }
        let rest = std::mem::take(&mut self.rest);
        let written = self.write_bytes(&rest);
        if let Err((length, error)) = written {
            lost += count_lines(lines) + self.keep_rest(&rest, length, &error);
            return Err(LostLines { lines: lost, error });
        }
        match self.write_bytes(lines) {
            Ok(()) if lost == 0 => Ok(()),
            Ok(()) => {
                let error = io::Error::other("another program has changed the file behind a part of a line");
                Err(LostLines { lines: lost, error })
            }
            Err((length, error)) => {
                // The line of which a part was written goes on behind the part.
                let begun = match lines[..length].last() {
                    None | Some(b'\n') => length,
                    Some(_) => {
                        lines[length..].iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| length + at + 1)
                    }
                };
                lost += count_lines(&lines[begun..]) + self.keep_rest(&lines[..begun], length, &error);
                Err(LostLines { lines: lost, error })
            }
        }
    }

    /// Ends the use of the file; the number of lines of which only a part could be written.
    pub fn finish(mut self) -> u64 {
        let rest = std::mem::take(&mut self.rest);
        let is_whole = rest.is_empty() || self.is_torn_line_last() && self.write_bytes(&rest).is_ok();
        u64::from(!is_whole)
    }

    /// Keeps what is missing of a line whose part of this length was written; the number of lines lost thereby.
    fn keep_rest(&mut self, line: &[u8], length: usize, error: &io::Error) -> u64 {
        self.rest = line[length..].to_vec();
        self.torn_length = self.regular_length();
        // Another reader of a pipe would begin with the rest of a line.
        let is_lost = !self.rest.is_empty() && error.kind() == ErrorKind::BrokenPipe;
        if is_lost {
            self.rest.clear();
        }
        u64::from(is_lost)
    }

    /// Whether the part of a line is still the end of the file, as far as that is visible.
    fn is_torn_line_last(&self) -> bool {
        self.torn_length == self.regular_length()
    }

    fn regular_length(&self) -> Option<u64> {
        self.file.metadata().ok().filter(Metadata::is_file).map(|file| file.len())
    }

    /// Writes all bytes; on an error the number of those that were written.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut length = 0;
        while length < bytes.len() {
            match self.file.write(&bytes[length..]) {
                Ok(0) => return Err((length, ErrorKind::WriteZero.into())),
                Ok(n) => {
                    length += n;
                    self.is_stalled = false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.wait_for_reader() {
                        return Err((length, io::Error::new(ErrorKind::TimedOut, "its reader is too slow")));
                    }
                }
                Err(error) => return Err((length, error)),
            }
        }
        Ok(())
    }

    /// Waits a moment for the reader of a full pipe; whether it may have read.
    fn wait_for_reader(&mut self) -> bool {
        if self.is_stalled {
            return false;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: READER_TIMEOUT_MS * 1_000_000 };
        let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
        let is_ready = poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0);
        self.is_stalled = !is_ready;
        is_ready
    }
}

/// Number of line ends.
pub fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::fs::OpenOptions;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn append(path: &Path) -> File {
        OpenOptions::new().append(true).create(true).open(path).unwrap()
    }

    /// A pipe that takes about `room` bytes at a time and never blocks.
    fn pipe() -> (io::PipeReader, LineFile) {
        let (reader, writer) = io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        (reader, LineFile::new(File::from(writer)))
    }

    #[test]
    fn a_full_device_loses_lines_and_says_how_many() {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
        let mut lines = LineFile::new(full);
        let lost = lines.write(b"one\ntwo\n").unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (2, ErrorKind::StorageFull));
        assert_eq!(lines.write(b"three\n").unwrap_err().lines, 1);
        assert_eq!(lines.finish(), 0);
    }

    #[test]
    fn a_pipe_without_a_reader_loses_lines() {
        let (reader, mut lines) = pipe();
        lines.write(b"one\n").unwrap();
        drop(reader);
        let lost = lines.write(b"two\nthree\n").unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (2, ErrorKind::BrokenPipe));
    }

    #[test]
    fn a_slow_reader_gets_whole_lines() {
        let (mut reader, mut lines) = pipe();
        let line = |n: usize| format!("{n:05} {}\n", "x".repeat(700));
        let (mut lost, mut written) = (0, 0);
        let mut text = Vec::new();
        for n in 0..400 {
            match lines.write(line(n).as_bytes()) {
                Ok(()) => written += 1,
                Err(of) => lost += of.lines,
            }
            if n == 250 {
                let mut part = vec![0; 20_000];
                let length = reader.read(&mut part).unwrap();
                text.extend_from_slice(&part[..length]);
            }
        }
        let torn = lines.finish();
        reader.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let whole: Vec<&str> = text.split_inclusive('\n').filter(|it| it.ends_with('\n')).collect();
        for it in &whole {
            assert!(it.len() == line(0).len() && line(it[..5].parse().unwrap()) == **it, "{it:?}");
        }
        assert!(lost > 0 && written > 0, "{lost} {written}");
        assert_eq!(whole.len() as u64 + lost + torn, 400);
    }

    #[test]
    fn a_line_is_not_completed_in_a_file_that_was_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut lines = LineFile::new(append(&path));
        lines.write(b"one\n").unwrap();
        // As after a disk that was full in the middle of a line.
        lines.file.write_all(b"tw").unwrap();
        lines.keep_rest(b"two\n", 2, &ErrorKind::StorageFull.into());
        append(&path).set_len(0).unwrap();
        assert_eq!(lines.write(b"three\n").unwrap_err().lines, 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        lines.file.write_all(b"fo").unwrap();
        lines.keep_rest(b"four\n", 2, &ErrorKind::StorageFull.into());
        lines.write(b"five\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\nfour\nfive\n");
    }

    proptest! {
        #[test]
        fn lines_are_counted_or_written(batches in proptest::collection::vec(proptest::collection::vec("[a-z]{0,8}", 0..5), 0..8)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let mut lines = LineFile::new(append(&path));
            let mut expected = String::new();
            for batch in batches {
                let text: String = batch.iter().map(|line| format!("{line}\n")).collect();
                lines.write(text.as_bytes()).unwrap();
                expected.push_str(&text);
            }
            prop_assert_eq!(lines.finish(), 0);
            prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
    }
}
