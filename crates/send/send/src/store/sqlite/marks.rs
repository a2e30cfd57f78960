//! `STORE-sending`: marks of jobs that may have been sent, written before their first byte leaves.
//!
//! A mark must survive `kill -9`, and a commit before each request would delay it. A write without a sync survives the
//! process as long as the machine runs, since the kernel has it. So a mark is 16 bytes of such a write, which takes 1
//! to 2 µs, and jobs that are sent together share one. A missing mark proves that a job was not sent only where no mark
//! can be lost: in the file of the session that the store's last sender started ([`SentMarks::begin_session`]), on a
//! machine that has not restarted since. In all other cases (power cut, another machine, copy, missing file) all leased
//! jobs count as sent. A disk removed from a running machine before the write is not detected.
//!
//! Each job in flight has a slot, which is reused once the store has recorded its outcome.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use super::write_lock::with_suffix;
use crate::job::UnixMs;
use weir_machine::clock;
use weir_machine::lock::lock;
use weir_machine::private_file::private_options;

/// Length of the header: the session, as a line of text.
const HEADER_BYTES: usize = 256;
/// Length of a slot: job number (0 for none) and time, in bytes.
const SLOT_BYTES: usize = 16;

/// Gap between two slots, in bytes, that is written with them rather than to write twice.
const MAX_GAP_BYTES: usize = 512;

/// Marks of the current sender.
#[derive(Debug, Default)]
pub(super) struct SentMarks(Mutex<MarkSlots>);

#[derive(Debug, Default)]
struct MarkSlots {
    /// None before the first session, and after a failed write: then nothing can be marked.
    file: Option<File>,
    /// Slot and time by job.
    by_job: FxHashMap<u64, (u64, UnixMs)>,
    free: Vec<u64>,
    /// Content of all slots, used and free.
    slots: Vec<u8>,
}

/// Marks of the previous sender.
#[derive(Debug, Default)]
pub(super) struct PreviousMarks {
    /// Session that wrote the file, if no mark can be lost.
    session: Option<String>,
    sent: FxHashMap<u64, UnixMs>,
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
        let mut sent = FxHashMap::default();
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
        let mut options = private_options();
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

    /// Whether jobs can be marked here.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.0).file.is_some()
    }

    /// Marks jobs as sent. False if they cannot be marked here.
    pub(super) fn set(&self, numbers: impl Iterator<Item = u64>, at: UnixMs) -> bool {
        let mut marks = lock(&self.0);
        let MarkSlots { file: Some(file), by_job, free, slots } = &mut *marks else { return false };
        let mut changed = Vec::new();
        for number in numbers {
            by_job.entry(number).or_insert_with(|| {
                let slot = free.pop().unwrap_or((slots.len() / SLOT_BYTES) as u64);
                set_slot(slots, slot, number, at);
                changed.push(slot);
                (slot, at)
            });
        }
        if write_slots(file, slots, &mut changed).is_err() {
            // Existing marks stay; later ones go to the store.
            by_job.retain(|_, (slot, _)| !changed.contains(slot));
            marks.file = None;
            return false;
        }
        true
    }

    /// Time at which the job was marked as sent.
    pub(super) fn get(&self, number: u64) -> Option<UnixMs> {
        lock(&self.0).by_job.get(&number).map(|(_, at)| *at)
    }

    /// Releases the marks of jobs whose outcomes are recorded. Marks of requeued jobs are erased; that of a `done` job
    /// is harmless and is overwritten by the next one.
    pub(super) fn clear(&self, jobs: impl IntoIterator<Item = (u64, bool)>) {
        let mut marks = lock(&self.0);
        let MarkSlots { file, by_job, free, slots } = &mut *marks;
        for (number, done) in jobs {
            let Some((slot, _)) = by_job.remove(&number) else { continue };
            let is_erased = done || {
                set_slot(slots, slot, 0, UnixMs(0));
                file.as_ref().is_some_and(|file| write_slots(file, slots, &mut [slot]).is_ok())
            };
            // A mark that stays counts one job too many as sent.
            free.extend(is_erased.then_some(slot));
        }
    }
}

const SENDING_SUFFIX: &str = "-sending";

fn set_slot(slots: &mut Vec<u8>, slot: u64, number: u64, at: UnixMs) {
    let begin = slot as usize * SLOT_BYTES;
    slots.resize(slots.len().max(begin + SLOT_BYTES), 0);
    let (job, time) = slots[begin..begin + SLOT_BYTES].split_at_mut(SLOT_BYTES / 2);
    job.copy_from_slice(&number.to_le_bytes());
    time.copy_from_slice(&at.0.to_le_bytes());
}

/// Writes these slots, with those between them if they are near.
fn write_slots(file: &File, slots: &[u8], changed: &mut [u64]) -> io::Result<()> {
    changed.sort_unstable();
    let begin_of = |slot: u64| slot as usize * SLOT_BYTES;
    for near in changed.chunk_by(|one, next| begin_of(*next) - begin_of(*one) <= MAX_GAP_BYTES) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else { continue };
        let bytes = &slots[begin_of(*first)..begin_of(*last) + SLOT_BYTES];
        file.write_all_at(bytes, (HEADER_BYTES + begin_of(*first)) as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_file_has_the_marks_of_all_sent_jobs_and_of_none_that_was_requeued(
            steps in proptest::collection::vec((0_usize..40, proptest::collection::vec((any::<usize>(), any::<bool>()), 0..40)), 1..20)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("jobs.db");
            let marks = SentMarks::default();
            marks.begin_session(&path, "s");
            let (mut next, mut sent, mut requeued) = (1, Vec::new(), Vec::new());
            for (count, ends) in steps {
                let jobs = next..next + count as u64;
                next = jobs.end;
                prop_assert!(marks.set(jobs.clone(), UnixMs(next.cast_signed())));
                sent.extend(jobs.map(|job| (job, UnixMs(next.cast_signed()))));
                for (which, is_done) in ends {
                    if sent.is_empty() { break }
                    let (job, _) = sent.swap_remove(which % sent.len());
                    marks.clear([(job, is_done)]);
                    if !is_done {
                        requeued.push(job);
                    }
                }
                let previous = PreviousMarks::read(&path);
                for (job, at) in &sent {
                    prop_assert_eq!(previous.evidence(*job, Some("s")), SentEvidence::Sent(*at));
                    prop_assert_eq!(marks.get(*job), Some(*at));
                }
                for job in &requeued {
                    prop_assert_eq!(previous.evidence(*job, Some("s")), SentEvidence::Unsent);
                }
            }
        }
    }
}
