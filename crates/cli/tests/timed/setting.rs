//! Several `weir send`, the rate-limited service, and the queue and keys that they share on a Redis server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use weir_send::{Job, JobDefaults, wall_ms};

use weir_testing::{Output, RedisServer, Running, Serving, Weir};

/// Limits of the service, and delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Requests of a key per window.
    pub(crate) count: i64,
    pub(crate) window_ms: i64,
    /// Delay bound of the senders.
    pub(crate) bound_ms: i64,
    pub(crate) lease_ms: i64,
    /// Maximum delay in each direction; the rest of the bound is for a busy machine.
    pub(crate) way_ms: i64,
}

impl Terms {
    /// As in the reference workload, but with shorter delays and a longer bound (50 ms each there), for a busy machine.
    pub(crate) const DOCUMENT: Self = Self { count: 20, window_ms: 1000, bound_ms: 300, lease_ms: 3000, way_ms: 20 };
    /// The same in less time.
    pub(crate) const SHORT: Self = Self { count: 20, window_ms: 500, bound_ms: 300, lease_ms: 1000, way_ms: 20 };

    fn limit(self) -> String {
        format!("{}/{}ms", self.count, self.window_ms)
    }

    /// Guaranteed rate of all keys, if each request takes the longest delay.
    pub(crate) fn pace(self, keys: usize) -> f64 {
        keys as f64 * self.count as f64 * 1e3 / (self.window_ms + self.bound_ms) as f64
    }
}

/// Append-only file with a sync each second, as is common.
pub(crate) const SYNCED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// Append-only file with a sync for each write, which loses no accepted job.
pub(crate) const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Senders, a service, and a queue that the senders share.
pub(crate) struct Setting {
    pub(crate) weir: Weir,
    pub(crate) exchange: Serving,
    pub(crate) server: RedisServer,
    pub(crate) terms: Terms,
    /// Number of keys.
    pub(crate) keys: usize,
}

/// Result line of a delivered job.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// Number of the sender.
    pub(crate) by: usize,
    pub(crate) id: String,
    pub(crate) key: String,
    /// Time by the sender's clock.
    pub(crate) sent_ms: i64,
    pub(crate) answered_ms: i64,
    pub(crate) attempts: u64,
    pub(crate) maybe_sent: bool,
}

impl Setting {
    /// Setting with a server with these arguments. None without redis-server.
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

    /// Query of the queue's address.
    pub(crate) fn asked(&self) -> String {
        format!("queue=orders&lease={}ms", self.terms.lease_ms)
    }

    pub(crate) fn store(&self) -> String {
        self.server.url(&self.asked())
    }

    /// URL of jobs.
    fn url(&self) -> String {
        format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", self.exchange.url)
    }

    /// File of jobs for each sender; the first one submits them.
    pub(crate) fn jobs(&self, count: u32) {
        let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
        self.weir.write("jobs.jsonl", lines);
    }

    /// Job that is not in the file, as of a line.
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

    /// Command of a sender.
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

    /// Waits for the end of the senders, and checks that they broke no limit and that each job is done.
    pub(crate) fn finish(&self, senders: impl IntoIterator<Item = Running>, jobs: usize) {
        let mut count = 0;
        for sender in senders {
            let output = sender.finish();
            assert_eq!(output.code, 0, "{output:?}");
            count += 1;
        }
        self.check_refusals();
        self.check_keys(count);
        assert_eq!((self.state("done"), self.told(count).len()), (jobs as i64, jobs));
    }

    /// Checks that the service has rejected nothing: no limit was exceeded, no nonce overtaken.
    pub(crate) fn check_refusals(&self) {
        let stats: Value = self.exchange.get("/stats").json();
        let rejected: u64 = stats["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(rejected, 0, "{stats}");
    }

    /// `weir send COMMAND STORE ...`
    pub(crate) fn queue(&self, args: &[&str]) -> Output {
        let store = self.store();
        self.weir.run(&[&["send"], &args[..1], &[store.as_str()], &args[1..]].concat())
    }

    /// Number of jobs in this state, by the tally.
    pub(crate) fn state(&self, name: &str) -> i64 {
        self.server.number("weir:orders:tally", &format!("{name}:jobs"))
    }

    /// Owner of each leased key, as process ID, by the server's table.
    pub(crate) fn owners(&self) -> BTreeMap<String, u32> {
        let keys = self.server.members("weir:orders:keys").into_iter();
        keys.filter_map(|key| {
            let owner = self.server.field(&format!("weir:orders:key:{key}"), "owner");
            let pid = owner.split_once('-')?.0.parse().ok()?;
            Some((key, pid))
        })
        .collect()
    }

    /// Number of keys of this process.
    pub(crate) fn owned(&self, pid: u32) -> usize {
        self.owners().values().filter(|owner| **owner == pid).count()
    }

    /// End of the lease of a key, by the server's clock.
    pub(crate) fn until_ms(&self, key: &str) -> i64 {
        self.server.number(&format!("weir:orders:key:{key}"), "until_ms")
    }

    /// Results of these senders so far, by the time of sending.
    pub(crate) fn sent(&self, senders: usize) -> Vec<Sent> {
        let mut all = Vec::new();
        for by in 0..senders {
            let path = self.weir.path(&format!("out-{by}.jsonl"));
            // The last line may be incomplete.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                assert_eq!(line["state"], "done", "{line}");
                let sent_ms = line["sent_ms"].as_i64().unwrap();
                all.push(Sent {
                    by,
                    id: line["id"].as_str().unwrap().to_owned(),
                    key: line["last_key"].as_str().unwrap().to_owned(),
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

    /// Jobs that they have delivered so far.
    pub(crate) fn told(&self, senders: usize) -> BTreeSet<String> {
        self.sent(senders).into_iter().map(|sent| sent.id).collect()
    }

    /// Checks that no key had two senders at a time: their requests do not overlap.
    pub(crate) fn check_keys(&self, senders: usize) {
        let mut answered: BTreeMap<(String, usize), i64> = BTreeMap::new();
        for sent in self.sent(senders) {
            for ((key, by), at) in &answered {
                // All times are in whole milliseconds.
                let is_over = *key != sent.key || *by == sent.by || *at <= sent.sent_ms + 2;
                assert!(is_over, "{sent:?}, and sender {by} had a response with that key at {at}");
            }
            let last = answered.entry((sent.key, sent.by)).or_default();
            *last = sent.answered_ms.max(*last);
        }
    }

    /// Checks that jobs accepted more than once by the service are flagged in the results.
    pub(crate) fn check_tries(&self, senders: usize) {
        let flagged = self.sent(senders).into_iter().filter(|sent| sent.maybe_sent);
        let again: u64 = flagged.map(|sent| sent.attempts.saturating_sub(1)).sum();
        let (accepted, told) = (self.accepted(), self.told(senders).len() as u64);
        assert!(accepted <= told + again, "{accepted} accepted, {told} jobs, {again} flagged attempts");
    }
}
