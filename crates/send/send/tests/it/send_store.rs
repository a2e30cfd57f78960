//! The SQLite store: changes by other processes, access with other tools, unusable files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use weir_base::Nanos;
use weir_send::store::{
    ClaimRequest, JobChange, JobFilter, JobLane, JobStep, LaneClaim, Options, QueueBounds, Receipt, RecordRequest,
    SqliteStore, Store, StoreError, StoredKeyState,
};
use weir_send::{Job, JobRequest, State, StoredAttempt, UnixMs};
use weir_testing::{Disk, until};

const NOW: UnixMs = UnixMs(1_760_000_000_123);

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, &Options::default()).unwrap()
}

fn job(id: &str, body: usize) -> Job {
    let request = JobRequest {
        method: "POST".into(),
        url: "http://127.0.0.1/".into(),
        headers: vec![("a".into(), "b".into())],
        body: vec![b'x'; body],
        ..JobRequest::default()
    };
    Job { id: Some(id.into()), request, created_at: NOW, weight: 1, ..Job::default() }
}

fn claim(most: usize) -> ClaimRequest {
    let wants = vec![LaneClaim { lane: JobLane { host: "127.0.0.1".into(), ..JobLane::default() }, max_jobs: most }];
    ClaimRequest { now: NOW, lease_duration: Nanos::from_secs(60), lanes: wants, max_bytes: u64::MAX, marks_sent: true }
}

fn done(store: &SqliteStore, most: usize) -> usize {
    let claimed = store.claim(claim(most)).wait().unwrap().jobs;
    let changes = claimed.iter().map(|(lease, _)| JobChange {
        lease: *lease,
        at: NOW.plus_ms(1000),
        reason: "status 200".into(),
        step: JobStep::Done,
        attempt: Some(StoredAttempt { key: Some("k1".into()), sent_at: NOW.plus_ms(500), status: Some(200) }),
        response: None,
    });
    let record = RecordRequest { changes: changes.collect(), key_states: Vec::new() };
    assert!(store.record(record).wait().unwrap().stale.is_empty());
    claimed.len()
}

fn told(path: &Path, options: &Options) -> String {
    let told = SqliteStore::open(path, options).unwrap_err().to_string();
    assert!(!told.contains('\n'), "{told}");
    told.replace(path.to_str().unwrap(), "FILE")
}

#[test]
fn a_file_that_cannot_be_opened_is_one_line_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let existing = Options { create: false, ..Options::default() };
    // The first store replaces how SQLite locks: a connection of the test must not be inside a statement by then.
    drop(open(&at("new.db")));
    assert_eq!(told(&at("none.db"), &existing), "no job store 'FILE'; check the name");
    assert!(!at("none.db").exists());

    fs::write(at("text.db"), "GET http://127.0.0.1/\n").unwrap();
    let not_ours = "'FILE' is not a job store; name another file, this one is unchanged";
    assert_eq!(told(&at("text.db"), &existing), not_ours);
    assert_eq!(fs::read(at("text.db")).unwrap(), b"GET http://127.0.0.1/\n");

    let other = Connection::open(at("other.db")).unwrap();
    other.execute_batch("CREATE TABLE job (a)").unwrap();
    drop(other);
    let before = fs::read(at("other.db")).unwrap();
    assert_eq!(told(&at("other.db"), &existing), not_ours);
    assert_eq!(fs::read(at("other.db")).unwrap(), before);

    Connection::open(at("new.db")).unwrap().execute_batch("UPDATE meta SET value = 7 WHERE name = 'version'").unwrap();
    assert_eq!(
        told(&at("new.db"), &existing),
        "the store 'FILE' has version 7; this weir reads version 4: use the weir that created it, or another store"
    );

    let remedy = "; name a file in a folder that can be written";
    for name in ["no/such/folder.db", "text.db/in_a_file.db"] {
        let told = told(&at(name), &Options::default());
        assert!(told.starts_with("cannot open the store 'FILE': ") && told.ends_with(remedy), "{told}");
    }
    let told = told(Path::new("/proc/jobs.db"), &Options::default());
    assert!(told.starts_with("cannot open the store 'FILE': "), "{told}");
}

#[test]
fn a_store_locked_by_another_program_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let store = open(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let told = store.submit(vec![job("a", 1)]).wait().unwrap_err();
    assert_eq!(told, StoreError::Locked(path.clone()));
    assert!(told.to_string().starts_with("another program has locked the store"), "{told}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.submit(vec![job("a", 1)]).wait().unwrap(), [Receipt::Accepted(1)]);
}

#[test]
fn a_store_has_one_sender_at_a_time_and_the_next_one_finds_what_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let (first, second) = (open(&path), open(&path));
    assert_eq!(first.claim(claim(1)).wait().unwrap_err(), StoreError::NotSending);
    first.start_sending(NOW).unwrap();
    let told = second.start_sending(NOW).unwrap_err();
    assert_eq!(told, StoreError::AnotherSender(path.clone(), Some(std::process::id())));
    first.submit(vec![job("sent", 1), job("unsent", 1)]).wait().unwrap();
    first.claim(claim(1)).wait().unwrap();
    first.claim(ClaimRequest { marks_sent: false, ..claim(1) }).wait().unwrap();
    let note = StoredKeyState { key: "k1".into(), state: "{\"nonce\":9}".into() };
    first.record(RecordRequest { changes: Vec::new(), key_states: vec![note.clone()] }).wait().unwrap();
    drop(first);
    // A child of another test has the files of this process, locks included, until it executes its program.
    let mut recovered = None;
    until("the release of the lock", Duration::from_secs(10), || {
        recovered = second.start_sending(NOW).ok();
        recovered.is_some()
    });
    let recovered = recovered.unwrap();
    assert_eq!((recovered.jobs, recovered.maybe_sent), (2, 1));
    assert_eq!(second.key_states().unwrap(), [note]);
    let again = second.claim(claim(9)).wait().unwrap().jobs;
    let flags: Vec<_> = again.iter().map(|(_, entry)| (entry.job.id.as_deref(), entry.status.maybe_sent)).collect();
    assert_eq!(flags, [(Some("sent"), true), (Some("unsent"), false)]);
    assert_eq!(second.counts().unwrap().jobs_in(State::Leased), 2);
}

#[test]
fn another_process_that_submits_wakes_the_sender_and_the_sender_makes_room_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let sender = open(&path);
    sender.start_sending(NOW).unwrap();
    // Two handles share only what two processes would: the file and those beside it.
    let bounds = QueueBounds { jobs: 10, ..QueueBounds::default() };
    let other = SqliteStore::open(&path, &Options { bounds, ..Options::default() }).unwrap();
    let mut changes = other.changes();
    let (ended, end) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let jobs = (0..1000).map(|n| job(&n.to_string(), 10)).collect();
            ended.send(other.submit(jobs).wait().unwrap().len()).unwrap();
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut arrivals = sender.arrivals();
            let mut all = 0;
            while all < 1000 {
                assert!(sender.counts().unwrap().open_jobs() <= 10);
                let some = done(&sender, 3);
                all += some;
                if some == 0 {
                    arrivals.changed().await.unwrap();
                }
            }
            changes.changed().await.unwrap();
        });
    });
    assert_eq!(end.recv().unwrap(), 1000);
    assert_eq!(other.counts().unwrap().jobs_in(State::Done), 1000);
}

#[test]
fn the_file_is_readable_with_any_tool_for_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let store = open(&path);
    store.start_sending(NOW).unwrap();
    let expires = Some(NOW.plus_ms(60_000));
    store.submit(vec![job("a", 3), Job { expires_at: expires, ..job("b", 3) }]).wait().unwrap();
    assert_eq!(done(&store, 1), 1);
    let person = Connection::open(&path).unwrap();
    let mut jobs = person
        .prepare("SELECT concat_ws('|', number, id, state, reason, changed, method, url, attempts, code, last_key, sent, expires) FROM jobs")
        .unwrap();
    let rows: Vec<String> = jobs.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(
        rows,
        [
            "1|a|done|status 200|2025-10-09T08:53:21.123Z|POST|http://127.0.0.1/|1|200|k1|2025-10-09T08:53:20.623Z",
            "2|b|queued|submitted|2025-10-09T08:53:20.123Z|POST|http://127.0.0.1/|0|2025-10-09T08:54:20.123Z",
        ]
    );
    let body: String =
        person.query_row("SELECT headers || body FROM request WHERE number = 1", [], |r| r.get(0)).unwrap();
    assert_eq!(body, r#"[["a","b"]]xxx"#);
}

/// Fills the store until it rejects a batch, and checks what was accepted.
fn fill(store: &SqliteStore, path: &Path) {
    let mut accepted = store.counts().unwrap().open_jobs() as usize;
    let told = loop {
        let batch = (0..10).map(|n| job(&(accepted + n).to_string(), 1000)).collect();
        match store.submit(batch).wait() {
            Ok(receipts) => accepted += receipts.len(),
            Err(told) => break told,
        }
        assert!(accepted < 100_000, "it is never full");
    };
    assert_eq!(told, StoreError::NoSpace(path.to_owned(), 0));
    let line = "; 0 jobs of this batch are accepted, submit the others when there is space";
    assert!(told.to_string().contains("no space left") && told.to_string().ends_with(line), "{told}");
    let all = store.list(&JobFilter::of(&[State::Queued]), 0, usize::MAX).unwrap();
    let ids: Vec<_> = all.into_iter().filter_map(|entry| entry.job.id).collect();
    assert_eq!(ids, (0..accepted).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(store.counts().unwrap().jobs_in(State::Queued), accepted as u64);
}

#[test]
fn a_full_file_rejects_a_batch_keeps_what_was_accepted_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let store = SqliteStore::open(&path, &Options { max_file_bytes: Some(1 << 20), ..Options::default() }).unwrap();
    store.start_sending(NOW).unwrap();
    store.submit((0..50).map(|n| job(&format!("early-{n}"), 1000)).collect()).wait().unwrap();
    assert_eq!(done(&store, 50), 50);
    fill(&store, &path);
    assert_eq!(store.purge(JobFilter::of(&[State::Done])).wait().unwrap(), 50);
    assert_eq!(store.submit(vec![job("more", 1000)]).wait().unwrap().len(), 1);
    assert_eq!(done(&store, 10), 10);
    drop(store);
    check_whole(&path);
}

#[test]
fn a_full_disk_rejects_a_batch_keeps_what_was_accepted_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(folder.path(), 4) else {
        eprintln!("no disk can be mounted here; the test with a file of limited size has to do");
        return;
    };
    let path = folder.path().join("jobs.db");
    let ballast = folder.path().join("ballast");
    fs::write(&ballast, vec![0; 1 << 20]).unwrap();
    let store = open(&path);
    store.start_sending(NOW).unwrap();
    fill(&store, &path);
    fs::remove_file(ballast).unwrap();
    assert_eq!(store.submit(vec![job("more", 1000)]).wait().unwrap().len(), 1);
    assert_eq!(done(&store, 10), 10);
    drop(store);
    check_whole(&path);
    drop(disk);
}

fn check_whole(path: &Path) {
    let store = open(path);
    let whole: String =
        Connection::open(path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let all = store.list(&JobFilter::default(), 0, usize::MAX).unwrap();
    assert_eq!(all.last().unwrap().job.id.as_deref(), Some("more"));
}
