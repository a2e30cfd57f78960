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
    assert!(
        (mean_us / 1e3 - run.response_ms.mean.unwrap()).abs() < 0.01 + run.response_ms.mean.unwrap() * 0.01,
        "{mean_us} us"
    );
    let first: f64 = lines[0][started].parse().unwrap();
    let after_ms = first - run.manifest.started_unix_s * 1e3;
    assert!((-1.0..60_000.0).contains(&after_ms), "{after_ms} ms after the start");
}

#[test]
fn prints_of_a_script_are_on_stderr_where_stdout_is_read_by_a_program() {
    let (weir, server) = (Weir::new(), Server::hello());
    let script = "print('top')\nfunction init() io.write('init\\n') end\nfunction request() print('request') return wrk.format() end\n\
                  function done() print('done') end\n";
    weir.write("p.lua", script);
    let url = server.url("/");
    for args in [
        &["load", "-q", "-s", "p.lua", &url, "-n", "2", "--format", "json"][..],
        &["load", "-q", "-s", "p.lua", &url, "-n", "2", "-o", "-"],
        &["run", "p.lua", &url, "--json"],
    ] {
        let output = weir.run(args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
        let json: Result<serde_json::Value, _> = serde_json::from_str(&output.stdout);
        assert!(json.is_ok(), "{args:?}: {}", output.stdout);
        for word in ["top", "init", "request", "done"] {
            assert!(output.stderr.contains(word), "{args:?}: {}", output.stderr);
        }
    }
    let output = weir.run(&["load", "-q", "-s", "p.lua", &url, "-n", "2"]);
    assert!(output.stdout.contains("done") && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn inputs_and_edited_scenarios_are_not_written_over() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let text = format!("GET {url}\n");
    weir.write("shop.hurl", &text);
    weir.write("body.json", "{}");
    weir.write("rows.csv", "a\n1\n");
    weir.write("vars.env", "a=1\n");
    weir.write("jobs.jsonl", format!("{{\"url\": \"{url}\"}}\n"));
    weir.write("call.sh", format!("curl {url}\n"));
    for (args, input) in [
        (&["load", "-s", "shop.hurl", "-n", "1", "-o", "shop.hurl"][..], "shop.hurl"),
        (&["load", "-s", "shop.hurl", "-n", "1", "--out=./shop.hurl"], "shop.hurl"),
        (&["load", "shop.hurl", "-n", "1", "--html", "shop.hurl"], "shop.hurl"),
        (&["load", "--scenario=shop.hurl", "-n", "1", "--csv", "shop.hurl"], "shop.hurl"),
        (&["load", &url, "-n", "1", "-b", "@body.json", "-o", "body.json"], "body.json"),
        (&["load", "-s", "shop.hurl", "--data", "rows.csv", "-n", "1", "--jtl", "rows.csv"], "rows.csv"),
        (&["load", "-s", "shop.hurl", "--variables-file", "vars.env", "-n", "1", "-o", "vars.env"], "vars.env"),
        (&["capacity", "shop.hurl", "--slo", "p99<1s", "-o", "shop.hurl"], "shop.hurl"),
        (&["send", "jobs.jsonl", "--out", "jobs.jsonl"], "jobs.jsonl"),
        (&["import", "call.sh", "-o", "call.sh", "--to", "curl", "--force"], "call.sh"),
        (&["import", "call.sh", "-o", "shop.hurl"], "shop.hurl"),
    ] {
        let before = weir.read(input);
        let output = weir.run(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.stderr.contains(input), "{args:?}: {}", output.stderr);
        assert_eq!(weir.read(input), before, "{args:?}");
    }
    assert_eq!(server.seen().len(), 0);
    assert_eq!(weir.run(&["import", "call.sh", "-o", "shop.hurl", "--force"]).code, 0);
}
