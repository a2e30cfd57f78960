//! WebSocket and what ends it early or holds it up: services that read nothing, interrupts, services that are killed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and has a clock"
)]

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
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
    // Those behind the end of the load had no connection.
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
    assert!(streams.events > 20 && streams.gap_ms.p50.unwrap() > 5.0, "{streams:?}");
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
    let first = ["-c", "1", "-n", "1", "--first-message", "hi", "--first-replies", "2", "--timeout", "2s"];
    let output = weir.run(&[&["load", &url(&serving, "/"), "-b", "x"], &first[..]].concat());
    let why = "timeout: --first-message 1 has too few replies after 2s, 1 missing; see --first-replies";
    assert!(output.stderr.contains(why), "{output:?}");
    // A service that accepts connections, and never responds.
    serving.signal(Signal::STOP);
    let output = weir.run(&["load", &url(&serving, "/"), "-b", "x", "-n", "1", "--timeout", "300ms"]);
    serving.signal(Signal::CONT);
    let expected = format!(
        "no WebSocket at {}: no response to the upgrade within 300ms; the connection was accepted, is it an HTTP service?",
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
    let flags = ["-b", "hello", "-b", "@large", "--subprotocol", "chat.v2", "--timeout", "2s"];
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
    let output = weir.run(&["run", &url(&serving, "/"), "-b", "x", "--json"]);
    assert_eq!((output.code, output.one_line()), (2, "--format json cannot be used with a ws:// URL"));
}
