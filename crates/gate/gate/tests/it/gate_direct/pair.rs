//! Two gateways of the same configuration: one with calls as values, one with calls as futures.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use weir_gate::config::{self, Config, HostConfig, PolicyConfig, RouteConfig, UpstreamConfig};
use weir_gate::{self as gate, Gate, Options as GateOptions};
use weir_resilience::policy::Policy;
use weir_server::Options;
use weir_testing::{Raw, Reply, Server, until};

use super::messages::{requests, scripts};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway and its upstream, which gives the replies that are put there.
pub(crate) struct Side {
    pub(crate) gate: Gate,
    pub(crate) server: Server,
    replies: Arc<Mutex<Vec<Script>>>,
    /// The upstream of copies.
    _shadow: Server,
}

/// Bytes of a response, how it comes, and how its connection ends.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) bytes: Vec<u8>,
    pub(crate) piece: usize,
    pub(crate) end: &'static str,
}

impl Script {
    /// No response at all.
    pub(crate) fn frozen() -> Self {
        Self { bytes: Vec::new(), piece: 1 << 20, end: "" }
    }

    fn reply(&self) -> Reply {
        let reply = Reply::raw(&self.bytes).in_pieces(self.piece);
        match self.end {
            "close" => reply.close(),
            "reset" => reply.reset(),
            _ => reply,
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.bytes[..self.bytes.len().min(500)].escape_ascii();
        write!(f, "{:?} in pieces of {}, then {:?}", start.to_string(), self.piece, self.end)
    }
}

/// Configuration of one route to one upstream.
fn with_policy(policy: &Policy, url: &str) -> Config {
    let host = HostConfig { url: format!("{url}/"), socket: None, weight: 1 };
    // A throttle would make futures of all calls for a while after the first 503.
    let upstream = UpstreamConfig { hosts: vec![host], throttle: None, ..UpstreamConfig::new("upstream") };
    let policy = PolicyConfig { policy: policy.clone(), ..PolicyConfig::new("default") };
    let route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
    Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() }
}

pub(crate) fn side(policy: &Policy, has_direct_calls: bool) -> Side {
    side_of(|url, _| with_policy(policy, url), has_direct_calls)
}

/// A side whose configuration is text; `URL` stands for the upstream's, `SHADOW` for that of copies.
fn side_of_text(text: &str, has_direct_calls: bool) -> Side {
    side_of(|url, shadow| parsed(&text.replace("SHADOW", shadow), url), has_direct_calls)
}

pub(crate) fn parsed(text: &str, url: &str) -> Config {
    config::parse(&text.replace("URL", url), Path::new("/nowhere")).unwrap_or_else(|why| panic!("{text}: {why:?}"))
}

fn side_of(config: impl FnOnce(&str, &str) -> Config, has_direct_calls: bool) -> Side {
    let replies = Arc::new(Mutex::new(Vec::<Script>::new()));
    let script = Arc::clone(&replies);
    let server = Server::start(move |_| match script.lock().unwrap().pop() {
        Some(script) => script.reply(),
        None => Reply::ok("end"),
    });
    let shadow = Server::hello();
    let config = config(&server.url(""), &shadow.url(""));
    let gate = started(&config, has_direct_calls);
    Side { gate, server, replies, _shadow: shadow }
}

pub(crate) fn started(config: &Config, has_direct_calls: bool) -> Gate {
    let options = GateOptions { has_direct_calls, ..GateOptions::default() };
    gate::start(config, options, &Options::default()).unwrap()
}

/// A line of a head without what depends on the time.
fn timeless(line: &str) -> String {
    const OF_TIME: [&str; 4] = ["retry-after:", "x-ratelimit-", "x-envoy-expected-rq-timeout-ms:", "grpc-timeout:"];
    let lower = line.to_ascii_lowercase();
    let is_of_time = OF_TIME.iter().any(|start| lower.starts_with(start));
    if is_of_time { line.split(':').next().unwrap_or_default() } else { line }.to_owned()
}

impl Side {
    pub(crate) fn connect(&self) -> Raw {
        Raw::connect(self.gate.url().trim_start_matches("http://"))
    }

    /// Puts this reply in front of the next request.
    pub(crate) fn replies_once(&self, script: Script) {
        *self.replies.lock().unwrap() = vec![script];
    }

    /// All that the caller gets, but for the time; and what the upstream gets.
    fn exchange(&self, request: &[u8], scripts: &[Script]) -> (String, Vec<(String, Vec<u8>)>) {
        self.replies.lock().unwrap().clear();
        // An idle connection, which calls as values need.
        let first = self.connect().get("/free");
        *self.replies.lock().unwrap() = scripts.to_vec();
        let before = self.server.seen().len();
        let mut client = self.connect();
        // At once, since a close may cross what comes later.
        client.send([request, b"GET /last HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"].concat());
        let all = client.rest().escape_ascii().to_string();
        let lines = all.split("\\r\\n").filter(|line| !line.to_ascii_lowercase().starts_with("date: ")).map(timeless);
        let head = |head: &str| {
            let head = head.replace(&self.server.address(), "upstream");
            head.split("\r\n").map(timeless).collect::<Vec<_>>().join("\n")
        };
        let seen = self.server.seen()[before..].iter().map(|seen| (head(&seen.head), seen.body.clone())).collect();
        (format!("{} {}\n{}", first.status, first.text(), lines.collect::<Vec<_>>().join("\n")), seen)
    }

    /// Counts of calls and attempts, but for those of copies, which nothing waits for.
    pub(crate) fn counts(&self) -> Vec<String> {
        let metrics = self.connect().get("/metrics").text().replace(&self.server.address(), "upstream");
        let is_count = |line: &&str| {
            let is_time = line.contains("seconds_") && !line.contains("seconds_count");
            line.starts_with("weir_gate_") && !is_time && !line.contains("shadow")
        };
        metrics.lines().filter(is_count).map(str::to_owned).collect()
    }

    /// Whether a count has this line.
    pub(crate) fn has_count(&self, start: &str, rest: &str) -> bool {
        self.counts().iter().any(|line| line.starts_with(start) && line.contains(rest))
    }
}

/// Compares gateways with this policy.
pub(crate) fn compare(policy: &Policy, cases: u32) {
    compare_sides([true, false].map(|has_direct_calls| side(policy, has_direct_calls)), cases, 100_000);
}

/// Compares gateways with this configuration. Bodies of requests come at once, for these may be rejected.
pub(crate) fn compare_text(text: &str, cases: u32) {
    compare_sides([true, false].map(|has_direct_calls| side_of_text(text, has_direct_calls)), cases, 5_000);
}

/// Parts of names of metrics that depend on the time.
const OF_TIME: [&str; 4] = ["_limit", "_fraction", "_remaining", "_threshold"];

fn compare_sides([value, future]: [Side; 2], cases: u32, max_body: usize) {
    let mut runner = TestRunner::new(Cases { cases, failure_persistence: None, ..Cases::default() });
    let cases = (requests(max_body), vec(scripts(), 1..3));
    let compared = runner.run(&cases, |(request, mut scripts)| {
        if request.starts_with(b"HEAD") {
            // Its responses have more bytes than they should, too.
            scripts.iter_mut().for_each(|script| script.piece = 1 << 20);
        }
        let [by_value, by_future] = [&value, &future].map(|side| side.exchange(&request, &scripts));
        let request = request[..request.len().min(500)].escape_ascii();
        prop_assert_eq!(by_value.0, by_future.0, "{} {:?}", request, scripts);
        prop_assert_eq!(by_value.1, by_future.1, "{} {:?}", request, scripts);
        Ok(())
    });
    compared.unwrap_or_else(|failed| panic!("{failed}"));
    // A call is counted when its caller has its response.
    let is_idle =
        |side: &Side| side.counts().iter().all(|line| !line.contains("_in_flight{") || line.ends_with(" 0.0"));
    until("all calls are over", PATIENCE, || is_idle(&value) && is_idle(&future));
    let counts = |side: &Side| -> Vec<String> {
        side.counts().into_iter().filter(|line| !OF_TIME.iter().any(|name| line.contains(name))).collect()
    };
    assert_eq!(counts(&value), counts(&future));
}
