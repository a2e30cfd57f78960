//! WebSocket and what ends it early or holds it up: services that read nothing, interrupts, services that are killed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and has a clock"
)]

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_measure::Run;
use weir_measure::run::Requests;
use weir_testing::{Running, Serving, Weir, until};

use crate::load_websocket::{failures, stats, url};

const PATIENCE: Duration = Duration::from_secs(60);

/// Whole lines of a type so far.
fn lines(weir: &Weir, file: &str, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(weir.path(file)).unwrap_or_default();
    let whole = &text[..text.rfind('\n').unwrap_or_default()];
    let all = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|line| line["type"] == kind).collect()
}

fn sum(lines: &[Value], figure: impl Fn(&Value) -> Option<u64>) -> u64 {
    lines.iter().filter_map(figure).sum()
}

/// A load that listens, with its intervals in `out.jsonl`.
fn listening(weir: &Weir, serving: &Serving, flags: &[&str]) -> Running {
    let address = url(serving, "/push");
    let listen = ["load", &address, "--listen", "-c", "2", "--format", "json", "--out-jsonl", "out.jsonl"];
    weir.start(&[&listen[..], flags].concat())
}

#[test]
fn large_messages_to_a_service_that_reads_nothing_wait_without_their_frames() {
    const LENGTH: usize = 4 << 20;
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("large", vec![b'x'; LENGTH]);
    let address = url(&serving, "/");
    let flags = ["-b", "@large", "-c", "1", "--rate", "100", "-d", "60s", "--no-template"];
    let out = ["--format", "json", "--out-jsonl", "out.jsonl"];
    let running = weir.start(&[&["load", &address], &flags[..], &out].concat());
    until("a message", PATIENCE, || stats(&serving)["received"].as_u64() > Some(0));
    serving.signal(Signal::STOP);
    let in_flight = |line: &Value| line["in_flight"].as_u64() > Some(60);
    until("messages that wait", PATIENCE, || lines(&weir, "out.jsonl", "interval").iter().any(in_flight));
    let peak = running.status_kib("VmHWM");
    drop(running);
    serving.signal(Signal::CONT);
    // The message, and a frame of it; 60 frames would have 240 MiB.
    assert!(peak < 150 << 10, "{peak} KiB");
}

#[test]
fn a_connection_that_accepts_nothing_fails_its_messages_also_those_with_ids() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("large", format!("{{\"id\":1,\"text\":\"{}\"}}", "x".repeat(4 << 20)));
    let address = url(&serving, "/");
    let flags = ["-b", "@large", "-c", "1", "--rate", "20", "-d", "2s", "--timeout", "500ms", "--reply", "$.id"];
    let running = weir.start(&[&["load", &address, "--format", "json"], &flags[..]].concat());
    until("a message", PATIENCE, || stats(&serving)["received"].as_u64() > Some(0));
    serving.signal(Signal::STOP);
    let run = running.finish().json();
    serving.signal(Signal::CONT);
    // Those that had no connection are dropped.
    let Requests { total, ok, failed, unfinished, .. } = run.requests;
    assert_eq!((total, unfinished), (40, 0), "{:?}", run.requests);
    assert!(failures(&run, "timeout") > 0 && ok + failed == total, "{:?} {:?}", run.requests, run.failures);
}

#[test]
fn an_interrupt_keeps_what_connections_have_heard_so_far() {
    let serving = Serving::start(&["ws", "--gap", "10ms"]);
    let weir = Weir::new();
    let running = listening(&weir, &serving, &["-d", "60s"]);
    until("messages", PATIENCE, || stats(&serving)["sent"].as_u64() > Some(40));
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let run: Run = output.json();
    let streams = run.streams.as_ref().unwrap();
    assert!(run.interrupted && run.requests.unfinished == 0, "{:?}", run.requests);
    assert_eq!((streams.responses, streams.stopped, streams.without_events), (2, 2, 0), "{streams:?}");
    // No message is sent before its time: what the machine delays comes nearer to the next, or to the first.
    let gaps_ms = streams.gap_ms.mean.unwrap() * (streams.events - 2) as f64;
    let heard_ms = 2.0 * streams.first_event_ms.mean.unwrap() + gaps_ms;
    assert!(streams.events > 20 && heard_ms > 9.9 * streams.events as f64, "{heard_ms} {streams:?}");
    assert!(streams.first_event_ms.min.unwrap() >= 9.9, "{streams:?}");
    assert!(run.bytes.body_in > 0 && run.bytes.read > run.bytes.body_in, "{:?}", run.bytes);
    let all = lines(&weir, "out.jsonl", "interval");
    assert_eq!(sum(&all, |line| line["streams"]["events"].as_u64()), streams.events);
    assert_eq!(sum(&all, |line| line["bytes_in"].as_u64()), run.bytes.read);
}

#[test]
fn intervals_have_first_messages_and_bytes_when_they_come() {
    let serving = Serving::start(&["ws", "--gap", "10ms"]);
    let weir = Weir::new();
    let running = listening(&weir, &serving, &["-d", "60s"]);
    let first = |all: &[Value]| all.iter().filter(|line| line["streams"]["first_event_ms"].is_object()).count();
    let mut all = Vec::new();
    until("two intervals", PATIENCE, || {
        all = lines(&weir, "out.jsonl", "interval");
        all.len() >= 2
    });
    assert!(first(&all) > 0, "{all:?}");
    assert!(sum(&all, |line| line["bytes_in"].as_u64()) > 0, "{all:?}");
    running.interrupt();
    let run = running.finish().json();
    let counts = run.series.iter().filter_map(|point| Some(point.streams.as_ref()?.first_event_ms.count));
    assert_eq!((counts.sum::<u64>(), run.streams.unwrap().responses), (2, 2), "no first message twice");
}

#[test]
fn what_came_before_a_service_was_killed_is_traffic() {
    let serving = Serving::start(&["ws", "--gap", "10ms"]);
    let weir = Weir::new();
    let running = listening(&weir, &serving, &["-n", "2", "-t", "1"]);
    until("messages", PATIENCE, || stats(&serving)["sent"].as_u64() > Some(40));
    serving.signal(Signal::KILL);
    serving.finish();
    let run = running.finish().json();
    let streams = run.streams.as_ref().unwrap();
    assert_eq!((failures(&run, "broken_off"), streams.broken_off), (2, 2), "{:?}", run.failures);
    assert!(run.bytes.body_in > 0 && run.bytes.read > run.bytes.body_in, "{:?}", run.bytes);
    assert!(run.traffic_per_s()[0] > 0.0);
    let all = lines(&weir, "out.jsonl", "interval");
    assert_eq!(sum(&all, |line| line["bytes_in"].as_u64()), run.bytes.read);
}

#[test]
fn a_listening_run_leads_with_its_messages() {
    let serving = Serving::start(&["ws", "--gap", "10ms", "--messages", "7"]);
    let weir = Weir::new();
    let address = url(&serving, "/push");
    let output = weir.run(&["load", &address, "--listen", "-c", "3", "-n", "12", "--html", "page.html"]);
    let report = output.stdout;
    assert!(report.contains("messages     84 total"), "{report}");
    assert!(report.contains("ends         12 closed by the service"), "{report}");
    assert!(report.contains("first message") && !report.contains("response time"), "{report}");
    let at = |words: &str| report.find(words).unwrap();
    assert!(at("messages  ") < at("connections  ") && at("gap") < at("status"), "{report}");
    let page = std::fs::read_to_string(weir.path("page.html")).unwrap();
    assert!(page.contains("3 connections listened for") && page.contains("Percentiles of messages"), "{page}");
    assert!(!page.contains("Distribution"), "{page}");
}

#[test]
fn replies_are_no_failed_statuses_in_the_words_of_ab() {
    let serving = Serving::start(&["ws"]);
    let output = Weir::new().run(&["load", &url(&serving, "/"), "-b", "x", "-n", "120", "--format", "ab"]);
    assert!(output.stdout.contains("Complete requests:      120"), "{output:?}");
    assert!(!output.stdout.contains("Non-2xx"), "{output:?}");
}

#[test]
fn what_a_service_declines_or_leaves_out_is_named() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    let output = weir.run(&["load", &url(&serving, "/"), "-b", "x", "-n", "3", "-c", "1", "--deflate"]);
    assert!(output.stdout.contains("1 without the compression that was offered"), "{output:?}");
    let first = ["-c", "1", "-n", "1", "--first-message", "hi", "--first-replies", "2", "--timeout", "5s"];
    let output = weir.run(&[&["load", &url(&serving, "/"), "-b", "x"], &first[..]].concat());
    let why = "timeout: --first-message 1 has too few replies after 5s, 1 missing; see --first-replies";
    assert!(output.stderr.contains(why), "{output:?}");
    // A service that accepts connections, and never responds.
    serving.signal(Signal::STOP);
    let output = weir.run(&["load", &url(&serving, "/"), "-b", "x", "-n", "1", "--timeout", "5s"]);
    serving.signal(Signal::CONT);
    let expected = format!(
        "no WebSocket at {}: no response to the upgrade within 5s; the connection was accepted, is it an HTTP service?",
        url(&serving, "/")
    );
    assert_eq!((output.code, output.one_line()), (2, expected.as_str()));
}

#[test]
fn the_remedies_are_those_of_websocket() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    let secure = url(&serving, "/").replace("ws://", "wss://");
    let output = weir.run(&["load", &secure, "-b", "x", "-n", "1"]);
    assert!(output.one_line().ends_with("does it speak TLS there? Try ws://"), "{output:?}");
    let output = weir.run(&["load", &url(&serving, "/"), "-b", "x", "--streams", "5"]);
    let expected = "--streams is for HTTP/2; messages in flight per WebSocket connection are --pipeline";
    assert_eq!((output.code, output.one_line()), (2, expected));
}

#[test]
fn data_that_no_message_uses_is_a_warning() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("users.csv", "name,age\nAnna,7\n");
    for (body, expected) in [
        ("x", "weir: warning: nothing uses the columns of users.csv: name, age; write e.g. {{name}}\n"),
        ("{{newUuid}}", "weir: warning: nothing uses the columns of users.csv: name, age; write e.g. {{name}}\n"),
        ("{{age}}", ""),
    ] {
        let output = weir.run(&["load", &url(&serving, "/"), "-b", body, "-n", "150", "--data", "users.csv"]);
        assert_eq!((output.code == 2, output.stderr.as_str()), (false, expected), "{output:?}");
    }
}

#[test]
fn a_conversation_is_printed_frame_by_frame() {
    let serving = Serving::start(&["ws", "--subprotocol", "chat.v2", "--gap", "5ms", "--messages", "2"]);
    let weir = Weir::new();
    weir.write("large", "y".repeat(3000));
    let address = url(&serving, "/echo");
    let flags = ["-b", "hello", "-b", "@large", "--subprotocol", "chat.v2", "--timeout", "5s"];
    let output = weir.run(&[&["run", &address], &flags[..]].concat());
    let cut = format!("{} ... 952 bytes more; -v prints them", "y".repeat(2048));
    let expected =
        format!("* open, subprotocol chat.v2\n> hello\n> {cut}\n< hello\n< {cut}\n> close 1000 normal closure\n");
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, expected.as_str(), ""));
    // Without a message it listens, to the close of the service.
    let output = weir.run(&["run", &url(&serving, "/push"), "--subprotocol", "chat.v2"]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!((output.code, lines.len(), lines[0]), (0, 4, "* open, subprotocol chat.v2"), "{output:?}");
    assert!(lines[1].starts_with("< ") && lines[3] == "< close 1000 normal closure (on purpose)", "{output:?}");
}

#[test]
fn a_conversation_that_breaks_off_is_a_failure() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    for (path, code, end) in [
        ("/hostile/utf8", 1, "* the service broke the protocol: a text message that is not UTF-8\n"),
        ("/hostile/half", 1, "* ended without a close frame\n"),
        ("/hostile/close-race", 0, "< close 1001 going away\n"),
    ] {
        let output = weir.run(&["run", &url(&serving, path), "-b", "go", "--timeout", "10s"]);
        assert_eq!(output.code, code, "{path} {output:?}");
        assert!(output.stdout.ends_with(end), "{path} {output:?}");
    }
    let output = weir.run(&["run", &url(&serving, "/other"), "-b", "x"]);
    assert!(output.one_line().contains("status 404 in place of 101"), "{output:?}");
    assert_eq!(output.code, 2);
}

#[test]
fn data_that_no_message_of_a_conversation_uses_is_a_warning() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("names.csv", "name\nada\n");
    let args = ["run", &url(&serving, "/"), "--data", "names.csv", "--timeout", "5s"];
    let output = weir.run(&[&args[..], &["-b", "x"]].concat());
    assert_eq!(
        (output.code, output.one_line()),
        (0, "warning: nothing uses the columns of names.csv: name; write e.g. {{name}}")
    );
    let output = weir.run(&[&args[..], &["-b", "{{name}}"]].concat());
    assert!(output.stderr.is_empty() && output.stdout.contains("\n< ada\n"), "{output:?}");
    let output = weir.run(&args);
    assert_eq!(
        (output.code, output.one_line()),
        (2, "--variable and --data are for messages of a ws URL; write -b TEXT")
    );
}

#[test]
fn a_conversation_with_a_service_that_never_pauses_ends_at_the_timeout() {
    let serving = Serving::start(&["ws", "--gap", "0ms"]);
    let output = Weir::new().run(&["run", &url(&serving, "/push"), "--timeout", "2s"]);
    assert!(output.code == 0 && output.stdout.ends_with("\n> close 1000 normal closure\n"), "{}", output.code);
}

#[test]
fn a_conversation_is_one_json_object_with_its_frames() {
    let serving = Serving::start(&["ws", "--subprotocol", "chat.v2", "--gap", "5ms", "--messages", "2"]);
    let weir = Weir::new();
    weir.write("binary", [0_u8, 255]);
    let flags = ["-b", "hello", "-b", "@binary", "--subprotocol", "chat.v2", "--timeout", "5s", "--json"];
    let address = url(&serving, "/echo");
    let output = weir.run(&[&["run", &address], &flags[..]].concat());
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let step = &document["steps"][0];
    assert_eq!((output.code, &document["ok"], &document["file"]), (0, &json!(true), &json!(address)), "{output:?}");
    assert_eq!(document["totals"]["steps"], 1);
    assert_eq!((&step["verdict"], &step["subprotocol"]), (&json!("passed"), &json!("chat.v2")));
    let frames = step["messages"].as_array().unwrap().iter().map(|frame| {
        assert!(frame["at_ms"].as_f64().unwrap() >= 0.0, "{frame}");
        let mut frame = frame.clone();
        frame.as_object_mut().unwrap().remove("at_ms");
        frame
    });
    let expected = json!([
        {"from": "weir", "kind": "text", "body": "hello"},
        {"from": "weir", "kind": "binary", "body_base64": "AP8="},
        {"from": "service", "kind": "text", "body": "hello"},
        {"from": "service", "kind": "binary", "body_base64": "AP8="},
        {"from": "weir", "kind": "close", "code": 1000},
    ]);
    assert_eq!(Value::Array(frames.collect()), expected);
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/play.schema.json")).unwrap();
    let errors = jsonschema::validator_for(&schema).unwrap();
    assert_eq!(errors.iter_errors(&document).map(|error| error.to_string()).collect::<Vec<_>>(), [] as [String; 0]);
    let hostile = url(&serving, "/hostile/half");
    let output = weir.run(&["run", &hostile, "-b", "go", "--subprotocol", "chat.v2", "-f", "json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let found = (output.code, &document["ok"], &document["steps"][0]["failures"]);
    assert_eq!(found, (1, &json!(false), &json!(["ended without a close frame"])), "{output:?}");
}
