//! Bytes that can be sent without copying them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open, sendfile};

/// Bytes both in memory and in an unnamed file. A connection that writes a part of the former sends it from the latter,
/// which the kernel does without a copy; hyper is not involved.
#[derive(Debug)]
pub struct StaticBody {
    bytes: Bytes,
    file: OwnedFd,
}

impl StaticBody {
    /// Stores `bytes` in both.
    ///
    /// # Errors
    /// If the system can create no file, neither on a disk nor in memory.
    pub fn new(bytes: Vec<u8>) -> io::Result<Self> {
        // The page cache of a disk returns many pages at a time, a memory file one by one, with a sixth more CPU.
        let file = on_disk(&bytes).or_else(|_| in_memory(&bytes))?;
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

    /// Sends up to `length` bytes from `offset` on.
    pub(super) fn send(&self, to: impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
        let mut offset = offset;
        Ok(sendfile(to, &self.file, Some(&mut offset), length)?)
    }
}

fn on_disk(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = open(std::env::temp_dir(), OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    write_all(file, bytes)
}

fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    write_all(memfd_create("weir-page", MemfdFlags::CLOEXEC)?, bytes)
}

fn write_all(file: OwnedFd, mut bytes: &[u8]) -> io::Result<OwnedFd> {
    while !bytes.is_empty() {
        let written = rustix::io::write(&file, bytes)?;
        bytes = &bytes[written..];
    }
    Ok(file)
}
