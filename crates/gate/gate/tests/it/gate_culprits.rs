//! Culprits: the calls that take the time of all others are rejected, and the others are not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use super::started::{Started, started};
use weir_testing::{Answer, Gate, Raw, Reply, Server, until};

/// Timeout of waits; far above all expected times.
const PATIENCE: Duration = Duration::from_secs(60);

const FOUR_SLOTS: &str = "max_in_flight = 4\nshed_culprits = { window = \"2s\" }";
const KEYS: &str = "caller = { header = \"x-api-key\" }";
const CULPRITS: &str = "weir_gate_culprits{upstream=\"backend\"}";
const LIGHT: &str = "x-api-key: light\r\nx-tokens: 1\r\n";
/// What a caller says of its calls has no influence.
const HEAVY: &str = "x-api-key: heavy\r\nx-tokens: 1\r\nx-priority: critical\r\n";

fn start(server: &Server, upstream: &str) -> Started {
    started(&format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n{upstream}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{KEYS}\n",
        server.url("")
    ))
}

/// A connection on which a request was sent.
fn asks(gate: &Started, headers: &str) -> Raw {
    let mut client = gate.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    client
}

fn with(gate: &Started, headers: &str) -> Answer {
    asks(gate, headers).answer()
}

/// A server that responds at once to all but those whose fields say `hold`; these wait for the gate to open.
fn holding() -> (Gate, Server) {
    let opens = Gate::default();
    let held = opens.clone();
    let server = Server::start(move |seen| {
        let reply = if seen.header("hold").is_some() { Reply::nothing().wait_for(&held) } else { Reply::nothing() };
        reply.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    });
    (opens, server)
}

/// Three slots are held by one caller with 3 of 100 calls, one by another.
fn full(gate: &Started, server: &Server) -> Vec<Raw> {
    for _ in 0..97 {
        assert_eq!(with(gate, LIGHT).status, 200);
    }
    let hold = |fields: &str| asks(gate, &format!("{fields}hold: 1\r\n"));
    let held = vec![hold(HEAVY), hold(HEAVY), hold(HEAVY), hold(LIGHT)];
    until("all slots are held", PATIENCE, || server.requests() == 101);
    held
}

#[test]
fn the_caller_that_holds_the_slots_is_shed() {
    let (opens, server) = holding();
    let gate = start(&server, FOUR_SLOTS);
    let mut held = full(&gate, &server);
    // Rejections of others are the evidence.
    let mut shed = None;
    until("a culprit", PATIENCE, || {
        assert!(with(&gate, LIGHT).text().ends_with("(queue_full)\n"));
        shed = Some(with(&gate, HEAVY)).filter(|answer| answer.text().ends_with("(culprit)\n"));
        shed.is_some()
    });
    let shed = shed.unwrap();
    assert_eq!((shed.status, shed.text()), (503, "overload: calls like this one crowd out all others (culprit)\n"));
    assert!(shed.header("retry-after").is_some());
    assert_eq!(gate.metric(CULPRITS), 1.0);
    assert!((1.0..=3.0).contains(&gate.metric("weir_gate_culprit_slots{upstream=\"backend\"}")));
    let labels = "route=\"/{*rest}\",upstream=\"backend\",reason=\"culprit\",priority=\"normal\"";
    assert!(gate.metric(&format!("weir_gate_rejected_total{{{labels}}}")) >= 1.0);
    opens.open();
    assert!(held.iter_mut().all(|client| client.answer().status == 200));
    // One at a time is always admitted.
    assert_eq!([with(&gate, HEAVY).status, with(&gate, LIGHT).status], [200, 200]);
}

#[test]
fn without_the_key_no_caller_is_told_apart() {
    let (opens, server) = holding();
    let gate = start(&server, "max_in_flight = 4");
    let mut held = full(&gate, &server);
    for _ in 0..30 {
        assert!(with(&gate, LIGHT).text().ends_with("(queue_full)\n"));
        assert!(with(&gate, HEAVY).text().ends_with("(queue_full)\n"));
    }
    opens.open();
    assert!(held.iter_mut().all(|client| client.answer().status == 200));
    assert!(!gate.get("/metrics").text().contains("weir_gate_culprits{"), "only where they are shed");
}

#[test]
fn a_healthy_upstream_with_a_heavy_caller_rejects_nothing() {
    let (opens, server) = holding();
    let gate = start(&server, "max_in_flight = 8\nshed_culprits = { window = \"200ms\" }");
    let mut held = full(&gate, &server);
    for _ in 0..300 {
        assert_eq!(with(&gate, LIGHT).status, 200);
    }
    assert_eq!(with(&gate, HEAVY).status, 200);
    opens.open();
    assert!(held.iter_mut().all(|client| client.answer().status == 200));
    assert_eq!(gate.metric(CULPRITS), 0.0);
}

#[test]
fn slots_are_free_again_after_callers_that_disconnect_and_bodies_that_stream() {
    let server = Server::start(|seen| match seen.header("hold") {
        Some(_) => Reply::nothing(),
        // A body in pieces, so that it is passed on as it comes.
        None => Reply::nothing()
            .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            .send("6\r\nsecond\r\n0\r\n\r\n"),
    });
    let gate = start(&server, FOUR_SLOTS);
    for _ in 0..50 {
        let answer = with(&gate, LIGHT);
        assert_eq!((answer.status, answer.text()), (200, "firstsecond"));
    }
    drop([asks(&gate, &format!("{HEAVY}hold: 1\r\n")), asks(&gate, &format!("{HEAVY}hold: 1\r\n"))]);
    until("the slots are free", PATIENCE, || gate.metric("weir_gate_in_flight{upstream=\"backend\"}") == 0.0);
    assert!((0..20).all(|_| with(&gate, HEAVY).status == 200 && with(&gate, LIGHT).status == 200));
    assert_eq!(gate.metric(CULPRITS), 0.0);
}
