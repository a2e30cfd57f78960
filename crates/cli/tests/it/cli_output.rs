//! Where results go when they go to stdout, and where bodies come from when they come from stdin.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::process::Stdio;

use weir_measure::Run;
use weir_testing::{Running, Server, Weir};

#[test]
fn a_dash_is_stdout_for_one_result_and_the_report_then_goes_to_stderr() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    for (flag, first) in [("--out", "{"), ("--jtl", "timeStamp,"), ("--csv", "t_s,"), ("--html", "<!")] {
        let output = weir.run(&["load", &url, "-n", "20", "-c", "1", flag, "-"]);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.stdout.to_lowercase().starts_with(&first.to_lowercase()), "{flag}: {:.80}", output.stdout);
        assert!(output.stderr.contains("20 ok"), "{flag}: {}", output.stderr);
        let quiet = weir.run(&["load", &url, "-n", "20", "-c", "1", flag, "-", "-q"]);
        assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{flag}");
        assert!(!weir.path("-").exists(), "{flag} made a file of that name");
    }
    let output = weir.run(&["load", &url, "-n", "20", "-c", "1", "-o", "-", "--jtl", "log", "-q"]);
    assert_eq!(Run::from_json(&output.stdout).unwrap().requests.ok, 20);
    assert_eq!(weir.read("log").lines().count(), 21);
}

#[test]
fn a_log_on_stdout_does_not_take_away_what_stdout_goes_to() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("all", "before\n");
    let all = std::fs::File::options().append(true).open(weir.path("all")).unwrap();
    let mut command = weir.command(&["load", &server.url("/"), "-n", "5", "-c", "1", "--jtl", "-", "-q"]);
    assert_eq!(Running::new(command.stdout(Stdio::from(all))).finish().code, 0);
    let text = weir.read("all");
    assert!(text.starts_with("before\ntimeStamp,") && text.lines().count() == 7, "{text}");
}

#[test]
fn a_body_of_a_dash_comes_from_stdin() {
    let (weir, server) = (Weir::new(), Server::hello());
    let mut command = weir.command(&["load", &server.url("/"), "-n", "3", "-c", "1", "-b", "@-", "-f", "json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin").unwrap();
    let run = Running::of(child).finish().json();
    assert_eq!((run.requests.ok, run.target.method.as_str()), (3, "POST"));
    assert!(run.bytes.written > 30, "{:?}", run.bytes);
    let twice = weir.run(&["load", &server.url("/"), "-n", "3", "-b", "@-", "-b", "@-"]);
    assert!(twice.code == 2 && twice.one_line().contains("once"), "{twice:?}");
}

#[test]
fn a_log_says_times_below_a_millisecond() {
    let (weir, server) = (Weir::new(), Server::hello());
    let run = weir.load(&server.url("/"), &["-n", "200", "-c", "1", "--jtl", "log"]);
    let log = weir.read("log");
    let mut lines = csv::Reader::from_reader(log.as_bytes());
    let names = lines.headers().unwrap().clone();
    let at = |name: &str| names.iter().position(|column| column == name).unwrap();
    let (exact, started) = (at("elapsed_us"), at("timeStamp"));
    let lines: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    let mean_us = lines.iter().map(|line| line[exact].parse::<f64>().unwrap()).sum::<f64>() / 200.0;
    assert!((mean_us / 1e3 - run.response_ms.mean).abs() < 0.01 + run.response_ms.mean * 0.01, "{mean_us} us");
    let first: f64 = lines[0][started].parse().unwrap();
    let after_ms = first - run.manifest.started_unix_s * 1e3;
    assert!((-1.0..5_000.0).contains(&after_ms), "{after_ms} ms after the start");
}
