//! Answers as the world sends them: each is counted once, with its true size.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Gate, Reply, Server, Weir, load, until};

use crate::load_failures::upload;

/// A run against a service that gives this answer and no other, whole and in pieces of 3 bytes.
fn answered(answer: &str, body: usize, flags: &[&str]) -> Run {
    let whole = run_of(Reply::raw(answer), answer, body, &[&["-n", "20", "-c", "2"], flags].concat());
    run_of(Reply::raw(answer).in_pieces(3), answer, body, &[&["-n", "4", "-c", "2"], flags].concat());
    whole
}

fn run_of(reply: Reply, answer: &str, body: usize, flags: &[&str]) -> Run {
    let server = Server::start(move |_| reply.clone());
    let run = load(&server.url("/"), &[flags, &["--timeout", "5s"]].concat());
    assert_eq!((run.requests.failed, run.requests.total), (0, server.requests()), "{answer}: {:?}", run.failures);
    let count = run.requests.total;
    assert_eq!((run.bytes.read, run.bytes.body_in), (count * answer.len() as u64, count * body as u64), "{answer}");
    assert_eq!((run.target.body_length, run.target.other_lengths), (Some(body as u64), 0));
    assert_eq!(run.connections.opened, 2, "{answer}: all of them leave the connection open");
    run
}

#[test]
fn a_length_in_any_case_and_folding_is_understood() {
    answered("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 5, &[]);
    answered("HTTP/1.1 200\r\ncOnTeNt-LeNgTh:5\r\nx-eMPTY:\r\n\r\nhello", 5, &[]);
    answered("HTTP/1.1 200 Fine by me: yes\r\nX-Folded: a\r\n\tb\r\n  c\r\nContent-Length:   5  \r\n\r\nhello", 5, &[]);
    answered("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", 5, &[]);
    answered("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", 5, &[]);
}

#[test]
fn chunks_with_extensions_and_trailers_are_understood() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    answered(&format!("{head}5\r\nhello\r\n0\r\n\r\n"), 5, &[]);
    answered(
        &format!("{head}5;name=\"a;b\"\r\nhello\r\nA\r\n0123456789\r\n000;last\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\n"),
        15,
        &[],
    );
    answered(&format!("{head}0\r\n\r\n"), 0, &[]);
    let upper = "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: gzip, Chunked\r\n\r\n";
    answered(&format!("{upper}1\r\nx\r\n0\r\n\r\n"), 1, &[]);
}

#[test]
fn an_answer_without_a_body_is_whole_at_once() {
    answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, &[]);
    answered("HTTP/1.1 204 No Content\r\n\r\n", 0, &[]);
    answered("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", 0, &[]);
    answered("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 0, &["-m", "HEAD"]);
    answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, &["-m", "HEAD"]);
    answered("HTTP/1.1 200 OK\r\n\r\n", 0, &["-m", "HEAD"]);
}

#[test]
fn interim_answers_are_no_answers() {
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let run = answered(&format!("HTTP/1.1 100 Continue\r\n\r\n{last}"), 5, &[]);
    assert_eq!(run.status, BTreeMap::from([("200".to_owned(), 20)]));
    answered(&format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n{last}"), 5, &[]);
}

#[test]
fn an_answer_until_close_ends_with_the_connection() {
    for answer in ["HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\n\r\nhello"] {
        let server = Server::start(move |_| Reply::raw(answer).close());
        let run = load(&server.url("/"), &["-n", "20", "-c", "2"]);
        assert_eq!((run.requests.ok, run.bytes.body_in, run.connections.opened), (20, 100, 20));
        assert_eq!(run.bytes.read, 20 * answer.len() as u64);
    }
}

#[test]
fn answers_are_counted_by_status_and_those_from_400_on_as_failed() {
    let statuses = [200, 201, 301, 404, 429, 500, 503, 799];
    let server = Server::start(move |seen| Reply::status(statuses[seen.number as usize % 8], "x"));
    let run = load(&server.url("/"), &["-n", "80", "-c", "1"]);
    let each: BTreeMap<String, u64> = statuses.iter().map(|status| (status.to_string(), 10)).collect();
    assert_eq!(run.status, each);
    assert_eq!((run.requests.ok, run.requests.failed), (30, 50));
    assert_eq!(run.failures, BTreeMap::from([("4xx".to_owned(), 20), ("5xx".to_owned(), 30)]));
    assert_eq!(run.connections.opened, 1);
}

#[test]
fn lengths_that_differ_are_noticed() {
    let server = Server::start(|seen| Reply::ok(if seen.number < 7 { "one" } else { "other" }));
    let run = load(&server.url("/"), &["-n", "10", "-c", "1"]);
    assert_eq!((run.target.body_length, run.target.other_lengths), (Some(3), 3));
}

#[test]
fn several_answers_in_one_read_are_several_answers() {
    let server = Server::build().answers_in_batches_of(10).start(|seen| match seen.number % 3 {
        0 => Reply::ok("hello"),
        1 => Reply::raw("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 204 None\r\n\r\n"),
    });
    let flags = ["-n", "300", "-c", "1", "--pipeline", "10", "--timeout", "30s"];
    let run = load(&server.url("/"), &flags);
    let each = ["200", "204", "404"].map(|status| (status.to_owned(), 100));
    assert_eq!(run.status, BTreeMap::from(each), "{:?}", run.failures);
    assert_eq!((run.bytes.body_in, run.connections.opened), (100 * 8, 1));
}

#[test]
fn answers_to_a_pipeline_in_pieces_are_told_apart() {
    let server = Server::build()
        .answers_in_batches_of(4)
        .start(|seen| Reply::status(200 + (seen.number % 4) as u16, "hello").in_pieces(11));
    let run = load(&server.url("/"), &["-n", "16", "-c", "1", "--pipeline", "4", "--timeout", "30s"]);
    let each = ["200", "201", "202", "203"].map(|status| (status.to_owned(), 4));
    assert_eq!(run.status, BTreeMap::from(each), "{:?}", run.failures);
}

#[test]
fn an_answer_before_the_request_is_sent_to_its_end_counts() {
    // A service that has seen enough of an upload answers, and then closes.
    let server = Server::build()
        .answers_heads(Reply::raw("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").freeze())
        .start(|_| Reply::nothing());
    let output = upload(&server, 20_000_000, "5s");
    let run = output.json();
    assert_eq!(run.status, BTreeMap::from([("413".to_owned(), 4)]), "{:?}", run.target.failure_details);
}

const LARGE: u64 = 64 << 20;

/// The client's peak memory, in KiB, when all but the last byte of 64 MiB has come.
fn peak_with_a_large_body(chunked: bool, unix: bool) -> u64 {
    let weir = Weir::new();
    let (gate, block) = (Gate::default(), Arc::new(vec![b'x'; 1 << 20]));
    let script = {
        let gate = gate.clone();
        move |_: &weir_testing::Seen| {
            if chunked {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n";
                let mut reply = Reply::raw(head).send(&*block);
                for _ in 1..64 {
                    reply = reply.send("\r\n100000\r\n").send(&*block);
                }
                return reply.wait_for(&gate).send("\r\n0\r\n\r\n");
            }
            let mut reply = Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
            for _ in 0..63 {
                reply = reply.send(&*block);
            }
            reply.send(&block[1..]).wait_for(&gate).send("x")
        }
    };
    let server = if unix { Server::build().start_unix(&weir.path("socket"), script) } else { Server::start(script) };
    let url = if unix { "http://inside/".to_owned() } else { server.url("/") };
    let socket = weir.path("socket").display().to_string();
    let way: &[&str] = if unix { &["--unix-socket", &socket] } else { &[] };
    let running = weir.start(&[&["load", &url, "-n", "2", "-c", "2", "-t", "1", "--format", "json"], way].concat());
    // Both have been read but for what the sockets' buffers hold.
    server.wait_for("two large bodies", |counts| counts.bytes_sent >= 2 * LARGE);
    let peak = running.status_kib("VmHWM");
    gate.open();
    let output = running.finish();
    let run = output.json();
    assert_eq!((run.requests.ok, run.bytes.body_in), (2, 2 * LARGE), "{:?}", run.target.failure_details);
    peak
}

#[test]
fn large_bodies_pass_through_fixed_memory() {
    let small = {
        let (weir, gate) = (Weir::new(), Gate::default());
        let held = gate.clone();
        let server = Server::start(move |_| Reply::ok("hello").wait_for(&held));
        let running = weir.start(&["load", &server.url("/"), "-n", "2", "-c", "2", "-t", "1"]);
        server.wait_for("both requests", |counts| counts.requests == 2);
        let peak = running.status_kib("VmHWM");
        gate.open();
        running.finish();
        peak
    };
    for (chunked, unix) in [(false, false), (true, false), (false, true)] {
        let peak = peak_with_a_large_body(chunked, unix);
        // A few of the pieces in which it is read, and far from the body.
        assert!(peak < small + LARGE / 1024 / 4, "chunked {chunked}, unix {unix}: {peak} KiB, and {small} KiB without");
    }
}

#[test]
fn large_bodies_one_after_the_other_are_told_apart() {
    let body = "x".repeat(3_000_000);
    let server = Server::start(move |seen| Reply::status(200 + (seen.number % 2) as u16, &body));
    for flags in
        [["-n", "24", "-c", "2", "--pipeline", "4"].as_slice(), &["-n", "24", "-c", "2"], &["-n", "24", "-r", "60"]]
    {
        let run = load(&server.url("/"), &[flags, &["--timeout", "10s"]].concat());
        let each = ["200", "201"].map(|status| (status.to_owned(), 12));
        assert_eq!(run.status, BTreeMap::from(each), "{flags:?} {:?}", run.target.failure_details);
        assert_eq!((run.bytes.body_in, run.target.other_lengths), (24 * 3_000_000, 0), "{flags:?}");
    }
}

#[test]
fn a_slow_answer_is_timed_to_its_last_byte() {
    let reply =
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").wait(Duration::from_millis(80)).send("world");
    let server = Server::start(move |_| reply.clone());
    let run = load(&server.url("/"), &["-n", "5", "-c", "1"]);
    assert!(run.first_byte_ms.min.unwrap() < run.service_ms.min.unwrap() - 40.0, "{}", run.first_byte_ms.min.unwrap());
    assert!(
        run.service_ms.min.unwrap() >= 79.0 && run.response_ms.min.unwrap() >= 79.0,
        "{}",
        run.service_ms.min.unwrap()
    );
}

#[test]
fn the_services_name_is_found_when_its_first_head_comes_in_pieces() {
    let server = Server::start(|seen| Reply::ok("hello").in_pieces(if seen.number == 0 { 3 } else { 100 }));
    let run = load(&server.url("/"), &["-n", "3", "-c", "1"]);
    assert_eq!(run.target.server.as_deref(), Some("scripted"));
}

#[test]
fn a_run_is_over_when_its_last_answer_is_there() {
    let server =
        Server::start(|seen| Reply::ok("x").after(Duration::from_millis(if seen.number == 3 { 300 } else { 1 })));
    let weir = Weir::new();
    let mut running = weir.start(&["load", &server.url("/"), "-n", "4", "-c", "2", "--format", "json"]);
    server.wait_for("the requests", |counts| counts.requests == 4);
    until("the end", Duration::from_secs(10), || !running.is_alive());
    let run = running.finish().json();
    assert_eq!(run.requests.ok, 4);
    assert!((0.29..2.0).contains(&run.duration_s), "{}", run.duration_s);
}
