//! Files, the page and outputs of `replay`, `llm` and `capacity`: the same as those of `load`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::time::Duration;

use serde_json::Value;
use weir_testing::{Raw, Reply, Running, Server, Serving, Weir, until};

use super::load_outputs::{lines, sum};
use super::replay::even;

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

const MODEL: [&str; 9] = ["llm", "--prefill", "2ms", "--decode", "1ms", "--output-tokens", "5", "--model", "m"];

#[test]
fn a_replay_is_saved_and_summed_up_and_has_outputs() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(200, 2));
    let url = server.url("");
    let flags = ["replay", "access.log", "--target", &url, "--slo", "p99<30s", "--format", "json", "-q"];
    let files = ["--summary-md", "summary.md", "--junit", "junit.xml", "--out-jsonl", "run.jsonl", "--save=runs.db"];
    let output = weir.run(&[&flags[..], &files, &["--label", "log"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let run = output.json();
    assert!(weir.read("summary.md").contains("p99<30s"), "{}", weir.read("summary.md"));
    assert!(weir.read("junit.xml").contains("p99&lt;30s"), "{}", weir.read("junit.xml"));
    let lines = lines(&weir.read("run.jsonl"));
    assert_eq!((sum(&lines, "ok"), run.requests.ok), (200, 200));
    assert!(lines.iter().all(|line| line.get("target_rate").is_none()), "a log has no rate that is set");
    assert_eq!(lines.last().unwrap()["run"]["replay"]["requests"], 200);
    let listed = weir.run(&["history", "runs.db"]);
    assert!(listed.stdout.contains("log") && listed.stdout.lines().count() >= 2, "{listed:?}");
}

#[test]
fn a_replay_is_watched_and_stopped_on_its_page() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("access.log", even(6000, 60));
    let log = weir.path("stderr");
    let args =
        ["replay", "access.log", "--target", &server.url(""), "--web=127.0.0.1:0", "--out", "run.json", "--speed", "1"];
    let running = Running::new(weir.command(&args).stderr(File::create(&log).unwrap()));
    let line = || weir.read("stderr").lines().find(|line| line.contains("live page")).map(str::to_owned);
    until("the address of the page", PATIENCE, || line().is_some());
    let line = line().unwrap();
    let (address, token) = line.split_once("http://").unwrap().1.split_once("/#").unwrap();
    let token = token.split(' ').next().unwrap();
    let change = |change: &str| {
        let mut raw = Raw::connect(address);
        raw.send(format!(
            "POST /api/change HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{change}",
            change.len()
        ));
        let answer = raw.answer();
        (answer.status, answer.text().to_owned())
    };
    server.wait_for("requests", |counts| counts.requests > 100);
    for other in ["{\"rate\": 5}", "\"pause\""] {
        let (status, text) = change(other);
        assert!(status == 409 && text.contains("the times of a log"), "{status} {text}");
    }
    let mut events = Raw::connect(address);
    events.send(format!("GET /api/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"));
    let mut text = Vec::new();
    until("the kind of load", PATIENCE, || {
        text.extend(events.take(64));
        String::from_utf8_lossy(&text).contains("\"kind\":\"log\"")
    });
    drop(events);
    assert_eq!(change("\"stop\"").0, 200);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let run: Value = serde_json::from_str(&weir.read("run.json")).unwrap();
    let total = run["requests"]["total"].as_u64().unwrap();
    assert!(total > 100 && total < 6000, "{total}");
    assert_eq!(run["changes"]["made"][0]["kind"], "stop");
    assert!(output.stdout.contains("stopped by hand at"), "{}", output.stdout);
}

#[test]
fn a_load_of_a_model_has_the_files_and_outputs_of_a_load() {
    let (weir, serving) = (Weir::new(), Serving::start(&MODEL));
    let flags = ["llm", &serving.url, "--model", "m", "-n", "20", "-c", "2", "--format", "json", "-q"];
    let files = ["--jtl", "log.csv", "--csv-steps", "steps.csv", "--summary-md", "s.md", "--junit", "j.xml"];
    let output = weir.run(&[&flags[..], &files, &["--out-jsonl", "run.jsonl"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_eq!(weir.read("log.csv").lines().count(), 21);
    assert!(weir.read("steps.csv").contains("request") && weir.read("s.md").contains("20"));
    let lines = lines(&weir.read("run.jsonl"));
    assert_eq!(sum(&lines, "ok"), 20);
    let events: u64 = lines.iter().filter_map(|line| line["streams"]["events"].as_u64()).sum();
    assert!(events >= 100, "{events}");
}

#[test]
fn agents_share_the_conversations_with_a_model() {
    let (weir, serving) = (Weir::new(), Serving::start(&MODEL));
    let flags =
        ["llm", &serving.url, "--model", "m", "-n", "24", "-c", "4", "--format", "json", "-q", "--goodput", "e2e:30s"];
    let alone = weir.run(&flags).json();
    let records = |serving: &Serving| -> Vec<Value> {
        serving.get("/record").text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let before = records(&serving).len();
    let output = weir.run(&[&flags[..], &["--on", "local", "--agents", "2", "--out-jsonl", "run.jsonl"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let together = output.json();
    assert_eq!((together.requests.ok, together.agents.len(), records(&serving).len() - before), (24, 2, 24));
    let (one, two) = (alone.llm.unwrap(), together.llm.unwrap());
    // The same prompts, whoever sends them.
    assert_eq!((one.input_tokens, one.output_tokens), (two.input_tokens, two.output_tokens));
    assert_eq!((two.requests, two.with_usage), (24, 24));
    assert!(two.ttft_ms.p50.unwrap() > 0.0, "{two:?}");
    let lines = lines(&weir.read("run.jsonl"));
    let named = lines.iter().flat_map(|line| line["steps"].as_array().into_iter().flatten());
    assert!(named.clone().count() > 0 && named.clone().all(|step| step["step"] == "request"), "{lines:?}");
    let (weir, url) = (Weir::new(), serving.url.as_str());
    for (flags, why) in
        [(&["--on", "ray://h:1"][..], "--on local"), (&["--on", "local", "--jtl", "x"], "--jtl and --on")]
    {
        let output = weir.run(&[&["llm", url, "--model", "m", "-n", "1"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(why), "{output:?}");
    }
    let replay = weir.run(&["replay", "x.log", "--target", url, "--on", "local"]);
    assert!(replay.code == 2 && replay.one_line().contains("agents are for weir load, llm, capacity"), "{replay:?}");
}

#[test]
fn the_loads_of_a_search_are_on_one_line_of_time() {
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::ok("hello").after(Duration::from_millis(2))));
    let flags = ["capacity", &server.url("/"), "--slo", "p99<30s", "--from", "20", "--to", "40", "--step-time", "3s"];
    let more = ["--max-time", "40s", "--format", "json", "-q", "--out-jsonl", "search.jsonl"];
    let output = weir.run(&[&flags[..], &more].concat());
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    let lines = lines(&weir.read("search.jsonl"));
    let (first, last) = (&lines[0], lines.last().unwrap());
    assert_eq!((first["type"].as_str(), last["type"].as_str()), (Some("start"), Some("summary")));
    assert_eq!(last["capacity"]["passes"], report["passes"]);
    // Requests in flight at the end of a load are cut off with it.
    let counted = sum(&lines, "ok") + sum(&lines, "failed");
    assert!(counted <= server.requests() && counted + 10 > server.requests(), "{counted} of {}", server.requests());
    let intervals: Vec<&Value> = lines.iter().filter(|line| line["type"] == "interval").collect();
    for pair in intervals.windows(2) {
        let end = |line: &Value| line["t_s"].as_f64().unwrap() + line["width_s"].as_f64().unwrap();
        assert!(pair[1]["t_s"].as_f64().unwrap() >= end(pair[0]) - 1e-6, "{pair:?}");
        assert!(pair[1]["number"].as_u64() > pair[0]["number"].as_u64(), "{pair:?}");
    }
    let levels: Vec<f64> = intervals.iter().filter_map(|line| line["target_rate"].as_f64()).collect();
    assert!(levels.contains(&20.0) && levels.contains(&40.0), "{levels:?}");
}
