//! Several `weir send` share a queue and its keys on a Redis server: no limit is broken and no job lost, whoever ends in the
//! middle, the server included.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Manner, Output, Proxy, RedisServer, Running, Serving, Weir, until};

/// Nothing that a test waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Windows as the document has them, but shorter; the bound has room to spare on a busy machine.
const LIMIT: [&str; 4] = ["--limit", "20/500ms", "--delay-bound", "300ms"];

/// Some senders, an exchange, and a queue that they share.
struct Setting {
    weir: Weir,
    exchange: Serving,
    server: RedisServer,
    keys: usize,
}

impl Setting {
    /// None: there is no redis-server.
    fn new(args: &[&str]) -> Option<Self> {
        let server = RedisServer::with(args)?;
        let latencies = ["--latency-in", "0ms..20ms", "--latency-out", "0ms..20ms", "--limit", "20/500ms"];
        let exchange = Serving::start(&[&["exchange"], &latencies[..]].concat());
        let weir = Weir::new();
        let stats: Value = exchange.get("/stats").json();
        let keys: Vec<String> = stats["keys"].as_object().unwrap().keys().cloned().collect();
        weir.write("keys.txt", keys.join("\n"));
        Some(Self { weir, exchange, server, keys: keys.len() })
    }

    fn store(&self) -> String {
        self.server.url("queue=orders&lease=1s")
    }

    /// Puts jobs into the queue, without sending them.
    fn jobs(&self, count: u32) {
        let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
        self.weir.write("jobs.jsonl", lines);
    }

    /// A sender that takes the jobs in, too, if it is the first.
    fn send(&self, number: usize) -> Running {
        self.send_by(number, &self.store())
    }

    fn send_by(&self, number: usize, store: &str) -> Running {
        let url = format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", self.exchange.url);
        let out = format!("out-{number}.jsonl");
        let asked = ["send", "jobs.jsonl", "--url", &url, "--keys-file", "keys.txt", "--ordered", "--store", store];
        let end = ["--out", &out, "--format", "json", "-q"];
        self.weir.start(&[&asked[..], &LIMIT, &end].concat())
    }

    fn accepted(&self) -> u64 {
        self.exchange.get("/stats").json()["accepted"].as_u64().unwrap()
    }

    fn refused(&self) -> u64 {
        let stats: Value = self.exchange.get("/stats").json();
        stats["refused"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    fn queue(&self, args: &[&str]) -> Output {
        let store = self.store();
        self.weir.run(&[&["send"], &args[..1], &[store.as_str()], &args[1..]].concat())
    }

    fn state(&self, name: &str) -> u64 {
        let status: Value = serde_json::from_str(&self.queue(&["status", "--format", "json"]).stdout).unwrap();
        status["jobs"][name]["jobs"].as_u64().unwrap()
    }

    /// By how many keys a sender has delivered something so far.
    fn keys_of(&self, number: usize) -> usize {
        let text = std::fs::read_to_string(self.weir.path(&format!("out-{number}.jsonl"))).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter_map(|line| Some(line["key"].as_str()?.to_owned())).collect::<BTreeSet<_>>().len()
    }

    /// What the results say: how often each job was told to be done.
    fn told(&self, senders: usize) -> BTreeMap<String, u32> {
        let mut told = BTreeMap::new();
        for number in 0..senders {
            let path = self.weir.path(&format!("out-{number}.jsonl"));
            for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
                let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
                assert_eq!(line["state"], "done", "{line}");
                *told.entry(line["id"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        told
    }
}

const SYNCED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];

#[test]
fn four_senders_share_keys_and_jobs_and_none_of_them_breaks_a_limit() {
    let Some(setting) = Setting::new(&SYNCED) else { return };
    setting.jobs(1200);
    let senders: Vec<Running> = (0..4).map(|number| setting.send(number)).collect();
    let outputs: Vec<Output> = senders.into_iter().map(Running::finish).collect();
    for output in &outputs {
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    }
    assert_eq!(setting.refused(), 0, "{}", setting.exchange.get("/stats").json());
    assert_eq!((setting.accepted(), setting.state("done")), (1200, 1200));
    let told = setting.told(4);
    assert_eq!((told.len(), told.values().max()), (1200, Some(&1)), "each is sent once");
    let done: Vec<u64> = outputs
        .iter()
        .map(|output| serde_json::from_str::<Value>(&output.stdout).unwrap()["done"].as_u64().unwrap())
        .collect();
    // Of five keys one has two; how long each was alone at the beginning is up to the machine.
    assert!(done.iter().all(|done| *done > 60), "the work is shared: {done:?}");
    assert_eq!(setting.keys, 5);
}

#[test]
fn the_keys_of_a_sender_that_is_killed_go_on_with_another_and_no_limit_is_broken() {
    let Some(setting) = Setting::new(&SYNCED) else { return };
    setting.jobs(1500);
    let first = setting.send(0);
    until("the first to send", PATIENCE, || setting.accepted() > 50);
    let second = setting.send(1);
    until("both to send", PATIENCE, || setting.told(2).len() > 350 && !setting.told(2).is_empty());
    first.signal(Signal::KILL);
    assert_eq!(first.finish().code, -1);
    let output = second.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_eq!(setting.refused(), 0, "{}", setting.exchange.get("/stats").json());
    assert_eq!((setting.state("done"), setting.state("queued")), (1500, 0));
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let keys = told["per_key"].as_object().unwrap();
    assert!(keys.values().all(|key| key["done"].as_u64().unwrap() > 0), "it had all keys in the end: {told}");
}

#[test]
fn a_sender_that_is_cut_off_stops_before_another_goes_on_with_its_keys() {
    let Some(setting) = Setting::new(&SYNCED) else { return };
    setting.jobs(1500);
    let proxy = Proxy::start(&setting.server);
    let senders = [setting.send_by(0, &proxy.url("queue=orders&lease=1s")), setting.send(1)];
    until("both to send", PATIENCE, || [0, 1].iter().all(|number| setting.keys_of(*number) >= 2));
    proxy.set(Manner::Hang);
    until("the other to have all keys", PATIENCE, || setting.keys_of(1) == setting.keys);
    proxy.set(Manner::Pass);
    for sender in senders {
        let output = sender.finish();
        assert_eq!(output.code, 0, "{output:?}");
    }
    assert_eq!(setting.refused(), 0, "{}", setting.exchange.get("/stats").json());
    assert_eq!((setting.state("done"), setting.told(2).len()), (1500, 1500));
}

#[test]
fn senders_outlive_a_restart_of_the_server_and_lose_no_job() {
    let Some(mut setting) = Setting::new(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    setting.jobs(800);
    let senders: Vec<Running> = (0..2).map(|number| setting.send(number)).collect();
    until("some to be sent", PATIENCE, || setting.accepted() > 150);
    setting.server.kill();
    // They go on while they hold their keys, and then stop.
    let then = setting.accepted();
    until("what is in hand to be sent", PATIENCE, || setting.accepted() > then);
    setting.server.begin();
    for sender in senders {
        let output = sender.finish();
        assert_eq!(output.code, 0, "{output:?}");
    }
    assert_eq!(setting.refused(), 0, "{}", setting.exchange.get("/stats").json());
    assert_eq!((setting.state("done"), setting.told(2).len()), (800, 800));
}

#[test]
fn a_person_sees_and_changes_a_queue_on_a_server_as_one_in_a_file() {
    let Some(setting) = Setting::new(&SYNCED) else { return };
    setting.weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
    let store = setting.store();
    let nowhere = "http://127.0.0.1:1/{id}";
    let args = ["send", "jobs.jsonl", "--url", nowhere, "--store", &store, "--grace", "100ms", "-q"];
    let running = setting.weir.start(&args);
    until("a sender to be there", PATIENCE, || setting.queue(&["status"]).stdout.contains("1 process sends: "));
    until("jobs to be there", PATIENCE, || {
        setting.state("queued") + setting.state("leased") + setting.state("dead") == 2
    });
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    let status = setting.queue(&["status"]);
    assert!(status.stdout.contains("nobody sends") && status.stdout.contains("?queue=orders"), "{}", status.stdout);
    assert_eq!(setting.queue(&["edit", "a", "--url", "http://127.0.0.1:2/"]).code, 0);
    assert!(setting.queue(&["list"]).stdout.contains("http://127.0.0.1:2/"));
    let purged = setting.queue(&["purge", "b", "--state", "queued,dead"]);
    assert_eq!(purged.code, 0, "{purged:?}");
    assert_eq!(setting.state("queued") + setting.state("dead"), 1);
    let other = setting.server.url("queue=nobodys");
    let output = setting.weir.run(&["send", "status", &other]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("there is no store"), "{output:?}");
    let strict = setting.server.url("strict=1");
    let output = setting.weir.run(&["send", "jobs.jsonl", "--url", nowhere, "--store", &strict]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("appendfsync always"), "{output:?}");
}

#[test]
fn a_server_that_is_not_there_is_told_in_one_line_without_the_password() {
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let store = "redis://me:secret@127.0.0.1:1/0?queue=orders";
    let output = weir.run(&["send", "jobs.jsonl", "--url", "http://127.0.0.1:1/", "--store", store]);
    assert_eq!(output.code, 2);
    let line = output.one_line();
    assert!(line.contains("'redis://127.0.0.1:1/0?queue=orders' does not answer"), "{line}");
    assert!(!output.stderr.contains("secret"));
}
