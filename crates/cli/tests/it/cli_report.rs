//! A run in every form: what is printed, kept, logged and tabled agrees.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Reply, Running, Seen, Server, Weir, close};

const FORMATS: [&str; 5] = ["text", "ab", "wrk", "jmeter", "json"];

/// A bit of everything: answers of two kinds, and a failure now and then.
fn mixed(seen: &Seen) -> Reply {
    match seen.number % 10 {
        3 => Reply::status(404, "not here"),
        7 => Reply::nothing().close(),
        n => Reply::ok("hello").after(Duration::from_millis(n)),
    }
}

/// Fields of a line of CSV (RFC 4180).
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    assert!(!quoted, "{line}");
    fields.push(field);
    fields
}

/// A table's columns by name.
fn table(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut lines = text.lines();
    let names = fields(lines.next().unwrap());
    let mut columns: BTreeMap<String, Vec<String>> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
    for line in lines {
        let fields = fields(line);
        assert_eq!(fields.len(), names.len(), "{line}");
        names.iter().zip(fields).for_each(|(name, field)| columns.get_mut(name).unwrap().push(field));
    }
    columns
}

fn sum(column: &[String]) -> f64 {
    column.iter().map(|field| field.parse::<f64>().unwrap()).sum()
}

#[test]
fn a_kept_run_gives_the_same_report_as_the_load_did() {
    let server = Server::start(mixed);
    for format in FORMATS {
        let weir = Weir::new();
        let flags = ["-n", "200", "-c", "4", "--slo", "p99<1ms", "--out", "run.json", "--format", format];
        let shown = weir.run(&[&["load", &server.url("/a?b=c")], flags.as_slice()].concat());
        assert_eq!(shown.code, 1);
        let report = weir.run(&["report", "run.json", "--format", format]);
        assert_eq!((report.code, report.stderr.as_str()), (0, ""));
        assert_eq!(report.stdout, shown.stdout, "{format}");
        let mut command = weir.command(&["report", "-", "--format", format]);
        command.stdin(Stdio::from(std::fs::File::open(weir.path("run.json")).unwrap()));
        assert_eq!(Running::new(&mut command).finish().stdout, shown.stdout, "{format} from stdin");
    }
}

#[test]
fn what_is_to_be_read_is_not_written_over() {
    let server = Server::hello();
    let weir = Weir::new();
    assert_eq!(weir.run(&["load", &server.url("/"), "-n", "100", "-q", "--out", "run.json"]).code, 0);
    let kept = weir.read("run.json");
    for args in [
        ["report", "run.json", "--csv", "run.json"].as_slice(),
        &["report", "run.json", "--html", "./run.json"],
        &["compare", "run.json", "run.json", "--html", "run.json"],
    ] {
        let output = weir.run(args);
        assert_eq!((output.code, weir.read("run.json") == kept), (2, true), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("would write over run.json"), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn what_out_keeps_is_what_json_prints() {
    let server = Server::start(mixed);
    let weir = Weir::new();
    let output = weir.run(&["load", &server.url("/"), "-n", "100", "--format", "json", "--out", "run.json"]);
    assert_eq!(weir.read("run.json"), output.stdout);
    weir.run(&["load", &server.url("/"), "-n", "1", "-q", "--out", "run.json"]);
    assert_eq!(Run::from_json(&weir.read("run.json")).unwrap().requests.total, 1, "a later run replaces it whole");
}

#[test]
fn the_figures_of_a_run_agree_with_each_other() {
    let server = Server::start(mixed);
    for flags in [["-n", "500", "-c", "5", "-t", "2"].as_slice(), &["-r", "400", "-d", "1s", "-t", "2"]] {
        let output = Weir::new().run(&[&["load", &server.url("/"), "--format", "json"], flags].concat());
        let run = output.json();
        assert_eq!(run.requests.total, run.requests.ok + run.requests.failed);
        assert_eq!(run.requests.failed, run.failures.values().sum::<u64>());
        assert_eq!(run.response_count() + run.failures_of("closed") + run.failures_of("reset"), run.requests.total);
        let histogram = run.response_histogram().unwrap();
        assert_eq!(histogram.count(), run.requests.ok);
        assert_eq!(run.responses.histogram().unwrap().count(), run.response_count());
        assert_eq!(run.failed_histogram().unwrap().count(), run.requests.failed - run.requests.dropped);
        assert_eq!(histogram.percentiles(), run.response_ms);
        assert_eq!(run.service_histogram().unwrap().percentiles(), run.service_ms);
        let spread = &run.response_ms;
        let ordered = [spread.min, spread.p50, spread.p75, spread.p90, spread.p95, spread.p99, spread.p999, spread.max];
        assert!(ordered.is_sorted() && spread.min > Some(0.0), "{spread:?}");
        assert!(
            run.service_ms.max.unwrap() <= run.response_ms.max.unwrap()
                && run.first_byte_ms.max.unwrap() <= run.service_ms.max.unwrap()
        );
        assert!(close(run.rate_per_s.achieved * run.duration_s, run.response_count() as f64, 0.05));
        assert!(
            run.cpu_utilization > 0.0 && run.cpu_utilization <= 1.01 && run.cpu_us_per_request > Some(0.0),
            "{}",
            run.cpu_utilization
        );
        assert!(run.manifest.started_unix_s > 1.6e9 && run.manifest.cores > 0);
        assert_eq!(run.manifest.command[1], "load");
    }
}

#[test]
fn a_broken_run_is_one_line() {
    let weir = Weir::new();
    let good = weir.run(&["load", &Server::hello().url("/"), "-n", "10", "--format", "json"]).stdout;
    assert!(good.contains("\"schema\": 3"));
    for (name, text) in [
        ("empty", String::new()),
        ("text", "no JSON".to_owned()),
        ("other", "{\"a\": 1}".to_owned()),
        ("list", "[]".to_owned()),
        ("half", good[..good.len() / 2].to_owned()),
        ("later", good.replace("\"schema\": 3", "\"schema\": 99")),
        ("histogram", good.replace("\"histogram\": \"HIST", "\"histogram\": \"!!!!")),
        ("negative", good.replace("\"total\": 10", "\"total\": -10")),
        ("absurd", good.replace("\"total\": 10", "\"total\": 1e999")),
        ("zeros", "\0".repeat(1000)),
    ] {
        weir.write(name, text);
        for format in FORMATS {
            let output = weir.run(&["report", name, "--format", format]);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{name} {format}");
            assert!(output.one_line().contains(name), "{}", output.stderr);
        }
    }
    for path in ["missing.json", "."] {
        let output = weir.run(&["report", path]);
        assert!(output.code == 2 && output.one_line().contains(path));
    }
    weir.write("bytes", [0xff, 0xfe, 0x00]);
    assert!(weir.run(&["report", "bytes"]).one_line().contains("bytes"));
}

#[test]
fn the_log_has_a_line_for_each_request_and_its_sums_agree() {
    let server = Server::start(mixed);
    let weir = Weir::new();
    let output = weir.run(&[
        "load",
        &server.url("/a,\"b\"?c=d"),
        "-n",
        "300",
        "-c",
        "6",
        "-t",
        "2",
        "--jtl",
        "log.jtl",
        "--format",
        "json",
    ]);
    let run = output.json();
    let text = weir.read("log.jtl");
    assert!(text.ends_with('\n'));
    let log = table(&text);
    let names = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,\
                 sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect,\"elapsed_us\",\"Latency_us\",\"Connect_us\"";
    assert_eq!(text.lines().next(), Some(names));
    assert_eq!(log["timeStamp"].len() as u64, run.requests.total);
    let count = |column: &str, value: &str| log[column].iter().filter(|field| *field == value).count() as u64;
    assert_eq!((count("success", "true"), count("success", "false")), (run.requests.ok, run.requests.failed));
    for (status, n) in &run.status {
        assert_eq!(count("responseCode", status), *n);
    }
    assert_eq!(count("responseCode", "Non HTTP response code: closed"), run.failures_of("closed"));
    assert_eq!((sum(&log["bytes"]) as u64, sum(&log["sentBytes"]) as u64), (run.bytes.read, run.bytes.written));
    assert_eq!((count("label", "/a,%22b%22"), count("URL", &server.url("/a,%22b%22?c=d"))), (300, 300));
    let answered: Vec<f64> = (0..300)
        .filter(|i| log["responseCode"][*i].parse::<u16>().is_ok())
        .map(|i| log["elapsed"][i].parse().unwrap())
        .collect();
    let mean = answered.iter().sum::<f64>() / answered.len() as f64;
    let truth = run.responses.response_ms.mean.unwrap();
    assert!((mean - truth).abs() < 0.6, "whole ms: {mean} against {truth}");
    let started = run.manifest.started_unix_s * 1e3;
    let stamps = log["timeStamp"].iter().map(|field| field.parse::<f64>().unwrap());
    assert!(stamps.into_iter().all(|stamp| stamp >= started - 1.0 && stamp < started + 60e3));
}

#[test]
fn the_series_has_a_line_for_each_second_and_its_sums_agree() {
    let server = Server::start(|seen| if seen.number % 50 == 3 { Reply::status(500, "") } else { Reply::ok("hello") });
    let weir = Weir::new();
    let flags = ["-r", "100", "-d", "2s", "-t", "2", "--csv", "run.csv", "--out", "run.json", "--format", "json"];
    let run = weir.run(&[&["load", &server.url("/")], flags.as_slice()].concat()).json();
    let series = table(&weir.read("run.csv"));
    let rows = series["t_s"].len();
    assert!((2..=3).contains(&rows), "{rows}");
    assert_eq!((sum(&series["ok"]) as u64, sum(&series["failed"]) as u64), (run.requests.ok, run.requests.failed));
    assert_eq!(sum(&series["bytes_in"]) as u64, run.bytes.read);
    assert_eq!(rows, run.series.len());
    assert!(close(sum(&series["width_s"]), 2.0, 0.05), "{:?}", series["width_s"]);
    for point in &run.series[..2] {
        assert!((80..=120).contains(&(point.ok + point.failed)), "100 a second: {point:?}");
    }
    weir.run(&["report", "run.json", "--csv", "again.csv"]);
    assert_eq!(weir.read("again.csv"), weir.read("run.csv"));
}

#[test]
fn the_page_of_a_load_is_the_one_that_its_kept_run_gives() {
    let server = Server::start(mixed);
    let weir = Weir::new();
    let flags = ["-n", "200", "-c", "4", "-q", "--slo", "p99<1ms", "--out", "run.json", "--html", "run.html"];
    let shown = weir.run(&[&["load", &server.url("/a?b=c")], flags.as_slice()].concat());
    assert_eq!(shown.code, 1);
    let page = weir.read("run.html");
    assert!(page.starts_with("<!doctype html>") && page.contains(&format!("<h1>GET {}</h1>", server.url("/a?b=c"))));
    let output = weir.run(&["report", "run.json", "--html", "again.html"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout, shown.stdout, "the report is on stdout all the same");
    assert_eq!(weir.read("again.html"), page);
    let output = weir.run(&["report", "run.json", "--html", "no/folder/run.html"]);
    assert!(output.code == 2 && output.one_line().contains("no/folder/run.html"));
}

#[test]
fn the_reports_of_other_tools_have_the_lines_that_scripts_look_for() {
    let server = Server::start(mixed);
    let weir = Weir::new();
    weir.run(&["load", &server.url("/x"), "-n", "200", "-c", "4", "-q", "--out", "run.json"]);
    let report = |format: &str| weir.run(&["report", "run.json", "--format", format]).stdout;
    let ab = report("ab");
    for line in [
        "Complete requests:      200",
        "Concurrency Level:      4",
        "Document Path:          /x",
        "Requests per second:",
        "Time per request:",
        "Non-2xx responses:      20",
        "  50% ",
        " 100% ",
    ] {
        assert!(ab.contains(line), "{line}:\n{ab}");
    }
    let wrk = report("wrk");
    for line in [
        "Running ",
        "@ http://",
        "4 connections",
        "Latency Distribution",
        "requests in ",
        "Requests/sec:",
        "Transfer/sec:",
        "Non-2xx or 3xx responses: 20",
    ] {
        assert!(wrk.contains(line), "{line}:\n{wrk}");
    }
    let jmeter = report("jmeter");
    let heading = "Label  # Samples  Average  Min  Max  Std. Dev.  Error %  Throughput  Received KB/sec  Sent KB/sec  \
                   Avg. Bytes";
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(jmeter.lines().any(|line| words(line) == words(heading)), "{jmeter}");
    assert!(jmeter.contains("TOTAL") && jmeter.contains("200"), "{jmeter}");
}
