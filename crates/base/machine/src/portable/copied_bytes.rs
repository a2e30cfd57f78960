//! Bytes that are sent often: by a copy, where the system has no other way.

use std::io;
use std::os::fd::AsFd;

use rustix::net::send;

use super::sockets::SEND;

/// Nothing: what is sent is the caller's own copy.
#[derive(Debug)]
pub struct CopiedBytes;

impl CopiedBytes {
    /// Stores nothing.
    ///
    /// # Errors
    /// None; other systems may lack files.
    pub fn new(_: &[u8]) -> io::Result<Self> {
        Ok(Self)
    }

    /// Sends as many bytes of `part` as the socket accepts.
    ///
    /// # Errors
    /// As `send`.
    pub fn send(&self, to: impl AsFd, _: u64, part: &[u8]) -> io::Result<usize> {
        Ok(send(to, part, SEND)?)
    }
}
