//! Traces of sampled requests: the header that a service gets, and the spans that a collector gets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use weir_testing::{Http2Reply, Http2Service, Output, Reply, Server, Weir};

/// A collector of OTLP over HTTP: metrics as protobuf, and traces as JSON.
fn collector() -> Server {
    Server::start(|_| Reply::ok("{}"))
}

/// Spans that a collector has got, by their trace and span in hexadecimal digits.
fn spans(collector: &Server) -> BTreeMap<String, Value> {
    let mut spans = BTreeMap::new();
    for seen in collector.seen().iter().filter(|seen| seen.line().starts_with("POST /v1/traces ")) {
        assert_eq!(seen.header("content-type"), Some("application/json"));
        let request: Value = serde_json::from_slice(&seen.body).unwrap();
        let resource = &request["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "weir");
        for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
            let id = format!("{}-{}", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
            assert!(spans.insert(id, span.clone()).is_none(), "each once");
        }
    }
    spans
}

/// Trace and span of a header, which is sampled.
fn context(header: &str) -> String {
    header.strip_prefix("00-").unwrap().strip_suffix("-01").unwrap().to_owned()
}

fn contexts(server: &Server) -> Vec<String> {
    server.seen().iter().filter_map(|seen| seen.header("traceparent").map(context)).collect()
}

fn attribute(span: &Value, name: &str) -> Option<String> {
    let found = span["attributes"].as_array().unwrap().iter().find(|pair| pair["key"] == name)?;
    let value = found["value"].as_object().unwrap().values().next().unwrap();
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn traced(weir: &Weir, collector: &Server, fraction: &str, args: &[&str]) -> Output {
    let url = collector.url("");
    let output = weir.run(&[args, &["--trace", fraction, "--out-otlp", &url, "-q", "--format", "json"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output
}

#[test]
fn each_sampled_request_is_a_span_that_its_service_can_join() {
    let (weir, collector) = (Weir::new(), collector());
    let server = Server::start(|seen| if seen.number % 10 == 9 { Reply::status(503, "busy") } else { Reply::ok("ok") });
    let url = server.url("/items?key=s3cret");
    let run = traced(&weir, &collector, "100%", &["load", &url, "--rate", "100", "-d", "1s"]).json();
    assert_eq!((run.requests.total, run.requests.failed), (100, 10));
    let spans = spans(&collector);
    let mut contexts = contexts(&server);
    contexts.sort_unstable();
    assert_eq!(contexts, spans.keys().cloned().collect::<Vec<_>>());
    assert_eq!(spans.len(), 100);
    let failed: Vec<&Value> = spans.values().filter(|span| span["status"]["code"] == 2).collect();
    assert_eq!(failed.len(), 10);
    assert_eq!(attribute(failed[0], "error.type").as_deref(), Some("503"));
    let span = spans.values().next().unwrap();
    let host = server.url("").trim_start_matches("http://").to_owned();
    let (name, port) = host.split_once(':').unwrap();
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/items"),
        ("url.scheme", "http"),
        ("server.address", name),
        ("server.port", port),
    ] {
        assert_eq!(attribute(span, key).as_deref(), Some(value), "{span:#}");
    }
    assert_eq!(span["kind"], 3);
    assert!(!span.to_string().contains("s3cret"), "{span}");
    let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
    let began = (run.manifest.started_unix_s * 1e9) as u64;
    assert!(start <= end && start.abs_diff(began) < 60_000_000_000, "{start} {end} {began}");
}

#[test]
fn a_fraction_is_sampled_and_the_others_have_no_header() {
    let (weir, collector, server) = (Weir::new(), collector(), Server::hello());
    traced(&weir, &collector, "20%", &["load", &server.url("/"), "-n", "1000", "-c", "4"]);
    let (contexts, spans) = (contexts(&server), spans(&collector));
    assert_eq!(contexts.len(), spans.len());
    // Five standard deviations.
    assert!((137..=263).contains(&spans.len()), "{}", spans.len());
    assert_eq!(server.requests(), 1000);
}

#[test]
fn steps_name_their_spans_and_a_header_of_the_users_own_stays() {
    let (weir, collector, server) = (Weir::new(), collector(), Server::start(|_| Reply::ok("{\"a\": 1}")));
    let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let url = server.url("");
    weir.write(
        "visit.hurl",
        format!(
            "# @name one\nGET {url}/1\nHTTP 200\n[Asserts]\njsonpath \"$.a\" == 2\n\n# @name two\nPOST {url}/2\ntraceparent: {own}\n`x`\nHTTP 200\n"
        ),
    );
    let flags = ["load", "-s", "visit.hurl", "-n", "5", "-c", "1", "--continue-on-error"];
    let output = weir.run(
        &[&flags[..], &["--trace", "100%", "--out-otlp", &collector.url("/v1/metrics"), "-q", "--format", "json"]]
            .concat(),
    );
    assert_eq!(output.json().requests.total, 10, "{output:?}");
    let spans = spans(&collector);
    assert_eq!(spans.len(), 5);
    for span in spans.values() {
        assert_eq!((span["name"].as_str(), attribute(span, "weir.step").as_deref()), (Some("one"), Some("one")));
        assert_eq!(attribute(span, "error.type").as_deref(), Some("check"));
        assert!(span["status"]["message"].as_str().unwrap().contains("$.a"), "{span}");
    }
    let seen = server.seen();
    let two = seen.iter().find(|seen| seen.line().starts_with("POST /2")).unwrap();
    assert_eq!(two.header("traceparent"), Some(own));
}

#[test]
fn scripts_logs_and_http_2_have_traces_too() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("same.lua", "wrk.headers['x-a'] = 'b'\n");
    weir.write("access.log", super::replay::even(20, 1));
    let url = server.url("/");
    for args in [
        &["load", "-s", "same.lua", &url, "-n", "20", "-c", "2"][..],
        &["replay", "access.log", "--target", &url, "--speed", "10"],
    ] {
        let (before, collector) = (contexts(&server).len(), collector());
        traced(&weir, &collector, "1", args);
        assert_eq!((contexts(&server).len() - before, spans(&collector).len()), (20, 20), "{args:?}");
    }
    let headers = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&headers);
    let service = Http2Service::build().start(move |seen| {
        let value = seen.headers.get("traceparent").map(|value| context(value.to_str().unwrap()));
        kept.lock().unwrap().extend(value);
        Http2Reply::ok("hello")
    });
    let collector = collector();
    traced(&weir, &collector, "1", &["load", &service.url("/"), "--h2c", "-n", "30", "-c", "2"]);
    let mut headers = headers.lock().unwrap().clone();
    headers.sort_unstable();
    assert_eq!(headers, spans(&collector).into_keys().collect::<Vec<_>>());
    assert_eq!(headers.len(), 30);
}

#[test]
fn a_collector_that_rejects_spans_costs_a_printed_loss_and_nothing_else() {
    let (weir, server) = (Weir::new(), Server::hello());
    let collector = Server::start(|seen| match seen.line().contains("traces") {
        true => Reply::status(400, "no traces"),
        false => Reply::ok("{}"),
    });
    let flags =
        ["load", &server.url("/"), "-n", "50", "-c", "2", "--trace", "1", "--out-otlp", &collector.url(""), "-q"];
    let output = weir.run(&flags);
    assert_eq!((output.code, server.requests()), (0, 50));
    assert!(output.one_line().contains("50 of 50 spans were not delivered"), "{output:?}");
}

#[test]
fn what_does_not_go_with_traces_is_one_line() {
    let weir = Weir::new();
    let otlp = ["--out-otlp", "http://127.0.0.1:1"];
    for (flags, why) in [
        (&["--trace", "1%"][..], "--out-otlp"),
        (&["--trace", "0", otlp[0], otlp[1]], "--trace: write a fraction above 0%"),
        (&["--trace", "200%", otlp[0], otlp[1]], "--trace: write a fraction above 0%"),
        (&["--trace", "1", "--out-otlp", "http://127.0.0.1:1/x"], "the path of traces is not known"),
        (&["--trace", "1", otlp[0], otlp[1], "--on", "local"], "--trace and --on cannot be combined"),
        (&["--trace", "1", otlp[0], otlp[1], "--pipeline", "4"], "--pipeline and --trace cannot be combined"),
    ] {
        let output = weir.run(&[&["load", "http://127.0.0.1:1/", "-n", "1"], flags].concat());
        assert_eq!(output.code, 2, "{flags:?}");
        assert!(output.one_line().contains(why), "{flags:?}: {}", output.stderr);
    }
}
