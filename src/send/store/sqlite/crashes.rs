//! Senders that die at any moment, in virtual time: what the next one finds is what a naive account says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::send::job::{Attempt, Request};
use crate::send::state::State;
use crate::send::store::{Change, Lane, Step, Want};

const JOBS: u64 = 12;

/// What happens; a job is one of those that are leased, or whichever comes next.
#[derive(Clone, Copy, Debug)]
enum Move {
    Claim(usize),
    /// Its first byte goes out.
    Send(u64),
    /// Its connection could not be made.
    Unsent(u64),
    Retry(u64),
    Release(u64),
    Finish(u64),
    /// `kill -9`, and another sender.
    Kill,
    /// The power fails: what was not synced may be lost.
    PowerCut,
    /// The marks are gone, by somebody's hand.
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

/// A job by the naive account.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    lease: Option<Lease>,
    out: bool,
    maybe: bool,
    tries: u32,
}

/// A sender, and what is known of its jobs.
struct World<'a> {
    path: &'a Path,
    store: Option<Sqlite>,
    jobs: BTreeMap<u64, Known>,
    now: UnixMs,
}

impl World<'_> {
    fn store(&self) -> &Sqlite {
        self.store.as_ref().unwrap()
    }

    fn go(&mut self, what: Move) {
        self.now = self.now.plus_ms(7);
        match what {
            Move::Claim(most) => {
                let wants = vec![Want { lane: Lane::default(), most }];
                let claim = Claim { now: self.now, lease: Nanos::NEVER, wants, most_bytes: u64::MAX, sending: false };
                for (lease, entry) in self.store().claim(claim).wait().unwrap().jobs {
                    let known = self.jobs.entry(lease.number).or_default();
                    assert_eq!((entry.status.maybe_sent, entry.status.tries), (known.maybe, known.tries));
                    known.lease = Some(lease);
                }
            }
            Move::Send(job) => self.with(job, |store, at, lease, known| {
                assert!(store.mark(lease, at));
                known.out = true;
            }),
            Move::Unsent(job) => self.with(job, |store, _, lease, known| {
                assert!(store.unmark(lease));
                known.out = false;
            }),
            Move::Retry(job) => self.end(job, |now| Step::Dead { retry_at: now }),
            Move::Release(job) => self.end(job, |_| Step::Released),
            Move::Finish(job) => self.end(job, |_| Step::Done),
            Move::Kill => self.die(false),
            Move::PowerCut => {
                let marks = turn::beside(self.path, "-sending");
                self.store = None;
                let mut bytes = fs::read(&marks).unwrap();
                bytes[..8].copy_from_slice(b"00000000");
                fs::write(&marks, bytes).unwrap();
                self.die(true);
            }
            Move::Tidy => {
                self.store = None;
                fs::remove_file(turn::beside(self.path, "-sending")).unwrap();
                self.die(true);
            }
        }
    }

    fn with(&mut self, job: u64, does: impl FnOnce(&Sqlite, UnixMs, Lease, &mut Known)) {
        let (store, now) = (self.store.as_ref().unwrap(), self.now);
        if let Some((lease, known)) = self.jobs.get_mut(&job).and_then(|known| Some((known.lease?, known))) {
            does(store, now, lease, known);
        }
    }

    fn end(&mut self, job: u64, step: impl FnOnce(UnixMs) -> Step) {
        self.with(job, |store, at, lease, known| {
            let attempt = known.out.then(|| Attempt::at(at));
            known.tries += u32::from(known.out);
            (known.lease, known.out) = (None, false);
            let change = Change { lease, at, reason: "so".into(), step: step(at), attempt, answer: None };
            let recorded = store.record(Record { changes: vec![change], keys: Vec::new() }).wait().unwrap();
            assert_eq!(recorded.stale, []);
        });
    }

    /// The process is gone, and what it left is found by another; in `doubt` no mark proves that a job was not sent.
    fn die(&mut self, doubt: bool) {
        self.store = None;
        let store = Sqlite::open(self.path, &Options::default()).unwrap();
        let recovered = begin(&store, self.now);
        let (mut left, mut sent) = (0, 0);
        for (number, known) in self.jobs.iter_mut().filter(|(_, known)| known.lease.is_some()) {
            let may = known.out || doubt;
            (known.lease, known.out) = (None, false);
            known.maybe |= may;
            known.tries += u32::from(may);
            (left, sent) = (left + 1, sent + u64::from(may));
            let status = store.inspect(&Which::Number(*number)).unwrap().unwrap().entry.status;
            assert_eq!((status.state, status.maybe_sent), (State::Queued, known.maybe), "{number}");
            assert_eq!((status.tries, status.last.is_some()), (known.tries, may), "{number}");
        }
        assert_eq!((recovered.jobs, recovered.maybe_sent), (left, sent));
        self.store = Some(store);
    }
}

/// A process that another test has just forked has the lock of the sender before until it runs its program.
fn begin(store: &Sqlite, now: UnixMs) -> Recovered {
    loop {
        match store.start_sending(now) {
            Err(StoreError::SenderElsewhere(_, Some(pid))) if pid == std::process::id() => thread::yield_now(),
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
        let store = Sqlite::open(&path, &Options::default()).unwrap();
        let job = Job { request: Request::default(), ..Job::default() };
        store.submit(vec![job; JOBS as usize]).wait().unwrap();
        store.start_sending(UnixMs(1)).unwrap();
        let mut world = World { path: &path, store: Some(store), jobs: BTreeMap::new(), now: UnixMs(1) };
        moves.into_iter().for_each(|what| world.go(what));
        world.go(Move::Kill);
    }
}

#[test]
fn marks_of_another_session_than_the_stores_last_prove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("jobs.db"), folder.path().join("copy.db"));
    let claim = |store: &Sqlite| {
        let wants = vec![Want { lane: Lane::default(), most: 1 }];
        let claim = Claim { now: UnixMs(1), lease: Nanos::NEVER, wants, most_bytes: u64::MAX, sending: false };
        store.claim(claim).wait().unwrap().jobs.remove(0).0
    };
    let store = Sqlite::open(&path, &Options::default()).unwrap();
    store.submit(vec![Job::default(); 2]).wait().unwrap();
    store.start_sending(UnixMs(1)).unwrap();
    let sent = claim(&store);
    assert!(store.mark(sent, UnixMs(2)));
    drop(store);
    fs::copy(&path, &copy).unwrap();
    // The store goes on, and its marks with it; then the copy is put back.
    let store = Sqlite::open(&path, &Options::default()).unwrap();
    assert_eq!(begin(&store, UnixMs(3)), Recovered { jobs: 1, maybe_sent: 1 });
    drop(store);
    fs::copy(&copy, &path).unwrap();
    let store = Sqlite::open(&path, &Options::default()).unwrap();
    assert_eq!(begin(&store, UnixMs(4)), Recovered { jobs: 1, maybe_sent: 1 });
}

#[test]
fn a_file_of_marks_that_cannot_be_written_to_has_the_store_itself_take_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    fs::create_dir(turn::beside(&path, "-sending")).unwrap();
    let open = || Sqlite::open(&path, &Options::default()).unwrap();
    let store = open();
    store.submit(vec![Job::default(); 2]).wait().unwrap();
    store.start_sending(UnixMs(1)).unwrap();
    let wants = vec![Want { lane: Lane::default(), most: 2 }];
    let claim = Claim { now: UnixMs(1), lease: Nanos::NEVER, wants, most_bytes: u64::MAX, sending: false };
    let claimed = store.claim(claim).wait().unwrap().jobs;
    assert!(!store.mark(claimed[0].0, UnixMs(2)));
    drop(store);
    assert_eq!(begin(&open(), UnixMs(3)), Recovered { jobs: 2, maybe_sent: 2 }, "nothing proves it");
}
