//! What was not measured is null, a blank or a dash, and never 0: an outage is not the best run of all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_histogram::percentiles::Percentiles;
use weir_testing::{Reply, Server, Weir};

/// Members of an object at any depth whose name is a percentile's, mean's or maximum's, by their path.
fn times(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    const NAMES: [&str; 10] = ["mean", "sd", "min", "p50", "p75", "p90", "p95", "p99", "p999", "max"];
    match value {
        Value::Object(map) => {
            for (name, member) in map {
                let path = format!("{path}.{name}");
                let is_time = |name: &str| NAMES.contains(&name.trim_end_matches("_ms").trim_start_matches("failed_"));
                // The pool of connections has a maximum, too.
                if is_time(name) && !path.ends_with("connections.max") {
                    found.push((path, member.clone()));
                } else {
                    times(member, &path, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| times(item, path, found)),
        _ => {}
    }
}

fn times_of(text: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    times(&serde_json::from_str(text).unwrap(), "", &mut found);
    found
}

#[test]
fn an_outage_has_no_times_of_successes_in_any_report() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"));
    let weir = Weir::new();
    weir.write("s.hurl", "GET {{base_url}}/a\nGET {{base_url}}/b\n");
    let variable = format!("base_url={}", server.url(""));
    let url = server.url("/");
    let files = ["--out", "run.json", "--csv", "series.csv", "--summary-md", "summary.md", "--junit", "junit.xml"];
    let more = ["--html", "run.html", "--out-jsonl", "run.jsonl", "--slo", "p99<200ms", "-n", "40", "-c", "2"];
    let steps = ["-s", "s.hurl", "--variable", &variable];
    for target in [&[url.as_str()][..], &steps] {
        let output = weir.run(&[&["load", "-q"], target, &files, &more].concat());
        assert_ne!(output.code, 0, "{output:?}");
        let times = times_of(&weir.read("run.json"));
        let of_successes = |path: &str| {
            !path.contains("failed")
                && !path.contains("lateness")
                && !path.contains("responses.")
                && !path.contains("connect")
        };
        let of_successes: Vec<_> = times.iter().filter(|(path, _)| of_successes(path)).collect();
        assert!(of_successes.len() > 30, "{of_successes:?}");
        // Iterations in which a step failed take their time, too.
        let zeros: Vec<_> =
            of_successes.iter().filter(|(path, value)| !value.is_null() && !path.contains(".time_ms.")).collect();
        assert!(zeros.is_empty(), "{zeros:?}");
        let csv = weir.read("series.csv");
        let row = csv.lines().nth(1).unwrap();
        assert!(row.contains(",,,"), "blank cells of p50, p99 and max: {row}");
        for file in ["summary.md", "junit.xml"] {
            let text = weir.read(file);
            assert!(text.contains("no success") && !text.contains("0ns"), "{file}: {text}");
        }
        for line in weir.read("run.jsonl").lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["response_ms"].is_null(), "{line}");
        }
        let html = weir.read("run.html");
        assert!(!html.contains(">NaN"), "{html}");
        // Saved runs are read again, and say the same.
        let again = weir.run(&["report", "run.json", "--format", "json"]);
        assert_eq!(times_of(&again.stdout), times);
        assert!(weir.run(&["report", "run.json"]).stdout.contains("no response times: no request succeeded"));
    }
}

#[test]
fn a_model_that_is_down_has_no_times() {
    let weir = Weir::new();
    let server = Server::start(|_| Reply::nothing().close());
    let url = server.url("/v1");
    let output = weir.run(&["llm", &url, "--model", "m", "-n", "3", "-c", "1", "-q", "--format", "json"]);
    let llm = output.json().llm.unwrap();
    assert_eq!([llm.ttft_ms, llm.tpot_ms, llm.e2e_ms, llm.chunk_gap_ms], [Percentiles::default(); 4]);
    let text = weir.run(&["llm", &url, "--model", "m", "-n", "3", "-c", "1", "-q"]).stdout;
    assert!(text.contains("no times: no request succeeded"), "{text}");
}

#[test]
fn a_run_without_a_request_has_no_figure_of_requests() {
    let weir = Weir::new();
    let server = Server::start(|_| Reply::ok("hello"));
    weir.write("late.lua", "function delay() return 600000 end\n");
    let url = server.url("/");
    let files = ["--out", "run.json", "--junit", "junit.xml", "--csv", "series.csv", "--out-jsonl", "run.jsonl"];
    let load = ["load", "-q", "-s", "late.lua", url.as_str(), "-c", "1", "-d", "300ms"];
    let output = weir.run(&[&load[..], &files].concat());
    assert_eq!((output.code, server.requests()), (3, 0), "{output:?}");
    let run: Value = serde_json::from_str(&weir.read("run.json")).unwrap();
    assert_eq!((&run["cpu_us_per_request"], &run["response_ms"]["p99"]), (&Value::Null, &Value::Null));
    assert!(
        weir.read("junit.xml").contains("none of 0 requests succeeded; none was sent"),
        "{}",
        weir.read("junit.xml")
    );
}
