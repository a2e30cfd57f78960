//! A file, or stdout, that lines are written to.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::delivery_failure::{DeliveryFailure, system_message};

/// A file that lines are written to.
#[derive(Debug)]
pub(crate) struct FileReceiver {
    file: File,
    /// Stdout: what is there already stays, and a reader that has gone does not count as a failure.
    is_stdout: bool,
    is_regular: bool,
    /// Length of the lines that were written; none before the first write.
    length: Option<u64>,
    /// Why nothing more is written: the reader has gone, or a line was torn.
    end: Option<FileEnd>,
}

#[derive(Debug)]
enum FileEnd {
    ReaderGone,
    Torn(String),
}

impl FileReceiver {
    /// A file that is open for writing; its content is replaced by the first write.
    pub(crate) fn new(file: File, is_stdout: bool) -> Self {
        let is_regular = file.metadata().is_ok_and(|of| of.is_file());
        Self { file, is_stdout, is_regular, length: None, end: None }
    }

    /// Writes lines. After a failure a regular file has none of them, so that they can be written again.
    pub(crate) fn deliver(&mut self, lines: &[u8]) -> Result<(), DeliveryFailure> {
        match &self.end {
            Some(FileEnd::ReaderGone) => return Ok(()),
            Some(FileEnd::Torn(reason)) => return Err(DeliveryFailure::final_one(reason.clone())),
            None => {}
        }
        match self.write(lines) {
            Ok(()) => Ok(()),
            Err(error) if self.is_stdout && error.kind() == io::ErrorKind::BrokenPipe => {
                self.end = Some(FileEnd::ReaderGone);
                Ok(())
            }
            Err(error) if self.roll_back() => Err(DeliveryFailure::passing(system_message(&error))),
            Err(error) => {
                let reason = system_message(&error);
                self.end = Some(FileEnd::Torn(reason.clone()));
                Err(DeliveryFailure::final_one(reason))
            }
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.length.is_none() {
            if self.is_regular && !self.is_stdout {
                self.file.set_len(0)?;
            }
            self.length = Some(0);
        }
        self.file.write_all(lines)?;
        self.length = self.length.map(|length| length + lines.len() as u64);
        Ok(())
    }

    /// Removes what a failed write has left; whether that was possible.
    fn roll_back(&mut self) -> bool {
        let length = self.length.unwrap_or(0);
        let is_own = self.is_regular && !self.is_stdout;
        is_own && self.file.set_len(length).is_ok() && self.file.seek(SeekFrom::Start(length)).is_ok()
    }

    /// Waits until all is on the disk: some file systems report only then that they are full.
    pub(crate) fn sync(&mut self) -> Result<(), DeliveryFailure> {
        match self.file.sync_all() {
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
}
