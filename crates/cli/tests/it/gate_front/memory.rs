//! Memory of large heads is released, on open and on ended connections.

use std::fs;

use super::{PATIENCE, configured, to};
use weir_testing::{Raw, Server, Serving, until};

/// Connections; fewer than the default limit of open files.
const CONNECTIONS: usize = 400;

fn resident_mib(gate: &Serving) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gate.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// One request on each of many connections, which stay open.
fn burst(gate: &Serving, length: usize) -> Vec<Raw> {
    let mut all: Vec<Raw> = (0..CONNECTIONS).map(|_| gate.connect()).collect();
    let field = "v".repeat(length / 10);
    let fields: String = (0..10).map(|k| format!("X-Field-{k}: {field}\r\n")).collect();
    for client in &mut all {
        client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        assert_eq!(client.answer().status, 200);
    }
    all
}

#[test]
fn connections_release_the_memory_of_their_largest_head() {
    let server = Server::hello();
    let text = to(&server.url(""), "", "");
    let small = configured(&text);
    let _kept = burst(&small, 100);
    let usual = resident_mib(&small);
    let large = configured(&text);
    let _kept = burst(&large, 60_000);
    // 400 times 64 KiB would be 25.
    until("no more than after small heads", PATIENCE, || resident_mib(&large) < usual + 8);
}

#[test]
fn memory_of_ended_connections_is_returned_to_the_system() {
    let server = Server::hello();
    let gate = configured(&to(&server.url(""), "", ""));
    assert_eq!(gate.get("/").status, 200);
    let before = resident_mib(&gate);
    drop(burst(&gate, 60_000));
    until("what it had before", PATIENCE, || resident_mib(&gate) < before + 8);
    assert_eq!(gate.get("/").status, 200);
}
