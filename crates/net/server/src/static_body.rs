//! Bytes that can be sent without copying them.

use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use weir_machine::system::StaticFile;

/// Bytes both in memory and in a file of the system. A connection that writes a part of the former sends it from the
/// latter, which Linux does without a copy; hyper is not involved.
#[derive(Debug)]
pub struct StaticBody {
    bytes: Bytes,
    file: StaticFile,
}

impl StaticBody {
    /// Stores `bytes` in both.
    ///
    /// # Errors
    /// If the system can create no file, neither on a disk nor in memory.
    pub fn new(bytes: Vec<u8>) -> io::Result<Self> {
        let file = StaticFile::new(&bytes)?;
        Ok(Self { bytes: bytes.into(), file })
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Offset of `part` in the file, if it is a part of these very bytes.
    pub(super) fn offset_of(&self, part: &[u8]) -> Option<u64> {
        let offset = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        (offset + part.len() <= self.bytes.len() && !part.is_empty()).then_some(offset as u64)
    }

    /// Sends as many of these bytes, which are at `offset`, as the socket accepts.
    pub(super) fn send(&self, to: impl AsFd, offset: u64, part: &[u8]) -> io::Result<usize> {
        self.file.send(to, offset, part)
    }
}
