//! Tests of the behavior that all stores share.

mod claims;
mod model;
mod submissions;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use crate::job::{JobRequest, JobStatus, MAX_JOB_EVENTS, StoredAttempt, StoredResponse};
use crate::store::*;
use crate::template_parts::{JobBodyKind, TemplateParts};
use weir_testing::RedisServer;

const NOW: UnixMs = UnixMs(1_760_000_000_000);
const LONG: Nanos = Nanos::from_secs(3600);

/// Runs a test with a new store of each kind.
fn each(bounds: QueueBounds, order: JobOrder, test: impl Fn(Arc<dyn Store>)) {
    let memory = MemoryStore::new(bounds, order);
    memory.start_sending(NOW).unwrap();
    test(Arc::new(memory));
    let folder = tempfile::tempdir().unwrap();
    let sqlite = open(&folder.path().join("jobs.db"), bounds, order);
    sqlite.start_sending(NOW).unwrap();
    test(Arc::new(sqlite));
    SERVER.with(|server| {
        let Some((server, queues)) = server else { return };
        let queue = format!("queue=q{}", queues.fetch_add(1, Relaxed));
        let address = QueueAddress::read(&server.url(&queue)).unwrap();
        let redis = RedisStore::open(&address, true, bounds, order).unwrap();
        redis.start_sending(NOW).unwrap();
        test(Arc::new(redis));
    });
}

thread_local! {
    /// Server of a test, and the number of queues on it.
    static SERVER: Option<(RedisServer, AtomicUsize)> = RedisServer::start().map(|server| (server, AtomicUsize::new(0)));
}

fn open(path: &Path, bounds: QueueBounds, order: JobOrder) -> SqliteStore {
    SqliteStore::open(path, &Options { bounds, order, ..Options::default() }).unwrap()
}

fn roomy(test: impl Fn(Arc<dyn Store>)) {
    each(QueueBounds::default(), JobOrder::Fifo, test);
}

fn job(id: &str) -> Job {
    let request = JobRequest {
        method: "POST".into(),
        url: format!("http://127.0.0.1/{id}"),
        headers: vec![("x-a".into(), "\"quoted\"\u{e9}".into()), ("x-a".into(), String::new())],
        body: b"\x00\xff not text".to_vec(),
        templates: TemplateParts { url_bytes: 7, headers: vec![0], body: JobBodyKind::Template },
    };
    let idempotency_key = Some(format!("once-{id}"));
    Job { id: Some(id.into()), request, created_at: NOW, weight: 3, idempotency_key, ..Job::default() }
}

/// Lane of the jobs.
fn here(hint: Option<&str>) -> JobLane {
    JobLane { key_hint: hint.map(str::to_owned), host: "127.0.0.1".into() }
}

fn any(most: usize) -> ClaimRequest {
    let wants = vec![LaneClaim { lane: here(None), max_jobs: most }];
    ClaimRequest { now: NOW, lease_duration: LONG, lanes: wants, max_bytes: u64::MAX, marks_sent: false }
}

fn at(ms: u64, claim: ClaimRequest) -> ClaimRequest {
    ClaimRequest { now: NOW.plus_ms(ms), ..claim }
}

fn claim(store: &Arc<dyn Store>, claim: ClaimRequest) -> Vec<(JobLease, JobEntry)> {
    store.claim(claim).wait().unwrap().jobs
}

fn ids(jobs: &[(JobLease, JobEntry)]) -> Vec<&str> {
    jobs.iter().map(|(_, entry)| entry.job.id.as_deref().unwrap()).collect()
}

fn attempt(code: u16) -> Option<StoredAttempt> {
    Some(StoredAttempt { key: Some("key-1".into()), sent_at: NOW, status: Some(code) })
}

fn change(lease: JobLease, step: JobStep, attempt: Option<StoredAttempt>) -> JobChange {
    JobChange { lease, at: NOW.plus_ms(5), reason: format!("because {step:?}"), step, attempt, response: None }
}

fn record(store: &Arc<dyn Store>, change: JobChange) -> RecordReply {
    store.record(RecordRequest { changes: vec![change], key_states: Vec::new() }).wait().unwrap()
}

fn submit(store: &Arc<dyn Store>, jobs: Vec<Job>) -> Vec<Receipt> {
    store.submit(jobs).wait().unwrap()
}

fn status(store: &Arc<dyn Store>, id: &str) -> JobStatus {
    detail(store, id).entry.status
}

fn detail(store: &Arc<dyn Store>, id: &str) -> JobDetail {
    store.inspect(&JobSelector::Id(id.into())).unwrap().unwrap()
}

/// Checks that the counts match the list.
fn check_counts(store: &Arc<dyn Store>) -> JobCounts {
    let mut counted = JobCounts::default();
    for entry in store.list(&JobFilter::default(), 0, usize::MAX).unwrap() {
        counted.add(entry.status.state, entry.job.bytes());
    }
    assert_eq!(store.counts().unwrap(), counted, "{store:?}");
    counted
}

#[test]
fn a_job_comes_back_as_it_was_submitted_and_ends_as_it_was_recorded() {
    roomy(|store| {
        let mut text = job("b");
        (text.request.body, text.expires_at, text.priority) = (b"{\"a\":1}".to_vec(), Some(NOW.plus_ms(9)), -4);
        let url = "http://127.0.0.1".to_owned();
        let bare = Job { request: JobRequest { url, ..JobRequest::default() }, ..Job::default() };
        let receipts = submit(&store, vec![job("a"), text.clone(), bare.clone()]);
        assert_eq!(receipts, [1, 2, 3].map(Receipt::Accepted));
        let claimed = claim(&store, any(9));
        let jobs: Vec<_> = claimed.iter().map(|(_, entry)| &entry.job).collect();
        assert_eq!(jobs, [&job("a"), &bare, &text]);
        assert_eq!(claimed[0].1, detail(&store, "a").entry);
        let response = StoredResponse { headers: vec![("a".into(), "b".into())], body: b"\xff".to_vec() };
        let done = JobChange { response: Some(response.clone()), ..change(claimed[0].0, JobStep::Done, attempt(200)) };
        assert_eq!(record(&store, done), RecordReply::default());
        let found = detail(&store, "a");
        assert_eq!((found.response, found.history), (Some(response), Vec::new()));
        let expected = JobStatus {
            state: State::Done,
            changed_at: NOW.plus_ms(5),
            reason: "because Done".into(),
            attempts: 1,
            maybe_sent: false,
            retry_at: None,
            last_attempt: attempt(200),
        };
        assert_eq!(found.entry.status, expected);
        let counts = check_counts(&store);
        assert_eq!((counts.jobs_in(State::Done), counts.jobs_in(State::Leased), counts.open_jobs()), (1, 2, 2));
    });
}

#[test]
fn an_id_is_accepted_once_and_the_second_submission_is_a_duplicate() {
    roomy(|store| {
        submit(&store, vec![job("a")]);
        let again = submit(&store, vec![job("b"), job("a"), job("b")]);
        assert_eq!(
            again,
            [Receipt::Accepted(2), Receipt::Duplicate(1, State::Queued), Receipt::Duplicate(2, State::Queued)]
        );
        assert_eq!(again[1].number(), 1);
        assert_eq!(check_counts(&store).open_jobs(), 2);
    });
}

#[test]
fn the_history_of_a_job_is_bounded() {
    roomy(|store| {
        submit(&store, vec![job("a")]);
        for n in 0..MAX_JOB_EVENTS as u64 + 5 {
            let lease = claim(&store, any(1))[0].0;
            record(&store, JobChange { reason: n.to_string(), ..change(lease, JobStep::Released, None) });
        }
        let reasons: Vec<_> = detail(&store, "a").history.into_iter().map(|event| event.reason).collect();
        assert_eq!(reasons, (5..MAX_JOB_EVENTS + 5).map(|n| n.to_string()).collect::<Vec<_>>());
    });
}

#[test]
fn a_record_under_an_expired_lease_is_rejected() {
    roomy(|store| {
        submit(&store, vec![job("a"), job("b")]);
        let mut claimed = claim(&store, ClaimRequest { lease_duration: Nanos::ZERO, marks_sent: true, ..any(1) });
        let old = claimed.remove(0).0;
        claimed = claim(&store, any(1));
        assert_eq!(ids(&claimed), ["a"], "a lease of no length is over at once");
        assert!(claimed[0].1.status.maybe_sent && claimed[0].1.status.attempts == 1);
        let new = claimed[0].0;
        assert_eq!(record(&store, change(old, JobStep::Done, None)).stale, [old]);
        assert_eq!(status(&store, "a").state, State::Leased);
        assert_eq!(store.renew(&[old, new], LONG), [new]);
        assert_eq!(record(&store, change(new, JobStep::Done, None)).stale, []);
        assert_eq!(record(&store, change(new, JobStep::DeadLettered, None)).stale, [new], "it ends once");
        let lease = claim(&store, any(1))[0].0;
        let twice = [JobStep::Done, JobStep::DeadLettered].map(|step| change(lease, step, None));
        let recorded = store.record(RecordRequest { changes: twice.to_vec(), key_states: Vec::new() }).wait().unwrap();
        assert_eq!((recorded.stale, status(&store, "b").state), (vec![lease], State::Done));
        check_counts(&store);
    });
}

/// A sender releases the jobs of a down host and claims them again at once: a store may commit both together.
#[test]
fn a_job_that_is_released_and_claimed_in_one_commit_has_a_lease() {
    roomy(|store| {
        submit(&store, vec![job("a")]);
        for n in 0..30 {
            let lease = claim(&store, any(1))[0].0;
            // Keeps the store busy, so that the next two wait together.
            let other = store.submit(vec![job(&format!("other {n}"))]);
            let released = change(lease, JobStep::Released, None);
            let released = store.record(RecordRequest { changes: vec![released], key_states: Vec::new() });
            let claimed = store.claim(any(1));
            other.wait().unwrap();
            assert_eq!(released.wait().unwrap().stale, []);
            let lease = claimed.wait().unwrap().jobs[0].0;
            assert_eq!(store.renew(&[lease], LONG), [lease]);
            assert_eq!(record(&store, change(lease, JobStep::Released, None)).stale, []);
        }
    });
}

#[test]
fn a_job_marked_as_sent_without_an_outcome_is_flagged() {
    roomy(|store| {
        submit(&store, vec![job("sent"), job("unsent")]);
        let claimed = claim(&store, ClaimRequest { lease_duration: Nanos::ZERO, ..any(2) });
        record(&store, change(claimed[0].0, JobStep::Sent, attempt(0)));
        claim(&store, any(0));
        assert!(status(&store, "sent").maybe_sent && !status(&store, "unsent").maybe_sent);
        assert_eq!((status(&store, "sent").attempts, status(&store, "unsent").attempts), (1, 0));
    });
}

#[test]
fn jobs_are_edited_retried_and_purged() {
    roomy(|store| {
        let expires = Some(NOW.plus_ms(1));
        submit(&store, vec![job("grave"), job("done"), Job { expires_at: expires, ..job("late") }, job("leased")]);
        let claimed = claim(&store, any(2));
        record(&store, change(claimed[0].0, JobStep::DeadLettered, attempt(400)));
        record(&store, change(claimed[1].0, JobStep::Done, attempt(200)));
        assert_eq!(ids(&claim(&store, at(1, any(1)))), ["leased"]);
        let edit = JobEdit { url: Some("http://127.0.0.1/right".into()), priority: Some(7), ..JobEdit::default() };
        assert!(store.edit(1, edit.clone(), NOW).wait().unwrap());
        for number in [2, 4, 99] {
            assert!(!store.edit(number, edit.clone(), NOW).wait().unwrap(), "{number}");
        }
        let edited = detail(&store, "grave");
        assert_eq!(edited.entry.job.request.url, "http://127.0.0.1/right");
        assert_eq!((edited.entry.status.state, edited.history.len()), (State::DeadLettered, 2));
        let right = JobFilter { text: Some("right".into()), ..JobFilter::default() };
        assert_eq!(store.list(&right, 0, 9).unwrap(), [edited.entry]);
        assert_eq!(store.list(&right, 1, 9).unwrap(), []);
        assert_eq!(store.retry(JobFilter::default(), None, NOW.plus_ms(2)).wait().unwrap(), 1, "one is over for good");
        assert_eq!((status(&store, "grave").state, status(&store, "grave").attempts), (State::Queued, 0));
        let renewed = Some(NOW.plus_ms(50));
        let only = JobFilter {
            only: vec![JobSelector::Id("late".into()), JobSelector::Id("missing".into())],
            ..JobFilter::default()
        };
        assert_eq!(store.retry(only, renewed, NOW.plus_ms(2)).wait().unwrap(), 1);
        assert_eq!(detail(&store, "late").entry.job.expires_at, renewed);
        check_counts(&store);
        assert_eq!(store.purge(JobFilter::of(&[State::Done])).wait().unwrap(), 1);
        assert_eq!(ids(&claim(&store, at(3, any(9)))), ["grave", "late"]);
        assert_eq!(store.purge(JobFilter::default()).wait().unwrap(), 0, "leased ones stay");
        assert_eq!(submit(&store, vec![job("done")]), [Receipt::Accepted(5)], "a number is not given twice");
        check_counts(&store);
    });
}

#[test]
fn the_last_state_of_a_key_is_stored() {
    roomy(|store| {
        let note = |key: &str, note: &str| StoredKeyState { key: key.into(), state: note.into() };
        let keys = vec![note("b", "{\"nonce\":1}"), note("a", "{}"), note("b", "{\"nonce\":2}")];
        store.record(RecordRequest { changes: Vec::new(), key_states: keys }).wait().unwrap();
        assert_eq!(store.key_states().unwrap(), [note("a", "{}"), note("b", "{\"nonce\":2}")]);
    });
}

#[test]
fn watchers_are_notified_of_changes_and_not_of_an_empty_claim() {
    roomy(|store| {
        let (mut arrivals, mut changes) = (store.arrivals(), store.changes());
        claim(&store, any(1));
        assert!(!arrivals.has_changed().unwrap() && !changes.has_changed().unwrap());
        submit(&store, vec![job("a")]);
        assert!(arrivals.has_changed().unwrap() && changes.has_changed().unwrap());
        arrivals.mark_unchanged();
        changes.mark_unchanged();
        let lease = claim(&store, any(1))[0].0;
        record(&store, change(lease, JobStep::Done, None));
        assert!(!arrivals.has_changed().unwrap() && changes.has_changed().unwrap());
    });
}

#[test]
fn many_producers_and_one_sender_lose_and_repeat_nothing() {
    each(QueueBounds { jobs: 50, ..QueueBounds::default() }, JobOrder::Fifo, |store| {
        const EACH: usize = 200;
        let mut done = BTreeMap::new();
        std::thread::scope(|scope| {
            for producer in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..EACH / 10 {
                        let batch = (0..10).map(|i| job(&format!("{producer}-{n}-{i}"))).collect();
                        assert_eq!(submit(store, batch).len(), 10);
                    }
                });
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut arrivals = store.arrivals();
                while done.len() < 4 * EACH {
                    let claimed = store.claim(any(20)).await.unwrap().jobs;
                    if claimed.is_empty() {
                        arrivals.changed().await.unwrap();
                    }
                    let changes =
                        claimed.iter().map(|(lease, _)| change(*lease, JobStep::Done, attempt(200))).collect();
                    assert_eq!(
                        store.record(RecordRequest { changes, key_states: Vec::new() }).await.unwrap().stale,
                        []
                    );
                    for (_, entry) in claimed {
                        *done.entry(entry.job.id).or_insert(0) += 1;
                    }
                }
            });
        });
        assert_eq!(done.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from([1]));
        assert_eq!(check_counts(&store).jobs_in(State::Done), 4 * EACH as u64);
    });
}
