//! Outputs of a load while it runs: files, Prometheus, OpenTelemetry, InfluxDB, StatsD.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::net::UdpSocket;
use std::time::Duration;

use serde_json::Value;
use weir_machine::clock::unix_s;
use weir_measure::Run;
use weir_testing::{Raw, Reply, Running, Seen, Server, Weir, closed_address, until};

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn lines(text: &str) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/outputs.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let errors: Vec<String> = validator.iter_errors(line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    }
    lines
}

pub(super) fn sum(lines: &[Value], key: &str) -> u64 {
    lines.iter().filter_map(|line| line[key].as_u64()).sum()
}

#[test]
fn a_file_has_each_interval_and_the_summary_as_json_lines() {
    let server = Server::start(|seen| if seen.number % 10 == 9 { Reply::status(503, "") } else { Reply::ok("hello") });
    let weir = Weir::new();
    weir.write("run.jsonl", "an earlier run\n".repeat(1000));
    let run = weir.load(&server.url("/a?key=1"), &["--rate", "100", "-d", "2200ms", "--out-jsonl", "run.jsonl"]);
    let lines = lines(&weir.read("run.jsonl"));
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let (last, end) = (lines.len() - 2, lines.len() - 1);
    // A response that comes late has an interval of its own.
    assert!(last >= 3 && kinds[0] == "start" && kinds[end] == "summary", "{kinds:?}");
    assert!(kinds[1..end].iter().all(|kind| *kind == "interval"), "{kinds:?}");
    assert_eq!(lines[0]["url"], server.url("/a"));
    assert_eq!((sum(&lines, "ok"), sum(&lines, "failed")), (run.requests.ok, run.requests.failed));
    let statuses = |status: &str| lines.iter().filter_map(|line| line["status"][status].as_u64()).sum::<u64>();
    assert_eq!((statuses("200"), statuses("503")), (run.status["200"], run.status["503"]));
    assert_eq!((&lines[1]["target_rate"], &lines[last]["partial"]), (&100.0.into(), &true.into()));
    assert!(lines[last]["width_s"].as_f64().unwrap() < 1.0, "{}", lines[last]);
    let summary = &lines[end]["run"];
    assert_eq!(summary["requests"]["total"], run.requests.total);
    assert!(summary.get("series").is_none() && summary.get("histogram").is_none(), "{summary}");
}

#[test]
fn lines_on_stdout_are_alone_there() {
    let server = Server::hello();
    let weir = Weir::new();
    let output = weir.run(&["load", &server.url("/"), "-c", "2", "-n", "30", "--out-jsonl", "-"]);
    assert_eq!(output.code, 0, "{output:?}");
    let lines = lines(&output.stdout);
    assert_eq!((sum(&lines, "ok"), lines.last().unwrap()["type"].as_str()), (30, Some("summary")));
    assert!(output.stderr.contains("requests"), "the report is on stderr: {output:?}");
}

#[test]
fn steps_of_a_scenario_and_of_agents_add_up() {
    let server = Server::hello();
    let weir = Weir::new();
    let url = server.url("");
    let file =
        weir.write("visit.hurl", format!("# @name one\nGET {url}/1\nHTTP 200\n\n# @name two\nGET {url}/2\nHTTP 200\n"));
    let file = file.to_str().unwrap();
    for more in [&[][..], &["--on", "local", "--agents", "2"]] {
        let flags = ["load", "-s", file, "--users", "4", "-d", "1300ms", "--out-jsonl", "run.jsonl", "-f", "json"];
        let output = weir.run(&[&flags, more].concat());
        let run = output.json();
        let lines = lines(&weir.read("run.jsonl"));
        let of_step =
            |index: usize| lines.iter().filter_map(|line| line["steps"][index]["requests"].as_u64()).sum::<u64>();
        assert_eq!((of_step(0), of_step(1)), (run.steps[0].requests, run.steps[1].requests), "{more:?}");
        assert_eq!(lines[1]["steps"][1]["step"], "two");
        assert_eq!(lines[1]["target_users"], 4.0);
    }
}

#[test]
fn a_full_disk_is_an_error_at_the_end_and_the_run_is_there() {
    let server = Server::hello();
    let weir = Weir::new();
    let output =
        weir.run(&["load", &server.url("/"), "--rate", "50", "-d", "1s", "--out-jsonl", "/dev/full", "-f", "json"]);
    assert_eq!((output.code, output.json().requests.total), (2, 50));
    assert!(output.stderr.contains("not written to /dev/full: No space left on device"), "{output:?}");
}

#[test]
fn a_run_that_cannot_start_leaves_the_file_as_it_is() {
    let weir = Weir::new();
    weir.write("run.jsonl", "an earlier run\n");
    let url = format!("http://{}/", closed_address());
    let output = weir.run(&["load", &url, "-n", "1", "--out-jsonl", "run.jsonl", "--out-jsonl", "run.jsonl"]);
    assert_eq!(output.code, 2);
    let output = weir.run(&["load", &url, "-n", "1", "--out-jsonl", "run.jsonl"]);
    assert_eq!((output.code, weir.read("run.jsonl").as_str()), (2, "an earlier run\n"), "{output:?}");
}

/// A load, and the first line on stderr that has a text.
fn start(weir: &Weir, args: &[&str], text: &str) -> (Running, String) {
    let log = weir.path("stderr");
    let running = Running::new(weir.command(args).stderr(File::create(&log).unwrap()));
    let line = || std::fs::read_to_string(&log).unwrap().lines().find(|line| line.contains(text)).map(str::to_owned);
    until(text, PATIENCE, || line().is_some());
    (running, line().unwrap())
}

#[test]
fn prometheus_scrapes_a_load() {
    let server = Server::hello();
    let weir = Weir::new();
    let url = server.url("/");
    let flags = ["load", &url, "--rate", "100", "-d", "60s", "--out-prometheus", "0", "--out-label", "run=a \"b\""];
    let (running, line) = start(&weir, &flags, "metrics at");
    let address = line.split_once("http://").unwrap().1.strip_suffix("/metrics").unwrap().to_owned();
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.and_then(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().ok())
    };
    let scrape = || Raw::connect(&address).get("/metrics").text().to_owned();
    let ok = r#"weir_load_requests_total{run="a \"b\"",result="ok"}"#;
    until("a hundred requests", PATIENCE, || value(&scrape(), ok).is_some_and(|n| n >= 100.0));
    let text = scrape();
    assert!(text.ends_with("# EOF\n") && value(&text, "weir_load_target_rate") == Some(100.0), "{text}");
    assert_eq!(
        value(&text, r#"weir_load_response_seconds_bucket{run="a \"b\"",le="+Inf",result="ok"}"#),
        value(&text, ok)
    );
    let mut raw = Raw::connect(&address);
    assert_eq!([raw.get("/").status, raw.post("/metrics", "").status], [404, 405]);
    running.interrupt();
    assert_eq!(running.finish().code, 130);
}

/// Values of a field in InfluxDB's lines of a measurement.
fn influx_sum(seen: &[Seen], measurement: &str, field: &str) -> u64 {
    let text: String = seen.iter().map(|seen| String::from_utf8(seen.body.clone()).unwrap()).collect();
    let lines = text.lines().filter(|line| line.split([',', ' ']).next() == Some(measurement));
    let fields = lines.flat_map(|line| line.split([' ', ','])).filter_map(|pair| pair.split_once('='));
    fields
        .filter(|(name, _)| *name == field)
        .map(|(_, value)| value.trim_end_matches('i').parse::<u64>().unwrap())
        .sum()
}

#[test]
fn what_a_receiver_did_not_accept_at_first_comes_later() {
    let server = Server::hello();
    let database =
        Server::start(|seen| if seen.number < 2 { Reply::status(503, "busy") } else { Reply::status(204, "") });
    let weir = Weir::new();
    let output = weir.run(&[
        "load",
        &server.url("/"),
        "--rate",
        "100",
        "-d",
        "2500ms",
        "-f",
        "json",
        "--out-influx",
        &database.url("/load"),
        "--out-label",
        "run=a b",
    ]);
    let run = output.json();
    assert_eq!(output.code, 0, "{output:?}");
    let accepted: Vec<Seen> = database.seen().into_iter().filter(|seen| seen.number >= 2).collect();
    assert_eq!(influx_sum(&accepted, "weir_load", "requests"), run.requests.total);
    assert_eq!(influx_sum(&accepted, "weir_load_status", "responses"), run.status["200"]);
    assert!(accepted.iter().all(|seen| seen.line() == "POST /write?db=load HTTP/1.1"), "{accepted:?}");
    assert!(String::from_utf8_lossy(&accepted[0].body).starts_with("weir_load,run=a\\ b requests="));
    let address = database.url("/load");
    assert_eq!(output.one_line(), format!("{address} accepts no data: status 503, busy"));
}

#[test]
fn a_receiver_that_is_down_costs_a_printed_loss_and_nothing_else() {
    let server = Server::hello();
    let weir = Weir::new();
    let closed = format!("http://{}", closed_address());
    let flags = ["load", &server.url("/"), "--rate", "200", "-d", "1200ms", "-f", "json", "--quiet"];
    for (flag, path) in [("--out-prometheus", "/"), ("--out-otlp", "/"), ("--out-influx", "/")] {
        let output = weir.run(&[&flags[..], &[flag, &closed]].concat());
        let run = output.json();
        assert_eq!((output.code, run.requests.total, run.requests.failed), (0, 240, 0), "{output:?}");
        // Two, and more where the last response came late.
        let (counts, why) = output.one_line().split_once(" intervals ").unwrap();
        let (lost, all) = counts.split_once(" of ").unwrap();
        assert!(lost == all && all.parse::<u64>().unwrap() >= 2, "{output:?}");
        let expected = format!("were not delivered to {closed}{path}: connection refused");
        assert!(why.strip_prefix("and the summary ").unwrap_or(why).starts_with(&expected), "{output:?}");
    }
}

#[test]
fn a_receiver_that_rejects_data_is_told_with_its_words() {
    let server = Server::hello();
    let receiver = Server::start(|_| Reply::status(401, "unauthorized:\n no token\u{1b}[2J"));
    let weir = Weir::new();
    let output =
        weir.run(&["load", &server.url("/"), "-n", "10", "--out-otlp", &receiver.url("/v1/metrics"), "--quiet"]);
    let address = receiver.url("/v1/metrics");
    let expected = format!("1 of 1 intervals were not delivered to {address}: status 401, unauthorized: no token [2J");
    assert_eq!((output.code, output.one_line()), (0, expected.as_str()));
    assert_eq!(receiver.requests(), 1, "not sent again");
}

#[test]
fn a_receiver_without_a_response_does_not_hold_up_the_end() {
    let server = Server::hello();
    let receiver = Server::start(|_| Reply::nothing().freeze());
    let weir = Weir::new();
    let begun_s = unix_s();
    let output = weir.run(&["load", &server.url("/"), "-n", "10", "--out-influx", &receiver.url("/"), "--quiet"]);
    assert!(unix_s() - begun_s < 60.0, "it has taken {} s", unix_s() - begun_s);
    // One, and more where the last response came late.
    let (counts, why) = output.one_line().split_once(" intervals ").unwrap();
    let (lost, all) = counts.split_once(" of ").unwrap();
    assert!(lost == all && lost != "0" && why.contains("were not delivered"), "{output:?}");
    assert_eq!(output.code, 0);
}

#[test]
fn requests_are_those_of_their_protocols_and_credentials_are_in_no_result() {
    let server = Server::hello();
    let receiver = Server::start(|_| Reply::ok(""));
    let weir = Weir::new();
    let target = server.url("/");
    let base = receiver.url("").replace("http://", "http://me:h1dden@");
    let flags = ["load", &target, "-n", "10", "--out", "run.json", "--html", "run.html", "-f", "json"];
    for (flag, header, line) in [
        ("--out-prometheus", "X-Token: s3cret", "POST /api/v1/write HTTP/1.1"),
        ("--out-otlp", "X-Token: s3cret", "POST /v1/metrics HTTP/1.1"),
        ("--out-influx", "X-Token:s3cret", "POST /write?db=weir HTTP/1.1"),
    ] {
        let output = weir.run(&[&flags[..], &[flag, &base, "--out-header", header]].concat());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        let seen = receiver.seen().last().unwrap().clone();
        assert_eq!((seen.line(), seen.header("x-token")), (line, Some("s3cret")));
        assert_eq!(seen.header("authorization"), Some("Basic bWU6aDFkZGVu"));
        let text = [output.stdout, weir.read("run.json"), weir.read("run.html")].concat();
        assert!(!text.contains("s3cret") && !text.contains("h1dden"), "{flag}");
        Run::from_json(&weir.read("run.json")).unwrap();
    }
    let seen = &receiver.seen()[0];
    assert_eq!(seen.header("content-encoding"), Some("snappy"));
    assert_eq!(seen.header("x-prometheus-remote-write-version"), Some("0.1.0"));
    assert_eq!(seen.header("content-type"), Some("application/x-protobuf"));
    let mut command =
        weir.command(&["load", &target, "-n", "10", "--out-influx", &receiver.url("/api/v2/write?org=o&bucket=b")]);
    command.env("INFLUX_TOKEN", "t0ken").env("WEIR_OUT_HEADERS", "X-One: 1\nX-Two: 2\n");
    assert_eq!(Running::new(&mut command).finish().code, 0);
    let seen = receiver.seen().last().unwrap().clone();
    assert_eq!(seen.line(), "POST /api/v2/write?org=o&bucket=b HTTP/1.1");
    assert_eq!((seen.header("authorization"), seen.header("x-two")), (Some("Token t0ken"), Some("2")));
}

#[test]
fn statsd_gets_counters_and_gauges() {
    let server = Server::hello();
    let statsd = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = statsd.local_addr().unwrap().to_string();
    let run = weir_testing::load(&server.url("/"), &["--rate", "100", "-d", "1500ms", "--out-statsd", &address]);
    statsd.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 2000];
    let count = |text: &str| {
        let counts = text.lines().filter_map(|line| line.strip_prefix("weir.load.requests.ok:")?.strip_suffix("|c"));
        counts.map(|n| n.parse::<u64>().unwrap()).sum::<u64>()
    };
    while count(&text) < run.requests.ok {
        let n = statsd.recv(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    assert_eq!(count(&text), run.requests.ok);
    assert!(text.lines().any(|line| line == "weir.load.target.rate:100|g"), "{text}");
}

#[test]
fn invalid_outputs_are_one_line() {
    let weir = Weir::new();
    for (flags, expected) in [
        (["--out-prometheus", "nowhere"].as_slice(), "HOST:PORT"),
        (&["--out-otlp", "localhost:4318"], "http://HOST:PORT"),
        (&["--out-influx", "ftp://h"], "http://HOST:PORT"),
        (&["--out-statsd", "localhost"], "HOST:PORT"),
        (&["--out-label", "status=1"], "label of weir's own"),
        (&["--out-label", "a=1", "--out-label", "a=2", "--out-jsonl", "x"], "'a' is given twice"),
        (&["--out-header", "X: 1", "--out-jsonl", "x"], "are for one receiver by HTTP"),
        (&["--out-header", "X: 1", "--out-otlp", "http://h", "--out-influx", "http://h"], "there are 2"),
        (&["--out-header", "a b: 1", "--out-otlp", "http://h"], "invalid header"),
        (&["--out", "x", "--out-jsonl", "./x"], "--out and --out-jsonl both write to"),
        (&["--out-jsonl", "/nowhere/x"], "cannot write /nowhere/x"),
    ] {
        let output = weir.run(&[&["load", "http://127.0.0.1:1/", "-n", "1"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(expected), "{flags:?}: {output:?}");
        assert!(!weir.path("x").exists());
    }
}
