//! Changes of a file, reported by the kernel.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// Watcher of one file.
#[derive(Debug)]
pub struct Inotify {
    fd: OwnedFd,
}

impl Inotify {
    /// Watches a file's bytes from now on.
    ///
    /// # Errors
    /// There is no such file, or too many are watched.
    pub fn new(path: &Path) -> io::Result<Self> {
        let fd = init(CreateFlags::CLOEXEC)?;
        add_watch(&fd, path, WatchFlags::MODIFY)?;
        Ok(Self { fd })
    }

    /// Blocks until the file may have changed: it was written, also with the bytes that it has.
    ///
    /// # Errors
    /// As `read`.
    pub fn wait(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 512];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        loop {
            match reader.next() {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
