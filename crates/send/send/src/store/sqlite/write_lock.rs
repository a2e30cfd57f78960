//! Two files beside the store: the write lock with a change counter, and the sender's lock.
//!
//! SQLite itself waits for another writer by sleeping in growing steps, in which later writers may overtake. A waiter
//! on the lock of `STORE-turn` is woken by the kernel instead, without polling. (It is not strictly fair: a busy writer
//! may get the lock again first.) The same file has a counter of changes, which other processes watch; the
//! write-ahead log is written before a change is visible, and so cannot serve for that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weir_machine::private_file::private_options;
use weir_machine::system::FileWatcher;

/// Path of the store with a suffix.
pub(super) fn with_suffix(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    private_options().read(true).write(true).create(true).truncate(false).open(path)
}

#[derive(Debug)]
pub(super) struct WriteLock {
    file: File,
    path: PathBuf,
}

impl WriteLock {
    pub(super) fn open(store: &Path) -> io::Result<Self> {
        let path = with_suffix(store, "-turn");
        Ok(Self { file: open(&path)?, path })
    }

    /// Waits for the write lock.
    pub(super) fn lock(&self) -> io::Result<WriteLockGuard<'_>> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(WriteLockGuard { write_lock: self }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Counter of changes.
    pub(super) fn change_count(&self) -> u64 {
        let mut bytes = [0; 8];
        // A new file is empty.
        self.file.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
    }

    /// Increments the counter, which wakes all watchers.
    pub(super) fn publish_change_count(&self, count: u64) {
        // On a full disk, others notice the change with the next one.
        let _ = self.file.write_all_at(&count.to_le_bytes(), 0);
    }

    /// Watcher of the counter, also of its being written again.
    pub(super) fn watch(&self) -> io::Result<FileWatcher> {
        FileWatcher::new(&self.path)
    }
}

/// Write lock, released on drop.
#[derive(Debug)]
pub(super) struct WriteLockGuard<'a> {
    write_lock: &'a WriteLock,
}

impl Drop for WriteLockGuard<'_> {
    fn drop(&mut self) {
        let _ = flock(&self.write_lock.file, FlockOperation::Unlock);
    }
}

/// Sender's lock. The kernel releases it at any end of the process; the process ID in the file is informational.
#[derive(Debug)]
pub(super) struct SenderLock {
    file: File,
}

impl Drop for SenderLock {
    /// A child of a fork has the file open as well, and would keep the lock for as long as it runs.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl SenderLock {
    /// Acquires the lock; an error has the process ID of the holder.
    pub(super) fn try_acquire(store: &Path) -> io::Result<Result<Self, Option<u32>>> {
        let file = open(&with_suffix(store, SENDER_SUFFIX))?;
        if !is_free(&file)? {
            return Ok(Err(read_pid(&file)?));
        }
        file.set_len(0)?;
        file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0)?;
        Ok(Ok(Self { file }))
    }

    /// Process ID of the holder; None if the lock is free.
    pub(super) fn holder(store: &Path) -> io::Result<Option<Option<u32>>> {
        let file = match File::open(with_suffix(store, SENDER_SUFFIX)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if is_free(&file)? { Ok(None) } else { read_pid(&file).map(Some) }
    }
}

const SENDER_SUFFIX: &str = "-sender";

/// Locks the file unless another process has.
fn is_free(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn read_pid(file: &File) -> io::Result<Option<u32>> {
    let mut digits = [0; 16];
    let length = file.read_at(&mut digits, 0)?;
    Ok(std::str::from_utf8(&digits[..length]).ok().and_then(|text| text.trim().parse().ok()))
}
