//! Access logs and metrics of the server, with calls as values and as futures.

use std::fs;
use std::time::Duration;

use weir_gate::{self as gate, Options as GateOptions};
use weir_server::{AccessLogFormat, AccessLogOptions, Options};
use weir_testing::{Raw, Reply, Server, until};

use super::pair::{PATIENCE, parsed};

const ROUTES: &str = "[upstreams.backend]\nurls = [\"URL\"]\nthrottle = \"none\"\n\
    [[routes]]\nmatch = { path = \"/{*rest}\" }\ncaller = { header = \"x-caller\" }\n";

/// Responses by path: status line and fields, and the body.
const RESPONSES: [(&str, &str, &str); 9] = [
    ("/empty", "200 OK\r\nContent-Length: 0", ""),
    ("/none", "204 No Content", ""),
    ("/same", "304 Not Modified\r\nContent-Length: 5", ""),
    ("/missing", "404 Not Found\r\nContent-Length: 2", "no"),
    ("/busy", "503 Busy\r\nContent-Length: 2", "no"),
    ("/chunks", "200 OK\r\nTransfer-Encoding: chunked", "2\r\nok\r\n0\r\n\r\n"),
    ("/last", "200 OK\r\nConnection: close\r\nContent-Length: 2", "ok"),
    ("/cut", "200 OK\r\nContent-Length: 9", "half"),
    ("/", "200 OK\r\nContent-Length: 5", "hello"),
];

/// An upstream that closes its connection where a response ends with that, and never responds to `/held`.
fn upstream() -> Server {
    Server::start(|seen| {
        let line = seen.line();
        let path = line.split(' ').nth(1).unwrap_or_default();
        if path == "/held" {
            return Reply::nothing();
        }
        let &(_, head, body) = RESPONSES.iter().find(|(of, ..)| *of == path).unwrap();
        let is_head = line.starts_with("HEAD");
        let reply = Reply::raw(format!("HTTP/1.1 {head}\r\n\r\n{}", if is_head { "" } else { body }));
        // A close of a connection that the gateway may use again is a race.
        if path == "/last" || path == "/cut" && !is_head { reply.close() } else { reply }
    })
}

/// Lines of the access log, and metrics of the server, of one gateway.
fn records(has_direct_calls: bool) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let format = AccessLogFormat::parse("$request|$status|$body_bytes_sent|$route|$caller|$http_x_caller").unwrap();
    let access_log = Some(AccessLogOptions { path: path.clone(), format, sample_fraction: 1.0 });
    let server = upstream();
    let options = GateOptions { has_direct_calls, ..GateOptions::default() };
    let server_options = Options { access_log, ..Options::default() };
    let gate = gate::start(&parsed(ROUTES, &server.url("")), options, &server_options).unwrap();
    let connect = || Raw::connect(gate.url().trim_start_matches("http://"));
    let head = |line: &str| format!("{line}\r\nHost: test\r\nX-Caller: one\r\n");
    let close = "Connection: close\r\n\r\n";
    for (path, ..) in RESPONSES {
        for method in ["GET", "HEAD", "POST"] {
            // A connection that is idle: calls as values need one.
            let mut client = connect();
            assert_eq!(client.get("/").text(), "hello");
            let request = head(&format!("{method} {path} HTTP/1.1"));
            match method {
                "POST" => client.send(format!("{request}Content-Length: 4\r\n{close}body")),
                _ => client.send(format!("{request}{close}")),
            }
            client.rest();
        }
    }
    for request in
        [head("GET / HTTP/1.0") + "\r\n", format!("GET / HTTP/1.1\r\n{close}"), head("GET /%2e%2e%2f HTTP/1.1") + close]
    {
        let mut client = connect();
        client.send(request);
        client.rest();
    }
    assert_eq!(connect().get("/").text(), "hello");
    let before = server.counts();
    let mut client = connect();
    client.send(head("GET /held HTTP/1.1") + "\r\n");
    until("the upstream has the request", PATIENCE, || server.requests() > before.requests);
    drop(client);
    server.wait_for("the end of the call", |counts| counts.open < before.open);
    let metrics = connect().get("/metrics");
    let is_count = |line: &&str| {
        let is_time = line.contains("seconds") && !line.contains("seconds_count");
        line.starts_with("weir_http_") && !is_time
    };
    let mut metrics: Vec<String> = metrics.text().lines().filter(is_count).map(str::to_owned).collect();
    metrics.sort_unstable();
    gate.stop(Duration::from_secs(100));
    let log = fs::read_to_string(path).unwrap();
    // The text of metrics has times.
    let lines = log.lines().filter(|line| !line.starts_with("GET /metrics ")).map(str::to_owned).collect();
    (lines, metrics)
}

#[test]
fn access_logs_and_metrics_of_the_server_are_the_same() {
    let [(by_value, metrics), (by_future, expected)] = [true, false].map(records);
    assert_eq!(by_value, by_future);
    assert_eq!(metrics, expected);
    // Two for each path and method, then those alone.
    assert_eq!(by_value.len(), 2 * 3 * RESPONSES.len() + 3 + 2, "{by_value:#?}");
    let has = |line: &str| assert!(by_value.iter().any(|found| found == line), "{line} in {by_value:#?}");
    has("GET / HTTP/1.1|200|5|/{*rest}|one|one");
    has("HEAD / HTTP/1.1|200|0|/{*rest}|one|one");
    has("POST /busy HTTP/1.1|503|2|/{*rest}|one|one");
    assert!(metrics.iter().any(|line| line.starts_with("weir_http_")), "{metrics:?}");
}
