//! One connection: what was read of an unfinished request, and what could not yet be written.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, write};

pub struct Connection {
    pub socket: OwnedFd,
    pub generation: u64,
    partial: Vec<u8>,
    unsent: Vec<u8>,
}

impl Connection {
    pub fn new(socket: OwnedFd, generation: u64) -> Self {
        Self { socket, generation, partial: Vec::new(), unsent: Vec::new() }
    }

    /// Calls `each` with the head of every request that `bytes` completes; a rest is kept for the next call.
    pub fn requests(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        if self.partial.is_empty() {
            let used = split(bytes, &mut each);
            self.partial.extend_from_slice(&bytes[used..]);
            return;
        }
        self.partial.extend_from_slice(bytes);
        let used = split(&self.partial, &mut each);
        self.partial.drain(..used);
    }

    /// Sends what the socket takes now; the rest goes with a later `flush`. Only a broken connection is an error.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let sent = if self.unsent.is_empty() { self.write(bytes)? } else { 0 };
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    pub fn flush(&mut self) -> Result<(), Errno> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let sent = self.write(&self.unsent)?;
        self.unsent.drain(..sent);
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match write(&self.socket, bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            result => result,
        }
    }
}

/// Hands out every complete head and returns how many bytes they were.
fn split(bytes: &[u8], each: &mut impl FnMut(&[u8])) -> usize {
    let mut used = 0;
    while let Some(len) = head_len(&bytes[used..]) {
        each(&bytes[used..used + len]);
        used += len;
    }
    used
}

/// The length of the first request, through its empty line. Looks at every fourth byte while that is no line end.
fn head_len(bytes: &[u8]) -> Option<usize> {
    let mut last = 3;
    while last < bytes.len() {
        match bytes[last] {
            b'\n' if bytes[..=last].ends_with(b"\r\n\r\n") => return Some(last + 1),
            b'\r' | b'\n' => last += 1,
            _ => last += 4,
        }
    }
    None
}
