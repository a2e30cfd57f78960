//! Two small files beside the store: whose turn it is to write, and who sends.
//!
//! SQLite's own wait for another writer is a sleep of growing length, in which whoever comes later may go first. Who waits
//! for a lock on `STORE-turn` is woken by the kernel instead: nothing polls. (It is no strict queue: a writer that never
//! rests may get the lock again before one that has just been woken.) The same file tells the other processes that
//! something has changed: it holds a counter, and they watch it with inotify. The write-ahead log itself would not do for
//! that: it is written to before a change can be seen, and not after.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::fs::{FlockOperation, flock};

/// The store's file name with something after it.
pub(super) fn with_suffix(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
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

    /// Waits until nobody else writes.
    pub(super) fn lock(&self) -> io::Result<WriteLockGuard<'_>> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(WriteLockGuard { write_lock: self }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How often something has changed.
    pub(super) fn change_count(&self) -> u64 {
        let mut bytes = [0; 8];
        // A file that is new is empty.
        self.file.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
    }

    /// Wakes all who watch.
    pub(super) fn publish_change_count(&self, count: u64) {
        // With no space left for these bytes others learn of the change with the next one.
        let _ = self.file.write_all_at(&count.to_le_bytes(), 0);
    }

    pub(super) fn watch(&self) -> io::Result<ChangeWatcher> {
        let fd = init(CreateFlags::CLOEXEC)?;
        add_watch(&fd, &self.path, WatchFlags::MODIFY)?;
        Ok(ChangeWatcher { fd })
    }
}

/// The turn, until it is dropped.
#[derive(Debug)]
pub(super) struct WriteLockGuard<'a> {
    write_lock: &'a WriteLock,
}

impl Drop for WriteLockGuard<'_> {
    fn drop(&mut self) {
        let _ = flock(&self.write_lock.file, FlockOperation::Unlock);
    }
}

#[derive(Debug)]
pub(super) struct ChangeWatcher {
    fd: OwnedFd,
}

impl ChangeWatcher {
    /// Blocks until somebody tells.
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 512];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        loop {
            match reader.next() {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The lock of the one who sends. The kernel lets go of it when the process ends, however it ends, so no number of a
/// process has to be believed; the one in the file is for a person.
#[derive(Debug)]
pub(super) struct SenderLock {
    _file: File,
}

impl SenderLock {
    /// Takes it; the number of the process that has it, if it is taken.
    pub(super) fn try_acquire(store: &Path) -> io::Result<Result<Self, Option<u32>>> {
        let file = open(&with_suffix(store, SENDER_SUFFIX))?;
        if !is_free(&file)? {
            return Ok(Err(read_pid(&file)?));
        }
        file.set_len(0)?;
        file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0)?;
        Ok(Ok(Self { _file: file }))
    }

    /// The number of the process that has it; None if it is free.
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

/// Locks it, if nobody else has.
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
