//! The log of `weir gate`: one line per change of a host's condition, with its cause.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{DnsServer, Reply, Server, Serving, Weir, until};

use crate::gate_admin::{admin_request, get};
use crate::gate_upstreams::at_one_port;

const PATIENCE: Duration = Duration::from_secs(20);

fn gate(upstream: &str) -> Serving {
    gate_with(upstream, &[])
}

fn gate_with(upstream: &str, args: &[&str]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", file(upstream));
    Serving::gate_in(weir, &[&["--config", "gate.toml", "--admin", "0"], args].concat())
}

fn file(upstream: &str) -> String {
    format!("[upstreams.a]\n{upstream}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\nupstream = \"a\"\n")
}

fn urls(servers: &[&Server]) -> String {
    let all: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.url(""))).collect();
    format!("urls = [{}]", all.join(", "))
}

/// A server that responds with the status of the switch.
fn switched() -> (Arc<AtomicU16>, Server) {
    let status = Arc::new(AtomicU16::new(200));
    let server = Server::start({
        let status = Arc::clone(&status);
        move |_| Reply::status(status.load(Ordering::Relaxed), "")
    });
    (status, server)
}

fn condition(gate: &Serving, host: usize) -> String {
    get(gate, "/upstreams").json()[0]["hosts"][host]["condition"].as_str().unwrap().to_owned()
}

fn wait_for(gate: &Serving, host: usize, expected: &str) {
    until(expected, PATIENCE, || condition(gate, host) == expected);
}

/// Lines about upstreams, without the program's name; times are `T`.
fn lines(stderr: &str) -> Vec<String> {
    let ours = stderr.lines().filter_map(|line| line.strip_prefix("weir: upstream "));
    ours.map(|line| {
        let words = line.split(' ').map(|word| {
            let is_time =
                word.starts_with(|c: char| c.is_ascii_digit()) && word.trim_end_matches([':', ';']).ends_with('s');
            let end = if word.ends_with([':', ';']) { &word[word.len() - 1..] } else { "" };
            if is_time { format!("T{end}") } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    })
    .collect()
}

#[test]
fn a_host_that_dies_and_one_that_comes_back_are_lines_with_the_cause() {
    // A connection for each check, so that the next one finds none.
    let alone = |_: &_| Reply::raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").close();
    let (dies, stays) = (Server::start(alone), Server::hello());
    let (first, second) = (dies.address(), stays.address());
    let check = "health.check = { path = \"/healthz?key=s3cret-1\", interval = \"20ms\", timeout = \"10s\" }";
    let gate = gate(&format!("{}\n{check}", urls(&[&dies, &stays])));
    until("a check", PATIENCE, || dies.requests() > 0 && stays.requests() > 0);
    drop(dies);
    wait_for(&gate, 0, "unhealthy");
    let back = Server::build().start_at(&first, |_| Reply::ok("back"));
    if back.is_some() {
        wait_for(&gate, 0, "healthy");
    }
    assert_eq!(condition(&gate, 1), "healthy", "{second}");
    let stderr = gate.stop().stderr;
    assert!(!stderr.contains("s3cret"), "{stderr}");
    let all = lines(&stderr);
    let unhealthy = format!("a: {first} unhealthy: GET /healthz: connection refused ({first}); 1 of 2 hosts left");
    let came_back = format!("a: {first} healthy after T: GET /healthz passed; 2 of 2 hosts left");
    let expected = [Some(unhealthy), back.map(|_| came_back)];
    assert!(all.iter().eq(expected.iter().flatten()), "{all:?}");
}

#[test]
fn a_refused_connection_is_a_cause_and_a_single_host_has_a_line_without_checks() {
    let closed = weir_testing::closed_address();
    let gate = Serving::gate(&["--upstream", &format!("http://{closed}"), "--log-format", "json"]);
    for _ in 0..30 {
        assert_eq!(gate.get("/").status, 502);
    }
    let stderr = gate.stop().stderr;
    let json: Vec<serde_json::Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&str> = json.iter().filter_map(|line| line["message"].as_str()).collect();
    let expected = format!(
        "upstream upstream: {closed} failing: 5 failures in a row, the last: connection refused ({closed}); \
         not ejected, since too few hosts would be left; 0 of 1 host left"
    );
    assert_eq!(messages.iter().filter(|line| line.contains("failing")).collect::<Vec<_>>(), [&expected]);
}

#[test]
fn failures_of_calls_eject_and_the_return_is_a_line() {
    let (status, bad) = switched();
    let good = Server::hello();
    let gate = gate(&format!("{}\nhealth.ejection_time = \"50ms\"", urls(&[&bad, &good])));
    status.store(503, Ordering::Relaxed);
    until("the ejection", PATIENCE, || {
        gate.get("/");
        condition(&gate, 0) != "healthy"
    });
    status.store(200, Ordering::Relaxed);
    until("the return", PATIENCE, || {
        gate.get("/");
        condition(&gate, 0) == "healthy"
    });
    let all = lines(&gate.stop().stderr);
    let host = bad.address();
    assert_eq!(
        all[0],
        format!("a: {host} ejected for T: 5 failures in a row, the last: status 503; 1 of 2 hosts left")
    );
    let last = format!("a: {host} healthy after T: an attempt succeeded; 2 of 2 hosts left");
    assert_eq!(all.last(), Some(&last), "{all:?}");
    assert!(all[1..all.len() - 1].iter().all(|line| line.contains("ejected again")), "{all:?}");
}

#[test]
fn panic_begins_and_ends_and_all_hosts_are_down() {
    let all: Vec<_> = (0..3).map(|_| switched()).collect();
    let servers: Vec<&Server> = all.iter().map(|(_, server)| server).collect();
    let gate = gate(&format!(
        "{}\nhealth = {{ consecutive_failures = 0, panic_threshold = 0.5, check = {{ path = \"/\", interval = \"20ms\", timeout = \"10s\" }} }}",
        urls(&servers)
    ));
    for (number, (status, _)) in all.iter().enumerate() {
        status.store(500, Ordering::Relaxed);
        wait_for(&gate, number, "unhealthy");
    }
    for (number, (status, _)) in all.iter().enumerate() {
        status.store(200, Ordering::Relaxed);
        wait_for(&gate, number, "healthy");
    }
    let lines = lines(&gate.stop().stderr);
    let of_all: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.contains("127.0.0.1")).collect();
    assert_eq!(
        of_all,
        [
            "a: panic: 1 of 3 hosts left, fewer than panic_threshold: attempts go to all hosts",
            "a: all 3 hosts are down: attempts go to all of them",
            "a: panic ended: 2 of 3 hosts left; attempts go to healthy hosts only",
        ],
        "{lines:?}"
    );
    assert_eq!(lines.len(), 9, "{lines:?}");
}

#[test]
fn a_host_that_flaps_has_few_lines_and_the_number_of_those_left_out() {
    let (status, server) = switched();
    let gate = gate(&format!(
        "{}\nhealth = {{ consecutive_failures = 0, check = {{ path = \"/\", interval = \"1ms\", timeout = \"10s\" }} }}",
        urls(&[&server])
    ));
    for _ in 0..20 {
        for (to, name) in [(500, "unhealthy"), (200, "healthy")] {
            status.store(to, Ordering::Relaxed);
            wait_for(&gate, 0, name);
        }
    }
    // A line that is left out is one of the next half a minute.
    let all = lines(&gate.stop().stderr);
    let omitted = |line: &String| line.contains("not logged");
    assert!((10..=14).contains(&all.len()), "{all:?}");
    assert!(all.len() == 10 || all.iter().any(omitted), "{all:?}");
}

#[test]
fn a_circuit_is_logged_when_it_opens_tries_and_closes() {
    let (status, server) = switched();
    let breaker =
        "breaker = { min_samples = 5, failure_threshold = 0.5, open_time = \"50ms\", max_open_time = \"50ms\" }";
    let gate = gate(&format!("{}\nhealth.consecutive_failures = 0\n{breaker}", urls(&[&server])));
    let circuit = || get(&gate, "/upstreams").json()[0]["circuit"].as_str().unwrap().to_owned();
    status.store(502, Ordering::Relaxed);
    until("the opening", PATIENCE, || {
        gate.get("/");
        circuit() != "closed"
    });
    status.store(200, Ordering::Relaxed);
    until("the closing", PATIENCE, || {
        gate.get("/");
        circuit() == "closed"
    });
    let all = lines(&gate.stop().stderr);
    assert_eq!(all[0], "a: circuit open for T: 5 of 5 calls within T failed");
    let end = ["a: circuit half-open: the next calls are probes", "a: circuit closed: probes succeeded"];
    assert_eq!(all[all.len() - 2..], end, "{all:?}");
}

#[test]
fn throttling_is_logged_when_it_begins_and_when_it_ends_without_a_call() {
    let (status, server) = switched();
    let throttle = "throttle = { k = 1, window = \"50ms\", min_samples = 1 }";
    let gate = gate(&format!("{}\nhealth.consecutive_failures = 0\n{throttle}", urls(&[&server])));
    let is_throttling = || get(&gate, "/upstreams").json()[0]["throttling"].as_bool().unwrap();
    assert!(!is_throttling());
    status.store(503, Ordering::Relaxed);
    let mut throttled = 0;
    until("a call that is not sent", PATIENCE, || {
        throttled += u32::from(gate.get("/").text().contains("throttled"));
        throttled == 3
    });
    until("the end", PATIENCE, || !is_throttling());
    let all = lines(&gate.stop().stderr);
    let is_begin =
        |line: &String| line.starts_with("a: throttling: ") && line.ends_with(" attempts within T got 429 or 503");
    assert!(is_begin(&all[0]), "{all:?}");
    let last = all.last().unwrap();
    assert!(
        last.starts_with("a: throttling ended") && (last.contains(" were not sent") || last.contains(" was not sent")),
        "{all:?}"
    );
    assert!(all.iter().all(|line| is_begin(line) || line.contains("throttling ended")), "{all:?}");
}

#[test]
fn hosts_that_dns_a_reload_and_an_operator_change_are_lines() {
    let [one, two] = at_one_port(["one", "two"], Reply::ok);
    let port = one.port();
    let dns = DnsServer::start("backend.test 1 A 127.0.0.1\n");
    let upstream = format!(
        "urls = [\"http://backend.test:{port}\"]\nresolve = \"ttl\"\nresolver = [\"{}\"]\n[upstreams.b]\n{}",
        dns.address(),
        urls(&[&one, &two])
    );
    let gate = gate(&upstream);
    let hosts = |upstream: usize| get(&gate, "/upstreams").json()[upstream]["hosts"].as_array().unwrap().len();
    until("the first address", PATIENCE, || get(&gate, "/upstreams").json()[0]["hosts"][0]["host"] == one.address());
    dns.set_records("backend.test 1 A 127.0.0.1\nbackend.test 1 A 127.0.0.2\n");
    until("a second address", PATIENCE, || hosts(0) == 2);
    let of_b = |action: &str| format!("/upstreams/b/{action}?host={}", two.address());
    assert_eq!(admin_request(&gate, "POST", &of_b("eject"), "").status, 200);
    assert_eq!(admin_request(&gate, "POST", &of_b("restore"), "").status, 200);
    let third = Server::hello();
    let changed = file(&upstream).replace(&two.url(""), &third.url(""));
    gate.weir.write("gate.toml", changed);
    gate.signal(Signal::HUP);
    until("the reload", PATIENCE, || get(&gate, "/upstreams").json()[1]["hosts"][1]["host"] == third.address());
    let all = lines(&gate.stop().stderr);
    assert_eq!(
        all,
        [
            format!("a: added by DNS: 127.0.0.2:{port}; 2 hosts"),
            format!("b: 127.0.0.2:{port} ejected by hand; 1 of 2 hosts left"),
            format!("b: 127.0.0.2:{port} healthy after T: restored by hand; 2 of 2 hosts left"),
            format!("b: added by the reload: {}; removed by the reload: 127.0.0.2:{port}; 2 hosts", third.address()),
        ]
    );
}
