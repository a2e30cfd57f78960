//! Export of spans over real sockets to a scripted collector.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the test's clock is not the exporter's")]

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use weir_machine::logger::Logger;
use weir_telemetry::{Exporter, SpanCounts, SpanKind, SpanSender, TraceSpan};
use weir_testing::{Reply, Seen, Server, until};

/// Spans of a full batch, which is sent at once.
const BATCH: u64 = 512;
const PATIENCE: Duration = Duration::from_secs(20);

/// Log lines.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn tell(&self) -> Logger {
        let told = Arc::clone(&self.0);
        Logger::new(move |text| told.lock().unwrap().push(text.to_owned()))
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn start(server: &Server, told: &Told) -> Exporter {
    Exporter::start(&server.url(""), "the gate", told.tell()).unwrap()
}

fn write(pen: &SpanSender, ids: impl IntoIterator<Item = u64>) {
    for id in ids {
        pen.send(TraceSpan {
            trace_id: 1,
            span_id: id,
            parent: None,
            name: "GET".into(),
            kind: SpanKind::Client,
            start_unix_ns: 1,
            end_unix_ns: 2,
            attributes: vec![("weir.attempt.reason", "first".into())],
            error: None,
        });
    }
}

/// IDs of the spans in a request.
fn ids(seen: &Seen) -> Vec<u64> {
    let body: Json = serde_json::from_slice(&seen.body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    spans.iter().map(|span| u64::from_str_radix(span["spanId"].as_str().unwrap(), 16).unwrap()).collect()
}

fn counts(exported: u64, lost: u64) -> SpanCounts {
    SpanCounts { exported, dropped: lost }
}

#[test]
fn spans_reach_the_collector_within_about_a_second() {
    let server = Server::start(|_| Reply::ok("{}"));
    let told = Told::default();
    let exporter = start(&server, &told);
    let pens = [exporter.sender(), exporter.sender()];
    let writers = pens.map(|pen| thread::spawn(move || write(&pen, [1, 2, 3])));
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    until("the spans", PATIENCE, || exporter.counts() == counts(6, 0));
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "POST /v1/traces HTTP/1.1");
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("host"), Some(server.address().as_str()));
    let body: Json = serde_json::from_slice(&seen.body).unwrap();
    let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!((&service["key"], &service["value"]["stringValue"]), (&"service.name".into(), &"the gate".into()));
    drop(exporter);
    assert!(told.all().is_empty(), "{:?}", told.all());
}

#[test]
fn full_batches_are_sent_at_once_in_order_on_one_connection() {
    let server = Server::start(|_| Reply::ok(""));
    let exporter = start(&server, &Told::default());
    let pen = exporter.sender();
    write(&pen, 1..=2000);
    assert_eq!(exporter.close(PATIENCE), counts(2000, 0));
    let batches: Vec<Vec<u64>> = server.seen().iter().map(ids).collect();
    assert!(batches.iter().all(|batch| batch.len() <= BATCH as usize));
    assert_eq!(batches.concat(), (1..=2000).collect::<Vec<_>>());
    assert_eq!(server.counts().connections, 1);
    write(&pen, [2001]);
}

#[test]
fn a_batch_is_retried_after_a_reset_and_a_503() {
    let server = Server::start(|seen| match seen.number {
        0 => Reply::nothing().reset(),
        1 => Reply::status(503, "later"),
        _ => Reply::ok("{}"),
    });
    let told = Told::default();
    let exporter = start(&server, &told);
    write(&exporter.sender(), 1..=3);
    assert_eq!(exporter.close(PATIENCE), counts(3, 0));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.body == seen[0].body));
    assert!(told.all().is_empty(), "{:?}", told.all());
}

#[test]
fn retry_after_of_a_collector_is_honoured() {
    let busy = "HTTP/1.1 429 Said\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(move |seen| if seen.number == 0 { Reply::raw(busy) } else { Reply::ok("{}") });
    let exporter = start(&server, &Told::default());
    write(&exporter.sender(), 1..=3);
    assert_eq!(exporter.close(PATIENCE), counts(3, 0));
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(1));
}

#[test]
fn an_outage_and_its_end_are_logged_once() {
    let status = Arc::new(AtomicU16::new(400));
    let server = Server::start({
        let status = Arc::clone(&status);
        move |_| Reply::status(status.load(Ordering::SeqCst), "not a\nspan")
    });
    let told = Told::default();
    let exporter = start(&server, &told);
    let pen = exporter.sender();
    for round in 0..4 {
        if round == 2 {
            status.store(200, Ordering::SeqCst);
        }
        write(&pen, round * BATCH..(round + 1) * BATCH);
        until("the end of these", PATIENCE, || {
            exporter.counts().exported + exporter.counts().dropped == (round + 1) * BATCH
        });
    }
    assert_eq!(exporter.counts(), counts(2 * BATCH, 2 * BATCH));
    // After 400 a batch may not be sent again.
    assert_eq!(server.seen().iter().flat_map(ids).collect::<Vec<_>>(), (0..4 * BATCH).collect::<Vec<_>>());
    drop(exporter);
    let url = server.url("/v1/traces");
    assert_eq!(
        told.all(),
        [
            format!("otlp: {url} accepts no spans (status 400, not a span): they are dropped"),
            format!("otlp: {url} accepts spans again; 1024 were dropped meanwhile"),
            "otlp: 1024 spans were dropped".to_owned(),
        ]
    );
}

#[test]
fn the_queue_is_bounded_and_senders_never_wait() {
    let server = Server::start(|_| Reply::nothing());
    let told = Told::default();
    let exporter = start(&server, &told);
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let pen = exporter.sender();
            thread::spawn(move || write(&pen, 1..=25_000))
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    // The queue, and the batch in flight.
    assert!(exporter.counts().dropped >= 100_000 - 4096 - BATCH, "{:?}", exporter.counts());
    assert_eq!(exporter.close(Duration::from_millis(50)), counts(0, 100_000));
    assert_eq!(told.all(), ["otlp: the queue of spans is full, some are dropped", "otlp: 100000 spans were dropped"]);
}

#[test]
fn closing_does_not_wait_for_an_unreachable_collector() {
    let server = Server::hello();
    server.stop_listening();
    let begun = Instant::now();
    let exporter = start(&server, &Told::default());
    write(&exporter.sender(), 1..=4000);
    assert_eq!(exporter.close(Duration::from_millis(300)), counts(0, 4000));
    let exporter = start(&server, &Told::default());
    write(&exporter.sender(), 1..=4000);
    drop(exporter);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn rejected_spans_are_counted_and_logged_once() {
    let server = Server::start(|seen| match seen.number {
        0 | 1 => Reply::ok(r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#),
        _ => Reply::ok("{}"),
    });
    let told = Told::default();
    let exporter = start(&server, &told);
    let pen = exporter.sender();
    write(&pen, 1..=BATCH);
    until("the first", PATIENCE, || exporter.counts().exported > 0);
    write(&pen, 1..=BATCH);
    assert_eq!(exporter.close(PATIENCE), counts(2 * BATCH - 4, 4));
    let [first, last] = told.all().try_into().unwrap();
    let begins = format!("otlp: {} rejected 2 of ", server.url("/v1/traces"));
    assert!(first.starts_with(&begins) && first.ends_with(": too old"), "{first}");
    assert_eq!(last, "otlp: 4 spans were dropped");
}

#[test]
fn an_idle_exporter_sends_nothing() {
    let server = Server::hello();
    drop(start(&server, &Told::default()));
    assert_eq!(start(&server, &Told::default()).close(PATIENCE), counts(0, 0));
    assert_eq!(server.counts().connections, 0);
}

#[test]
fn an_invalid_url_is_an_error_with_a_remedy() {
    let refused = |url| Exporter::start(url, "x", Told::default().tell()).unwrap_err().to_string();
    assert_eq!(refused("http://"), "invalid URL 'http://': no host; write e.g. http://localhost:8080/path");
    assert_eq!(refused("grpc://h:4317"), "invalid URL 'grpc://h:4317': unknown scheme 'grpc'; choose http or https");
}

#[test]
fn a_close_handle_ends_the_last_export_at_once() {
    let (server, told) = (Server::start(|_| Reply::nothing()), Told::default());
    let exporter = start(&server, &told);
    write(&exporter.sender(), [1]);
    let closer = exporter.close_handle();
    let counts = thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for("the last spans", |counts| counts.requests == 1);
            closer.close_within(weir_base::Nanos::ZERO);
        });
        exporter.close(Duration::from_secs(3600))
    });
    assert_eq!(counts, SpanCounts { exported: 0, dropped: 1 });
}
