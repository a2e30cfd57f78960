//! Replay of access logs: what is sent, when, and what is left out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;
use std::process::Stdio;

use weir_measure::Run;
use weir_testing::{Output, Reply, Running, Server, Weir, close};

/// Lines of the Combined Log Format with `$request_time`: second, request line, status, and time that it took.
pub(super) fn combined(lines: &[(u64, &str, u16, &str)]) -> String {
    let mut log = String::new();
    for (second, request, status, took) in lines {
        let (minute, second) = (second / 60, second % 60);
        let time = format!("26/Nov/2025:12:{minute:02}:{second:02} +0000");
        writeln!(log, "::1 - - [{time}] \"{request} HTTP/1.1\" {status} 5 \"http://r/\" \"agent/1\" {took}").unwrap();
    }
    log
}

/// A log of `count` requests, evenly over `seconds`, with stamps of a second.
pub(super) fn even(count: u64, seconds: u64) -> String {
    let paths: Vec<String> = (0..count).map(|n| format!("GET /items/{n}")).collect();
    let lines: Vec<_> = (0..).zip(&paths).map(|(n, path)| (n * seconds / count, path.as_str(), 200, "0.000")).collect();
    combined(&lines)
}

fn replay(weir: &Weir, server: &Server, args: &[&str]) -> Output {
    let url = server.url("");
    weir.run(&[&["replay"], args, &["--target", url.as_str(), "-q"]].concat())
}

fn run(weir: &Weir, server: &Server, args: &[&str]) -> Run {
    let output = replay(weir, server, &[args, &["--format", "json"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.stdout);
    output.json()
}

pub(super) fn lines(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.line().to_owned()).collect()
}

/// Intended starts by the log of requests, in ms after the first one.
pub(super) fn intended(weir: &Weir, log: &str) -> Vec<u64> {
    let mut times: Vec<u64> =
        weir.read(log).lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    times.sort_unstable();
    times.iter().map(|time| time - times[0]).collect()
}

#[test]
fn a_log_takes_its_time_divided_by_the_speed() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(1900, 190));
    let run = run(&weir, &server, &["access.log", "--speed", "100x", "--jtl", "log"]);
    assert_eq!((run.requests.total, run.requests.ok, server.requests()), (1900, 1900, 1900));
    let replay = run.replay.as_ref().unwrap();
    assert_eq!((replay.requests, replay.lines, replay.same_class), (1900, 1900, 1900));
    assert!(close(replay.log_s(), 190.0, 0.01), "{}", replay.log_s());
    // The last response may be late; the starts are not.
    assert!(run.duration_s >= 1.88, "{}", run.duration_s);
    assert!(close(run.rate_per_s.offered, 1000.0, 0.02), "{}", run.rate_per_s.offered);
    let times = intended(&weir, "log");
    assert!((1880..=1901).contains(times.last().unwrap()), "{:?}", times.last());
    for (n, at) in (0_u64..).zip(&times) {
        // 10 requests in each second of the log, each in its tenth of it, by 2 ms at 100x speed.
        assert!(at.abs_diff(n) <= 3, "request {n} at {at} ms");
    }
    // A deviation is lateness, which the trust in a run is judged by; on a busy machine it is lost.
    assert!(run.lateness_ms.p50.unwrap() < 5.0 || !run.trust.ok, "{:?}", run.lateness_ms);
}

#[test]
fn the_order_of_a_log_is_kept_and_stamps_are_spread_by_the_seed() {
    let log = even(60, 3);
    let times = |seed: &str, threads: &str| {
        let (weir, server) = (Weir::new(), Server::hello());
        weir.write("access.log", &log);
        run(&weir, &server, &["access.log", "--speed", "20", "--seed", seed, "-t", threads, "--jtl", "log"]);
        intended(&weir, "log")
    };
    let first = times("1", "1");
    assert_eq!(times("1", "2"), first, "the same on two threads");
    assert_ne!(times("2", "1"), first);
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", log);
    run(&weir, &server, &["access.log", "--speed", "10", "-c", "1"]);
    let expected: Vec<String> = (0..60).map(|n| format!("GET /items/{n} HTTP/1.1")).collect();
    assert_eq!(lines(&server), expected);
}

#[test]
fn starts_are_the_ends_less_the_time_that_each_took() {
    let (weir, server) = (Weir::new(), Server::hello());
    let log =
        combined(&[(10, "GET /fast", 200, "0.001"), (12, "GET /slow", 200, "8.000"), (13, "GET /last", 200, "0.001")]);
    weir.write("access.log", log);
    run(&weir, &server, &["access.log", "--speed", "20x", "-c", "1"]);
    assert_eq!(lines(&server), ["GET /slow HTTP/1.1", "GET /fast HTTP/1.1", "GET /last HTTP/1.1"]);
}

#[test]
fn methods_that_may_change_data_are_sent_with_unsafe_alone() {
    let log = "{\"ts\":1764158400,\"method\":\"GET\",\"path\":\"/a\",\"status\":200}\n\
        {\"ts\":1764158400,\"method\":\"POST\",\"path\":\"/b\",\"status\":201,\"request_body\":\"x=1\"}\n\
        {\"ts\":1764158400,\"method\":\"DELETE\",\"path\":\"/c\",\"status\":204}\n";
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", log);
    let without = run(&weir, &server, &["access.log", "--speed", "100"]);
    assert_eq!(lines(&server), ["GET /a HTTP/1.1"]);
    let replay = without.replay.unwrap();
    assert_eq!(replay.left_out.into_iter().collect::<Vec<_>>(), [("unsafe_method".to_owned(), 2)]);
    let server = Server::hello();
    run(&weir, &server, &["access.log", "--speed", "100", "--unsafe", "-c", "1"]);
    let seen: Vec<(String, String)> = server
        .seen()
        .iter()
        .map(|seen| (seen.line().to_owned(), String::from_utf8_lossy(&seen.body).into_owned()))
        .collect();
    let pair = |line: &str, body: &str| (line.to_owned(), body.to_owned());
    assert_eq!(seen, [pair("GET /a HTTP/1.1", ""), pair("POST /b HTTP/1.1", "x=1"), pair("DELETE /c HTTP/1.1", "")]);
}

#[test]
fn broken_lines_are_counted_and_the_first_is_shown() {
    let (weir, server) = (Weir::new(), Server::hello());
    let tls = combined(&[(1, "x", 400, "0.000")]).replace("x HTTP/1.1", "\\x16\\x03\\x01");
    let log = [&even(2, 1), "garbage\n\n# a comment\n", &tls, "more garbage\n", &"x".repeat(2 << 20), "\n"].concat();
    weir.write("access.log", log);
    let run = run(&weir, &server, &["access.log", "--speed", "100"]);
    let replay = run.replay.unwrap();
    let left_out: Vec<(&str, u64)> = replay.left_out.iter().map(|(reason, n)| (reason.as_str(), *n)).collect();
    assert_eq!(left_out, [("broken", 2), ("no_request", 1), ("too_long", 1)]);
    assert_eq!(replay.first_broken.as_deref(), Some("access.log:3: expected ' '"));
    assert_eq!((replay.lines, server.requests()), (6, 2));
}

#[test]
fn a_log_that_cannot_be_read_is_one_line_and_exit_code_2() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("words", "\nhello world\n");
    weir.write("empty", "\n");
    weir.write("posts", combined(&[(1, "POST /", 200, "0.000")]));
    weir.write("broken.gz", [0x1f, 0x8b, 8, 0, 1, 2, 3]);
    for (args, part) in [
        (&["words"][..], "words:2: unknown log format: expected ' '; give it with --log-pattern"),
        (&["empty"], "empty: no lines"),
        (&["missing"], "cannot read missing: No such file"),
        (&["posts"], "posts: no request to send in 1 lines; most are left out: methods that may change data"),
        (&["posts", "--unsafe", "--from", "5m"], "outside --from and --to"),
        (&["posts", "--unsafe", "--filter", "status=500"], "by --filter"),
        (
            &["posts", "--unsafe", "--log-pattern", "$msec $request"],
            "posts:1: invalid time '::1'; the lines are not of --log-pattern",
        ),
        (&["posts", "--log-pattern", "$request"], "--log-pattern: no time; add e.g. $time_local"),
        (&["posts", "--filter", "size>5"], "unknown field 'size'; choose status"),
        (&["posts", "--speed", "0"], "write a factor from 0.001"),
        (&["posts", "--loop"], "--loop has no end; give one with -d or -n"),
        (&["-", "--loop", "-n", "5"], "--loop needs a file; stdin can be read once"),
        (&["posts", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "--from is not before --to"),
        (&["broken.gz"], "cannot read broken.gz:1:"),
    ] {
        let output = replay(&weir, &server, args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.one_line().contains(part), "{args:?}: {}", output.stderr);
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn responses_are_compared_with_the_log() {
    let (weir, server) = (
        Weir::new(),
        Server::start(|seen| match seen.line() {
            line if line.contains("/gone") => Reply::status(404, ""),
            line if line.contains("/broken") => Reply::status(500, ""),
            _ => Reply::ok("x"),
        }),
    );
    let log = combined(&[
        (1, "GET /fine", 200, "0.000"),
        (1, "GET /gone", 404, "0.000"),
        (1, "GET /gone/2", 200, "0.000"),
        (1, "GET /broken", 500, "0.000"),
        (1, "GET /broken/now", 200, "0.000"),
        (1, "GET /healed", 502, "0.000"),
    ]);
    weir.write("access.log", log);
    let run = run(&weir, &server, &["access.log", "--speed", "100"]);
    // A 404 that the log has as well is what was asked for.
    assert_eq!((run.requests.ok, run.requests.failed), (3, 3));
    assert_eq!((run.failures_of("4xx"), run.failures_of("5xx")), (1, 2));
    let replay = run.replay.unwrap();
    let others: Vec<(&str, u64)> = replay.other_class.iter().map(|(classes, n)| (classes.as_str(), *n)).collect();
    assert_eq!((replay.same_class, others), (3, vec![("2xx to 4xx", 1), ("2xx to 5xx", 1), ("5xx to 2xx", 1)]));
    let routes: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert!(routes.contains(&"GET /gone/:id") && routes.contains(&"GET /fine"), "{routes:?}");
}

#[test]
fn a_part_of_a_log_by_time_and_condition() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(100, 100));
    let args = ["access.log", "--speed", "200", "--from", "10s", "--to", "20s", "--filter", "path!~5$"];
    let run = run(&weir, &server, &args);
    assert!((8..=10).contains(&run.requests.total), "{}", run.requests.total);
    assert!(lines(&server).iter().all(|line| !line.contains("5 HTTP")), "{:?}", lines(&server));
    assert!(run.replay.unwrap().left_out["outside_time"] >= 9);
}

#[test]
fn a_log_begins_again_until_its_end() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(10, 2));
    let run_n = run(&weir, &server, &["access.log", "--speed", "20", "--loop", "-n", "35", "-c", "1"]);
    assert_eq!((run_n.requests.total, server.requests()), (35, 35));
    assert_eq!(lines(&server)[34], "GET /items/4 HTTP/1.1");
    let run_d = run(&weir, &server, &["access.log", "--speed", "20", "--loop", "-d", "500ms"]);
    // Of 46 the end cuts off those that a slow machine has not sent yet.
    assert!((30..=46).contains(&run_d.requests.total), "{:?}", run_d.requests);
}

#[test]
fn the_target_and_headers_of_the_command_line_and_of_the_log() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write(
        "access.log",
        combined(&[(1, "GET http://shop.example/a?b=c", 200, "0.000"), (1, "GET /x y", 200, "0.000")]),
    );
    let url = server.url("/base/");
    let base =
        ["replay", "access.log", "--speed", "100", "-q", "-c", "1", "-H", "X-Test: 1", "-a", "me:pw", "--target"];
    let output = weir.run(&[&base[..], &[&url, "--recorded-headers", "--out", "run.json"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let seen = server.seen();
    assert_eq!([seen[0].line(), seen[1].line()], ["GET /base/a?b=c HTTP/1.1", "GET /base/x%20y HTTP/1.1"]);
    let headers = ["host", "user-agent", "referer", "x-test", "authorization"].map(|name| seen[0].header(name));
    assert_eq!(headers, [Some("shop.example"), Some("agent/1"), Some("http://r/"), Some("1"), Some("Basic bWU6cHc=")]);
    assert_eq!(seen[1].header("host"), Some(server.address().as_str()));
    assert!(!weir.read("run.json").contains("me:pw"));
}

#[test]
fn a_dry_run_sends_nothing() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", [even(20, 10), combined(&[(11, "POST /x", 500, "0.000")])].concat());
    let output = replay(&weir, &server, &["access.log", "--dry-run", "--unsafe"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let rows: Vec<&str> = output.stdout.lines().collect();
    assert!(
        rows[0].starts_with("log          21 requests of 21 lines (combined) · 26 Nov 2025 12:00:00 to"),
        "{rows:?}"
    );
    assert!(
        rows.contains(&"methods      20 GET · 1 POST") && rows.contains(&"recorded     20 x 200 · 1 x 500"),
        "{rows:?}"
    );
    let json = weir.run(&["replay", "access.log", "--dry-run", "--format", "json"]);
    let replay: weir_measure::run_replay::RunReplay = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((replay.requests, replay.left_out["unsafe_method"]), (20, 1));
    assert_eq!(server.requests(), 0);
}

#[test]
fn logs_come_from_stdin_and_compressed() {
    let (weir, server) = (Weir::new(), Server::hello());
    let log = even(30, 3);
    let mut file = packed(&log);
    // A file may have several members.
    file.extend(packed(&combined(&[(4, "GET /last", 200, "0.000")])));
    weir.write("access.log.gz", &file);
    run(&weir, &server, &["access.log.gz", "--speed", "100"]);
    assert_eq!(server.requests(), 31);
    let url = server.url("");
    let mut command = weir.command(&["replay", "-", "--target", &url, "--speed", "100", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), log.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(server.requests(), 61);
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_large_log_takes_little_memory_and_is_not_read_before_it_is_sent() {
    let (weir, server) = (Weir::new(), Server::hello());
    // 130 MB, of which little is held.
    let line = combined(&[(1, &format!("GET /{}", "x".repeat(1000)), 200, "0.000")]);
    weir.write("access.log", line.repeat(120_000));
    let url = server.url("");
    let mut running = weir.start(&["replay", "access.log", "--target", &url, "--speed", "0.01", "-q", "-d", "1s"]);
    server.wait_for("requests", |counts| counts.requests > 100);
    let peak_kib = running.status_kib("VmHWM");
    assert!(peak_kib < 115 * 1024, "{peak_kib} KiB");
    assert!(running.is_alive());
    assert_eq!(running.finish().code, 0);
}

#[test]
fn an_interrupt_ends_a_replay_of_a_pipe_without_an_end() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("");
    let mut command = weir.command(&["replay", "-", "--target", &url, "-q", "--out", "run.json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut pipe, even(120_000, 3_000).as_bytes());
        pipe
    });
    let running = Running::of(child);
    server.wait_for("requests", |counts| counts.requests > 3);
    running.interrupt();
    assert_eq!(running.finish().code, 130);
    drop(writer.join());
    let run: Run = serde_json::from_str(&weir.read("run.json")).unwrap();
    assert!(run.interrupted && run.replay.unwrap().requests > 0);
}

#[test]
fn an_interrupt_ends_a_replay_with_its_report() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(4000, 400));
    let url = server.url("");
    let running = weir.start(&["replay", "access.log", "--target", &url, "-q", "--out", "run.json"]);
    server.wait_for("requests", |counts| counts.requests > 3);
    running.interrupt();
    assert_eq!(running.finish().code, 130);
    let run: Run = serde_json::from_str(&weir.read("run.json")).unwrap();
    assert!(run.interrupted && run.requests.total > 0);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn the_requests_of_a_log_are_not_late() {
        let (weir, server) = (Weir::new(), Server::hello());
        weir.write("access.log", even(300, 30));
        let run = run(&weir, &server, &["access.log", "--speed", "100x"]);
        assert!(run.lateness_ms.p50.unwrap() < 5.0, "{:?}", run.lateness_ms);
    }
}
