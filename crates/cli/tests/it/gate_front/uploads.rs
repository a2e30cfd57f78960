//! Uploads that break off, are framed wrong, or stall.

use super::{PATIENCE, configured, to};
use weir_testing::{Raw, Reply, Server, Serving, until};

/// A configuration that ejects hosts after one failure, with a breaker.
fn strict(hosts: &[&Server], policy: &str) -> Serving {
    let urls: Vec<String> = hosts.iter().map(|host| host.url("")).collect();
    let table = "health = { consecutive_failures = 1, ejection_time = \"60s\" }\nbreaker = { min_samples = 4, failure_threshold = 0.3 }";
    configured(&to(&urls.join("\", \""), table, policy))
}

/// No host is ejected, and no failure counts against the upstream.
fn check_no_blame(gate: &Serving, hosts: &[&Server]) {
    for _ in 0..20 {
        assert_eq!(gate.get("/good").status, 200);
    }
    for host in hosts {
        let seen = host.seen().iter().filter(|seen| seen.line().contains("/good")).count();
        assert!(seen > 0, "{} gets calls", host.address());
        let out = format!("weir_gate_host_ejected{{upstream=\"backend\",host=\"{}\"}}", host.address());
        assert_eq!(gate.metric(&out), 0.0);
    }
    assert_eq!(gate.metric("weir_gate_breaker_open{upstream=\"backend\"}"), 0.0);
    for kind in ["closed", "reset", "timeout", "protocol"] {
        let name = format!("weir_gate_attempts_failed_total{{upstream=\"backend\",kind=\"{kind}\"}}");
        assert_eq!(gate.metric(&name), 0.0, "{kind}");
    }
}

fn failures(gate: &Serving) -> f64 {
    gate.metric("weir_gate_attempts_failed_total{upstream=\"backend\",kind=\"request\"}")
}

/// A service that responds to complete requests, and waits for the rest of others.
fn patient() -> Server {
    Server::start(|seen| if seen.line().starts_with("POST") { Reply::nothing() } else { Reply::ok("good") })
}

#[test]
fn a_broken_upload_is_the_callers_fault() {
    let hosts = [patient(), patient()];
    let hosts = [&hosts[0], &hosts[1]];
    let gate = strict(&hosts, "");
    let some = "x".repeat(70_000);
    for k in 0..12 {
        let before = hosts.iter().map(|host| host.counts().connections).sum::<u64>();
        let mut client = gate.connect();
        let head = match k % 2 {
            0 => "Content-Length: 200000\r\n\r\n".to_owned(),
            _ => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", 200_000),
        };
        client.send(format!("POST /bad HTTP/1.1\r\nHost: test\r\n{head}{some}"));
        until("the upload", PATIENCE, || {
            hosts.iter().map(|host| host.counts().connections).sum::<u64>() > before || k > 1
        });
        if k % 3 == 0 { client.reset() } else { drop(client) }
    }
    until("their end", PATIENCE, || gate.metric("weir_gate_attempts_in_flight{upstream=\"backend\"}") == 0.0);
    check_no_blame(&gate, &hosts);
}

#[test]
fn a_body_with_invalid_framing_is_a_400() {
    let host = patient();
    let gate = strict(&[&host], "");
    for k in 0..12 {
        let mut client = gate.connect();
        client.send("POST /bad HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        until("the upload", PATIENCE, || gate.metric("weir_gate_attempts_in_flight{upstream=\"backend\"}") == 1.0);
        client.send("zz\r\n");
        let answer = client.answer();
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().starts_with("the request's body broke off"), "{}", answer.text());
        assert_eq!(failures(&gate), f64::from(k + 1));
    }
    // What is known to be broken is not sent at all.
    let mut client = gate.connect();
    client.send("POST /bad HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nzz\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, failures(&gate)), (400, 12.0), "{}", answer.text());
    check_no_blame(&gate, &[&host]);
}

#[test]
fn a_stalled_upload_is_not_a_failure_of_the_host() {
    let host = patient();
    let statuses = |gate: &Serving| {
        let mut clients = [(); 6].map(|()| gate.connect());
        let some = "x".repeat(70_000);
        for client in &mut clients {
            client.send(format!("POST /bad HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n{some}"));
        }
        clients.map(|mut client| client.answer().status)
    };
    let gate = strict(&[&host], "attempt_timeout = \"5s\"");
    assert_eq!(statuses(&gate), [400; 6]);
    assert_eq!(failures(&gate), 6.0);
    check_no_blame(&gate, &[&host]);
    let gate = strict(&[&host], "deadline = \"5s\"");
    assert_eq!(statuses(&gate), [504; 6]);
    check_no_blame(&gate, &[&host]);
}

/// A host's own failure still counts against it.
#[test]
fn a_host_that_disconnects_during_an_upload_has_failed() {
    let host = Server::build().answers_heads(Reply::nothing().reset()).start(|_| Reply::ok("good"));
    let gate = strict(&[&host], "");
    for _ in 0..4 {
        let mut client: Raw = gate.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(70_000)));
        assert_eq!(client.answer().status, 502);
    }
    assert_eq!(gate.get("/").status, 503, "the breaker is open");
    assert_eq!(failures(&gate), 0.0);
}
