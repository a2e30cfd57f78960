//! A file, or stdout, that lines are written to.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use weir_machine::line_file::LineFile;
use weir_telemetry::{DeliveryFailure, system_message};

/// A file that lines are written to.
#[derive(Debug)]
pub(crate) struct FileReceiver {
    file: LineFile,
    /// Stdout: what is there already stays, and a reader that has gone does not count as a failure.
    is_stdout: bool,
    is_regular: bool,
    /// Length of the lines that were written; none before the first write.
    length: Option<u64>,
    /// Whether the reader of stdout has gone, so that nothing more is written.
    is_reader_gone: bool,
}

impl FileReceiver {
    /// A file that is open for writing; its content is replaced by the first write.
    pub(crate) fn new(file: File, is_stdout: bool) -> Self {
        let is_regular = file.metadata().is_ok_and(|of| of.is_file());
        Self { file: LineFile::new(file), is_stdout, is_regular, length: None, is_reader_gone: false }
    }

    /// Writes lines. After a failure a regular file has none of them, so that they can be written again. What a pipe or a
    /// device does not take is lost, and the next lines begin behind a whole one.
    pub(crate) fn deliver(&mut self, lines: &[u8]) -> Result<(), DeliveryFailure> {
        if self.is_reader_gone {
            return Ok(());
        }
        if self.is_regular && !self.is_stdout {
            return self.write(lines).map_err(|error| {
                let reason = system_message(&error);
                if self.roll_back() { DeliveryFailure::passing(reason) } else { DeliveryFailure::final_one(reason) }
            });
        }
        match self.file.write(lines) {
            Ok(()) => Ok(()),
            Err(lost) if self.is_stdout && lost.error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_reader_gone = true;
                Ok(())
            }
            Err(lost) => Err(DeliveryFailure::final_one(system_message(&lost.error))),
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.file.file();
        if self.length.is_none() {
            file.set_len(0)?;
            self.length = Some(0);
        }
        file.write_all(lines)?;
        self.length = self.length.map(|length| length + lines.len() as u64);
        Ok(())
    }

    /// Removes what a failed write has left; whether that was possible.
    fn roll_back(&self) -> bool {
        let (mut file, length) = (self.file.file(), self.length.unwrap_or(0));
        file.set_len(length).is_ok() && file.seek(SeekFrom::Start(length)).is_ok()
    }

    /// Waits until all is on the disk: some file systems report only then that they are full.
    pub(crate) fn sync(&mut self) -> Result<(), DeliveryFailure> {
        match self.file.file().sync_all() {
            Err(error) if self.is_regular => Err(DeliveryFailure::final_one(system_message(&error))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn earlier_content_is_replaced_by_the_first_line() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"an earlier run, which is longer\n").unwrap();
        file.rewind().unwrap();
        let mut receiver = FileReceiver::new(file.try_clone().unwrap(), false);
        receiver.deliver(b"one\n").unwrap();
        receiver.deliver(b"two\n").unwrap();
        receiver.sync().unwrap();
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn a_full_disk_is_a_failure_with_its_reason() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut receiver = FileReceiver::new(full, false);
        let failure = receiver.deliver(b"line\n").unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.is_retryable), ("No space left on device", false));
        assert_eq!(receiver.deliver(b"line\n").unwrap_err().reason, "No space left on device");
    }

    #[test]
    fn a_reader_of_stdout_that_has_gone_is_no_failure() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut receiver = FileReceiver::new(File::from(std::os::fd::OwnedFd::from(writer)), true);
        assert_eq!([receiver.deliver(b"line\n"), receiver.deliver(b"line\n")], [Ok(()), Ok(())]);
    }

    #[test]
    fn a_pipe_gets_lines_again_once_it_has_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        // Both ends, so that neither open waits for the other.
        let mut both = File::options().read(true).write(true).open(&path).unwrap();
        let mut receiver = FileReceiver::new(File::options().write(true).open(&path).unwrap(), false);
        receiver.deliver(b"one\n").unwrap();
        both.read_exact(&mut [0; 4]).unwrap();
        drop(both);
        let failure = receiver.deliver(b"two\n").unwrap_err();
        assert!(!failure.is_retryable, "{failure:?}");
        let mut both = File::options().read(true).write(true).open(&path).unwrap();
        receiver.deliver(b"three\n").unwrap();
        let mut text = [0; 6];
        both.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"three\n");
    }
}
