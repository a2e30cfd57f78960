//! Test of crashes at any point, in virtual time, against a model of the marks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::job::{JobRequest, StoredAttempt};
use crate::state::State;
use crate::store::sqlite::*;
use crate::store::{JobChange, JobLane, JobStep, LaneClaim};

const JOBS: u64 = 12;

/// Event of the test; a job is one of those leased, or the next one.
#[derive(Clone, Copy, Debug)]
enum Move {
    Claim(usize),
    /// The first byte is sent.
    Send(u64),
    /// The connection failed.
    Unsent(u64),
    Retry(u64),
    Release(u64),
    Finish(u64),
    /// `kill -9`, then another sender.
    Kill,
    /// Power cut: unsynced writes may be lost.
    PowerCut,
    /// The file of marks was deleted.
    Tidy,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let job = 1..=JOBS;
    let one = prop_oneof![
        4 => (1_usize..5).prop_map(Move::Claim),
        6 => job.clone().prop_map(Move::Send),
        1 => job.clone().prop_map(Move::Unsent),
        1 => job.clone().prop_map(Move::Retry),
        1 => job.clone().prop_map(Move::Release),
        1 => job.prop_map(Move::Finish),
        2 => Just(Move::Kill),
        1 => Just(Move::PowerCut),
        1 => Just(Move::Tidy),
    ];
    proptest::collection::vec(one, 1..40)
}

/// Job of the model.
#[derive(Clone, Copy, Debug, Default)]
struct ModelJob {
    lease: Option<JobLease>,
    is_in_flight: bool,
    maybe_sent: bool,
    attempts: u32,
}

/// Sender with the model of its jobs.
struct CrashModel<'a> {
    path: &'a Path,
    store: Option<SqliteStore>,
    jobs: BTreeMap<u64, ModelJob>,
    now: UnixMs,
}

impl CrashModel<'_> {
    fn store(&self) -> &SqliteStore {
        self.store.as_ref().unwrap()
    }

    fn go(&mut self, what: Move) {
        self.now = self.now.plus_ms(7);
        match what {
            Move::Claim(most) => {
                let wants = vec![LaneClaim { lane: JobLane::default(), max_jobs: most }];
                let claim = ClaimRequest {
                    now: self.now,
                    lease_duration: Nanos::NEVER,
                    lanes: wants,
                    max_bytes: u64::MAX,
                    marks_sent: false,
                };
                for (lease, entry) in self.store().claim(claim).wait().unwrap().jobs {
                    let known = self.jobs.entry(lease.number).or_default();
                    assert_eq!((entry.status.maybe_sent, entry.status.attempts), (known.maybe_sent, known.attempts));
                    known.lease = Some(lease);
                }
            }
            Move::Send(job) => self.with(job, |store, at, lease, known| {
                assert_eq!(store.mark_sent(&[lease], at), []);
                known.is_in_flight = true;
            }),
            Move::Unsent(job) => self.with(job, |store, _, lease, known| {
                assert!(store.unmark_sent(lease));
                known.is_in_flight = false;
            }),
            Move::Retry(job) => self.end(job, |now| JobStep::Retrying { retry_at: now }),
            Move::Release(job) => self.end(job, |_| JobStep::Released),
            Move::Finish(job) => self.end(job, |_| JobStep::Done),
            Move::Kill => self.die(false),
            Move::PowerCut => {
                let marks = write_lock::with_suffix(self.path, "-sending");
                self.store = None;
                let mut bytes = fs::read(&marks).unwrap();
                bytes[..8].copy_from_slice(b"00000000");
                fs::write(&marks, bytes).unwrap();
                self.die(true);
            }
            Move::Tidy => {
                self.store = None;
                fs::remove_file(write_lock::with_suffix(self.path, "-sending")).unwrap();
                self.die(true);
            }
        }
    }

    fn with(&mut self, job: u64, does: impl FnOnce(&SqliteStore, UnixMs, JobLease, &mut ModelJob)) {
        let (store, now) = (self.store.as_ref().unwrap(), self.now);
        if let Some((lease, known)) = self.jobs.get_mut(&job).and_then(|known| Some((known.lease?, known))) {
            does(store, now, lease, known);
        }
    }

    fn end(&mut self, job: u64, step: impl FnOnce(UnixMs) -> JobStep) {
        self.with(job, |store, at, lease, known| {
            let attempt = known.is_in_flight.then(|| StoredAttempt::at(at));
            known.attempts += u32::from(known.is_in_flight);
            (known.lease, known.is_in_flight) = (None, false);
            let change = JobChange { lease, at, reason: "so".into(), step: step(at), attempt, response: None };
            let recorded =
                store.record(RecordRequest { changes: vec![change], key_states: Vec::new() }).wait().unwrap();
            assert_eq!(recorded.stale, []);
        });
    }

    /// Replaces the crashed sender by another one; with `doubt`, marks prove nothing.
    fn die(&mut self, doubt: bool) {
        self.store = None;
        let store = SqliteStore::open(self.path, &Options::default()).unwrap();
        let recovered = begin(&store, self.now);
        let (mut left, mut sent) = (0, 0);
        for (number, known) in self.jobs.iter_mut().filter(|(_, known)| known.lease.is_some()) {
            let may = known.is_in_flight || doubt;
            (known.lease, known.is_in_flight) = (None, false);
            known.maybe_sent |= may;
            known.attempts += u32::from(may);
            (left, sent) = (left + 1, sent + u64::from(may));
            let status = store.inspect(&JobSelector::Number(*number)).unwrap().unwrap().entry.status;
            assert_eq!((status.state, status.maybe_sent), (State::Queued, known.maybe_sent), "{number}");
            assert_eq!((status.attempts, status.last_attempt.is_some()), (known.attempts, may), "{number}");
        }
        assert_eq!((recovered.jobs, recovered.maybe_sent), (left, sent));
        self.store = Some(store);
    }
}

/// A process forked by another test holds the lock of the previous sender until it execs.
fn begin(store: &SqliteStore, now: UnixMs) -> Recovery {
    loop {
        match store.start_sending(now) {
            Err(StoreError::AnotherSender(_, Some(pid))) if pid == std::process::id() => thread::yield_now(),
            other => return other.unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn after_a_death_at_any_moment_those_jobs_count_as_sent_that_were_and_no_others(moves in moves()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        let store = SqliteStore::open(&path, &Options::default()).unwrap();
        let job = Job { request: JobRequest::default(), ..Job::default() };
        store.submit(vec![job; JOBS as usize]).wait().unwrap();
        store.start_sending(UnixMs(1)).unwrap();
        let mut world = CrashModel { path: &path, store: Some(store), jobs: BTreeMap::new(), now: UnixMs(1) };
        moves.into_iter().for_each(|what| world.go(what));
        world.go(Move::Kill);
    }
}

/// A claim of this many jobs of the usual lane.
fn claim_of(max_jobs: usize) -> ClaimRequest {
    ClaimRequest {
        now: UnixMs(1),
        lease_duration: Nanos::NEVER,
        lanes: vec![LaneClaim { lane: JobLane::default(), max_jobs }],
        max_bytes: u64::MAX,
        marks_sent: false,
    }
}

#[test]
fn marks_of_another_session_than_the_stores_last_prove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("jobs.db"), folder.path().join("copy.db"));
    let claim = |store: &SqliteStore| store.claim(claim_of(1)).wait().unwrap().jobs.remove(0).0;
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    store.submit(vec![Job::default(); 2]).wait().unwrap();
    store.start_sending(UnixMs(1)).unwrap();
    let sent = claim(&store);
    assert_eq!(store.mark_sent(&[sent], UnixMs(2)), []);
    drop(store);
    fs::copy(&path, &copy).unwrap();
    // The store goes on with its marks, then the copy is restored.
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    assert_eq!(begin(&store, UnixMs(3)), Recovery { jobs: 1, maybe_sent: 1 });
    drop(store);
    fs::copy(&copy, &path).unwrap();
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    assert_eq!(begin(&store, UnixMs(4)), Recovery { jobs: 1, maybe_sent: 1 });
}

#[test]
fn a_file_of_marks_that_cannot_be_written_to_has_the_store_itself_take_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    fs::create_dir(write_lock::with_suffix(&path, "-sending")).unwrap();
    let open = || SqliteStore::open(&path, &Options::default()).unwrap();
    let store = open();
    store.submit(vec![Job::default(); 2]).wait().unwrap();
    store.start_sending(UnixMs(1)).unwrap();
    let claimed = store.claim(claim_of(2)).wait().unwrap().jobs;
    assert!(!store.marks_at_once());
    assert_eq!(store.mark_sent(&[claimed[0].0], UnixMs(2)), [claimed[0].0]);
    drop(store);
    assert_eq!(begin(&open(), UnixMs(3)), Recovery { jobs: 2, maybe_sent: 2 }, "nothing proves it");
}
