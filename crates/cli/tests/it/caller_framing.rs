//! Framing and connection headers of the caller: one rule at all entry points.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_testing::{Reply, Server, Weir};

/// Headers that do not frame the body `hello`.
const WRONG: [&str; 6] = [
    "Transfer-Encoding: chunked",
    "transfer-encoding: gzip, chunked",
    "Content-Length: 7",
    "content-length: 4",
    "Content-Length: +5",
    "Content-Length: 5, 5",
];

#[test]
fn a_body_is_sent_with_one_framing_or_not_at_all() {
    for header in WRONG {
        let (weir, server) = (Weir::new(), Server::hello());
        let url = server.url("/");
        let (name, value) = header.split_once(": ").unwrap();
        weir.write("step.hurl", format!("POST {url}\n{header}\n```\nhello\n```\n"));
        weir.write(
            "jobs.jsonl",
            format!("{{\"url\":\"{url}\",\"body\":\"hello\",\"headers\":{{\"{name}\":\"{value}\"}}}}\n"),
        );
        for args in [
            &["load", &url, "-n", "1", "-b", "hello", "-H", header][..],
            &["load", &url, "-n", "1", "-b", "hello", "-H", header, "--h2c"],
            &["load", &url, "-n", "1", "-b", "hello", "-H", header, "--check", "status == 200"],
            &["load", "-s", "step.hurl", "-n", "1"],
            &["run", "step.hurl"],
        ] {
            let output = weir.run(args);
            assert_eq!(output.code, 2, "{args:?}: {output:?}");
            assert!(output.stderr.to_lowercase().contains(&name.to_lowercase()), "{args:?}: {}", output.stderr);
        }
        weir.run(&["send", "jobs.jsonl", "--out", "results.jsonl"]);
        assert!(weir.read("results.jsonl").contains("leave the header out"), "{header}");
        assert_eq!(server.seen().len(), 0, "{header}");
    }
}

#[test]
fn a_length_that_is_right_is_sent_once() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    weir.write("step.hurl", format!("POST {url}\nContent-Length: 5\n```\nhello```\n"));
    weir.write("wrk.lua", "wrk.method, wrk.body = 'POST', 'hello'\nwrk.headers['content-length'] = '9'\n");
    for args in [
        &["load", &url, "-n", "1", "-b", "hello", "-H", "content-length: 5"][..],
        &["run", "step.hurl"],
        &["load", "-s", "wrk.lua", &url, "-n", "1"],
    ] {
        let output = weir.run(args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
    for seen in server.seen() {
        assert_eq!(seen.head.to_lowercase().matches("content-length: 5\r\n").count(), 1, "{}", seen.head);
        assert_eq!(seen.body, b"hello");
    }
}

#[test]
fn raw_requests_of_a_script_have_one_framing() {
    let (weir, server) = (Weir::new(), Server::hello());
    for (head, reason) in [
        ("Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n", "two framings"),
        ("Content-Length: 5\\r\\nContent-Length: 6\\r\\n", "two framings"),
    ] {
        let request = format!("\"POST / HTTP/1.1\\r\\nHost: a\\r\\n{head}\\r\\n0\\r\\n\\r\\n\"");
        weir.write("raw.lua", format!("function request() return {request} end\n"));
        let output = weir.run(&["load", "-s", "raw.lua", &server.url("/"), "-n", "1"]);
        assert!(output.code == 2 && output.stderr.contains(reason), "{output:?}");
    }
    assert_eq!(server.seen().len(), 0);
}

/// A service that closes a connection after a request that says so, without a word of it in its response.
fn closing() -> Server {
    Server::start(|seen| match seen.head.to_lowercase().contains("connection: close") {
        // Late enough for a client that would go on.
        true => Reply::ok("hello").wait(Duration::from_millis(5)).close(),
        false => Reply::ok("hello"),
    })
}

#[test]
fn a_connection_takes_no_request_after_one_that_closes_it() {
    let (weir, server) = (Weir::new(), closing());
    let url = server.url("/");
    weir.write("step.hurl", format!("GET {url}\nConnection: close\n\nGET {url}\n"));
    weir.write("all.lua", "wrk.headers['Connection'] = 'close'\n");
    weir.write("each.lua", "function request() return wrk.format('GET', '/', { connection = 'close' }) end\n");
    for args in [
        &["load", &url, "-n", "40", "-c", "2", "-H", "Connection: close"][..],
        &["load", &url, "-n", "20", "--rate", "200", "-H", "connection: x, Close"],
        &["load", "-s", "step.hurl", "-n", "10"],
        &["load", "-s", "all.lua", &url, "-n", "10"],
        &["load", "-s", "each.lua", &url, "-n", "10"],
    ] {
        let output = weir.run(&[args, &["--format", "json"]].concat());
        let run = output.json();
        assert_eq!((run.requests.failed, run.requests.ok), (0, run.requests.total), "{args:?}: {:?}", run.failures);
    }
    assert_eq!(weir.run(&["run", "step.hurl"]).code, 0);
    weir.write("jobs.jsonl", format!("{{\"url\":\"{url}\",\"headers\":{{\"Connection\":\"close\"}}}}\n").repeat(3));
    assert_eq!(weir.run(&["send", "jobs.jsonl", "--out", "results.jsonl"]).code, 0);
    let seen = server.seen();
    for closing in seen.iter().filter(|seen| seen.head.to_lowercase().contains("connection: ")) {
        let follows = |other: &&weir_testing::Seen| other.connection == closing.connection && other.turn > closing.turn;
        assert_eq!(seen.iter().find(follows).map(|other| &other.head), None);
    }
    let output = weir.run(&["load", &url, "--pipeline", "4", "-n", "4", "-H", "Connection: close"]);
    assert!(output.code == 2 && output.stderr.contains("--pipeline"), "{output:?}");
}
