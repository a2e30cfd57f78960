//! Upstreams of `weir gate`: names that are resolved anew, health checks, keys, limits of connections.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir_testing::{Authority, Gate, Http2Reply, Http2Service, Over, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway with this configuration of its only upstream.
fn gate(upstream: &str) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", configured(upstream));
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

pub(crate) fn configured(upstream: &str) -> String {
    format!("[upstreams.a]\n{upstream}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n")
}

/// Servers with these names at one port of 127.0.0.1, 127.0.0.2, ...
pub(crate) fn at_one_port<const N: usize>(names: [&'static str; N], script: fn(&'static str) -> Reply) -> [Server; N] {
    let start = |number: usize, name: &'static str, port: u16| {
        Server::build().start_at(&format!("127.0.0.{}:{port}", number + 1), move |_| script(name))
    };
    for _ in 0..100 {
        let first = start(0, names[0], 0).unwrap();
        let port = first.port();
        let others: Option<Vec<Server>> = (1..N).map(|number| start(number, names[number], port)).collect();
        if let Some(others) = others {
            let all: Vec<Server> = [first].into_iter().chain(others).collect();
            return all.try_into().unwrap_or_else(|_| panic!("{N} servers"));
        }
    }
    panic!("no port is free at all addresses");
}

/// Does something while three clients make calls, of which none fails.
pub(crate) fn while_calls_are_made(gate: &Serving, act: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let call = || {
            let mut connection = gate.connect();
            let mut calls = 0;
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(connection.get("/").status, 200);
                calls += 1;
            }
            calls
        };
        let callers = [(); 3].map(|()| scope.spawn(call));
        let over = Over(&stop);
        act();
        drop(over);
        let calls: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        assert!(calls > 0, "{calls}");
    });
}

#[test]
fn the_addresses_of_a_name_are_hosts_that_come_and_go() {
    let [one, two, three] = at_one_port(["one", "two", "three"], Reply::ok);
    let weir = Weir::new();
    weir.write("hosts", "127.0.0.1 backend.test\n127.0.0.2 backend.test\n");
    let url = format!("http://backend.test:{}", one.port());
    weir.write("gate.toml", configured(&format!("urls = [\"{url}\"]\nresolve = \"50ms\"")));
    let gate = Serving::gate_with_hosts(weir, &["--config", "gate.toml"]);
    let host = |number: usize| {
        let name = format!("127.0.0.{number}:{}", one.port());
        let text = gate.get("/metrics").text().to_owned();
        text.contains(&format!("weir_gate_host_ejected{{upstream=\"a\",host=\"{name}\"}}"))
    };
    until("two hosts", PATIENCE, || host(1) && host(2));
    let mut connection = gate.connect();
    let answers: Vec<String> = (0..6).map(|_| connection.get("/").text().to_owned()).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "one").count(), 3, "{answers:?}");
    assert_eq!(two.seen()[0].header("host"), Some("test"), "the Host header is the caller's");

    // The first address goes, a third one comes, while calls are made.
    while_calls_are_made(&gate, || {
        for turn in 0..10 {
            let address = if turn % 2 == 0 { 3 } else { 1 };
            gate.weir.write_over("hosts", &format!("127.0.0.{address} backend.test\n"));
            until("other hosts", PATIENCE, || host(if turn % 2 == 0 { 3 } else { 1 }) && !host(2));
        }
    });
    until("the last host", PATIENCE, || host(1) && !host(3));
    until("the close of the connections", PATIENCE, || two.counts().open == 0 && three.counts().open == 0);

    // A name that is not known any more keeps its addresses.
    let before = one.requests();
    gate.weir.write_over("hosts", "127.0.0.9 other.test\n");
    // A look-up that fails changes nothing that could be waited for; it is due twenty times within this.
    thread::sleep(Duration::from_secs(1));
    assert_eq!((gate.get("/").text(), one.requests()), ("one", before + 1));
    let output = gate.stop();
    assert_eq!(output.code, 0);
    let expected = "weir: upstream a: backend.test cannot be resolved, and keeps its hosts: ";
    let others = output.stderr.lines().filter(|line| !line.contains(" by DNS: "));
    assert_eq!(others.filter(|line| line.starts_with(expected)).count(), 1, "{}", output.stderr);
}

#[test]
fn more_addresses_than_hosts_are_said_once() {
    let weir = Weir::new();
    let lines: Vec<String> = (1..=70).map(|number| format!("127.0.1.{number} backend.test\n")).collect();
    weir.write("hosts", lines.concat());
    weir.write("gate.toml", configured("urls = [\"http://backend.test:1\"]\nresolve = \"50ms\""));
    let gate = Serving::gate_with_hosts(weir, &["--config", "gate.toml"]);
    let hosts = || gate.get("/metrics").text().matches("weir_gate_host_ejected{").count();
    until("all hosts", PATIENCE, || hosts() == 64);
    // Also after a change.
    gate.weir.write_over("hosts", &lines[..69].concat());
    until("more look-ups", PATIENCE, || hosts() == 64);
    let output = gate.stop();
    assert_eq!(output.stderr, "weir: upstream a: its names have 70 addresses, of which 64 are used\n");
}

#[test]
fn an_attempt_at_a_host_that_has_gone_is_answered() {
    let held = Gate::default();
    let slow = {
        let held = held.clone();
        Server::start(move |_| {
            Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
        })
    };
    let weir = Weir::new();
    weir.write("hosts", "127.0.0.1 backend.test\n");
    let url = format!("http://backend.test:{}", slow.port());
    weir.write("gate.toml", configured(&format!("urls = [\"{url}\"]\nresolve = \"20ms\"")));
    let gate = Serving::gate_with_hosts(weir, &["--config", "gate.toml"]);
    let mut caller = gate.connect();
    caller.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the call", PATIENCE, || slow.requests() == 1);
    gate.weir.write_over("hosts", "127.0.0.7 backend.test\n");
    let gone = format!("host=\"127.0.0.1:{}\"", slow.port());
    until("the change", PATIENCE, || {
        let text = gate.get("/metrics").text().to_owned();
        text.contains("host=\"127.0.0.7:") && !text.contains(&gone)
    });
    held.open();
    assert_eq!(caller.answer().text(), "slow");
}

#[test]
fn a_resolved_address_has_the_name_of_its_url_in_certificate_and_host() {
    let authority = Authority::new();
    let server = Server::build().tls(authority.service("backend.test")).start(|_| Reply::ok("secret"));
    let weir = Weir::new();
    weir.write("hosts", "127.0.0.1 backend.test\n");
    authority.file(&weir, "ca.pem");
    let url = format!("https://backend.test:{}", server.port());
    let upstream = format!("urls = [\"{url}\"]\nresolve = \"20ms\"\nprotocol = \"http1\"\ntls.cacert = \"ca.pem\"");
    weir.write("gate.toml", configured(&upstream) + "rewrite = { host = \"upstream\" }\n");
    let gate = Serving::gate_with_hosts(weir, &["--config", "gate.toml"]);
    let host = format!("host=\"127.0.0.1:{}\"", server.port());
    until("the address", PATIENCE, || gate.get("/metrics").text().contains(&host));
    assert_eq!(gate.get("/").text(), "secret");
    let seen = server.seen().remove(0);
    assert_eq!(seen.header("host"), Some(format!("backend.test:{}", server.port()).as_str()));
    assert!(server.names().contains(&Some("backend.test".to_owned())), "{:?}", server.names());
}

#[test]
fn callers_keep_their_host_by_header() {
    let servers: [Server; 3] = std::array::from_fn(|number| Server::start(move |_| Reply::ok(&number.to_string())));
    let urls: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.url(""))).collect();
    let gate = gate(&format!(
        "urls = [{}]\nbalance = \"consistent-hash\"\nhash_by = {{ header = \"x-user\" }}\nmax_load = 2",
        urls.join(", ")
    ));
    let host = |user: usize| {
        let mut connection = gate.connect();
        connection.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-User: {user}\r\n\r\n"));
        connection.answer().text().to_owned()
    };
    let first: Vec<String> = (0..30).map(host).collect();
    let again: Vec<String> = (0..30).map(host).collect();
    assert_eq!(first, again);
    assert!((0..3).all(|number| first.contains(&number.to_string())), "{first:?}");
    assert_eq!(gate.get("/").status, 200, "without a key any host");
}

#[test]
fn hosts_are_checked_by_connection() {
    let (good, gone) = (Server::hello(), Server::hello());
    let gate = gate(&format!(
        "urls = [\"{}\", \"{}\"]\nhealth = {{ consecutive_failures = 0, check = {{ tcp = true, interval = \"20ms\" }} }}",
        good.url(""),
        gone.url("")
    ));
    let ejected = || gate.metric(&format!("weir_gate_host_ejected{{upstream=\"a\",host=\"{}\"}}", gone.address()));
    assert_eq!(ejected(), 0.0);
    gone.stop_listening();
    until("the failed check", PATIENCE, || ejected() == 1.0);
    let mut connection = gate.connect();
    assert!((0..6).all(|_| connection.get("/").status == 200));
}

#[test]
fn hosts_are_checked_by_grpc_health() {
    let serving = Arc::new(AtomicBool::new(true));
    let of = Arc::clone(&serving);
    let checked = Http2Service::build().start(move |seen| {
        if seen.path != "/grpc.health.v1.Health/Check" {
            return Http2Reply::ok("answer");
        }
        assert_eq!(seen.body, [0, 0, 0, 0, 6, 0x0a, 4, b'e', b'c', b'h', b'o']);
        let status = if of.load(Ordering::Relaxed) { 1 } else { 2 };
        Http2Reply::ok([0, 0, 0, 0, 2, 8, status])
    });
    let other = Http2Service::build().start(|_| Http2Reply::ok([0, 0, 0, 0, 2, 8, 1]));
    let gate = gate(&format!(
        "urls = [\"{}\", \"{}\"]\nprotocol = \"http2\"\n\
         health = {{ check = {{ grpc = \"echo\", interval = \"20ms\" }} }}",
        checked.url(""),
        other.url("")
    ));
    let name = checked.url("").strip_prefix("http://").unwrap().to_owned();
    let ejected = || gate.metric(&format!("weir_gate_host_ejected{{upstream=\"a\",host=\"{name}\"}}"));
    assert_eq!(ejected(), 0.0);
    serving.store(false, Ordering::Relaxed);
    until("the end of serving", PATIENCE, || ejected() == 1.0);
    serving.store(true, Ordering::Relaxed);
    until("the return", PATIENCE, || ejected() == 0.0);
}

#[test]
fn when_all_checks_fail_all_hosts_get_attempts() {
    let servers = [Server::hello(), Server::hello()];
    let gate = gate(&format!(
        "urls = [\"{}\", \"{}\"]\nhealth = {{ check = {{ path = \"/wrong\", status = 204, interval = \"20ms\" }} }}",
        servers[0].url(""),
        servers[1].url("")
    ));
    until("the panic", PATIENCE, || gate.metric("weir_gate_panic{upstream=\"a\"}") == 1.0);
    let calls = |server: &Server| server.seen().iter().filter(|seen| seen.line() == "GET /call HTTP/1.1").count();
    let mut connection = gate.connect();
    assert!((0..10).all(|_| connection.get("/call").status == 200));
    assert_eq!([calls(&servers[0]), calls(&servers[1])], [5, 5]);
}

#[test]
fn a_host_that_fails_or_is_slower_than_the_others_is_ejected() {
    let failing = Server::start(|seen| if seen.number % 2 == 0 { Reply::status(503, "") } else { Reply::ok("") });
    let slow = Server::start(|_| Reply::ok("").after(Duration::from_millis(60)));
    let good = [Server::hello(), Server::hello(), Server::hello()];
    let all: Vec<String> =
        good.iter().chain([&failing, &slow]).map(|server| format!("\"{}\"", server.url(""))).collect();
    let gate = gate(&format!(
        "urls = [{}]\nhealth = {{ consecutive_failures = 0, failure_fraction = 0.3, latency_factor = 3, min_samples = 20, \
         window = \"1h\", ejection_time = \"1h\" }}",
        all.join(", ")
    ));
    let ejected = |server: &Server| {
        gate.metric(&format!("weir_gate_host_ejected{{upstream=\"a\",host=\"{}\"}}", server.address())) == 1.0
    };
    let mut connection = gate.connect();
    let mut calls = 0;
    until("both ejections", PATIENCE, || {
        connection.get("/");
        calls += 1;
        calls % 10 == 0 && ejected(&failing) && ejected(&slow)
    });
    assert!(good.iter().all(|server| !ejected(server)));
    let before = failing.requests() + slow.requests();
    assert!((0..30).all(|_| connection.get("/").status == 200));
    assert_eq!(failing.requests() + slow.requests(), before);
}

#[test]
fn connections_are_closed_after_their_requests_or_their_age() {
    let server = Server::hello();
    let by_count = gate(&format!("urls = [\"{}\"]\nmax_connection_requests = 5", server.url("")));
    let mut connection = by_count.connect();
    for _ in 0..20 {
        assert_eq!(connection.get("/").text(), "hello");
    }
    assert_eq!(server.counts().connections, 4);
    let server = Server::hello();
    let by_age = gate(&format!("urls = [\"{}\"]\nmax_connection_age = \"1s\"", server.url("")));
    let mut connection = by_age.connect();
    until("a second connection", PATIENCE, || {
        assert_eq!(connection.get("/").text(), "hello");
        server.counts().connections >= 2
    });
}
