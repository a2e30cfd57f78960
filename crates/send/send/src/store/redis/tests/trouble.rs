//! Tests of a store whose server is unreachable, slow, has lost writes, or has another clock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::job::JobRequest;
use crate::store::keys::Heartbeat;
use crate::store::redis::*;
use crate::store::{JobChange, JobStep, LaneClaim};
use crate::wall_clock::wall_ms;
use weir_testing::{Manner, Proxy, RedisServer};

fn open(url: &str) -> RedisStore {
    let address = QueueAddress::read(url).unwrap();
    RedisStore::open(&address, true, QueueBounds::default(), JobOrder::Fifo).unwrap()
}

fn jobs(ids: impl IntoIterator<Item = String>) -> Vec<Job> {
    let request = || JobRequest { method: "GET".into(), url: "http://localhost/".into(), ..JobRequest::default() };
    ids.into_iter()
        .map(|id| Job { id: Some(id), request: request(), created_at: wall_ms(), ..Job::default() })
        .collect()
}

fn nameless(count: usize) -> Vec<Job> {
    vec![Job::default(); count]
}

fn claim(most: usize) -> ClaimRequest {
    let wants = ["", "localhost"]
        .map(|host| LaneClaim { lane: JobLane { host: host.into(), ..JobLane::default() }, max_jobs: most })
        .to_vec();
    ClaimRequest { now: wall_ms(), lease_duration: Nanos::NEVER, lanes: wants, max_bytes: u64::MAX, marks_sent: true }
}

fn done(lease: JobLease) -> JobChange {
    JobChange { lease, at: wall_ms(), reason: "so".into(), step: JobStep::Done, attempt: None, response: None }
}

fn record(changes: Vec<JobChange>) -> RecordRequest {
    RecordRequest { changes, key_states: Vec::new() }
}

#[test]
fn a_call_that_is_repeated_after_a_lost_reply_is_executed_once() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::start(&server);
    let store = open(&proxy.url("queue=a"));
    store.start_sending(wall_ms()).unwrap();
    proxy.set(Manner::Mute);
    // Without IDs: only the number of the call shows that they are accepted.
    let submitted = store.submit(nameless(3));
    let asked = |of: &str| server.say(&["HGET", "weir:a:meta", of]);
    until(|| asked("last_number").contains('3'));
    proxy.set(Manner::Pass);
    assert_eq!(submitted.wait().unwrap(), [1, 2, 3].map(Receipt::Accepted));

    proxy.set(Manner::Mute);
    let claimed = store.claim(claim(2));
    until(|| asked("last_lease").contains('2'));
    proxy.set(Manner::Pass);
    let claimed = claimed.wait().unwrap().jobs;
    assert_eq!(claimed.iter().map(|(lease, _)| (lease.number, lease.token)).collect::<Vec<_>>(), [(1, 1), (2, 2)]);

    proxy.set(Manner::Mute);
    let recorded = store.record(record(claimed.iter().map(|(lease, _)| done(*lease)).collect()));
    until(|| server.say(&["HGET", "weir:a:tally", "done:jobs"]).contains('2'));
    proxy.set(Manner::Pass);
    assert_eq!(recorded.wait().unwrap(), RecordReply::default(), "and not: their leases are over");
    let counts = store.counts().unwrap();
    assert_eq!((counts.jobs_in(State::Done), counts.jobs_in(State::Queued)), (2, 1));
}

/// Waits for a condition of other threads.
fn until(is_so: impl Fn() -> bool) {
    let clock = weir_machine::clock::Clock::starting_in(Nanos::ZERO);
    while !is_so() {
        assert!(clock.now() < Nanos::from_secs(20), "it does not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_restarted_server_has_lost_nothing_and_gives_no_number_twice() {
    let Some(mut server) = RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let store = open(&server.url("queue=a&strict=1&lease=300ms"));
    store.start_sending(wall_ms()).unwrap();
    store.submit(jobs((0..50).map(|n| n.to_string()))).wait().unwrap();
    let claimed = store.claim(claim(5)).wait().unwrap().jobs;
    server.kill();
    let waits = store.submit(jobs(["late".into()]));
    let recorded = store.record(record(vec![done(claimed[0].0)]));
    until(|| store.unreachable_reason().is_some());
    assert!(matches!(store.counts(), Err(StoreError::Unreachable(..))));
    server.begin();
    let Receipt::Accepted(number) = waits.wait().unwrap()[0] else { panic!("it is new") };
    assert!(number > 1_000_000, "{number}: more than may have been lost is left out");
    assert_eq!(recorded.wait().unwrap(), RecordReply::default());
    until(|| store.unreachable_reason().is_none());
    let counts = store.counts().unwrap();
    assert_eq!((counts.jobs_in(State::Done), counts.open_jobs()), (1, 50));
}

#[test]
fn a_failover_that_lost_writes_gives_no_key_to_two_senders() {
    let Some(mut server) = RedisServer::with(&["--appendonly", "no"]) else { return };
    let url = server.url("queue=a&lease=1s");
    let (first, second) = (open(&url), open(&url));
    let take = |store: &RedisStore| {
        let beat = Heartbeat { can_send: true, acquire: vec!["k".into()], ..Heartbeat::default() };
        store.heartbeat(beat).wait().unwrap().acquired.remove(0)
    };
    first.submit(jobs(["kept".into()])).wait().unwrap();
    let kept = server.snapshot();
    let token = take(&first).unwrap().token;
    first.submit(jobs(["lost".into()])).wait().unwrap();
    server.fail_over(&kept);

    // By the server's table the key is free; the first sender still uses it.
    let second_taken = take(&second);
    assert_eq!(second_taken, None, "for a lease only its owner gets it");
    let renew = Heartbeat { can_send: true, renew: vec![("k".into(), token, false)], ..Heartbeat::default() };
    assert_eq!(first.heartbeat(renew.clone()).wait().unwrap().renewed, [true]);
    assert_eq!(take(&second), None);
    until(|| take(&second).is_some());
    assert_eq!(first.heartbeat(renew).wait().unwrap().renewed, [false]);
    assert_eq!(first.inspect(&JobSelector::Id("lost".into())).unwrap(), None, "as the server has lost it");
    assert!(first.inspect(&JobSelector::Id("kept".into())).unwrap().is_some());
    let Receipt::Accepted(number) = first.submit(jobs(["lost".into()])).wait().unwrap()[0] else { panic!("it is new") };
    assert!(number > 2, "{number} was another job's");
}

#[test]
fn a_lease_that_expired_before_a_failover_is_not_renewed_after_it_and_tokens_only_grow() {
    let Some(mut server) = RedisServer::with(&["--appendonly", "no"]) else { return };
    let url = server.url("queue=a&lease=2s");
    let (first, second) = (open(&url), open(&url));
    let take = |store: &RedisStore| {
        let beat = Heartbeat { can_send: true, acquire: vec!["k".into()], ..Heartbeat::default() };
        store.heartbeat(beat).wait().unwrap().acquired.remove(0).map(|taken| taken.token)
    };
    let renew = |store: &RedisStore, token: u64, over: bool| {
        let beat = Heartbeat { can_send: true, renew: vec![("k".into(), token, over)], ..Heartbeat::default() };
        store.heartbeat(beat).wait().unwrap().renewed
    };
    let firsts = take(&first).unwrap();
    let kept = server.snapshot();
    let mut seconds = None;
    let found = std::cell::RefCell::new(&mut seconds);
    until(|| {
        **found.borrow_mut() = take(&second);
        found.borrow().is_some()
    });
    let seconds = seconds.unwrap();
    assert!(seconds > firsts);
    server.fail_over(&kept);

    // The server has only the first sender in its table, which is cut off meanwhile.
    assert_eq!(renew(&first, firsts, true), [false]);
    assert_eq!(renew(&second, seconds, false), [true]);
    assert_eq!(renew(&first, firsts, false), [false], "its token is not the highest");
    let mut last = None;
    let found = std::cell::RefCell::new(&mut last);
    until(|| {
        **found.borrow_mut() = take(&first);
        found.borrow().is_some()
    });
    assert!(last.unwrap() > seconds);
}

#[test]
fn a_job_whose_end_the_server_has_lost_is_requeued_and_a_leased_one_stays() {
    let Some(mut server) = RedisServer::with(&["--appendonly", "no"]) else { return };
    let store = open(&server.url("queue=a&lease=1s"));
    store.start_sending(wall_ms()).unwrap();
    store.submit(jobs(["ended".into(), "held".into()])).wait().unwrap();
    let claimed = store.claim(claim(2)).wait().unwrap().jobs;
    let kept = server.snapshot();
    assert_eq!(store.record(record(vec![done(claimed[0].0)])).wait().unwrap(), RecordReply::default());
    server.fail_over(&kept);
    // Any call notices the restart.
    until(|| store.heartbeat(Heartbeat::default()).wait().is_ok());
    let status = |id: &str| store.inspect(&JobSelector::Id(id.into())).unwrap().unwrap().entry.status;
    until(|| status("ended").state == State::Queued);
    assert!(status("ended").maybe_sent, "it was sent, with an unknown outcome");
    assert_eq!(status("held").state, State::Leased);
    assert_eq!(store.record(record(vec![done(claimed[1].0)])).wait().unwrap(), RecordReply::default());
    let again = store.claim(claim(2)).wait().unwrap().jobs;
    assert_eq!(again.iter().map(|(lease, _)| lease.number).collect::<Vec<_>>(), [claimed[0].0.number]);
}

#[test]
fn a_mark_that_a_failover_lost_is_set_anew_and_of_a_sender_that_died_meanwhile_all_jobs_are_in_doubt() {
    let Some(mut server) = RedisServer::with(&["--appendonly", "no"]) else { return };
    let url = server.url("queue=a&lease=1s");
    let store = open(&url);
    store.start_sending(wall_ms()).unwrap();
    store.submit(jobs(["sent".into(), "next".into()])).wait().unwrap();
    let claimed = store.claim(ClaimRequest { marks_sent: false, ..claim(2) }).wait().unwrap().jobs;
    let kept = server.snapshot();
    let sent = JobChange { step: JobStep::Sent, attempt: None, ..done(claimed[0].0) };
    assert_eq!(store.record(record(vec![sent])).wait().unwrap(), RecordReply::default());
    server.fail_over(&kept);
    until(|| store.heartbeat(Heartbeat::default()).wait().is_ok());
    let status =
        |store: &RedisStore, id: &str| store.inspect(&JobSelector::Id(id.into())).unwrap().unwrap().entry.status;
    until(|| status(&store, "sent").last_attempt.is_some());
    assert_eq!((status(&store, "next").state, status(&store, "next").last_attempt), (State::Leased, None));

    // Once more, without a heartbeat afterwards.
    drop(store);
    server.fail_over(&kept);
    let next = open(&url);
    next.start_sending(wall_ms()).unwrap();
    until(|| next.claim(claim(0)).wait().is_ok() && status(&next, "sent").state == State::Queued);
    assert!(status(&next, "sent").maybe_sent && status(&next, "next").maybe_sent);
}

#[test]
fn a_key_resumes_from_the_state_of_its_last_owner_or_without_one() {
    let Some(server) = RedisServer::start() else { return };
    let url = server.url("queue=a&lease=300ms");
    let (first, second) = (open(&url), open(&url));
    let beat = |store: &RedisStore, beat: Heartbeat| store.heartbeat(beat).wait().unwrap();
    let take = || Heartbeat { can_send: true, acquire: vec!["k".into()], ..Heartbeat::default() };
    let taken = beat(&first, take()).acquired.remove(0).unwrap();
    assert_eq!((taken.token, taken.state.as_str(), taken.released_ago.is_some()), (1, "", true), "it was never used");
    let rejected = beat(&second, take());
    assert_eq!(rejected.acquired, [None]);
    assert_eq!(rejected.table.placements[0].owner.as_deref(), Some(first.sender_name()));
    let give = Heartbeat { can_send: true, release: vec![("k".into(), 1, "all of it".into())], ..Heartbeat::default() };
    beat(&first, give);
    let note = StoredKeyState { key: "k".into(), state: "too late".into() };
    first.start_sending(wall_ms()).unwrap();
    first.record(RecordRequest { changes: Vec::new(), key_states: vec![note] }).wait().unwrap();
    let taken = beat(&second, take()).acquired.remove(0).unwrap();
    assert_eq!((taken.token, taken.state.as_str()), (2, "all of it"));
    assert!(taken.released_ago.is_some());
    drop(second);
    let mut last = None;
    let found = std::cell::RefCell::new(&mut last);
    until(|| {
        **found.borrow_mut() = beat(&first, take()).acquired.remove(0);
        found.borrow().is_some()
    });
    let taken = last.unwrap();
    assert_eq!((taken.token, taken.released_ago), (3, None), "its sends are unknown");
    assert!(taken.lease_ended_ago < Nanos::from_secs(5));
}

#[test]
fn jobs_of_a_gone_sender_are_requeued_and_flagged_and_its_late_records_are_rejected() {
    let Some(server) = RedisServer::start() else { return };
    let url = server.url("queue=a&lease=300ms");
    let proxy = Proxy::start(&server);
    let (gone, other) = (open(&proxy.url("queue=a&lease=300ms")), open(&url));
    gone.start_sending(wall_ms()).unwrap();
    other.start_sending(wall_ms()).unwrap();
    other.submit(jobs(["a".into(), "b".into()])).wait().unwrap();
    let held = gone.claim(claim(1)).wait().unwrap().jobs.remove(0);
    proxy.set(Manner::Cut);
    let mut taken = Vec::new();
    let all = std::cell::RefCell::new(&mut taken);
    until(|| {
        all.borrow_mut().extend(other.claim(claim(2)).wait().unwrap().jobs);
        all.borrow().len() == 2
    });
    let again = taken.iter().find(|(lease, _)| lease.number == held.0.number).unwrap();
    assert!(again.1.status.maybe_sent && again.1.status.attempts == 1);
    let late = gone.record(record(vec![done(held.0)]));
    proxy.set(Manner::Pass);
    assert_eq!(late.wait().unwrap().stale, [held.0]);
    assert_eq!(other.record(record(vec![done(again.0)])).wait().unwrap().stale, []);
}

#[test]
fn a_claim_with_a_lost_reply_keeps_no_job_from_others() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::start(&server);
    let store = open(&proxy.url("queue=a"));
    store.start_sending(wall_ms()).unwrap();
    store.submit(nameless(2)).wait().unwrap();
    proxy.set(Manner::Mute);
    let claimed = store.claim(claim(2)).wait();
    assert!(matches!(claimed, Err(StoreError::Unreachable(..))), "{claimed:?}");
    proxy.set(Manner::Pass);
    let mut claimed = Vec::new();
    let all = std::cell::RefCell::new(&mut claimed);
    until(|| {
        all.borrow_mut().extend(store.claim(claim(2)).wait().map_or_else(|_| Vec::new(), |claimed| claimed.jobs));
        all.borrow().len() == 2
    });
    assert!(claimed.iter().all(|(_, entry)| !entry.status.maybe_sent && entry.status.attempts == 0), "{claimed:?}");
}

#[test]
fn a_slow_server_only_delays() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::start(&server);
    let store = open(&proxy.url("queue=a"));
    store.start_sending(wall_ms()).unwrap();
    proxy.set(Manner::Slow(Duration::from_millis(100), Duration::from_millis(200)));
    let tickets: Vec<_> = (0..20).map(|_| store.submit(nameless(5))).collect();
    for ticket in tickets {
        assert_eq!(ticket.wait().unwrap().len(), 5);
    }
    assert_eq!(store.claim(claim(100)).wait().unwrap().jobs.len(), 100);
    assert_eq!(store.unreachable_reason(), None);
}

#[test]
fn times_are_translated_for_a_machine_whose_clock_is_an_hour_off() {
    let Some(server) = RedisServer::start() else { return };
    let url = server.url("queue=a");
    let (right, wrong) = (open(&url), open(&url));
    const HOUR: i64 = 3_600_000;
    // Its clock is an hour behind the server's.
    wrong.shared.context.clock_offset_ms.store(HOUR, Relaxed);
    let now = wall_ms();
    let its_now = UnixMs(now.0 - HOUR);
    let job = Job { created_at: its_now, expires_at: Some(its_now.plus_ms(60_000)), ..Job::default() };
    wrong.submit(vec![job.clone()]).wait().unwrap();
    let seen = |store: &RedisStore| store.inspect(&JobSelector::Number(1)).unwrap().unwrap().entry.job;
    assert_eq!(seen(&right).expires_at, Some(now.plus_ms(60_000)));
    assert_eq!(seen(&wrong), job);
    right.start_sending(now).unwrap();
    assert_eq!(right.claim(claim(1)).wait().unwrap().jobs.len(), 1, "it has not expired, by any clock");
    let terms = Arc::clone(&right.shared.context);
    terms.update_clock_offset(1000, 1000 + HOUR, 1004);
    assert_eq!(terms.clock_offset_ms.load(Relaxed), HOUR - 2);
    terms.update_clock_offset(1000, 1005, 1004);
    assert_eq!(terms.clock_offset_ms.load(Relaxed), 0, "the delay of the network is not a difference of clocks");
}

#[test]
fn strict_mode_rejects_a_server_that_may_lose_a_second_and_eviction_is_always_rejected() {
    let told = |args: &[&str], asked: &str| {
        let server = RedisServer::with(args)?;
        let address = QueueAddress::read(&server.url(asked)).unwrap();
        let opened = RedisStore::open(&address, true, QueueBounds::default(), JobOrder::Fifo);
        Some(opened.err().map(|error| error.to_string()))
    };
    for (args, asked, why) in [
        (&["--appendonly", "yes"][..], "strict=1", Some("it may lose the last second (appendfsync everysec)")),
        (&["--appendonly", "no"], "strict=1", Some("it has no append-only file")),
        (&["--appendonly", "no"], "strict=0", None),
        (&["--appendonly", "yes", "--appendfsync", "always"], "strict=1", None),
        (&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"], "", Some("it evicts keys")),
    ] {
        let Some(said) = told(args, asked) else { return };
        match (&said, why) {
            (Some(said), Some(why)) => assert!(said.contains(why) && said.contains("may lose jobs"), "{said}"),
            (None, None) => {}
            _ => panic!("{args:?} {asked}: {said:?}"),
        }
    }
}

#[test]
fn an_inspection_does_not_create_a_queue() {
    let Some(server) = RedisServer::start() else { return };
    let address = QueueAddress::read(&server.url("queue=missing")).unwrap();
    let opened = RedisStore::open(&address, false, QueueBounds::default(), JobOrder::Fifo);
    assert!(matches!(opened, Err(StoreError::NoStore(_))));
    assert!(server.say(&["KEYS", "*"]).starts_with("*0"));
}
