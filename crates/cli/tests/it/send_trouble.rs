//! `weir send` during failures: service restarts, invalid responses, closed connections, a suspended process, a full
//! disk, an unknown name. Limits hold afterwards, and no job is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long a process is suspended, and when it is killed, is up to the test"
)]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;
use weir_send::store::{self, JobFilter, JobSelector, SqliteStore, Store, StoreError};
use weir_send::{Job, JobRequest, State};
use weir_testing::{Disk, Gate, Reply, Running, Server, Serving, Stalling, Stalls, Weir, spawn_tied, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(120);
const LIMIT: &str = "20/200ms";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";

fn jobs(weir: &Weir, count: usize) {
    let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
}

fn results(weir: &Weir) -> HashMap<String, Value> {
    let text = weir.read("out.jsonl");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: HashMap<_, _> = lines.map(|line| (line["id"].as_str().unwrap().to_owned(), line)).collect();
    assert_eq!(all.len(), text.lines().count(), "each job has one result");
    all
}

fn send(weir: &Weir, url: &str, args: &[&str]) -> Running {
    let plain =
        ["send", "jobs.jsonl", "--store", "jobs.db", "--out", "out.jsonl", "--format", "json", "-q", "--url", url];
    weir.start(&[&plain, args].concat())
}

fn exchange(args: &[&str]) -> Serving {
    let ways = ["ratelimit", "--latency-in", "0ms..20ms", "--latency-out", "0ms..20ms", "--limit", LIMIT];
    Serving::start(&[&ways, args].concat())
}

/// Sends to the service with all its keys.
fn send_to(exchange: &Serving, weir: &Weir) -> Running {
    send(weir, &keyed_url(exchange, weir), &SENDER_FLAGS)
}

/// A busy machine delays a request by less than the delay bound, and a response ends the wait for it.
const SENDER_FLAGS: [&str; 7] = ["--keys-file", "keys.txt", "--limit", LIMIT, "--delay-bound", "5s", "--ordered"];

/// URL for the requests to the service, whose keys are written to a file.
fn keyed_url(exchange: &Serving, weir: &Weir) -> String {
    let stats = exchange.get("/stats").json();
    let keys: Vec<String> = stats["keys"].as_object().unwrap().keys().cloned().collect();
    weir.write("keys.txt", keys.join("\n"));
    format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", exchange.url)
}

/// A sender of this many jobs that has begun.
fn sending(exchange: &Serving, count: usize) -> (Weir, Running) {
    let weir = Weir::new();
    jobs(&weir, count);
    let running = send_to(exchange, &weir);
    (weir, running)
}

/// Checks that each job is done; returns the results.
fn check_done(weir: &Weir, count: usize) -> HashMap<String, Value> {
    let results = results(weir);
    assert!(results.len() == count && results.values().all(|result| result["state"] == "done"));
    results
}

fn accepted(exchange: &Serving) -> u64 {
    exchange.get("/stats").json()["accepted"].as_u64().unwrap()
}

fn rejected(exchange: &Serving) -> u64 {
    let stats = exchange.get("/stats").json();
    stats["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn a_suspended_sender_breaks_no_limit_when_it_goes_on() {
    let exchange = exchange(&[]);
    let (weir, running) = sending(&exchange, 800);
    // Longer than the window, and than window plus bound.
    for (round, pause_ms) in (1..).zip([250, 500, 750, 5500]) {
        until("some requests", TIMEOUT, || accepted(&exchange) >= round * 120);
        running.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(pause_ms));
        running.signal(Signal::CONT);
    }
    let output = running.finish();
    assert_eq!((output.code, rejected(&exchange)), (0, 0), "{output:?}");
    check_done(&weir, 800);
}

/// Whether the sender has noticed that the host is down: it has leased only the jobs that it needs.
fn has_put_back(queue: &SqliteStore) -> bool {
    let filter =
        JobFilter { states: vec![State::Queued], text: Some("the host is down".into()), ..JobFilter::default() };
    !queue.list(&filter, 0, 1).unwrap().is_empty()
}

#[test]
fn a_sender_on_a_host_that_stalls_breaks_no_limit_and_sends_each_job_once() {
    let (exchange, weir) = (exchange(&[]), Weir::new());
    let url = keyed_url(&exchange, &weir);
    let plain = ["send", "-", "--store", "jobs.db", "--out", "out.jsonl", "-q", "--url", &url];
    let mut child = spawn_tied(weir.command(&[&plain[..], &SENDER_FLAGS].concat()).stdin(Stdio::piped())).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let running = Running::of(child);
    let stalls = Stalls::of(running.pid(), Stalling { per_s: 10.0, ..Stalling::default() });
    // It has jobs for as long as it takes to stall often.
    let mut count = 0;
    while count < 600 || stalls.count() < 10 {
        writeln!(stdin, "{{\"id\":\"j{count}\"}}").unwrap();
        count += 1;
        until("it to keep up", TIMEOUT, || accepted(&exchange) + 200 >= count);
    }
    drop(stdin);
    let output = running.finish();
    assert_eq!((output.code, rejected(&exchange), accepted(&exchange)), (0, 0, count), "{output:?}");
    check_done(&weir, count as usize);
}

#[test]
fn a_service_that_restarts_loses_no_job_and_rejects_none() {
    let first = exchange(&[]);
    let port = first.address.rsplit(':').next().unwrap().to_owned();
    // So many that some are left, however late the kill is.
    const COUNT: usize = 1500;
    let (weir, running) = sending(&first, COUNT);
    until("some requests", TIMEOUT, || accepted(&first) >= 200);
    assert_eq!(rejected(&first), 0);
    first.signal(Signal::KILL);
    assert_eq!(first.finish().code, -1);
    let options = store::Options { create: false, ..store::Options::default() };
    until("connections to be refused", TIMEOUT, || {
        let queue = SqliteStore::open(&weir.path("jobs.db"), &options).unwrap();
        has_put_back(&queue)
    });
    let restart_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let second = exchange(&["--port", &port]);
    let output = running.finish();
    assert_eq!((output.code, rejected(&second)), (0, 0), "{output:?}");
    let results = check_done(&weir, COUNT);
    let before = results.values().filter(|result| result["ended_ms"].as_u64().unwrap() < restart_ms).count();
    assert!((200 - 5..COUNT).contains(&before), "{before}: what was out is all that is unknown");
    assert_eq!(accepted(&second) as usize, COUNT - before, "what had no response is sent again, and nothing else");
    let attempts: u64 = results.values().map(|result| result["attempts"].as_u64().unwrap()).sum();
    assert!(attempts <= COUNT as u64 + 5, "{attempts} attempts: a refused connection costs none");
}

#[test]
fn a_down_service_gets_probes_and_not_every_job() {
    let weir = Weir::new();
    jobs(&weir, 5000);
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let running = send(&weir, &format!("http://{address}/"), &[]);
    let options = store::Options { create: false, ..store::Options::default() };
    until("all jobs to be accepted, and some to be tried", TIMEOUT, || {
        let Ok(queue) = SqliteStore::open(&weir.path("jobs.db"), &options) else { return false };
        let counts = queue.counts().unwrap();
        counts.open_jobs() == 5000 && has_put_back(&queue)
    });
    let (service, mut probes) = (std::net::TcpListener::bind(address).unwrap(), 0);
    service.set_nonblocking(true).unwrap();
    until("some probes, whose connections are closed at once", TIMEOUT, || {
        probes += usize::from(service.accept().is_ok());
        probes >= 3
    });
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(told["failed"].as_u64().unwrap() < 30, "{told}");
}

/// Ways in which a response is invalid.
fn troubles() -> Vec<Reply> {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it";
    vec![
        Reply::nothing().reset(),
        Reply::nothing().close(),
        Reply::raw("HTTP/1.1 20").reset(),
        Reply::raw(half).reset(),
        Reply::raw(half).close(),
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nno").close(),
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal").close(),
        Reply::raw("this is not HTTP at all\r\n\r\n").close(),
        Reply::raw([0; 300]).close(),
        Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))).close(),
        Reply::raw("HTTP/1.1 099 What\r\n\r\n").close(),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").close(),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab").close(),
    ]
}

#[test]
fn incomplete_or_invalid_responses_break_no_limit_and_lose_no_job() {
    const EACH: usize = 6;
    let (limit, window) = (10, Duration::from_millis(200));
    let count = troubles().len() * EACH;
    let tried = Mutex::new(HashSet::new());
    let server = Server::start(move |seen| {
        let number: usize = seen.line().split(['/', '?']).nth(1).unwrap().trim_start_matches('j').parse().unwrap();
        // The first attempt of each fails, by all ways in turn.
        let is_first = tried.lock().unwrap().insert(number);
        if is_first { troubles().swap_remove(number % troubles().len()) } else { Reply::ok("fine") }
    });
    let weir = Weir::new();
    jobs(&weir, count);
    let url = server.url("/{id}?nonce={nonce}");
    let flags = ["--limit", "10/200ms", "--delay-bound", "none", "--ordered", "--key", "k", "--backoff", "5ms..50ms"];
    let output = send(&weir, &url, &flags).finish();
    assert_eq!(output.code, 0, "{output:?}");
    let results = results(&weir);
    assert_eq!(results.len(), count);
    for (id, result) in &results {
        assert_eq!((&result["state"], &result["attempts"]), (&"done".into(), &2.into()), "{id}: {result}");
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 2 * count);
    for (first, next) in seen.iter().zip(&seen[limit..]) {
        assert!(next.at - first.at > window, "{limit} and one more within {:?}", next.at - first.at);
    }
    let nonce = |line: &str| line.split(['=', ' ']).nth(2).unwrap().parse::<u64>().unwrap();
    let nonces: Vec<u64> = seen.iter().map(|seen| nonce(seen.line())).collect();
    assert!(nonces.windows(2).all(|pair| pair[0] < pair[1]), "{nonces:?}");
}

#[test]
fn an_unknown_name_keeps_its_job_and_blocks_no_others() {
    let server = Server::hello();
    let weir = Weir::new();
    let others: String = (0..50).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", format!("{{\"id\":\"gone\",\"url\":\"http://nowhere.invalid/\"}}\n{others}"));
    let running = send(&weir, &server.url("/"), &["--max-concurrency", "2", "--retries", "0"]);
    let options = store::Options { create: false, ..store::Options::default() };
    let state = |id: &str| {
        let queue = SqliteStore::open(&weir.path("jobs.db"), &options).ok()?;
        Some(queue.inspect(&JobSelector::Id(id.into())).unwrap()?.entry.status)
    };
    until("the others", TIMEOUT, || server.requests() == 50);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let gone = state("gone").unwrap();
    assert_eq!((gone.state, gone.attempts, gone.maybe_sent), (State::Queued, 0, false), "it costs no try");
    assert_eq!(results(&weir).len(), 50);
}

/// A disk of 32 MiB at a new folder, if one can be mounted here.
fn small_disk(folder: &Path) -> Option<Disk> {
    fs::create_dir(folder).unwrap();
    let disk = Disk::mount(folder, 32);
    if disk.is_none() {
        eprintln!("no disk can be mounted here");
    }
    disk
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing_that_was_accepted() {
    const COUNT: usize = 300;
    let server = Server::start(|_| Reply::ok("x").after(Duration::from_millis(2)));
    let weir = Weir::new();
    let small = weir.path("small");
    let Some(disk) = small_disk(&small) else { return };
    let lines = (0..COUNT).map(|number| format!("{{\"id\":\"j{number}\",\"body\":\"{}\"}}\n", "x".repeat(2000)));
    weir.write("jobs.jsonl", lines.collect::<String>());
    let url = server.url("/{id}");
    let running = weir.start(&[
        "send",
        "jobs.jsonl",
        "--store",
        "small/jobs.db",
        "--out",
        "out.jsonl",
        "--url",
        &url,
        "--max-concurrency",
        "1",
        "-q",
    ]);
    until("some requests", TIMEOUT, || server.requests() >= 20);
    // A submission by another process is rejected in one line, and existing jobs continue when there is space. The
    // store is opened before: with a full disk, opening can be what fails.
    let queue = SqliteStore::open(&small.join("jobs.db"), &store::Options::default()).unwrap();
    disk.fill();
    let more = |id: String| Job {
        id: Some(id),
        request: JobRequest {
            method: "GET".into(),
            url: server.url("/more"),
            body: vec![b'x'; 50_000],
            ..JobRequest::default()
        },
        weight: 1,
        ..Job::default()
    };
    let told = queue.submit((0..100).map(|number| more(format!("a{number}"))).collect()).wait().unwrap_err();
    let StoreError::NoSpace(_, taken) = told else { panic!("{told}") };
    assert!(told.to_string().starts_with("no space left for the store") && !told.to_string().contains('\n'), "{told}");
    disk.free();
    assert_eq!(queue.submit(vec![more("b".into())]).wait().unwrap().len(), 1);
    drop(queue);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let results = results(&weir);
    assert_eq!(results.len(), COUNT + 1 + taken);
    assert!(results.values().all(|result| result["state"] == "done" && result["attempts"] == 1));
    assert_eq!(server.requests() as usize, results.len(), "each was sent once");
    drop(disk);
}

#[test]
fn a_file_size_limit_is_handled_as_a_full_disk() {
    const COUNT: usize = 2000;
    let opens = Gate::default();
    let server = Server::start({
        let opens = opens.clone();
        // From the twentieth on there is a limit.
        let short = Duration::from_millis(1);
        move |seen| {
            if seen.number < 19 { Reply::raw(OK) } else { Reply::nothing().wait_for(&opens).wait(short).send(OK) }
        }
    });
    let weir = Weir::new();
    jobs(&weir, COUNT);
    let url = server.url("/{id}");
    // A write beyond the limit would end the process by a signal; `trap` makes it fail instead.
    let trapped = ["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_weir")];
    let args =
        ["send", "jobs.jsonl", "--store", "jobs.db", "--out", "out.jsonl", "--max-concurrency", "1", "-q", "--url"];
    let mut command = Command::new("sh");
    command.args(trapped).args(args).arg(&url).current_dir(weir.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::new(&mut command);
    until("some requests", TIMEOUT, || server.requests() >= 20);
    let pid = Pid::from_raw(running.pid() as i32);
    let bound = |bytes| prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    bound(Some(4096));
    opens.open();
    // Requests in flight and claimed jobs still get responses; then nothing can be recorded, and nothing more is sent.
    // Too early a look, on a busy machine, finds a sender that still has some to send, and spoils nothing.
    let mut before = server.requests();
    until("the sender to stand still", TIMEOUT, || {
        std::thread::sleep(Duration::from_secs(1));
        std::mem::replace(&mut before, server.requests()) == server.requests()
    });
    assert!((before as usize) < COUNT, "there was room for all");
    bound(None);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let results = results(&weir);
    assert!(results.len() == COUNT && results.values().all(|result| result["state"] == "done"));
    assert_eq!(server.requests() as usize, COUNT, "each was sent once");
}

#[test]
fn results_without_space_are_written_when_there_is_some() {
    const COUNT: usize = 200;
    let body = "x".repeat(3000);
    let server = Server::start(move |_| Reply::ok(&body).after(Duration::from_millis(2)));
    let weir = Weir::new();
    let small = weir.path("small");
    let Some(disk) = small_disk(&small) else { return };
    jobs(&weir, COUNT);
    let url = server.url("/{id}");
    let args = ["send", "jobs.jsonl", "--store", "jobs.db", "--out", "small/out.jsonl", "--url", &url, "-q"];
    let running = weir.start(&[&args[..], &["--max-concurrency", "1"]].concat());
    until("some requests", TIMEOUT, || server.requests() >= 20);
    disk.fill();
    let stuck = fs::metadata(small.join("out.jsonl")).unwrap().len();
    let told = || fs::read(small.join("out.jsonl")).unwrap().iter().filter(|byte| **byte == b'\n').count();
    until("answers that there is no room for", TIMEOUT, || server.requests() as usize >= told() + 2);
    assert!(fs::metadata(small.join("out.jsonl")).unwrap().len() < stuck + 4096 * 2, "there was room");
    disk.free();
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    fs::copy(small.join("out.jsonl"), weir.path("out.jsonl")).unwrap();
    let results = results(&weir);
    assert!(results.len() == COUNT && results.values().all(|result| result["state"] == "done"));
    assert_eq!(server.requests() as usize, COUNT, "each was sent once");
    drop(disk);
}
