//! File locks that another copy of SQLite in this process cannot release.
//!
//! POSIX locks belong to the process, not to the descriptor: Python's `sqlite3` opens the same file with its own
//! SQLite, does not see these locks, and releases them when it closes the file. It then counts as the last user and
//! deletes the write-ahead log, or truncates the mapped index, which crashes the process (SQLite, "How To Corrupt An
//! SQLite Database File", 2.2). So SQLite is made to use locks of open file descriptions (fcntl(2), `F_OFD_SETLK`),
//! which exclude all others, also in this process.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, Once};

use libc::{c_int, c_void};
use rusqlite::ffi;
use weir_machine::lock;

/// Offset of the first byte that SQLite locks of a database; those of its index (`-shm`) are all below.
const FIRST_DATABASE_LOCK_BYTE: libc::off_t = 0x4000_0000;

/// Owners of database locks by device and inode: all connections of this process to a file share them.
static LOCK_OWNERS: Mutex<Option<HashMap<(libc::dev_t, libc::ino_t), OwnedFd>>> = Mutex::new(None);

/// Makes SQLite use these locks; called before the first file is opened.
pub(super) fn use_ofd_locks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ours: unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int = fcntl;
        // SAFETY: SQLite calls it as `int fcntl(int, int, ...)` with one argument more, which the C conventions of
        // Linux on x86-64 and on AArch64 pass as if it was a named one. A null name asks for the default VFS, which
        // lives as long as the process.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
            if let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) {
                let call = std::mem::transmute::<*const (), ffi::sqlite3_syscall_ptr>(ours as *const ());
                set(vfs, c"fcntl".as_ptr(), call);
            }
        }
    });
}

/// Replacement of fcntl(2) in SQLite.
///
/// # Safety
/// With `F_SETLK` and `F_GETLK`, `argument` points at a lock; with others it is what fcntl(2) takes.
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    let ofd = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: passed on unchanged.
        _ => return unsafe { libc::fcntl(fd, command, argument) },
    };
    // SAFETY: SQLite's lock, on its stack during the call.
    let lock = unsafe { &mut *argument.cast::<libc::flock>() };
    lock.l_pid = 0;
    let releases_all = lock.l_start == 0 && lock.l_len == 0;
    if lock.l_start < FIRST_DATABASE_LOCK_BYTE && !releases_all {
        // All connections of a process share the descriptor of the index.
        // SAFETY: a descriptor and a lock from SQLite, as the command needs.
        return unsafe { libc::fcntl(fd, ofd, &raw mut *lock) };
    }
    let Some(file) = file_of(fd) else { return -1 };
    let mut owners = lock::lock(&LOCK_OWNERS);
    let owners = owners.get_or_insert_default();
    let unlocks = lock.l_type == libc::F_UNLCK as libc::c_short;
    let mut is_first = false;
    let by = match owners.get(&file) {
        Some(owner) => owner.as_raw_fd(),
        None if ofd == libc::F_OFD_GETLK || unlocks => fd,
        None => {
            // SAFETY: SQLite keeps it open during the call.
            let Ok(owner) = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned() else { return -1 };
            is_first = true;
            owners.entry(file).insert_entry(owner).get().as_raw_fd()
        }
    };
    // SAFETY: an open descriptor and a lock, as the command needs.
    let done = unsafe { libc::fcntl(by, ofd, &raw mut *lock) };
    let has_none = if unlocks { releases_all } else { is_first && done != 0 };
    if has_none {
        owners.remove(&file);
    }
    done
}

fn file_of(fd: c_int) -> Option<(libc::dev_t, libc::ino_t)> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: filled if the call succeeds, and read only then.
    let stat = unsafe {
        if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some((stat.st_dev, stat.st_ino))
}
