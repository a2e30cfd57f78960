//! One connection: what was read of an unfinished request, and what could not yet be written.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, write};

use crate::streams;

pub struct Connection {
    pub socket: OwnedFd,
    pub generation: u64,
    is_http2: bool,
    partial: Vec<u8>,
    unsent: Vec<u8>,
}

/// What came on a connection.
pub enum Arrival<'a> {
    /// The head of a request.
    Head(&'a [u8]),
    /// A request on this stream.
    Stream(u32),
    /// A frame that needs another one in return.
    Reply(Vec<u8>),
}

impl Connection {
    pub fn new(socket: OwnedFd, generation: u64) -> Self {
        Self { socket, generation, is_http2: false, partial: Vec::new(), unsent: Vec::new() }
    }

    /// Calls `each` with every request that `bytes` completes; a rest is kept for the next call.
    pub fn requests(&mut self, bytes: &[u8], mut each: impl FnMut(Arrival<'_>)) {
        if self.partial.is_empty() {
            let used = self.split(bytes, &mut each);
            self.partial.extend_from_slice(&bytes[used..]);
            return;
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        let used = self.split(&partial, &mut each);
        partial.drain(..used);
        self.partial = partial;
    }

    /// Hands out everything that is whole and returns how many bytes that was.
    fn split(&mut self, bytes: &[u8], each: &mut impl FnMut(Arrival<'_>)) -> usize {
        if !self.is_http2 && bytes.starts_with(streams::PREFACE) {
            self.is_http2 = true;
            each(Arrival::Reply(streams::greeting()));
            return streams::PREFACE.len() + streams::split(&bytes[streams::PREFACE.len()..], each);
        }
        if self.is_http2 {
            return streams::split(bytes, each);
        }
        let mut used = 0;
        while let Some(len) = head_len(&bytes[used..]) {
            each(Arrival::Head(&bytes[used..used + len]));
            used += len;
        }
        used
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
