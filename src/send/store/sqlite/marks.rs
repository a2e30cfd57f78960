//! `STORE-sending`: the jobs of which bytes may have gone out, marked one by one before their first byte.
//!
//! A mark must be there after `kill -9` at any moment, and a commit in front of each request would be in the way of its
//! time. A write to a file without a sync is there for every later process as long as the machine runs: the kernel has it.
//! So a mark is such a write of 16 bytes, a microsecond or two, and its absence counts only where marks cannot have been
//! lost: in the file of the very session that the store's last sender began ([`SentMarks::begin_session`]), on a machine that has not
//! been started anew since. Everywhere else (a power cut, another machine, a copy, a file that is gone) all jobs that were
//! leased count as sent. What this cannot see is a disk that is taken out of a running machine before it was written to.
//!
//! Each job that is out has a slot of its own, which is used again once the store has recorded what came of the job.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::turn::with_suffix;
use crate::machine::clock;
use crate::send::job::UnixMs;

/// Bytes before the first slot: the session, as a line of text.
const HEADER_BYTES: usize = 256;
/// Bytes of a slot: the job's number, 0 for none, and when it was sent.
const SLOT_BYTES: usize = 16;

/// The marks of the sender that is at work.
#[derive(Debug, Default)]
pub(super) struct SentMarks(Mutex<MarkSlots>);

#[derive(Debug, Default)]
struct MarkSlots {
    /// None before the first session, and after a write that failed: then nothing can be marked.
    file: Option<File>,
    /// By job: its slot, and when it was sent.
    by_job: HashMap<u64, (u64, UnixMs)>,
    free: Vec<u64>,
    /// Slots that there are, used and free.
    count: u64,
}

/// What the sender before has left in the file.
#[derive(Debug, Default)]
pub(super) struct PreviousMarks {
    /// The session that wrote it, and only if nothing of it can have been lost.
    session: Option<String>,
    sent: HashMap<u64, UnixMs>,
}

/// What an earlier sender left of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentEvidence {
    /// No byte of it has gone out.
    Unsent,
    /// It may have been sent, then.
    Sent(UnixMs),
    /// Nothing is known of it, so it may have been.
    Unknown,
}

impl PreviousMarks {
    /// Reads what there is; what cannot be read proves nothing.
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

    /// What it shows of a job that the store has as leased; `session` is the one that the store's last sender began.
    pub(super) fn evidence(&self, number: u64, session: Option<&str>) -> SentEvidence {
        match self.sent.get(&number) {
            Some(at) => SentEvidence::Sent(*at),
            None if session.is_some() && self.session.as_deref() == session => SentEvidence::Unsent,
            None => SentEvidence::Unknown,
        }
    }
}

/// A name for a session that no other one has had since the machine was started.
pub(super) fn new_session() -> String {
    format!("{}-{}", std::process::id(), clock::uptime().0.0)
}

impl SentMarks {
    fn lock(&self) -> MutexGuard<'_, MarkSlots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session without a mark. To be called once the store has taken back what was leased, and has the session's
    /// name. A file that cannot be written to leaves a sender that marks nothing here.
    pub(super) fn begin_session(&self, store: &Path, session: &str) {
        let file = Self::create_file(store, session).ok();
        *self.lock() = MarkSlots { file, ..MarkSlots::default() };
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

    /// Marks a job as sent. False: it cannot be marked here.
    pub(super) fn set(&self, number: u64, at: UnixMs) -> bool {
        let mut slots = self.lock();
        let MarkSlots { file: Some(file), by_job: of, free, count } = &mut *slots else { return false };
        if of.contains_key(&number) {
            return true;
        }
        let slot = free.pop().unwrap_or(*count);
        if write_slot(file, slot, number, at).is_err() {
            // The marks that are there stay; what follows is marked in the store.
            slots.file = None;
            return false;
        }
        *count = (*count).max(slot + 1);
        of.insert(number, (slot, at));
        true
    }

    /// When the job was marked as sent.
    pub(super) fn get(&self, number: u64) -> Option<UnixMs> {
        self.lock().by_job.get(&number).map(|(_, at)| *at)
    }

    /// The store has what came of these jobs. Those that can be leased again lose their marks; of one that is `done` a mark
    /// means nothing, and is written over by the next one.
    pub(super) fn clear(&self, jobs: impl IntoIterator<Item = (u64, bool)>) {
        let mut slots = self.lock();
        let MarkSlots { file, by_job: of, free, .. } = &mut *slots;
        for (number, done) in jobs {
            let Some((slot, _)) = of.remove(&number) else { continue };
            let wiped = done || file.as_ref().is_some_and(|file| write_slot(file, slot, 0, UnixMs(0)).is_ok());
            // A mark that stays where it is counts one job too many as sent.
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
