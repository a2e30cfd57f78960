//! Keys in a folder, one file each, which the processes of a machine share.
//!
//! A step locks the file of its key (flock(2), which the kernel releases when a process dies), reads it, and writes it. A
//! file has two places: a step writes the one that is not the latest, with a check sum, so that a process that is killed
//! while it writes changes nothing. Nothing is synced: what the kernel has survives a process; a machine that fails
//! starts with the latest state on its disk.
//!
//! A holder has a file of its own, which it keeps locked: if another process can lock it, the holder is gone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use rustix::fs::{FlockOperation, flock};
use weir_base::Nanos;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules};
use weir_machine::clock;

use super::stored_key::{StoredKey, WriteTime};
use super::{Act, KeyStore, StepTime, hashed};
use crate::trouble::StoreTrouble;

/// File that marks a folder of keys.
const MARKER: &str = "weir-limiter";
const MARKER_TEXT: &str = "Rate limits shared by the processes of this machine: weir.Limiter. Format 1.\n";
/// Begin of each place of a key's file.
const MAGIC: &[u8; 8] = b"weirkey1";
/// Length of what is before the text: magic, number, check sum, length.
const HEADER: usize = 32;
/// Distance of the two places; files are sparse.
const PLACE: u64 = 1 << 20;
/// Bytes that are read at first.
const FIRST_READ: usize = 4096;
/// Maximum number of files that are kept open.
const MAX_OPEN: usize = 128;
/// Maximum number of files that are examined when the folder is opened.
const MAX_PRUNED: usize = 4096;

/// Folder of keys.
#[derive(Debug)]
pub(super) struct FolderKeys {
    path: PathBuf,
    rules: Arc<LimiterRules>,
    holder: HolderId,
    boot: String,
    open: FxHashMap<String, OpenFile>,
    /// Locked while this holder lives; None in a child of a fork.
    alive: Option<File>,
}

/// Open file of a key, and what is known of it.
#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The key after the number of this process's latest step.
    latest: Option<(u64, StoredKey)>,
}

impl FolderKeys {
    /// Opens the folder, and makes it if there is none.
    pub(super) fn open(path: &Path, rules: &Arc<LimiterRules>, holder: HolderId) -> Result<Self, StoreTrouble> {
        let failed = |error: io::Error| StoreTrouble::Failed(format!("{}: {error}", path.display()));
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let foreign = |what: &str| {
            let remedy = "give a path that does not exist, or a folder of weir.Limiter";
            StoreTrouble::Unusable(format!("{}: {what} of another program; {remedy}", path.display()))
        };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(foreign("a file"));
        }
        let marker = path.join(MARKER);
        if !marker.exists() && fs::read_dir(path).map_err(failed)?.next().is_some() && !marker.exists() {
            return Err(foreign("a folder"));
        }
        fs::write(&marker, MARKER_TEXT).map_err(failed)?;
        let alive = Some(alive_file(&path.join(holder_name(holder))).map_err(failed)?);
        let boot = clock::uptime().1;
        let store =
            Self { path: path.to_owned(), rules: Arc::clone(rules), holder, boot, open: FxHashMap::default(), alive };
        store.prune();
        Ok(store)
    }

    /// Removes files of holders that are gone, and of keys that no longer count.
    fn prune(&self) {
        let Ok(files) = fs::read_dir(&self.path) else { return };
        for entry in files.take(MAX_PRUNED).flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != holder_name(self.holder)) else { continue };
            let is_holder = name.starts_with("holder-");
            if !is_holder && !name.starts_with("key-") {
                continue;
            }
            let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path()) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let is_over = is_holder
                || read(&file).ok().flatten().is_some_and(|(_, text)| {
                    matches!(StoredKey::read(&text, &self.rules, &self.time(clock::monotonic()), ""), Ok(None))
                });
            if is_over {
                _ = fs::remove_file(entry.path());
            }
        }
    }

    fn time(&self, now: Nanos) -> WriteTime<'_> {
        WriteTime { now, wall_ms: clock::wall().0 / 1_000_000, boot: &self.boot }
    }

    fn failed(&self, error: &io::Error) -> StoreTrouble {
        StoreTrouble::Failed(format!("{}: {error}", self.path.display()))
    }

    /// The locked file of a key.
    fn locked(&mut self, name: &str) -> Result<OpenFile, StoreTrouble> {
        loop {
            let open = match self.open.remove(name) {
                Some(open) => open,
                None => {
                    let file = open_file(&self.path.join(name)).map_err(|error| self.failed(&error))?;
                    OpenFile { file, latest: None }
                }
            };
            if let Err(error) = flock(&open.file, FlockOperation::NonBlockingLockExclusive) {
                let is_busy = error == rustix::io::Errno::WOULDBLOCK;
                self.keep(name, open);
                return Err(if is_busy { StoreTrouble::Busy } else { self.failed(&error.into()) });
            }
            // Another process may have removed it before the lock.
            if open.file.metadata().map_err(|error| self.failed(&error))?.nlink() > 0 {
                return Ok(open);
            }
        }
    }

    fn keep(&mut self, name: &str, open: OpenFile) {
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        self.open.insert(name.to_owned(), open);
    }

    /// Whether the holder's process has ended.
    fn is_gone(&self, holder: HolderId) -> bool {
        match OpenOptions::new().read(true).open(self.path.join(holder_name(holder))) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    fn step_in(&self, open: &mut OpenFile, check: bool, act: &mut Act<'_>) -> Result<(), StoreTrouble> {
        let now = clock::monotonic();
        let place = self.path.display().to_string();
        let stored = read(&open.file).map_err(|error| self.failed(&error))?;
        let (number, mut stored) = match (stored, open.latest.take()) {
            (Some((number, _)), Some((latest, known))) if latest == number => (number, Some(known)),
            (Some((number, text)), _) => (number, StoredKey::read(&text, &self.rules, &self.time(now), &place)?),
            (None, _) => (0, None),
        };
        let mut key = stored.take().map_or_else(|| LimiterKey::begun_at(&self.rules, now), |stored| stored.key);
        let mut changed = false;
        if check {
            for holder in key.holders() {
                if holder != self.holder && self.is_gone(holder) {
                    key.lost(holder, now);
                    changed = true;
                }
            }
        }
        changed |= act(&mut key, StepTime { now, local: now, holder: self.holder });
        let stored = StoredKey::new(key, &self.rules, &self.time(now), Default::default());
        let number = if changed { number + 1 } else { number };
        if changed {
            write(&open.file, number, &stored.write()?).map_err(|error| self.failed(&error))?;
        }
        open.latest = Some((number, stored));
        Ok(())
    }
}

impl KeyStore for FolderKeys {
    fn step(&mut self, key: &str, check: bool, act: &mut Act<'_>) -> Result<(), StoreTrouble> {
        let name = format!("key-{}", hashed(key));
        let mut open = self.locked(&name)?;
        let done = self.step_in(&mut open, check, act);
        let unlocked = flock(&open.file, FlockOperation::Unlock);
        if unlocked.is_ok() {
            self.keep(&name, open);
        }
        done
    }

    fn release_in_child(&mut self) {
        // Closed, and not unlocked: the lock belongs to the parent's descriptor as well.
        self.alive = None;
        self.open.clear();
    }
}

impl Drop for FolderKeys {
    fn drop(&mut self) {
        if self.alive.take().is_some() {
            _ = fs::remove_file(self.path.join(holder_name(self.holder)));
        }
    }
}

fn holder_name(holder: HolderId) -> String {
    format!("holder-{holder:016x}")
}

/// A locked file that others find.
fn alive_file(path: &Path) -> io::Result<File> {
    loop {
        let file = open_file(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Another process may have taken it for a left one before the lock.
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The latest text of a file, and its number.
fn read(file: &File) -> io::Result<Option<(u64, Vec<u8>)>> {
    let both = [read_place(file, 0)?, read_place(file, PLACE)?];
    Ok(both.into_iter().flatten().max_by_key(|(number, _)| *number))
}

fn read_place(file: &File, at: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut bytes = vec![0; FIRST_READ];
    let length = file.read_at(&mut bytes, at)?;
    bytes.truncate(length);
    let Some((header, _)) = bytes.split_at_checked(HEADER) else { return Ok(None) };
    let word =
        |index: usize| header.get(index..index + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
    let (Some(number), Some(sum), Some(length)) = (word(8), word(16), word(24)) else { return Ok(None) };
    if !header.starts_with(MAGIC) || length > PLACE - HEADER as u64 {
        return Ok(None);
    }
    let length = length as usize;
    let mut text = bytes.split_off(HEADER);
    if text.len() < length {
        let had = text.len();
        text.resize(length, 0);
        // A shorter file has another check sum.
        let mut done = had;
        while done < length {
            match file.read_at(&mut text[done..], at + (HEADER + done) as u64)? {
                0 => return Ok(None),
                more => done += more,
            }
        }
    }
    text.truncate(length);
    Ok((check_sum(number, &text) == sum).then_some((number, text)))
}

/// Writes the place that is not the latest.
fn write(file: &File, number: u64, text: &[u8]) -> io::Result<()> {
    if text.len() as u64 > PLACE - HEADER as u64 {
        return Err(io::Error::other("a key has too many requests in flight"));
    }
    let mut bytes = Vec::with_capacity(HEADER + text.len());
    bytes.extend_from_slice(MAGIC);
    for word in [number, check_sum(number, text), text.len() as u64] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(text);
    file.write_all_at(&bytes, if number.is_multiple_of(2) { 0 } else { PLACE })
}

/// FNV-1a, which finds a place that was written in part.
fn check_sum(number: u64, text: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325 ^ number;
    text.iter().fold(begin, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_delivery::key_window::{KeyLimit, KeyRules};
    use weir_limits::models::{LimitModel, LimitWindow};

    fn rules(limit: &str) -> Arc<LimiterRules> {
        let limits = vec![KeyLimit::new(LimitWindow::read(limit, LimitModel::SlidingLog).unwrap())];
        let key = KeyRules { limits, delay_bound: Some(Nanos::from_millis(5)), ..KeyRules::default() };
        Arc::new(LimiterRules { key, learns_delay_bound: false, max_pause: Nanos::SECOND }.stored())
    }

    fn grants(store: &mut FolderKeys, key: &str, holder: HolderId) -> usize {
        let mut count = 0;
        let done = store.step(key, true, &mut |key, time| {
            count = 0;
            while key.grant(time.now, 1, holder, None).is_ok() {
                count += 1;
            }
            count > 0
        });
        done.unwrap();
        count
    }

    #[test]
    fn two_holders_use_one_limit_and_the_one_that_is_gone_has_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.db");
        let rules = rules("concurrency:3");
        let mut one = FolderKeys::open(&path, &rules, 1).unwrap();
        let mut two = FolderKeys::open(&path, &rules, 2).unwrap();
        assert_eq!((grants(&mut one, "k", 1), grants(&mut two, "k", 2), grants(&mut two, "other", 2)), (3, 0, 3));
        drop(one);
        assert!(two.is_gone(1) && !two.is_gone(2));
        let held = |store: &mut FolderKeys| {
            let mut holders = Vec::new();
            store
                .step("k", true, &mut |key, _| {
                    holders = key.holders();
                    false
                })
                .unwrap();
            holders
        };
        assert!(held(&mut two).is_empty(), "its slots are forgotten");
    }

    #[test]
    fn a_place_that_was_written_in_part_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = open_file(&folder.path().join("key")).unwrap();
        assert!(read(&file).unwrap().is_none());
        write(&file, 1, &[b'a'; 5000]).unwrap();
        write(&file, 2, b"two").unwrap();
        assert_eq!(read(&file).unwrap(), Some((2, b"two".to_vec())));
        // A write of the third one that ends after some bytes.
        file.write_all_at(&3_u64.to_le_bytes(), PLACE + 8).unwrap();
        assert_eq!(read(&file).unwrap(), Some((2, b"two".to_vec())));
        write(&file, 3, b"three").unwrap();
        assert_eq!(read(&file).unwrap(), Some((3, b"three".to_vec())));
    }

    #[test]
    fn what_is_not_a_folder_of_keys_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.db");
        fs::write(&file, "SQLite format 3").unwrap();
        for (path, what) in [(file.as_path(), "a file of another program"), (folder.path(), "a folder of another")] {
            let error = FolderKeys::open(path, &rules("1/1s"), 1).unwrap_err().to_string();
            assert!(error.contains(what) && error.lines().count() == 1, "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "SQLite format 3");
    }

    #[test]
    fn other_limits_are_an_error_while_the_key_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits");
        let mut one = FolderKeys::open(&path, &rules("2/1h"), 1).unwrap();
        assert_eq!(grants(&mut one, "k", 1), 2);
        let mut other = FolderKeys::open(&path, &rules("3/1h"), 2).unwrap();
        let error = other.step("k", false, &mut |_, _| false).unwrap_err();
        assert!(
            error.to_string().contains("'2/1h by weight'") && matches!(error, StoreTrouble::Unusable(_)),
            "{error}"
        );
    }
}
