//! `weir serve stream` from outside: formats, faults, records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use weir_events::{EventReader, StreamFormat};
use weir_testing::{Serving, Weir, over_http2, until};

const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Data of all events of a body.
fn events(format: StreamFormat, body: &[u8]) -> Vec<Value> {
    let mut reader = EventReader::new(format);
    let mut rest = body;
    let mut found = Vec::new();
    while let Some(event) = reader.next_event(&mut rest) {
        found.push(serde_json::from_slice(event.data).unwrap());
    }
    found
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn times(record: &Value, name: &str) -> Vec<u64> {
    record[name].as_array().unwrap().iter().map(|time| time.as_u64().unwrap()).collect()
}

#[test]
fn each_format_has_its_content_type_and_its_events() {
    let serving = Serving::start(&["stream", "--events", "5", "--gap", "1ms", "--first-delay", "0ms"]);
    let mut connection = serving.connect();
    for (path, content_type, format) in [
        ("/sse", "text/event-stream", StreamFormat::Sse),
        ("/ndjson?events=3", "application/x-ndjson", StreamFormat::JsonLines),
    ] {
        let answer = connection.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)));
        let events = events(format, &answer.body);
        let numbers: Vec<u64> = events.iter().map(|event| event["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=if path == "/sse" { 5 } else { 3 }).collect::<Vec<_>>());
        assert!(events.iter().all(|event| event["text"].as_str().unwrap().len() >= 32));
    }
    let chunks = connection.post("/chunks?events=2", "a body");
    assert_eq!((chunks.status, chunks.header("content-type")), (200, Some("application/octet-stream")));
    assert!(chunks.body.len() >= 64);
    assert!(connection.get("/sse?events=0").body.is_empty());
    let invalid = connection.get("/sse?events=-1");
    assert_eq!((invalid.status, invalid.text()), (400, "events: a whole number from 0 to 1000000"));
    assert_eq!(connection.get("/").status, 404);
    assert_eq!(connection.post("/record", "").status, 405);
    assert_eq!(serving.metric("weir_stream_responses_total"), 4.0);
}

#[test]
fn the_record_has_when_each_event_was_due_and_written() {
    let weir = Weir::new();
    let args =
        ["stream", "--events", "4", "--gap", "5ms..15ms", "--first-delay", "10ms", "--record", "record", "--seed", "7"];
    let serving = Serving::start_in(weir, &args);
    serving.get("/sse");
    let text = serving.get("/record").text().to_owned();
    assert_eq!(std::fs::read_to_string(serving.weir.path("record")).unwrap(), text);
    let record = &records(&text)[0];
    assert_eq!((record["end"].as_str(), record["fault"].as_str()), (Some("complete"), None));
    let (due, sent) = (times(record, "due_ns"), times(record, "sent_ns"));
    assert_eq!((due.len(), due[0]), (4, 10_000_000));
    assert!(due.iter().zip(&sent).all(|(due, sent)| due <= sent), "{record}");
    assert!(due.windows(2).all(|pair| (5_000_000..=15_000_000).contains(&(pair[1] - pair[0]))), "{record}");
    assert!(record["began_ns"].as_u64().unwrap() > 0);
    let stats = serving.get("/stats").json();
    assert_eq!(
        (stats["responses"].as_u64(), stats["complete"].as_u64(), stats["events"].as_u64()),
        (Some(1), Some(1), Some(4))
    );
    assert!(stats["gap_ms"]["min"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_seed_repeats_bytes_and_gaps() {
    let run = |seed: &str| {
        let args =
            ["stream", "--gap", "0ms..2ms", "--line-end", "mixed", "--comments", "50%", "--split", "3", "--seed", seed];
        let serving = Serving::start(&args);
        let body = serving.get("/sse?events=6").body;
        (body, times(&records(serving.get("/record").text())[0], "due_ns"))
    };
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn a_cut_response_breaks_off_and_a_half_one_ends() {
    for (flag, is_whole) in [("--cut", false), ("--half", true)] {
        let args = ["stream", flag, "100%", "--gap", "1ms", "--events", "8", "--first-delay", "1ms"];
        let serving = Serving::start(&args);
        let (answer, whole) = {
            let mut connection = serving.connect();
            connection.send("GET /sse HTTP/1.1\r\nHost: test\r\n\r\n");
            connection.answer_or_cut()
        };
        assert_eq!(whole, is_whole, "{flag}");
        let record = &records(serving.get("/record").text())[0];
        assert_eq!(record["end"].as_str(), Some(&flag[2..]));
        let at = record["fault_event"].as_u64().unwrap();
        assert_eq!(events(StreamFormat::Sse, &answer.body).len() as u64, at - 1);
        assert_eq!(times(record, "sent_ns").len() as u64, at - 1);
        assert_eq!(serving.get("/stats").json()["faults"][&flag[2..]], 1);
    }
}

#[test]
fn a_stalled_response_pauses_before_one_event() {
    let serving =
        Serving::start(&["stream", "--stall", "100%", "--stall-time", "150ms", "--gap", "1ms", "--events", "5"]);
    assert_eq!(events(StreamFormat::Sse, &serving.get("/sse").body).len(), 5);
    let record = &records(serving.get("/record").text())[0];
    let (due, at) = (times(record, "due_ns"), record["fault_event"].as_u64().unwrap() as usize);
    let before = if at == 1 { 0 } else { due[at - 2] };
    let usual = if at == 1 { 20_000_000 } else { 1_000_000 };
    assert_eq!(due[at - 1] - before, usual + 150_000_000, "{record}");
}

#[test]
fn a_client_that_leaves_is_counted() {
    let serving = Serving::start(&["stream", "--gap", "10m", "--first-delay", "1ms"]);
    let mut connection = serving.connect();
    connection.send("GET /sse HTTP/1.1\r\nHost: test\r\n\r\n");
    connection.head();
    connection.take(20);
    drop(connection);
    until("its end", TEST_TIMEOUT, || serving.get("/stats").json()["client_closed"] == 1);
    let record = &records(serving.get("/record").text())[0];
    assert_eq!((record["end"].as_str(), times(record, "sent_ns").len()), (Some("client_closed"), 1));
}

#[test]
fn invalid_flags_are_one_line() {
    for (flag, value, reason) in [
        ("--gap", "soon", "invalid time 'soon'"),
        ("--split", "0", "0 is not in 1..=1000"),
        ("--event-name", "a\nb", "invalid type of events"),
        ("--record", "missing/record", "cannot write the record missing/record"),
        ("--line-end", "lfcr", "lf, crlf, cr, mixed"),
    ] {
        let output = Weir::new().run(&["serve", "stream", flag, value]);
        assert!(output.code == 2 && output.stderr.contains(reason), "{flag}: {output:?}");
    }
}

#[test]
fn streams_and_cuts_are_the_same_over_http2() {
    for (fraction, is_whole) in [("0%", true), ("100%", false)] {
        let serving = Serving::start(&["stream", "--gap", "1ms", "--events", "6", "--cut", fraction]);
        over_http2(&serving.address, async |mut sender| {
            let request = http::Request::get(format!("{}/sse", serving.url)).body(Full::new(Bytes::new())).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            let mut body = response.into_body();
            let (mut bytes, mut ended) = (Vec::new(), Ok(()));
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => bytes.extend_from_slice(frame.data_ref().unwrap()),
                    Err(error) => {
                        ended = Err(error);
                        break;
                    }
                }
            }
            assert_eq!(ended.is_ok(), is_whole, "{ended:?}");
            assert_eq!(events(StreamFormat::Sse, &bytes).len() == 6, is_whole);
        });
        let written = times(&records(serving.get("/record").text())[0], "sent_ns").len();
        assert_eq!(written == 6, is_whole);
    }
}

#[test]
fn a_client_that_does_not_read_delays_events_and_fills_no_memory() {
    let args = ["stream", "--gap", "0ms", "--first-delay", "0ms", "--events", "1000000", "--event-bytes", "10000"];
    let mut serving = Serving::start(&args);
    let mut connection = serving.connect().with_a_small_buffer();
    connection.send("GET /sse HTTP/1.1\r\nHost: test\r\n\r\n");
    connection.head();
    until("a response", TEST_TIMEOUT, || serving.get("/stats").json()["in_flight"] == 1);
    assert!(serving.running().status_kib("VmHWM") < 200_000);
    drop(connection);
    until("its end", TEST_TIMEOUT, || serving.get("/stats").json()["client_closed"] == 1);
}
