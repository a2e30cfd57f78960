//! `weir gate` under overload: queueing, rejections, metrics and logs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rustix::process::Signal;
use serde_json::Value;
use support::{Answer, Gate, Raw, Reply, Server, Serving, Weir, over_http2, until};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(20);
const WAITING: &str = "weir_gate_queue_length{upstream=\"backend\"}";
const IN_FLIGHT: &str = "weir_gate_in_flight{upstream=\"backend\"}";

/// A configuration with one upstream and one route for all paths, each with extra lines.
fn config(url: &str, upstream: &str, route: &str) -> String {
    format!(
        "[upstreams.backend]\nurls = [\"{url}\"]\n{upstream}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{route}\n"
    )
}

fn start(server: &Server, upstream: &str, route: &str, more: &[&str]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", config(&server.url(""), upstream, route));
    Serving::gate_in(weir, &[&["--config", "gate.toml"], more].concat())
}

/// A server that responds once the gate is opened.
fn held() -> (Gate, Server) {
    let opens = Gate::default();
    let held = opens.clone();
    (
        opens,
        Server::start(move |_| Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    )
}

/// A connection on which a request was sent.
fn asks(gate: &Serving, headers: &str) -> Raw {
    let mut client = gate.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    client
}

fn with(gate: &Serving, headers: &str) -> Answer {
    asks(gate, headers).answer()
}

fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

/// Sum of all series of a metric.
fn sum(gate: &Serving, name: &str) -> f64 {
    let answer = gate.get("/metrics");
    let of = answer.text().lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
    of.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn limit_and_queue_hold_across_event_loops() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "", &["-w", "2"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut second = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    for _ in 0..8 {
        let refused = with(&gate, "");
        assert_eq!(
            (refused.status, refused.text()),
            (503, "overload: concurrency limit and queue are full (queue_full)\n")
        );
        assert!(retry_after(&refused) >= 1);
    }
    assert_eq!((server.requests(), gate.metric(IN_FLIGHT)), (1, 1.0));
    opens.open();
    assert_eq!((first.answer().status, second.answer().status), (200, 200));
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0);
    assert_eq!((gate.metric(WAITING), server.requests()), (0.0, 2));
    assert!(gate.metric("weir_gate_queue_wait_seconds_total{upstream=\"backend\"}") > 0.0);
    let refused =
        "weir_gate_rejected_total{route=\"/{*rest}\",upstream=\"backend\",reason=\"queue_full\",priority=\"normal\"}";
    assert_eq!(gate.metric(refused), 8.0);
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"rejected\"}"), 8.0);
    assert_eq!(sum(&gate, "weir_gate_calls_total"), 10.0);
}

#[test]
fn a_rejection_has_the_routes_body_and_the_status_of_its_reason() {
    let (opens, server) = held();
    let answer =
        "[routes.response]\nrejected = { content_type = \"application/json\", body = '{\"message\":\"ERROR\"}' }";
    let gate = start(&server, "max_in_flight = 1", answer, &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let refused = with(&gate, "");
    assert_eq!((refused.status, refused.text()), (503, "{\"message\":\"ERROR\"}"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert!(retry_after(&refused) >= 1);
    opens.open();
    assert_eq!(first.answer().status, 200);
}

#[test]
fn slots_are_handed_over_between_event_loops() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(1)));
    let gate = start(&server, "max_in_flight = 3\nmax_queue = 1000", "", &["-w", "2"]);
    thread::scope(|scope| {
        for leaves in [false, true].repeat(6) {
            let gate = &gate;
            scope.spawn(move || {
                let mut kept = gate.connect();
                for _ in 0..60 {
                    if leaves {
                        asks(gate, "").reset();
                    } else {
                        assert_eq!(kept.get("/").status, 200);
                    }
                }
            });
        }
    });
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0 && gate.metric(WAITING) == 0.0);
    assert!(server.counts().most_open <= 3 + 360, "{:?}", server.counts());
    assert_eq!(gate.get("/").status, 200);
}

#[test]
fn a_queued_call_of_a_disconnected_caller_leaves_the_queue() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "", &["-w", "2"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let leaves = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    drop(leaves);
    until("its end", PATIENCE, || gate.metric(WAITING) == 0.0);
    let mut third = asks(&gate, "");
    until("the third", PATIENCE, || gate.metric(WAITING) == 1.0);
    opens.open();
    assert_eq!((first.answer().status, third.answer().status, server.requests()), (200, 200, 2));
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"client_closed\"}"), 1.0);
}

#[test]
fn a_reload_does_not_affect_queued_calls() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "max_in_flight = 2\nmax_queue = 5", &[]);
    let mut both = [asks(&gate, "")];
    until("the first", PATIENCE, || server.requests() == 1);
    let mut waits = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    let route = "weir_gate_concurrency_limit{route=\"/{*rest}\"}";
    assert_eq!(gate.metric(route), 2.0);
    gate.weir.write("gate.toml", config(&server.url(""), "max_in_flight = 7", ""));
    gate.signal(Signal::HUP);
    until("the new limit", PATIENCE, || gate.metric("weir_gate_concurrency_limit{upstream=\"backend\"}") == 7.0);
    assert_eq!(gate.metric(route), 0.0);
    let mut free = asks(&gate, "");
    until("a place of the new ones", PATIENCE, || server.requests() == 2);
    opens.open();
    let [first] = &mut both;
    assert_eq!([first.answer().status, waits.answer().status, free.answer().status], [200; 3]);
}

#[test]
fn the_lowest_priority_is_shed_first() {
    let (opens, server) = held();
    let route = "priority_from = { header = \"x-priority\", values = { gold = \"critical\", bulk = \"low\" } }";
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", route, &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut bulk = asks(&gate, "x-priority: bulk\r\n");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    let mut gold = asks(&gate, "x-priority: gold\r\n");
    assert_eq!(bulk.answer().status, 503);
    assert_eq!(with(&gate, "").status, 503, "what is higher waits already");
    opens.open();
    assert_eq!((first.answer().status, gold.answer().status), (200, 200));
    let of = |priority: &str| {
        let labels = format!("route=\"/{{*rest}}\",upstream=\"backend\",reason=\"queue_full\",priority=\"{priority}\"");
        gate.metric(&format!("weir_gate_rejected_total{{{labels}}}"))
    };
    assert_eq!([of("low"), of("normal"), of("critical")], [1.0, 1.0, 0.0]);
}

#[test]
fn callers_are_rate_limited_with_retry_after() {
    let server = Server::hello();
    let gate = start(&server, "", "caller = { header = \"x-api-key\" }\nrate_limit = \"2/1h\"", &["-w", "2"]);
    for _ in 0..2 {
        assert_eq!(with(&gate, "x-api-key: a\r\n").status, 200);
    }
    let refused = with(&gate, "x-api-key: a\r\n");
    assert_eq!(refused.status, 429);
    assert!((1790..=1800).contains(&retry_after(&refused)), "{refused:?}");
    assert_eq!(with(&gate, "x-api-key: b\r\n").status, 200);
    // Without the header a caller is identified by its address.
    assert_eq!([(); 3].map(|()| with(&gate, "").status), [200, 200, 429]);
    // An unrelated change keeps the state.
    let more = "caller = { header = \"x-api-key\" }\nrate_limit = \"2/1h\"\nrewrite = { set = { x-new = \"1\" } }";
    gate.weir.write("gate.toml", config(&server.url(""), "", more));
    gate.signal(Signal::HUP);
    until("the reload", PATIENCE, || {
        with(&gate, "x-api-key: c\r\n");
        server.seen().last().unwrap().header("x-new").is_some() || with(&gate, "x-api-key: d\r\n").status == 429
    });
    assert_eq!(with(&gate, "x-api-key: a\r\n").status, 429);
}

#[test]
fn a_caller_of_critical_calls_only_gets_no_more_than_a_fair_share() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(4)));
    let route = "priority_from = { header = \"x-priority\" }\ncaller = { header = \"x-api-key\" }";
    let gate = start(&server, "max_in_flight = 2\nmax_queue = 2", route, &[]);
    let served = [AtomicU64::new(0), AtomicU64::new(0)];
    let end = Instant::now() + Duration::from_secs(4);
    let half = end - Duration::from_secs(2);
    thread::scope(|scope| {
        for number in 0..16 {
            let (gate, served) = (&gate, &served[number % 2]);
            scope.spawn(move || {
                let head = ["x-api-key: honest\r\n", "x-api-key: liar\r\nx-priority: critical\r\n"][number % 2];
                let mut client = gate.connect();
                while Instant::now() < end {
                    client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{head}\r\n"));
                    if client.answer().status == 200 && Instant::now() > half {
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
    let [honest, liar] = served.map(|count| count.load(Ordering::Relaxed) as f64);
    println!("honest {honest}, liar {liar}");
    assert!(honest > 0.0 && liar < 2.5 * honest, "the liar has {liar}, the honest one {honest}");
}

#[test]
fn the_breaker_opens_for_a_failing_upstream() {
    let server = Server::hello();
    server.stop_listening();
    let breaker = "breaker = { min_samples = 3, failure_threshold = 1, open_time = \"5m\", max_open_time = \"5m\" }\nconcurrency_limit = \"none\"";
    let gate = start(&server, breaker, "", &[]);
    assert_eq!([(); 3].map(|()| gate.get("/").status), [502; 3]);
    let refused = gate.get("/");
    assert_eq!((refused.status, refused.text()), (503, "nearly all calls to the upstream fail (circuit_open)\n"));
    assert!((290..=300).contains(&retry_after(&refused)), "{refused:?}");
    assert_eq!(gate.metric("weir_gate_breaker_open{upstream=\"backend\"}"), 1.0);
    assert_eq!(sum(&gate, "weir_gate_attempts_total"), 3.0);
}

#[test]
fn an_overloaded_upstream_is_throttled() {
    let server = Server::start(|_| Reply::status(429, ""));
    let gate =
        start(&server, "throttle = { min_samples = 10, max_throttled = 0.9 }\nconcurrency_limit = \"none\"", "", &[]);
    let mut client = gate.connect();
    let answers: Vec<Answer> = (0..300).map(|_| client.get("/")).collect();
    let dropped = answers.iter().filter(|answer| answer.text().ends_with("(throttled)\n")).count() as u64;
    assert_eq!(server.requests() + dropped, 300);
    assert!((150..290).contains(&dropped), "{dropped}");
    assert!(answers[..10].iter().all(|answer| answer.status == 429));
    assert!(gate.metric("weir_gate_throttled_fraction{upstream=\"backend\"}") > 0.8);
    let well = Server::hello();
    let gate = start(&well, "", "", &[]);
    assert!((0..100).all(|_| gate.get("/").status == 200));
    assert_eq!(gate.metric("weir_gate_throttled_fraction{upstream=\"backend\"}"), 0.0);
}

#[test]
fn ten_thousand_rejections_leak_nothing_and_keep_their_connection() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1", "", &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut client = gate.connect();
    assert_eq!(client.post("/", "small").status, 503);
    let files = gate.open_files();
    let begun = Instant::now();
    for _ in 0..10_000 {
        assert_eq!(client.get("/").status, 503);
    }
    println!("{:?} for 10,000 refusals, one after the other", begun.elapsed());
    assert!(gate.open_files() <= files);
    assert_eq!((gate.metric(IN_FLIGHT), gate.metric(WAITING)), (1.0, 0.0));
    opens.open();
    assert_eq!(first.answer().status, 200);
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0);
    assert_eq!((client.get("/").status, sum(&gate, "weir_gate_rejected_total")), (200, 10_001.0));
}

#[test]
fn limit_and_queue_hold_over_http2() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 2\nmax_queue = 3", "", &[]);
    over_http2(&gate.address, async |mut sender| {
        let request = || {
            let uri = format!("http://{}/", gate.address);
            Request::builder().uri(uri).body(Full::<Bytes>::default()).unwrap()
        };
        let mut answers = JoinSet::new();
        for _ in 0..10 {
            answers.spawn(sender.send_request(request()));
        }
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let answer = answers.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(answer.headers()["retry-after"], "1");
            statuses.push(answer.status().as_u16());
        }
        opens.open();
        while let Some(answer) = answers.join_next().await {
            statuses.push(answer.unwrap().unwrap().status().as_u16());
        }
        assert_eq!(statuses, [[503; 5], [200; 5]].concat());
    });
    assert_eq!(server.requests(), 5);
}

#[test]
fn the_default_limit_is_adaptive() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url("")]);
    assert!((0..50).all(|_| gate.get("/").status == 200));
    assert!(gate.metric("weir_gate_concurrency_limit{upstream=\"upstream\"}") >= 1.0);
    let gradient = gate.metric("weir_gate_concurrency_limit_gradient{upstream=\"upstream\"}");
    assert!(gradient > 0.0 && gradient <= 1.0, "{gradient}");
    let fixed = Serving::gate(&["--upstream", &server.url(""), "--max-in-flight", "7", "--max-queue", "2"]);
    assert_eq!(fixed.metric("weir_gate_concurrency_limit{upstream=\"upstream\"}"), 7.0);
    let none = Serving::gate(&["--smart", &server.url(""), "--max-in-flight", "none"]);
    assert!(!none.get("/metrics").text().contains("weir_gate_concurrency_limit{"));
}

#[test]
fn logs_have_the_reason_of_a_rejection() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1", "priority = \"high\"", &["--attempt-log", "--access-log", "log"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    assert_eq!(gate.get("/no").status, 503);
    opens.open();
    assert_eq!(first.answer().status, 200);
    until("the log", PATIENCE, || gate.weir.read("log").contains("/no"));
    let text = gate.weir.read("log");
    let output = gate.stop();
    assert!(output.stderr.contains("GET /no -> 503 after"), "{output:?}");
    assert!(output.stderr.contains("rejected (queue_full, priority high); retry after 1s"), "{output:?}");
    let line: Value = serde_json::from_str(text.lines().find(|line| line.contains("/no")).unwrap()).unwrap();
    let said = serde_json::json!([{ "rejected": "queue_full", "priority": "high", "retry_after_s": 1.0 }]);
    assert_eq!((&line["status"], &line["attempt_log"]), (&Value::from(503), &said));
}

#[test]
fn a_pause_of_the_gateway_rejects_no_queued_call() {
    let server = Server::start(|_| Reply::ok(""));
    let gate = start(&server, "concurrency_limit = { initial = 4, max = 4 }", "", &[]);
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        // Four times the limit, so that the queue is never empty.
        for _ in 0..16 {
            scope.spawn(|| {
                let mut kept = gate.connect();
                let statuses: Vec<u16> = (0..250).map(|_| kept.get("/").status).collect();
                done.fetch_add(1, Ordering::SeqCst);
                assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
            });
        }
        while done.load(Ordering::SeqCst) < 16 {
            gate.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(20));
            gate.signal(Signal::CONT);
            thread::sleep(Duration::from_millis(80));
        }
    });
    assert_eq!(sum(&gate, "weir_gate_rejected_total"), 0.0);
}

#[test]
fn calls_with_short_deadlines_do_not_displace_others() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(40)));
    let gate = start(&server, "", "", &[]);
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while done.load(Ordering::SeqCst) == 0 {
                    let short = with(&gate, "x-envoy-expected-rq-timeout-ms: 20\r\n");
                    assert!(short.status == 504 || short.status == 200, "{}", short.status);
                }
            });
        }
        let statuses: Vec<u16> = (0..60).map(|_| gate.get("/").status).collect();
        done.fetch_add(1, Ordering::SeqCst);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
    assert_eq!(sum(&gate, "weir_gate_rejected_total"), 0.0);
}
