//! A failed request is data: each is an outcome of its kind, and the run goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Output, Reply, Seen, Server, Weir};

fn run(server: &Server, flags: &[&str]) -> Output {
    Weir::new().run(&[&["load", &server.url("/"), "--format", "json"], flags].concat())
}

/// A run of 30 requests, every third of which gets this answer and the others a good one.
fn every_third(bad: Reply, timeout: &str) -> Run {
    let server = Server::start(move |seen| if seen.number % 3 == 2 { bad.clone() } else { Reply::ok("hello") });
    let output = run(&server, &["-n", "30", "-c", "1", "--timeout", timeout]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let run = output.json();
    assert_eq!(server.requests(), 30);
    assert_eq!((run.requests.total, run.requests.ok, run.requests.failed), (30, 20, 10), "{:?}", run.failures);
    assert_eq!(run.connections.opened, 10, "a broken connection is replaced, a sound one kept");
    assert_eq!(run.status, BTreeMap::from([("200".to_owned(), 20)]));
    run
}

fn only(kind: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), count)])
}

#[test]
fn a_connection_closed_before_or_within_an_answer_is_closed() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    for bad in [
        Reply::nothing().close(),
        Reply::raw("HTTP/1.1 2").close(),
        Reply::raw(head).close(),
        Reply::raw(head).send("x".repeat(99)).close(),
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n").close(),
        Reply::raw("HTTP/1.1 100 Continue\r\n\r\n").close(),
    ] {
        let run = every_third(bad.clone(), "5s");
        assert_eq!(run.failures, only("closed", 10), "{bad:?}");
        assert!(run.target.failure_details["closed"].contains("closed"), "{:?}", run.target.failure_details);
    }
}

#[test]
fn a_large_body_that_is_cut_is_closed() {
    let cut = format!("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n{}", "x".repeat(4_000_000));
    let server = Server::start(move |_| Reply::raw(&cut).close());
    for flags in [["-n", "6", "-c", "2"], ["-n", "6", "-r", "50"]] {
        let output = run(&server, &flags);
        assert_eq!((output.code, output.json().failures), (3, only("closed", 6)), "{flags:?}");
    }
}

#[test]
fn a_reset_is_reset() {
    for bad in [
        Reply::nothing().reset(),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx").wait(Duration::from_millis(20)).reset(),
    ] {
        let run = every_third(bad, "5s");
        assert_eq!(run.failures, only("reset", 10));
    }
    // An answer without a length is not whole when the connection breaks.
    let run = every_third(Reply::raw("HTTP/1.1 200 OK\r\n\r\nhello").wait(Duration::from_millis(20)).reset(), "5s");
    assert_eq!(run.failures, only("reset", 10));
}

#[test]
fn no_answer_in_time_is_a_timeout() {
    let bad = [
        Reply::nothing(),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
        Reply::ok("x").after(Duration::from_secs(3)),
    ];
    thread::scope(|scope| {
        let runs = bad.map(|bad| scope.spawn(|| every_third(bad, "800ms")));
        for run in runs.map(|run| run.join().unwrap()) {
            assert_eq!(run.failures, only("timeout", 10));
            assert!(
                run.response_ms.max.unwrap() < 800.0,
                "a timeout has no response time: {}",
                run.response_ms.max.unwrap()
            );
        }
    });
}

#[test]
fn an_answer_that_trickles_in_is_a_timeout_too() {
    let server = Server::start(|_| {
        Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n{}", "x".repeat(4000))).in_pieces(1)
    });
    let output = run(&server, &["-n", "2", "-c", "2", "--timeout", "150ms"]);
    assert_eq!((output.code, output.json().failures), (3, only("timeout", 2)));
}

#[test]
fn what_is_no_http_is_a_protocol_failure() {
    for (bad, words) in [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "SSH-2.0"),
        ("HTTP/2.0 200 OK\r\n\r\n".to_owned(), "HTTP/2.0"),
        ("HTTP/1.1 OK\r\n\r\n".to_owned(), "HTTP/1.1 OK"),
        ("\0\0\0\u{7}".to_owned(), "\\x00"),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello".to_owned(), "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!".to_owned(), "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n".to_owned(), "Content-Length"),
        (format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(70_000)), "head"),
        (format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(300)), "head"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n".to_owned(), "chunked"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n".to_owned(), "chunked"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_owned(), "chunked"),
    ] {
        let run = every_third(Reply::raw(&bad), "5s");
        assert_eq!(run.failures, only("protocol", 10), "{bad:.40}");
        let said = &run.target.failure_details["protocol"];
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn bytes_that_nobody_asked_for_cost_the_connection_and_answer_nobody() {
    // Two answers to one request: the second belongs to none.
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
    });
    let output = run(&server, &["-n", "10", "-c", "1"]);
    let run = output.json();
    assert_eq!((run.requests.total, server.requests()), (10, 10));
    assert_eq!(run.status, BTreeMap::from([("200".to_owned(), 10)]), "no answer is taken for that of the next request");
    assert!(run.connections.opened >= 9, "{}", run.connections.opened);
    assert!(run.target.failure_details.contains_key("protocol"), "it is said: {:?}", run.target.failure_details);
}

#[test]
fn a_service_that_speaks_first_is_no_http() {
    // As SSH or SMTP do; and then it waits.
    let server = Server::build().greeting(Reply::raw("SSH-2.0-OpenSSH_9.2\r\n")).start(|_| Reply::nothing());
    for flags in [["-n", "8", "-c", "2"].as_slice(), &["-n", "8", "-r", "100"]] {
        let before = server.counts().connections;
        let output = run(&server, &[flags, &["--timeout", "30s"]].concat());
        let run = output.json();
        assert_eq!((output.code, run.requests.total), (3, 8));
        assert_eq!(run.failures, only("protocol", 8), "{:?}", run.target.failure_details);
        let made = server.counts().connections - before;
        assert!(made <= 1 + 2 + 8, "not one more than the probe's, those of the start and one a request: {made}");
    }
}

#[test]
fn bytes_on_an_idle_connection_answer_no_later_request() {
    let reply = Reply::ok("hello").wait(Duration::from_millis(30)).send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let server = Server::start(move |_| reply.clone());
    // The bytes are to come before the next request, also where the service is woken up late.
    let output = run(&server, &["-r", "1", "-n", "3"]);
    assert_eq!(output.json().status, BTreeMap::from([("200".to_owned(), 3)]));
}

#[test]
fn a_service_that_goes_away_is_connect_failures_from_then_on() {
    for flags in [["-n", "60", "-c", "2"].as_slice(), &["-r", "100", "-d", "1s"]] {
        let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(5)));
        let weir = Weir::new();
        let url = server.url("/");
        let running = weir.start(&[&["load", &url, "--no-keepalive", "--format", "json"], flags].concat());
        server.wait_for("some answers", |counts| counts.requests >= 20);
        server.stop_listening();
        let run = running.finish().json();
        assert_eq!(run.requests.total, if flags[0] == "-n" { 60 } else { 100 });
        // Those that were in the queue of new connections when it closed are reset or closed.
        let others = run.failures_of("reset") + run.failures_of("closed");
        assert!(run.failures_of("connect") >= 10 && others <= 10, "{flags:?}: {:?}", run.failures);
        assert_eq!(run.requests.ok + run.failures_of("connect") + others, run.requests.total);
        assert!(run.target.failure_details["connect"].contains("refused"), "{:?}", run.target.failure_details);
    }
}

#[test]
fn a_refused_port_is_not_hammered() {
    let server = Server::start(|_| Reply::ok("hello"));
    let weir = Weir::new();
    let running = weir.start(&["load", &server.url("/"), "-d", "1s", "-c", "4", "--no-keepalive", "--format", "json"]);
    server.wait_for("some answers", |counts| counts.requests >= 20);
    server.stop_listening();
    let run = running.finish().json();
    assert!(run.failures_of("connect") <= 4 * 11, "each user tries ten times a second: {:?}", run.failures);
}

/// Sends a body of this size four times, over two connections.
pub(crate) fn upload(server: &Server, bytes: usize, timeout: &str) -> Output {
    let weir = Weir::new();
    weir.write("body", vec![b'x'; bytes]);
    let url = server.url("/");
    weir.run(&["load", &url, "-n", "4", "-c", "2", "-b", "@body", "--timeout", timeout, "--format", "json"])
}

#[test]
fn a_service_that_stops_reading_is_a_timeout() {
    let server = Server::build().greeting(Reply::nothing().freeze()).start(|_| Reply::nothing());
    let output = upload(&server, 8 << 20, "200ms");
    let run = output.json();
    assert_eq!((run.failures, run.requests.total), (only("timeout", 4), 4));
    assert_eq!(output.code, 3);
    let most = 4 * (8 << 20);
    assert!(run.bytes.written < most, "what was never taken was never sent: {} of {most}", run.bytes.written);
}

#[test]
fn a_pipeline_that_breaks_fails_all_that_was_in_it_and_goes_on() {
    let script = |seen: &Seen| if seen.turn == 5 { Reply::nothing().close() } else { Reply::ok("hello") };
    let server = Server::start(script);
    let run = run(&server, &["-n", "200", "-c", "2", "--pipeline", "4"]).json();
    assert_eq!(run.requests.total, 200);
    let lost = run.failures_of("closed") + run.failures_of("reset");
    assert_eq!(run.requests.ok + lost, 200);
    assert!(run.requests.ok >= 100 && lost >= 20, "{:?}", run.failures);
}

#[test]
fn failures_in_the_open_loop_are_counted_one_by_one() {
    let script = |seen: &Seen| match seen.number % 4 {
        0 => Reply::nothing().reset(),
        1 => Reply::nothing().close(),
        2 => Reply::raw("nonsense"),
        _ => Reply::ok("hello"),
    };
    let server = Server::start(script);
    let run = run(&server, &["-r", "200", "-d", "1s", "-t", "2"]).json();
    assert_eq!((run.requests.total, run.requests.ok), (200, 50), "{:?}", run.failures);
    assert_eq!(run.failures, ["closed", "protocol", "reset"].map(|kind| (kind.to_owned(), 50)).into());
    assert!(!run.trust.ok);
}

#[test]
fn objectives_on_times_are_about_successes_and_errors_about_the_rest() {
    let server =
        Server::start(|seen| if seen.number % 10 == 0 { Reply::nothing().close() } else { Reply::ok("hello") });
    let flags = ["-n", "200", "-c", "1", "--slo", "p85<10s", "--slo", "p95<10s", "--slo", "errors<5%"];
    let output = run(&server, &flags);
    let held: Vec<bool> = output.json().slo.iter().map(|held| held.ok).collect();
    assert_eq!((output.code, held), (1, vec![true, true, false]));
}

#[test]
fn a_run_without_a_success_begins_with_that_and_exits_with_3() {
    for status in [500, 404] {
        let server = Server::start(move |_| Reply::status(status, "no"));
        let output = Weir::new().run(&["load", &server.url("/"), "-n", "200", "-c", "2", "--slo", "p99<10s"]);
        assert_eq!(output.code, 3, "{output:?}");
        let first = output.stdout.lines().next().unwrap();
        let words = format!("NONE OF 200 REQUESTS SUCCEEDED: 200 x {status}");
        assert_eq!(first, words);
        assert!(output.one_line().contains("none of 200 requests succeeded"), "{output:?}");
        assert!(output.stdout.contains("p99<10s  p99 response time: no success"), "{}", output.stdout);
    }
}

#[test]
fn fast_failures_do_not_make_percentiles_better() {
    let slow = Duration::from_millis(60);
    let server = Server::start(move |seen| match seen.number % 4 {
        0 => Reply::ok("hello").after(slow),
        1 => Reply::nothing().close(),
        _ => Reply::status(503, "busy"),
    });
    let output = run(&server, &["-n", "120", "-c", "2", "--slo", "p50<50ms"]);
    let run = output.json();
    assert_eq!((output.code, run.requests.ok), (1, 30), "{:?}", run.slo);
    assert!(run.response_ms.min.unwrap() >= 60.0, "{:?}", run.response_ms);
    assert!(run.failed_ms.p50.unwrap() < 60.0 && run.failed_ms.max.unwrap() > 0.0, "{:?}", run.failed_ms);
    assert_eq!(run.failed_histogram().unwrap().count(), 90);
    assert_eq!(run.responses.histogram().unwrap().count(), 90, "as ab and wrk count: 30 good, 60 bad");
    assert!(run.responses.response_ms.p50.unwrap() < 60.0, "{:?}", run.responses.response_ms);
    let (ok, failed): (u64, u64) =
        run.series.iter().fold((0, 0), |(ok, failed), point| (ok + point.ok, failed + point.failed));
    assert_eq!((ok, failed), (30, 90));
    assert!(run.series.iter().all(|point| point.ok == 0 || point.p50_ms > Some(50.0)), "{:?}", run.series);
}

#[test]
fn more_than_a_hundredth_of_failures_is_in_the_headline_with_their_kinds() {
    let server = Server::start(|seen| match seen.number % 20 {
        0 => Reply::nothing().close(),
        1 | 2 => Reply::status(503, "busy"),
        _ => Reply::ok("hello"),
    });
    let output = Weir::new().run(&["load", &server.url("/"), "-n", "200", "-c", "1"]);
    assert_eq!(output.code, 0);
    assert_eq!(output.stdout.lines().next(), Some("15.0% OF REQUESTS FAILED: 20 x 503, 10 closed"));
}

#[test]
fn a_body_that_the_service_did_not_want_does_not_count_as_sent() {
    let weir = Weir::new();
    weir.write("body", vec![b'x'; 32 << 20]);
    let refusal = Reply::raw("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let server = Server::build().answers_heads(refusal.freeze()).start(|_| Reply::nothing());
    let flags = ["-n", "6", "-c", "2", "-b", "@body", "--timeout", "5s", "--format", "json"];
    let run = weir.run(&[&["load", &server.url("/")], &flags[..]].concat()).json();
    assert_eq!(run.requests.total, 6);
    // Buffers of the system take some MB of each, and nobody the rest.
    assert!(run.bytes.written < 6 * (24 << 20), "{} bytes, {:?}", run.bytes.written, run.failures);
}
