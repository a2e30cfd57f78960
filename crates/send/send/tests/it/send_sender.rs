//! The sender in Rust: submitted jobs, and events for a listener.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{self, Sender as Pipe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_base::Nanos;
use weir_delivery::key_window::KeyLimit;
use weir_limits::models::{LimitModel, LimitWindow};
use weir_send::store::{JobOrder, MemoryStore, QueueBounds, Store};
use weir_send::{
    ApiKey, FinishedJob, Job, JobEntry, JobRequest, KeyHosts, Listener, Options, Sender, SenderError, SenderEvent,
    State, TemplateParts, UnixMs,
};
use weir_testing::{Gate, Reply, Server, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Listener that passes ended jobs on.
struct Ends(Mutex<Pipe<FinishedJob>>);

impl Listener for Ends {
    fn on_events(&mut self, news: &[SenderEvent]) -> io::Result<()> {
        for news in news {
            if let SenderEvent::JobEnded(ended) = news {
                let copy = FinishedJob {
                    entry: ended.entry.clone(),
                    reason: ended.reason.clone(),
                    last_attempt: ended.last_attempt.clone(),
                    body: ended.body.clone(),
                    ..**ended
                };
                let _ = self.0.lock().unwrap().send(copy);
            }
        }
        Ok(())
    }
}

/// Listener without space.
struct Full;

impl Listener for Full {
    fn on_events(&mut self, _: &[SenderEvent]) -> io::Result<()> {
        Err(io::Error::other("no room"))
    }

    fn reported_state(&mut self, _: &JobEntry) -> Option<State> {
        None
    }
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(QueueBounds::default(), JobOrder::Fifo))
}

/// Request whose URL is a template.
fn request(url: String) -> JobRequest {
    let templates = TemplateParts { url_bytes: url.len(), ..TemplateParts::default() };
    JobRequest { method: "GET".into(), url, templates, ..JobRequest::default() }
}

/// Options with keys that the server may have.
fn with_keys(server: &Server, keys: &[&str]) -> Options {
    let keys = keys.iter().map(|key| ApiKey::new(*key)).collect();
    Options { keys, key_hosts: KeyHosts::new(Some(&server.url("/")), &[]).unwrap(), ..Options::default() }
}

fn job(server: &Server, id: &str) -> Job {
    let request = request(server.url("/{id}?k={key}"));
    Job { id: Some(id.to_owned()), request, ..Job::default() }
}

#[test]
fn jobs_submitted_while_it_runs_are_sent_and_reported() {
    let server = Server::start(|seen| Reply::ok(seen.line().split(' ').nth(1).unwrap()));
    let (ends, ended) = mpsc::channel();
    let options = with_keys(&server, &["secret"]);
    let sender = Sender::start(store(), options, Box::new(Ends(Mutex::new(ends)))).unwrap();
    for round in 0..3 {
        let receipts = sender.submit(vec![job(&server, &format!("{round}-a")), job(&server, &format!("{round}-b"))]);
        assert_eq!(receipts.wait().unwrap().len(), 2);
        for _ in 0..2 {
            let ended = ended.recv_timeout(TIMEOUT).unwrap();
            assert_eq!(ended.state, State::Done);
            let id = ended.entry.job.id.unwrap();
            assert!(id.starts_with(&round.to_string()));
            assert_eq!(ended.body, format!("/{id}?k=secret"));
            let tried = ended.last_attempt.unwrap();
            assert_eq!((tried.outcome, tried.key, tried.succeeded, ended.attempts), (Ok(200), 0, true, 1));
            assert!(tried.lateness.is_some());
        }
    }
    sender.finish();
    sender.join().unwrap();
    assert!(ended.recv().is_err(), "nothing else, and the listener is gone");
}

#[test]
fn a_job_with_an_invalid_request_is_dead_lettered_and_the_others_go_on() {
    let server = Server::hello();
    let (ends, ended) = mpsc::channel();
    let options = with_keys(&server, &["my secret"]);
    let sender = Sender::start(store(), options, Box::new(Ends(Mutex::new(ends)))).unwrap();
    let request = request("nowhere://{key}".into());
    let wrong = Job { id: Some("wrong".into()), request, ..Job::default() };
    sender.submit(vec![wrong, job(&server, "right")]).wait().unwrap();
    sender.finish();
    let mut all: Vec<_> = ended.iter().map(|ended| (ended.entry.job.id.unwrap(), ended.state, ended.reason)).collect();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    assert_eq!((all[0].0.as_str(), all[0].1), ("right", State::Done));
    assert_eq!((all[1].0.as_str(), all[1].1), ("wrong", State::DeadLettered));
    assert!(all[1].2.contains("nowhere") && !all[1].2.contains("secret"), "{all:?}");
    sender.join().unwrap();
}

#[test]
fn unreported_jobs_are_not_recorded_as_done() {
    let server = Server::hello();
    let store = store();
    let sender = Sender::start(Arc::clone(&store), with_keys(&server, &["k"]), Box::new(Full)).unwrap();
    sender.submit(vec![job(&server, "a")]).wait().unwrap();
    until("its end", TIMEOUT, || sender.has_ended());
    let why = sender.join().unwrap_err();
    assert!(matches!(&why, SenderError::Listener(text) if text.contains("no room")), "{why}");
    assert_eq!(store.counts().unwrap().jobs_in(State::Done), 0);
}

#[test]
fn a_dropped_sender_ends() {
    let server = Server::start(|_| Reply::nothing().freeze());
    let sender = Sender::start(store(), with_keys(&server, &["k"]), Box::new(())).unwrap();
    sender.submit(vec![job(&server, "a")]).wait().unwrap();
    until("a request", TIMEOUT, || server.requests() == 1);
    drop(sender);
}

#[test]
fn a_draining_sender_ends_when_its_last_request_has_failed() {
    let gate = Gate::default();
    let shared = gate.clone();
    let server = Server::start(move |_| Reply::nothing().wait_for(&shared).close());
    let store = store();
    let mut options = with_keys(&server, &["k"]);
    // The request is not repeated.
    options.rules.key.limits = vec![KeyLimit::new(LimitWindow::read("1/1h", LimitModel::SlidingLog).unwrap())];
    let sender = Sender::start(Arc::clone(&store), options, Box::new(())).unwrap();
    sender.submit(vec![job(&server, "a")]).wait().unwrap();
    until("a request", TIMEOUT, || server.requests() == 1);
    // Longer than the test waits.
    sender.drain(Nanos::from_secs(3600));
    gate.open();
    until("its end", TIMEOUT, || sender.has_ended());
    sender.join().unwrap();
    assert_eq!(store.counts().unwrap().jobs_in(State::Queued), 1, "it was released");
}

#[test]
fn the_progress_shows_a_disabled_key_while_no_job_ends() {
    let server =
        Server::start(
            |seen| {
                if seen.line().contains("k=bad") { Reply::status(401, "") } else { Reply::nothing().freeze() }
            },
        );
    let options = with_keys(&server, &["bad", "good"]);
    let sender = Sender::start(store(), options, Box::new(())).unwrap();
    sender.submit((0..8).map(|number| job(&server, &format!("{number}"))).collect()).wait().unwrap();
    until("one key to be disabled", TIMEOUT, || sender.progress().usable_keys == 1);
}

#[test]
fn a_sender_that_is_stopped_while_it_starts_ends() {
    // At different moments of the start.
    for spins in 0..2_000_u32 {
        // Dropping one that does not end would wait for its end.
        let sender = ManuallyDrop::new(Sender::start(store(), Options::default(), Box::new(Full)).unwrap());
        (0..spins % 100 * 20).for_each(|_| std::hint::spin_loop());
        match spins % 3 {
            0 => sender.drain(Nanos::SECOND),
            1 => sender.finish(),
            _ => sender.stop(),
        }
        until("its end", TIMEOUT, || sender.has_ended());
        ManuallyDrop::into_inner(sender).join().unwrap();
    }
}

#[test]
fn an_expired_job_is_reported_as_expired() {
    let server = Server::hello();
    let (ends, ended) = mpsc::channel();
    let sender = Sender::start(store(), Options::default(), Box::new(Ends(Mutex::new(ends)))).unwrap();
    let late = Job { expires_at: Some(UnixMs(1)), ..job(&server, "late") };
    sender.submit(vec![late]).wait().unwrap();
    let ended = ended.recv_timeout(TIMEOUT).unwrap();
    assert_eq!((ended.state, ended.attempts, server.requests()), (State::Expired, 0, 0));
    sender.drain(Nanos::SECOND);
    sender.join().unwrap();
}
