//! Calls as values and as futures: the same bytes on both sides, the same counts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestRunner};
use weir_base::Nanos;
use weir_gate::config::{Config, HostConfig, PolicyConfig, RouteConfig, UpstreamConfig};
use weir_gate::{self as gate, Gate, Options as GateOptions};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;
use weir_server::Options;
use weir_testing::{Raw, Reply, Server, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway and its upstream, which gives the replies that are put there.
struct Side {
    gate: Gate,
    server: Server,
    replies: Arc<Mutex<Vec<Script>>>,
}

/// Bytes of a response, how it comes, and how its connection ends.
#[derive(Clone, Debug)]
struct Script {
    bytes: Vec<u8>,
    piece: usize,
    end: &'static str,
}

impl Script {
    fn reply(&self) -> Reply {
        let reply = Reply::raw(&self.bytes).in_pieces(self.piece);
        match self.end {
            "close" => reply.close(),
            _ => reply,
        }
    }
}

fn side(policy: &Policy, has_direct_calls: bool) -> Side {
    let replies = Arc::new(Mutex::new(Vec::<Script>::new()));
    let script = Arc::clone(&replies);
    let server = Server::start(move |_| script.lock().unwrap().pop().map_or_else(|| Reply::ok("end"), |it| it.reply()));
    let host = HostConfig { url: server.url("/"), socket: None, weight: 1 };
    let upstream = UpstreamConfig { hosts: vec![host], ..UpstreamConfig::new("upstream") };
    let policy = PolicyConfig { policy: policy.clone(), ..PolicyConfig::new("default") };
    let route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
    let config = Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() };
    let options = GateOptions { has_direct_calls, ..GateOptions::default() };
    Side { gate: gate::start(&config, options, &Options::default()).unwrap(), server, replies }
}

impl Side {
    fn connect(&self) -> Raw {
        Raw::connect(self.gate.url().trim_start_matches("http://"))
    }

    /// All that the caller gets, but for the time; and what the upstream does.
    fn exchange(&self, request: &[u8], scripts: &[Script]) -> (String, Vec<(String, Vec<u8>)>) {
        self.replies.lock().unwrap().clear();
        // An idle connection, which calls as values need.
        assert_eq!(self.connect().get("/").text(), "end");
        *self.replies.lock().unwrap() = scripts.to_vec();
        let before = self.server.seen().len();
        let mut client = self.connect();
        // At once, since a close may cross what comes later.
        client.send([request, b"GET /last HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"].concat());
        let all = client.rest().escape_ascii().to_string();
        let lines = all.split("\\r\\n").filter(|line| !line.starts_with("date: "));
        let head = |head: &str| head.replace(&self.server.address(), "upstream");
        let seen = self.server.seen()[before..].iter().map(|seen| (head(&seen.head), seen.body.clone())).collect();
        (lines.collect::<Vec<_>>().join("\n"), seen)
    }

    /// Counts of calls and attempts.
    fn counts(&self) -> Vec<String> {
        let metrics = self.connect().get("/metrics").text().to_owned();
        let is_count = |line: &&str| line.starts_with("weir_gate_") && !line.contains("seconds_");
        metrics.lines().filter(is_count).map(str::to_owned).collect()
    }
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "GET / HTTP/1.1",
        "GET /a//b/../c?x=%20 HTTP/1.1",
        "GET /a%2e HTTP/1.1",
        "HEAD /x HTTP/1.1",
        "DELETE /x HTTP/1.1",
        "POST /x HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://other.example/x HTTP/1.1",
        "GET /x HTTP/1.0",
        "get /x HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
    ]);
    let field = select(vec![
        "Host: test",
        "Host: a@b",
        "User-Agent: x",
        "Accept: */*",
        "Cookie: a=1",
        "cookie: b=2",
        "X-Odd: \u{e9}\tb",
        "X_Real_IP: 6.6.6.6",
        "X-Forwarded-For: 6.6.6.6",
        "Content_Length: 7",
        "Content-Length: 0",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Connection: keep-alive",
        "Connection: close",
        "Connection: X-Hop, te",
        "X-Hop: 1",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Trailer: x",
        "Expect: 100-continue",
        "Upgrade: h2c",
        "Connection: upgrade",
        "HTTP2-Settings: AAMAAABk",
        "Proxy-Connection: keep-alive",
        "Proxy-Authenticate: x",
        "Content-Type: application/grpc",
        "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Bad Name: x",
    ]);
    let host = select(vec!["Host: test", "Host: test", "Host: test:80", ""]);
    (line, host, vec(field, 0..5), any::<bool>()).prop_map(|(line, host, fields, has_body)| {
        let mut head = format!("{line}\r\n{host}\r\n{}\r\n\r\n", fields.join("\r\n"));
        if host.is_empty() || fields.is_empty() {
            head = head.replace("\r\n\r\n", "\r\n") + "\r\n";
        }
        (head + if has_body { "abc" } else { "" }).into_bytes()
    })
}

fn scripts() -> impl Strategy<Value = Script> {
    let line = select(vec![
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 Fine",
        "HTTP/1.0 200 OK",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK",
        "HTTP/1.1 204 No Content",
        "HTTP/1.1 304 Not Modified",
        "HTTP/1.1 404 Not Found",
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0",
        "HTTP/1.1 500 Oh",
        "HTTP/1.1 503 Busy",
        "HTTP/1.1 101 Switching Protocols",
        "HTTP/1.1 999 Odd",
        "none",
    ]);
    let field = select(vec![
        "Server: x",
        "Date: Mon, 30 Nov 2026 00:00:00 GMT",
        "Set-Cookie: a=1",
        "set-cookie: b=2",
        "X-Folded: a\r\n b",
        "X-Tab: a\tb",
        "Connection: close",
        "Connection: keep-alive",
        "Connection: x-own",
        "X-Own: 1",
        "Keep-Alive: timeout=5",
        "Trailer: x-sum",
        "Upgrade: websocket",
        "TE: trailers",
        "Content-Type: application/grpc",
        "grpc-status: 14",
        "Retry-After: 1",
        "Proxy-Connection: x",
        "Content-Encoding: gzip",
        "Bad Name: x",
    ]);
    let framing = select(vec![
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5, 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello, and more",
        "Content-Length: 5\r\n\r\nhel",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello",
        "X-Cut: ",
    ]);
    let piece = select(vec![1 << 20, 1 << 20, 1 << 20, 40]);
    (line, vec(field, 0..4), framing, piece).prop_map(|(line, fields, framing, piece)| {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        // A close of a connection that the gateway may use again is a race.
        let ends = ["Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked\r\n\r\n"];
        let ends = ends.iter().any(|start| framing.starts_with(start)) && !framing.ends_with("hel");
        // Whether chunks come at once decides on how they go on.
        let is_split = framing == "Content-Length: 5\r\n\r\nhello" && !line.contains(" 204") && !line.contains(" 304");
        Script {
            bytes: format!("{line}\r\n{fields}{framing}").into_bytes(),
            piece: if is_split { piece } else { 1 << 20 },
            end: if ends { "" } else { "close" },
        }
    })
}

fn compare(policy: &Policy, cases: u32) {
    let [value, future] = [true, false].map(|has_direct_calls| side(policy, has_direct_calls));
    let mut runner = TestRunner::new(Cases { cases, failure_persistence: None, ..Cases::default() });
    let cases = (requests(), vec(scripts(), 1..3));
    let compared = runner.run(&cases, |(request, mut scripts)| {
        if request.starts_with(b"HEAD") {
            // Its responses have more bytes than they should, too.
            scripts.iter_mut().for_each(|script| script.piece = 1 << 20);
        }
        let [by_value, by_future] = [&value, &future].map(|side| side.exchange(&request, &scripts));
        prop_assert_eq!(by_value.0, by_future.0, "{} {:?}", request.escape_ascii(), scripts);
        prop_assert_eq!(by_value.1, by_future.1, "{} {:?}", request.escape_ascii(), scripts);
        Ok(())
    });
    compared.unwrap_or_else(|failed| panic!("{failed}"));
    // A call is counted when its caller has its response.
    let is_idle = |side: &Side| side.counts().iter().all(|line| !line.contains("_in_flight") || line.ends_with(" 0.0"));
    until("all calls are over", PATIENCE, || is_idle(&value) && is_idle(&future));
    assert_eq!(value.counts(), future.counts());
}

#[test]
fn plain_calls_are_the_same_as_values_and_as_futures() {
    compare(&Policy::default(), 300);
}

#[test]
fn calls_that_may_be_repeated_are_the_same_as_values_and_as_futures() {
    let backoff = Backoff { min: Nanos::MILLI, max: Nanos::MILLI };
    let retry = RetryPolicy { max_retries: 1, backoff, ..RetryPolicy::default() };
    let stages = vec![HedgeStage { after: StageTrigger::Failure, on_failure: true, attempts: 1 }];
    compare(&Policy { retry: retry.clone(), budget: None, ..Policy::default() }, 150);
    compare(&Policy { retry, stages, budget: None, ..Policy::default() }, 150);
}

#[test]
fn a_call_goes_on_as_a_future_when_a_hedge_is_due() {
    let policy = Policy {
        stages: vec![HedgeStage { after: StageTrigger::Time(Nanos::from_millis(50)), on_failure: false, attempts: 1 }],
        ..Policy::default()
    };
    let side = side(&policy, true);
    assert_eq!(side.connect().get("/").text(), "end");
    // The first attempt never gets a response; the second one does.
    let frozen = Script { bytes: Vec::new(), piece: 1 << 20, end: "" };
    *side.replies.lock().unwrap() = vec![frozen];
    assert_eq!(side.connect().get("/").text(), "end");
    // On a busy machine other calls may have one, too.
    assert!(side.server.requests() >= 3);
}

#[test]
fn a_call_ends_at_its_deadline_or_when_its_caller_leaves() {
    let side = side(&Policy { deadline: Nanos::from_millis(300), ..Policy::default() }, true);
    let frozen = Script { bytes: Vec::new(), piece: 1 << 20, end: "" };
    for _ in 0..2 {
        assert_eq!(side.connect().get("/").text(), "end");
        *side.replies.lock().unwrap() = vec![frozen.clone()];
        assert_eq!(side.connect().get("/").status, 504);
    }
    assert_eq!(side.connect().get("/").text(), "end");
    *side.replies.lock().unwrap() = vec![frozen];
    let before = side.server.requests();
    let mut client = side.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the upstream has the request", PATIENCE, || side.server.requests() > before);
    drop(client);
    let has =
        |text: &str| side.counts().iter().any(|line| line.starts_with("weir_gate_calls_total") && line.contains(text));
    until("its call is over", PATIENCE, || has("outcome=\"client_closed\"} 1"));
    assert!(has("outcome=\"deadline_exceeded\"} 2"));
}
