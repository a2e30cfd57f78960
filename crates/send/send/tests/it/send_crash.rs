//! `kill -9` of a process that submits and sends, at any point: accepted jobs are there, and jobs sent twice were in
//! flight at a kill and are flagged. `WEIR_KILLS=1000` for a longer test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_send::store::{
    ClaimRequest, JobChange, JobFilter, JobLane, JobSelector, JobStep, LaneClaim, Options, RecordRequest, SqliteStore,
    Store,
};
use weir_send::{Job, JobEntry, State, StoredAttempt, UnixMs};

const NOW: UnixMs = UnixMs(1_760_000_000_000);
/// Maximum requests in flight.
const FLIGHT: usize = 5;

/// Process that is killed: the test below starts it, with the store and the number of the round.
#[test]
#[ignore = "it runs until it is killed; the test below starts it"]
fn a_process_that_submits_and_sends() {
    let Ok(path) = std::env::var("WEIR_CRASH_STORE") else { return };
    let round: u64 = std::env::var("WEIR_CRASH_ROUND").unwrap().parse().unwrap();
    let store = SqliteStore::open(Path::new(&path), &Options::default()).unwrap();
    thread::scope(|scope| {
        for producer in 0..3 {
            let store = &store;
            scope.spawn(move || produce(store, round, producer));
        }
        send(&store, round);
    });
}

fn say(line: &str) {
    // One write, so that a line is complete or absent.
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn produce(store: &SqliteStore, round: u64, producer: u64) {
    let mut rng = SeededRng::new(round, producer);
    for n in 0.. {
        let ids: Vec<String> = (0..1 + rng.bits() % 4).map(|i| format!("{round}-{producer}-{n}-{i}")).collect();
        let jobs = ids.iter().map(|id| Job { id: Some(id.clone()), created_at: NOW, ..Job::default() }).collect();
        store.submit(jobs).wait().unwrap();
        say(&format!("#accepted {}", ids.join(" ")));
    }
}

fn send(store: &SqliteStore, round: u64) {
    store.start_sending(NOW).unwrap();
    let mut rng = SeededRng::new(round, 99);
    loop {
        let at_once = rng.bits().is_multiple_of(2);
        let wants = vec![LaneClaim { lane: JobLane::default(), max_jobs: FLIGHT }];
        let claim = ClaimRequest {
            now: NOW,
            lease_duration: Nanos::from_secs(60),
            lanes: wants,
            max_bytes: u64::MAX,
            marks_sent: at_once,
        };
        let claimed = store.claim(claim).wait().unwrap().jobs;
        let record = |step, attempt: Option<StoredAttempt>| {
            let changes = claimed.iter().map(|(lease, _)| JobChange {
                lease: *lease,
                at: NOW,
                reason: "so it goes".into(),
                step,
                attempt: attempt.clone(),
                response: None,
            });
            let recorded =
                store.record(RecordRequest { changes: changes.collect(), key_states: Vec::new() }).wait().unwrap();
            assert!(recorded.stale.is_empty());
        };
        if !at_once {
            record(JobStep::Sent, None);
        }
        let name = |entry: &JobEntry| entry.job.id.clone().unwrap();
        for (_, entry) in &claimed {
            say(&format!("#sent {} {}", name(entry), entry.status.maybe_sent));
        }
        record(JobStep::Done, Some(StoredAttempt { key: None, sent_at: NOW, status: Some(200) }));
        let names: Vec<_> = claimed.iter().map(|(_, entry)| name(entry)).collect();
        say(&format!("#done {}", names.join(" ")));
    }
}

#[test]
fn no_kill_loses_an_accepted_job_or_hides_that_one_was_sent() {
    let kills: u64 = std::env::var("WEIR_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let mut rng = SeededRng::new(kills, 0);
    let mut seen = Seen::default();
    for round in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "send_crash::a_process_that_submits_and_sends", "--ignored", "--nocapture"])
            .envs([("WEIR_CRASH_STORE", path.to_str().unwrap()), ("WEIR_CRASH_ROUND", &round.to_string())])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = weir_testing::spawn_tied(&mut command).unwrap();
        let kill_after = rng.bits() % 300;
        let mut lines = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            // Output after the kill was written before it.
            lines += 1;
            if lines == kill_after + 4 {
                child.kill().unwrap();
            }
            seen.line(&line.unwrap());
        }
        child.wait().unwrap();
        assert!(lines >= kill_after + 4, "the process ended by itself in round {round}");
    }
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    store.start_sending(NOW).unwrap();
    seen.check(&store, kills as usize);
}

/// Output of the processes.
#[derive(Default)]
struct Seen {
    accepted: HashSet<String>,
    sent: HashMap<String, usize>,
    done: HashSet<String>,
    /// Flagged, but not reported as sent: killed between mark and output.
    flagged: usize,
}

impl Seen {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next().as_deref() {
            Some("#accepted") => self.accepted.extend(words),
            Some("#done") => self.done.extend(words),
            Some("#sent") => {
                let (id, flag) = (words.next().unwrap(), words.next().unwrap());
                assert!(!self.done.contains(&id), "{id} was done, and is sent again");
                let before = self.sent.insert(id.clone(), self.sent.get(&id).map_or(1, |n| n + 1));
                if before.is_some() {
                    assert_eq!(flag, "true", "{id} is sent again without a flag");
                }
                self.flagged += usize::from(flag == "true" && before.is_none());
            }
            _ => {}
        }
    }

    fn check(&self, store: &SqliteStore, kills: usize) {
        assert!(self.accepted.len() > kills && self.done.len() > kills, "there was something to lose");
        for id in &self.accepted {
            let found = store.inspect(&JobSelector::Id(id.clone())).unwrap();
            let state = found.unwrap_or_else(|| panic!("{id} is lost")).entry.status.state;
            assert!(state == State::Queued || state == State::Done, "{id} is {state}");
            assert!(state == State::Done || !self.done.contains(id), "{id} was done, and is {state}");
        }
        let again: usize = self.sent.values().map(|times| times - 1).sum();
        assert!(again + self.flagged <= kills * FLIGHT, "{again} sent again, {} flagged", self.flagged);
        let all = store.list(&JobFilter::default(), 0, usize::MAX).unwrap();
        assert_eq!(store.counts().unwrap().jobs_in(State::Done), {
            all.iter().filter(|entry| entry.status.state == State::Done).count() as u64
        });
    }
}
