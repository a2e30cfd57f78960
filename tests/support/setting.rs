//! Several `weir send`, the document's exchange, and the queue and the keys on a Redis server that they share.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use weir::send::{Job, JobDefaults, wall_ms};

use super::redis::RedisServer;
use super::serving::Serving;
use super::weir::{Output, Running, Weir};

/// How the exchange counts, and on which terms it is sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Requests that a key has in a window.
    pub(crate) count: i64,
    pub(crate) window_ms: i64,
    /// The bound on the way in, as senders are told.
    pub(crate) bound_ms: i64,
    pub(crate) lease_ms: i64,
    /// The longest way in and out: what is between it and the bound is for a busy machine.
    pub(crate) way_ms: i64,
}

impl Terms {
    /// As the document has them, but for the ways, which are 0 to 50 ms there, and the bound, which is 50 ms: a busy machine
    /// takes longer than that to write what is due.
    pub(crate) const DOCUMENT: Self = Self { count: 20, window_ms: 1000, bound_ms: 300, lease_ms: 3000, way_ms: 20 };
    /// The same in less time.
    pub(crate) const SHORT: Self = Self { count: 20, window_ms: 500, bound_ms: 300, lease_ms: 1000, way_ms: 20 };

    fn limit(self) -> String {
        format!("{}/{}ms", self.count, self.window_ms)
    }

    /// What all of so many keys let through in a second, if every request takes the longest way that it may.
    pub(crate) fn pace(self, keys: usize) -> f64 {
        keys as f64 * self.count as f64 * 1e3 / (self.window_ms + self.bound_ms) as f64
    }
}

/// A server's log of changes, as most have it.
pub(crate) const SYNCED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// One that loses nothing that it has accepted.
pub(crate) const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Some senders, an exchange, and a queue that they share.
pub(crate) struct Setting {
    pub(crate) weir: Weir,
    pub(crate) exchange: Serving,
    pub(crate) server: RedisServer,
    pub(crate) terms: Terms,
    /// How many keys there are.
    pub(crate) keys: usize,
}

/// One line of results: a job that was delivered.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// By which sender.
    pub(crate) by: usize,
    pub(crate) id: String,
    pub(crate) key: String,
    /// By the sender's clock.
    pub(crate) sent_ms: i64,
    pub(crate) answered_ms: i64,
    pub(crate) attempts: u64,
    pub(crate) maybe_sent: bool,
}

impl Setting {
    /// With a server that is started so. None: there is no redis-server.
    pub(crate) fn new(args: &[&str], terms: Terms) -> Option<Self> {
        let server = RedisServer::with(args)?;
        let way = format!("0ms..{}ms", terms.way_ms);
        let exchange =
            Serving::start(&["ratelimit", "--latency-in", &way, "--latency-out", &way, "--limit", &terms.limit()]);
        let weir = Weir::new();
        let stats: Value = exchange.get("/stats").json();
        let keys: Vec<String> = stats["keys"].as_object().unwrap().keys().cloned().collect();
        weir.write("keys.txt", keys.join("\n"));
        Some(Self { weir, exchange, server, terms, keys: keys.len() })
    }

    /// What an address of the queue has after its `?`.
    pub(crate) fn asked(&self) -> String {
        format!("queue=orders&lease={}ms", self.terms.lease_ms)
    }

    pub(crate) fn store(&self) -> String {
        self.server.url(&self.asked())
    }

    /// Where jobs go.
    fn url(&self) -> String {
        format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", self.exchange.url)
    }

    /// A file of jobs that each sender is started with: the first one takes them in.
    pub(crate) fn jobs(&self, count: u32) {
        let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
        self.weir.write("jobs.jsonl", lines);
    }

    /// A job that is not in the file, as a line of it would make it.
    pub(crate) fn job(&self, id: &str) -> Job {
        let form = JobDefaults { url: Some(self.url()), ..JobDefaults::default() };
        form.parse_line(0, &format!("{{\"id\":\"{id}\"}}"), wall_ms()).unwrap().unwrap()
    }

    pub(crate) fn send(&self, number: usize) -> Running {
        self.send_by(number, &self.store())
    }

    pub(crate) fn send_by(&self, number: usize, store: &str) -> Running {
        Running::new(&mut self.command(number, store, &[]))
    }

    /// A sender that is not started yet.
    pub(crate) fn command(&self, number: usize, store: &str, more: &[&str]) -> Command {
        let (url, out, limit) = (self.url(), format!("out-{number}.jsonl"), self.terms.limit());
        let bound = format!("{}ms", self.terms.bound_ms);
        let asked = ["send", "jobs.jsonl", "--url", &url, "--keys-file", "keys.txt", "--ordered", "--store", store];
        let terms = ["--limit", &limit, "--delay-bound", &bound, "--out", &out, "--format", "json", "-q"];
        self.weir.command(&[&asked[..], &terms, more].concat())
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.exchange.get("/stats").json()["accepted"].as_u64().unwrap()
    }

    /// The exchange has refused nothing: neither was a limit broken, nor did a nonce come too late.
    pub(crate) fn check_refusals(&self) {
        let stats: Value = self.exchange.get("/stats").json();
        let refused: u64 = stats["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(refused, 0, "{stats}");
    }

    /// `weir send COMMAND STORE ...`
    pub(crate) fn queue(&self, args: &[&str]) -> Output {
        let store = self.store();
        self.weir.run(&[&["send"], &args[..1], &[store.as_str()], &args[1..]].concat())
    }

    /// How many jobs are in this state, by the queue's own tally.
    pub(crate) fn state(&self, name: &str) -> i64 {
        self.server.number("weir:orders:tally", &format!("{name}:jobs"))
    }

    /// The process that each key is leased to, by the server's table; keys that are nobody's are not there.
    pub(crate) fn owners(&self) -> BTreeMap<String, u32> {
        let keys = self.server.members("weir:orders:keys").into_iter();
        keys.filter_map(|key| {
            let owner = self.server.field(&format!("weir:orders:key:{key}"), "owner");
            let pid = owner.split_once('-')?.0.parse().ok()?;
            Some((key, pid))
        })
        .collect()
    }

    /// How many keys this process has.
    pub(crate) fn owned(&self, pid: u32) -> usize {
        self.owners().values().filter(|owner| **owner == pid).count()
    }

    /// When the lease of a key is over, by the server's clock.
    pub(crate) fn until_ms(&self, key: &str) -> i64 {
        self.server.number(&format!("weir:orders:key:{key}"), "until_ms")
    }

    /// What these senders have delivered so far, by when it was sent.
    pub(crate) fn sent(&self, senders: usize) -> Vec<Sent> {
        let mut all = Vec::new();
        for by in 0..senders {
            let path = self.weir.path(&format!("out-{by}.jsonl"));
            // The last line may not be whole yet.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                assert_eq!(line["state"], "done", "{line}");
                let sent_ms = line["sent_ms"].as_i64().unwrap();
                all.push(Sent {
                    by,
                    id: line["id"].as_str().unwrap().to_owned(),
                    key: line["key"].as_str().unwrap().to_owned(),
                    sent_ms,
                    answered_ms: sent_ms + line["service_ms"].as_f64().unwrap() as i64,
                    attempts: line["attempts"].as_u64().unwrap(),
                    maybe_sent: line["maybe_sent"] == true,
                });
            }
        }
        all.sort_by_key(|sent| sent.sent_ms);
        all
    }

    /// The jobs that they have delivered so far.
    pub(crate) fn told(&self, senders: usize) -> BTreeSet<String> {
        self.sent(senders).into_iter().map(|sent| sent.id).collect()
    }

    /// By how many keys a sender has delivered something so far.
    pub(crate) fn keys_of(&self, number: usize) -> usize {
        let sent = self.sent(number + 1).into_iter().filter(|sent| sent.by == number);
        sent.map(|sent| sent.key).collect::<BTreeSet<_>>().len()
    }

    /// No key had two senders: nobody has sent by a key while something of another sender's was out by it.
    pub(crate) fn check_keys(&self, senders: usize) {
        let mut answered: BTreeMap<(String, usize), i64> = BTreeMap::new();
        for sent in self.sent(senders) {
            for ((key, by), at) in &answered {
                // All are cut to whole milliseconds.
                let is_over = *key != sent.key || *by == sent.by || *at <= sent.sent_ms + 2;
                assert!(is_over, "{sent:?}, and sender {by} had an answer by that key at {at}");
            }
            let last = answered.entry((sent.key, sent.by)).or_default();
            *last = sent.answered_ms.max(*last);
        }
    }

    /// Whatever the exchange has accepted more than once, the results say that it may have been sent before.
    pub(crate) fn check_tries(&self, senders: usize) {
        let flagged = self.sent(senders).into_iter().filter(|sent| sent.maybe_sent);
        let again: u64 = flagged.map(|sent| sent.attempts.saturating_sub(1)).sum();
        let (accepted, told) = (self.accepted(), self.told(senders).len() as u64);
        assert!(accepted <= told + again, "{accepted} accepted, {told} jobs, {again} tries that are flagged");
    }
}
