//! `STORE-sending`: marks of jobs that may have been sent, written before their first byte leaves.
//!
//! A mark must survive `kill -9`, and a commit before each request would delay it. A write without a sync survives the
//! process as long as the machine runs, since the kernel has it. So a mark is such a write of 16 bytes, which takes 1
//! to 2 µs. A missing mark proves that a job was not sent only where no mark can be lost: in the file of the session
//! that the store's last sender started ([`SentMarks::begin_session`]), on a machine that has not restarted since. In
//! all other cases (power cut, another machine, copy, missing file) all leased jobs count as sent. A disk removed from
//! a running machine before the write is not detected.
//!
//! Each job in flight has a slot, which is reused once the store has recorded its outcome.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use super::write_lock::with_suffix;
use crate::job::UnixMs;
use weir_machine::clock;
use weir_machine::lock::lock;

/// Length of the header: the session, as a line of text.
const HEADER_BYTES: usize = 256;
/// Length of a slot: job number (0 for none) and time, in bytes.
const SLOT_BYTES: usize = 16;

/// Marks of the current sender.
#[derive(Debug, Default)]
pub(super) struct SentMarks(Mutex<MarkSlots>);

#[derive(Debug, Default)]
struct MarkSlots {
    /// None before the first session, and after a failed write: then nothing can be marked.
    file: Option<File>,
    /// Slot and time by job.
    by_job: HashMap<u64, (u64, UnixMs)>,
    free: Vec<u64>,
    /// Number of slots, used and free.
    count: u64,
}

/// Marks of the previous sender.
#[derive(Debug, Default)]
pub(super) struct PreviousMarks {
    /// Session that wrote the file, if no mark can be lost.
    session: Option<String>,
    sent: HashMap<u64, UnixMs>,
}

/// Evidence about one job of an earlier sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentEvidence {
    /// No byte was sent.
    Unsent,
    /// Maybe sent at this time.
    Sent(UnixMs),
    /// Unknown, so maybe sent.
    Unknown,
}

impl PreviousMarks {
    /// Reads the file; an unreadable one proves nothing.
    pub(super) fn read(store: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(with_suffix(store, SENDING_SUFFIX)).and_then(|mut file| file.read_to_end(&mut bytes));
        match read {
            Ok(_) => Self::parse(&bytes, &clock::uptime().1),
            Err(_) => Self::default(),
        }
    }

    fn parse(bytes: &[u8], boot: &str) -> Self {
        let line = bytes.get(..HEADER_BYTES).and_then(|head| head.split(|byte| *byte == b'\n').next());
        let line = line.and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
        let session = line.split_once(' ').filter(|(began, _)| *began == boot && !boot.is_empty());
        let mut sent = HashMap::new();
        for slot in bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(SLOT_BYTES) {
            let (number, at) = slot.split_at(SLOT_BYTES / 2);
            let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            sent.insert(word(number), UnixMs(word(at).cast_signed()));
        }
        sent.remove(&0);
        Self { session: session.map(|(_, name)| name.to_owned()), sent }
    }

    /// Evidence about a leased job; `session` is the one that the store's last sender started.
    pub(super) fn evidence(&self, number: u64, session: Option<&str>) -> SentEvidence {
        match self.sent.get(&number) {
            Some(at) => SentEvidence::Sent(*at),
            None if session.is_some() && self.session.as_deref() == session => SentEvidence::Unsent,
            None => SentEvidence::Unknown,
        }
    }
}

/// Session name, unique since the machine started.
pub(super) fn new_session() -> String {
    format!("{}-{}", std::process::id(), clock::uptime().0.0)
}

impl SentMarks {
    /// Starts a session without marks, once the store has requeued leased jobs and has the session's name. If the file
    /// is not writable, nothing is marked here.
    pub(super) fn begin_session(&self, store: &Path, session: &str) {
        let file = Self::create_file(store, session).ok();
        *lock(&self.0) = MarkSlots { file, ..MarkSlots::default() };
    }

    fn create_file(store: &Path, session: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(true).open(with_suffix(store, SENDING_SUFFIX))?;
        let boot = clock::uptime().1;
        if boot.is_empty() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut head = format!("{boot} {session}\n").into_bytes();
        head.resize(HEADER_BYTES, 0);
        file.write_all_at(&head, 0)?;
        Ok(file)
    }

    /// Marks a job as sent. False if it cannot be marked here.
    pub(super) fn set(&self, number: u64, at: UnixMs) -> bool {
        let mut slots = lock(&self.0);
        let MarkSlots { file: Some(file), by_job: of, free, count } = &mut *slots else { return false };
        if of.contains_key(&number) {
            return true;
        }
        let slot = free.pop().unwrap_or(*count);
        if write_slot(file, slot, number, at).is_err() {
            // Existing marks stay; later ones go to the store.
            slots.file = None;
            return false;
        }
        *count = (*count).max(slot + 1);
        of.insert(number, (slot, at));
        true
    }

    /// Time at which the job was marked as sent.
    pub(super) fn get(&self, number: u64) -> Option<UnixMs> {
        lock(&self.0).by_job.get(&number).map(|(_, at)| *at)
    }

    /// Releases the marks of jobs whose outcomes are recorded. Marks of requeued jobs are erased; that of a `done` job
    /// is harmless and is overwritten by the next one.
    pub(super) fn clear(&self, jobs: impl IntoIterator<Item = (u64, bool)>) {
        let mut slots = lock(&self.0);
        let MarkSlots { file, by_job: of, free, .. } = &mut *slots;
        for (number, done) in jobs {
            let Some((slot, _)) = of.remove(&number) else { continue };
            let wiped = done || file.as_ref().is_some_and(|file| write_slot(file, slot, 0, UnixMs(0)).is_ok());
            // A mark that stays counts one job too many as sent.
            free.extend(wiped.then_some(slot));
        }
    }
}

const SENDING_SUFFIX: &str = "-sending";

fn write_slot(file: &File, slot: u64, number: u64, at: UnixMs) -> io::Result<()> {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..SLOT_BYTES / 2].copy_from_slice(&number.to_le_bytes());
    bytes[SLOT_BYTES / 2..].copy_from_slice(&at.0.to_le_bytes());
    file.write_all_at(&bytes, HEADER_BYTES as u64 + slot * SLOT_BYTES as u64)
}
