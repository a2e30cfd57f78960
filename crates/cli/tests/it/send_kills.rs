//! `kill -9` of `weir send` at any point while it reads and sends jobs: accepted jobs are delivered, and only requests
//! in flight at a kill are sent twice, and flagged. `WEIR_KILLS=1000` for a longer test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long a process is suspended, and when it is killed, is up to the test"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_base::rng::SeededRng;
use weir_send::State;
use weir_send::store::{JobFilter, Options, SqliteStore, Store};
use weir_testing::{RedisServer, Reply, Running, Seen, Server, Serving, Weir, spawn_tied, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum requests in flight.
const FLIGHT: usize = 4;

fn kills() -> u64 {
    std::env::var("WEIR_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

/// Jobs by round.
type Sends = Arc<Mutex<Vec<(u64, String)>>>;

/// `weir send -` with these lines on stdin, which stays open.
fn start(weir: &Weir, args: &[&str], lines: &str) -> (Running, std::process::ChildStdin) {
    let plain = ["send", "-", "--store", "jobs.db", "--out", "out.jsonl", "-q"];
    let mut command = weir.command(&[&plain, args].concat());
    let mut child = spawn_tied(command.stdin(Stdio::piped())).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may be killed before it has read all lines, but not before they are in the pipe.
    stdin.write_all(lines.as_bytes()).unwrap();
    (Running::of(child), stdin)
}

fn lines(round: u64, count: u64) -> String {
    (0..count).map(|number| format!("{{\"id\":\"{round}-{number}\"}}\n")).collect()
}

/// Complete result lines so far.
#[derive(Default)]
struct Results {
    read: u64,
    /// Round and result, by job.
    told: BTreeMap<String, (u64, Value)>,
}

impl Results {
    fn look(&mut self, weir: &Weir, round: u64) {
        let Ok(mut file) = File::open(weir.path("out.jsonl")) else { return };
        file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        self.read += whole.len() as u64;
        for line in whole.lines() {
            let result: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
            let id = result["id"].as_str().unwrap().to_owned();
            assert_eq!(result["state"], "done", "{result}");
            let before = self.told.insert(id, (round, result));
            assert!(before.is_none(), "told twice: {before:?}");
        }
    }
}

/// Jobs of the store, from this number on.
fn kept(weir: &Weir, after: u64) -> Vec<(u64, String, State)> {
    let options = Options { create: false, ..Options::default() };
    let Ok(store) = SqliteStore::open(&weir.path("jobs.db"), &options) else { return Vec::new() };
    let all = store.list(&JobFilter::default(), after, usize::MAX).unwrap();
    all.into_iter().map(|entry| (entry.number, entry.job.id.unwrap(), entry.status.state)).collect()
}

#[test]
fn no_kill_loses_a_job_or_hides_that_it_was_sent_twice() {
    let kills = kills();
    let (sends, round) = (Sends::default(), Arc::new(AtomicU64::new(0)));
    let server = {
        let (sends, round) = (Arc::clone(&sends), Arc::clone(&round));
        Server::start(move |seen| {
            let id = seen.line().split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
            sends.lock().unwrap().push((round.load(Ordering::Relaxed), id));
            Reply::ok("x").after(Duration::from_micros(seen.number % 7 * 500))
        })
    };
    let weir = Weir::new();
    let url = server.url("/{id}");
    let args = ["--url", &url, "--max-concurrency", &FLIGHT.to_string()];
    let mut rng = SeededRng::new(kills, 1);
    let (mut results, mut accepted) = (Results::default(), Vec::<(u64, String, State)>::new());
    for number in 0..kills {
        round.store(number, Ordering::Relaxed);
        let count = 10 + rng.bits() % 60;
        let begun = server.requests();
        let (running, stdin) = start(&weir, &args, &lines(number, count));
        // Often between jobs, sometimes while they are read, sometimes at the end.
        let after = (rng.bits() % (count + 10)).min(count);
        until("some requests", TIMEOUT, || server.requests() >= begun + after);
        std::thread::sleep(Duration::from_micros(rng.bits() % 4000));
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, -1);
        drop(stdin);
        // The last requests may not be read yet.
        until("its connections to be closed", TIMEOUT, || server.counts().open == 0);
        results.look(&weir, number);
        if number % 2 == 0 {
            let after = accepted.last().map_or(0, |(number, ..)| *number);
            accepted.extend(kept(&weir, after));
        }
    }
    round.store(kills, Ordering::Relaxed);
    let (running, stdin) = start(&weir, &args, "");
    drop(stdin);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    results.look(&weir, kills);

    let last = kept(&weir, 0);
    assert!(accepted.len() as u64 > kills * 5, "there was something to lose");
    let states: HashMap<&str, State> = last.iter().map(|(_, id, state)| (id.as_str(), *state)).collect();
    for (_, id, _) in accepted.iter().chain(&last) {
        assert_eq!(states.get(id.as_str()), Some(&State::Done), "{id} was accepted");
        assert!(results.told.contains_key(id), "{id} was accepted and has no result");
    }
    check_sends(&sends.lock().unwrap(), &results, kills);
}

fn check_sends(sends: &[(u64, String)], results: &Results, kills: u64) {
    let mut rounds: HashMap<&str, Vec<u64>> = HashMap::new();
    for (round, id) in sends {
        rounds.entry(id).or_default().push(*round);
    }
    let (mut twice_by_round, mut flagged, mut in_vain) = (BTreeMap::<u64, usize>::new(), 0, 0);
    for (id, rounds) in &rounds {
        let (told, result) = results.told.get(*id).unwrap_or_else(|| panic!("{id} was sent and has no result"));
        let flag = result["maybe_sent"] == true;
        flagged += usize::from(flag);
        in_vain += usize::from(flag && rounds.len() == 1);
        assert!(rounds.is_sorted() && rounds.iter().all(|round| round <= told), "{id}: {rounds:?}, told in {told}");
        for pair in rounds.windows(2) {
            assert!(pair[0] < pair[1], "{id} was sent twice without a kill");
            *twice_by_round.entry(pair[0]).or_default() += 1;
        }
        assert!(rounds.len() == 1 || flag, "{id} was sent in {rounds:?} and is not flagged");
    }
    assert_eq!(rounds.len(), results.told.len(), "what is done was sent");
    let most = twice_by_round.values().max().copied().unwrap_or(0);
    assert!(most <= FLIGHT, "{most} jobs of one kill were sent again");
    // Killed between mark and first byte, or with the request under way: at most as many as were in flight.
    assert!(in_vain <= kills as usize * FLIGHT, "{in_vain} flagged that were sent once, after {kills} kills");
    let twice: usize = twice_by_round.values().sum();
    println!(
        "{kills} kills, {} jobs: {twice} sent again, {most} at most of one kill, {flagged} flagged, {in_vain} in vain",
        rounds.len()
    );
}

/// Delivers some jobs, then the service hangs; the sender is killed when nothing proceeds, and another one delivers the
/// rest. Returns the jobs in flight at the kill, those with flagged results, and the number of claimed ones.
fn kill_with_many_claimed_ahead(store: &str, takes: Duration) -> (BTreeSet<String>, BTreeSet<String>, u64) {
    const QUICK: u64 = 600;
    const OUT: u64 = 6;
    const JOBS: usize = 2000;
    let silent = Arc::new(AtomicBool::new(true));
    let server = {
        let silent = Arc::clone(&silent);
        Server::start(move |seen| {
            let is_silent = silent.load(Ordering::Relaxed) && seen.number >= QUICK;
            if is_silent { Reply::nothing().freeze() } else { Reply::ok("x").after(takes) }
        })
    };
    let weir = Weir::new();
    let lines: String = (0..JOBS).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
    let (url, out) = (server.url("/{id}"), OUT.to_string());
    // At least as many jobs are leased as there are keys.
    weir.write("keys.txt", (0..100).map(|number| format!("key-{number}\n")).collect::<String>());
    let plain =
        ["send", "jobs.jsonl", "--url", &url, "--store", store, "--out", "out.jsonl", "-q", "--keys-file", "keys.txt"];
    let plain = [&plain[..], &["--max-concurrency", &out]].concat();
    let name = |seen: &Seen| seen.line().split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
    let running = weir.start(&plain);
    until("all slots to be taken by requests in flight", TIMEOUT, || server.requests() == QUICK + OUT);
    // Results of the others are written and recorded.
    until("the rest to have its results", TIMEOUT, || {
        std::fs::read_to_string(weir.path("out.jsonl")).is_ok_and(|text| text.lines().count() as u64 == QUICK)
    });
    let jobs = |state: &str| -> u64 {
        let status = weir.run(&["send", "status", store, "--format", "json"]).stdout;
        serde_json::from_str::<Value>(&status).unwrap()["jobs"][state]["jobs"].as_u64().unwrap()
    };
    until("the results to be recorded", TIMEOUT, || jobs("done") == QUICK);
    let claimed = jobs("leased");
    assert!(claimed > OUT * 2, "{claimed} are claimed: there is something to count wrongly");
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    silent.store(false, Ordering::Relaxed);
    let hung = server.seen().iter().skip(QUICK as usize).map(name).collect();
    let output = weir.start(&plain).finish();
    assert_eq!(output.code, 0, "{output:?}");
    let text = weir.read("out.jsonl");
    let results: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), JOBS, "each job has one result");
    let mut flagged = BTreeSet::new();
    for result in results {
        let (is_flagged, id) = (result["maybe_sent"] == true, result["id"].as_str().unwrap().to_owned());
        assert_eq!(result["attempts"], if is_flagged { 2 } else { 1 }, "what was not sent costs no attempt: {result}");
        if is_flagged {
            flagged.insert(id);
        }
    }
    (hung, flagged, claimed)
}

#[test]
fn jobs_claimed_ahead_of_sending_do_not_count_as_maybe_sent_after_a_kill() {
    let (hung, flagged, claimed) = kill_with_many_claimed_ahead("jobs.db", Duration::ZERO);
    println!("{claimed} were claimed, {} were out", hung.len());
    assert_eq!(hung, flagged);
}

#[test]
fn jobs_claimed_ahead_from_redis_count_as_maybe_sent_after_a_kill_only_if_they_were_next() {
    let Some(redis) = RedisServer::with(&["--appendonly", "no"]) else { return };
    let store = redis.url("queue=a&lease=1s");
    let (hung, flagged, claimed) = kill_with_many_claimed_ahead(&store, Duration::from_millis(20));
    println!("{claimed} were claimed, {} were out, {} are flagged", hung.len(), flagged.len());
    assert!(hung.is_subset(&flagged), "{hung:?} {flagged:?}");
    assert!((flagged.len() as u64) < claimed, "{} of {claimed} are flagged", flagged.len());
}

/// Jobs with their result lines, in order; a line that is not complete is left out.
fn told_jobs(weir: &Weir) -> Vec<Value> {
    let text = std::fs::read_to_string(weir.path("out.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Kills a sender in the middle, and then those that are started after it, shortly after their start: none of them does
/// more than recover. Returns the numbers of jobs, of those sent twice, and of flagged ones.
fn kill_in_a_row(store: &str, flags: &[&str], seed: u64) -> (usize, usize, usize) {
    const JOBS: u64 = 300;
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", lines(seed, JOBS));
    let (url, out) = (server.url("/{id}"), FLIGHT.to_string());
    let plain = ["send", "jobs.jsonl", "--url", &url, "--store", store, "--out", "out.jsonl", "-q"];
    let plain = [&plain[..], &["--max-concurrency", &out], flags].concat();
    let mut rng = SeededRng::new(seed, 3);
    let id = |seen: &Seen| seen.line().split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
    let (mut kills, mut ended) = (0, BTreeMap::<String, usize>::new());
    let mut check = |server: &Server, told: &[Value]| {
        let mut sends = HashMap::<String, usize>::new();
        server.seen().iter().for_each(|seen| *sends.entry(id(seen)).or_default() += 1);
        for (job, before) in &ended {
            assert_eq!(
                sends.get(job).unwrap_or(&0),
                before,
                "{job} was sent again although its result was in the file"
            );
        }
        for result in told {
            let job = result["id"].as_str().unwrap().to_owned();
            let count = sends.get(&job).copied().unwrap_or(0);
            ended.insert(job, count);
        }
        sends
    };
    let first = weir.start(&plain);
    let after = 50 + rng.bits() % 200;
    until("some requests", TIMEOUT, || server.requests() >= after);
    first.signal(Signal::KILL);
    first.finish();
    until("its connections to be closed", TIMEOUT, || server.counts().open == 0);
    for _ in 0..1 + rng.bits() % 9 {
        kills += 1;
        check(&server, &told_jobs(&weir));
        let running = weir.start(&plain);
        std::thread::sleep(Duration::from_millis(10 + rng.bits() % 60));
        running.signal(Signal::KILL);
        running.finish();
        until("its connections to be closed", TIMEOUT, || server.counts().open == 0);
    }
    check(&server, &told_jobs(&weir));
    let output = weir.start(&plain).finish();
    assert!(output.code == 0 || flags.contains(&"--at-most-once"), "{output:?}");
    let told = told_jobs(&weir);
    let sends = check(&server, &told);
    let ids: BTreeSet<&str> = told.iter().map(|result| result["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), told.len() as u64), (told.len(), JOBS), "each job has one result");
    let flagged: Vec<&Value> = told.iter().filter(|result| result["maybe_sent"] == true).collect();
    let twice = sends.values().filter(|count| **count > 1).count();
    for result in &told {
        let count = sends.get(result["id"].as_str().unwrap()).copied().unwrap_or(0);
        assert!(count <= 1 || result["maybe_sent"] == true, "{result} was sent {count} times");
        assert!(count <= 1 || !flags.contains(&"--at-most-once"), "{result} was sent {count} times");
        assert!(count >= 1 || result["state"] == "dead_lettered", "{result} was not sent");
    }
    assert!(twice <= (kills + 1) * FLIGHT, "{twice} after {kills} kills");
    println!("{store} {flags:?}: {} kills in a row, {twice} sent twice, {} flagged", kills + 1, flagged.len());
    (told.len(), twice, flagged.len())
}

#[test]
fn after_kills_in_a_row_what_is_in_the_results_is_done() {
    for round in 0..kills().div_ceil(7) {
        kill_in_a_row("jobs.db", &[], round);
        kill_in_a_row("jobs.db", &["--at-most-once"], round + 1000);
    }
}

#[test]
fn after_kills_in_a_row_what_is_in_the_results_is_done_with_redis() {
    let Some(redis) = RedisServer::with(&["--appendonly", "no"]) else { return };
    kill_in_a_row(&redis.url("queue=a&lease=1s"), &[], 1);
    kill_in_a_row(&redis.url("queue=b&lease=1s"), &["--at-most-once"], 2);
}

#[test]
fn a_result_counts_whatever_the_store_has() {
    let server = Server::hello();
    let weir = Weir::new();
    let names = ["done", "failed", "retried", "open"];
    weir.write("jobs.jsonl", names.map(|id| format!("{{\"id\":\"{id}\"}}\n")).concat());
    let url = server.url("/{id}");
    let plain = ["send", "jobs.jsonl", "--url", &url, "--out", "out.jsonl", "--format", "json"];
    // A store that has never heard of these results: emptied, deleted, or twice behind.
    let line = |id: &str, state: &str| format!("{{\"id\":\"{id}\",\"state\":\"{state}\",\"ended_ms\":1000}}\n");
    weir.write("out.jsonl", line("done", "done") + &line("failed", "dead_lettered") + &line("retried", "expired"));
    let output = weir.run(&plain);
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&summary["done"], &summary["in_results"]), (&1.into(), &3.into()), "{output:?}");
    assert!(output.stderr.contains("have results in --out: they are not sent again; give --resend"), "{output:?}");
    assert_eq!((server.requests(), told_jobs(&weir).len()), (1, 4));
    // What is requeued by hand is sent, and what is not stays.
    assert_eq!(weir.run(&["send", "retry", "jobs.jsonl.db", "retried", "--ttl", "1h"]).code, 0);
    let output = weir.run(&plain);
    assert_eq!((output.code, server.requests(), told_jobs(&weir).len()), (1, 2, 5), "{output:?}");
    for name in ["", "-wal", "-shm", "-turn", "-sender", "-sending"] {
        let _ = std::fs::remove_file(weir.path(&format!("jobs.jsonl.db{name}")));
    }
    let output = weir.run(&[&plain[..], &["--resend"]].concat());
    assert_eq!((output.code, server.requests(), told_jobs(&weir).len()), (0, 6, 9), "{output:?}");
}

#[test]
fn after_a_kill_no_limit_is_broken_and_no_nonce_comes_again() {
    let kills = kills().div_ceil(5).min(100);
    let limit = ["--limit", "20/200ms"];
    let exchange = Serving::start(
        &[&["ratelimit", "--latency-in", "0ms..20ms", "--latency-out", "0ms..20ms"], &limit[..]].concat(),
    );
    let stats = || exchange.get("/stats").json();
    let weir = Weir::new();
    let keys: Vec<String> = stats()["keys"].as_object().unwrap().keys().cloned().collect();
    weir.write("keys.txt", keys.join("\n"));
    let url = format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", exchange.url);
    // A busy machine delays a request by less than this bound, for which the sender after a kill waits.
    let asked = ["--url", &url, "--keys-file", "keys.txt", "--delay-bound", "4s", "--ordered"];
    let args = [&asked, &limit[..]].concat();
    let accepted = || stats()["accepted"].as_u64().unwrap();
    let mut rng = SeededRng::new(kills, 2);
    for number in 0..kills {
        let begun = accepted();
        let (running, stdin) = start(&weir, &args, &lines(number, 150));
        let after = rng.bits() % 150;
        until("some requests", TIMEOUT, || accepted() >= begun + after);
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, -1);
        drop(stdin);
    }
    let (running, stdin) = start(&weir, &args, "");
    drop(stdin);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let told = stats();
    let rejected: u64 = told["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(rejected, 0, "{}", told["rejected"]);
    let all = kept(&weir, 0);
    assert!(all.iter().all(|(.., state)| *state == State::Done) && all.len() as u64 >= kills * 20, "{}", all.len());
    println!("{kills} kills, {} jobs, {} accepted, none rejected", all.len(), told["accepted"]);
}
