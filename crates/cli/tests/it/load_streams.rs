//! Responses as streams of events: what weir counts is what the service has sent, over both versions of HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_measure::run_streams::RunStreams;
use weir_testing::{Reply, Server, Serving, Weir, load};

const VERSIONS: [&[&str]; 3] = [&[], &["--h2c"], &["--h2c", "--streams", "4"]];

fn stats(serving: &Serving) -> Value {
    serving.get("/stats").json()
}

fn url(serving: &Serving, path: &str) -> String {
    format!("{}{path}", serving.url)
}

fn ends(streams: &RunStreams) -> [u64; 6] {
    let RunStreams { complete, unfinished, stopped, broken_off, stalled, timed_out, .. } = streams;
    [*complete, *unfinished, *stopped, *broken_off, *stalled, *timed_out]
}

#[test]
#[cfg_attr(weir_portable, ignore = "arrival times are Linux's")]
fn events_are_those_of_the_service_in_every_format() {
    for version in VERSIONS {
        for (path, flag) in
            [("/sse", "--stream"), ("/ndjson", "--stream"), ("/sse", "--stream=sse"), ("/ndjson", "--stream=ndjson")]
        {
            let serving = Serving::start(&["stream", "--events", "7", "--gap", "5ms", "--first-delay", "10ms"]);
            let run = load(&url(&serving, path), &[version, &["-c", "3", "-n", "40", flag]].concat());
            let streams = run.streams.unwrap();
            assert_eq!((run.requests.ok, run.requests.failed), (40, 0), "{version:?} {path}");
            assert_eq!((streams.responses, streams.events), (40, 280), "{version:?} {path} {flag}");
            assert_eq!(ends(&streams), [40, 0, 0, 0, 0, 0]);
            assert_eq!(stats(&serving)["events"].as_u64(), Some(280));
            // Never before its time; a busy machine adds, and what it delays comes nearer to the next.
            assert!(
                streams.first_event_ms.min.unwrap() >= 9.9 && streams.first_byte_ms.min.unwrap() > 0.0,
                "{streams:?}"
            );
            assert!(streams.first_event_ms.mean.unwrap() + 6.0 * streams.gap_ms.mean.unwrap() >= 39.9, "{streams:?}");
            assert!(run.response_ms.min.unwrap() >= 39.9, "{:?}", run.response_ms);
            assert!(run.llm.is_none());
        }
    }
}

#[test]
fn what_breaks_off_stalls_or_ends_within_an_event_is_counted_as_the_service_did_it() {
    for version in VERSIONS {
        let faults = ["--cut", "20%", "--half", "10%", "--stall", "10%", "--stall-time", "60s"];
        let serving = Serving::start(
            &[&["stream", "--events", "5", "--gap", "2ms", "--first-delay", "2ms"], faults.as_slice()].concat(),
        );
        // On as many connections those that stall do so at the same time.
        let flags = ["-c", "30", "-n", "150", "--stream", "--stall-timeout", "5s", "--timeout", "8s"];
        let run = load(&url(&serving, "/sse"), &[version, &flags, &["-q"]].concat());
        let streams = run.streams.clone().unwrap();
        let stats = stats(&serving);
        let count = |name: &str| stats["faults"][name].as_u64().unwrap();
        assert_eq!((streams.broken_off, streams.unfinished), (count("cut"), count("half")), "{version:?} {streams:?}");
        // Before the first event the timeout of the request decides, and behind it that of a stall.
        assert_eq!(
            Some(streams.stalled + streams.timed_out),
            stats["client_closed"].as_u64(),
            "{version:?} {streams:?}"
        );
        assert!(streams.broken_off > 10 && streams.unfinished > 3 && streams.stalled > 3, "{streams:?}");
        assert_eq!(ends(&streams).iter().sum::<u64>(), 150);
        let failures = |kind: &str| run.failures.get(kind).copied().unwrap_or(0);
        assert_eq!((failures("broken_off"), failures("stalled")), (streams.broken_off, streams.stalled), "{run:?}");
        assert_eq!(failures("timeout"), streams.timed_out);
        assert_eq!(run.requests.ok, 150 - run.requests.failed);
        assert_eq!(run.target.failure_details["stalled"], "no event within 5s");
    }
}

#[test]
fn a_response_ends_after_its_events_and_the_next_is_not_the_worse_for_it() {
    for version in VERSIONS {
        let serving = Serving::start(&["stream", "--events", "1000", "--gap", "2ms", "--first-delay", "0ms"]);
        let run = load(
            &url(&serving, "/sse"),
            &[version, &["-c", "2", "-n", "30", "--stream", "--max-events", "3"]].concat(),
        );
        let streams = run.streams.unwrap();
        assert_eq!((run.requests.ok, ends(&streams)), (30, [0, 0, 30, 0, 0, 0]), "{version:?} {:?}", run.failures);
        assert_eq!(streams.events, 90);
        // A stream of HTTP/2 ends alone; with HTTP/1.1 only the connection can.
        let is_http2 = !version.is_empty();
        assert!(
            if is_http2 { run.connections.opened == 2 } else { run.connections.opened >= 30 },
            "{}",
            run.connections.opened
        );
    }
}

#[test]
fn errors_are_no_streams_and_a_body_of_json_is_one_event() {
    let server = Server::start(|seen| match seen.line().split(' ').nth(1).unwrap_or_default() {
        "/error" => {
            Reply::raw("HTTP/1.1 503 No\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\ndata: 1\n\n")
        }
        "/json" => {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":\n 1}")
                .in_pieces(7)
        }
        _ => Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\ndata: 2\n\n",
        )
        .close(),
    });
    let weir = Weir::new();
    let run = weir.run(&["load", &server.url("/error"), "--stream", "-c", "1", "-n", "3", "--format", "json"]).json();
    assert_eq!((run.failures["5xx"], run.streams.unwrap()), (3, RunStreams::default()));
    let run = load(&server.url("/json"), &["--stream", "-c", "1", "-n", "3"]);
    assert_eq!((run.requests.ok, run.streams.unwrap().events), (3, 3));
    let run = load(&server.url("/until-close"), &["--stream", "-c", "1", "-n", "3"]);
    assert_eq!((run.requests.ok, run.streams.unwrap().events), (3, 6));
}

#[test]
fn steps_and_agents_have_streams_too() {
    let weir = Weir::new();
    let serving = Serving::start(&["stream", "--events", "4", "--gap", "1ms", "--first-delay", "1ms"]);
    let text = "GET {{base}}/sse\nHTTP 200\n[Asserts]\nbody contains \"data: \"\n\nGET {{base}}/ndjson\nHTTP 200\n";
    weir.write("two.hurl", text.replace("{{base}}", &serving.url));
    let flags = ["--users", "3", "-n", "15", "--stream"];
    for version in VERSIONS {
        let run = weir.load("two.hurl", &[flags.as_slice(), version].concat());
        let streams = run.streams.unwrap();
        assert_eq!((run.requests.ok, run.requests.failed), (30, 0), "{version:?} {:?}", run.steps);
        assert_eq!((streams.responses, streams.events), (30, 120), "{version:?}");
        let run = weir.load(
            &url(&serving, "/sse"),
            &[&["-c", "4", "-n", "30", "--stream", "--on", "local", "--agents", "2"], version].concat(),
        );
        let streams = run.streams.unwrap();
        assert_eq!((streams.responses, streams.events), (30, 120), "{version:?}");
    }
}

#[test]
fn a_step_looks_into_events_and_ends_its_response_by_them() {
    let weir = Weir::new();
    let serving = Serving::start(&["stream", "--events", "500", "--gap", "1ms", "--first-delay", "1ms"]);
    let text = "# @max-events 4\nGET {{base}}/sse\nHTTP 200\n[Captures]\nn: body sse nth 1 jsonpath \"$.n\"\n[Asserts]\n\
                body sse count == 4\n\n# @until-event \"n\":7,\nGET {{base}}/ndjson?first={{n}}\nHTTP 200\n[Asserts]\n\
                body ndjson count >= 7\nbody ndjson nth 6 jsonpath \"$.n\" == 7\n";
    weir.write("ends.hurl", text.replace("{{base}}", &serving.url));
    for version in VERSIONS {
        let run = weir.load("ends.hurl", &[&["--users", "2", "-n", "10"], version].concat());
        let streams = run.streams.unwrap();
        assert_eq!((run.requests.ok, run.requests.failed), (20, 0), "{version:?} {:?}", run.steps[1].samples);
        assert_eq!((streams.stopped, streams.events), (20, 10 * 4 + 10 * 7), "{version:?}");
    }
    weir.write("wrong.hurl", "# @max-events none\nGET http://127.0.0.1:1/\n");
    let output = weir.run(&["load", "wrong.hurl"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("wrong.hurl:1:15") && output.stderr.contains("a number of events from 1"),
        "{output:?}"
    );
}

#[test]
fn the_warm_up_does_not_count() {
    let serving = Serving::start(&["stream", "--events", "2", "--gap", "1ms", "--first-delay", "1ms"]);
    let run = load(&url(&serving, "/sse"), &["-r", "50", "-d", "1s", "--warmup", "500ms", "--stream"]);
    let streams = run.streams.unwrap();
    assert_eq!((run.requests.total, streams.responses, streams.events), (25, 25, 50));
    assert_eq!(stats(&serving)["responses"].as_u64(), Some(50));
}

#[test]
fn a_large_body_of_a_step_is_whole_though_the_kernel_could_discard_it() {
    let padding = "x".repeat(3 << 20);
    let body = format!("{{\"a\":\"{padding}\",\"token\":\"of the end\"}}");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    let server = Server::start(move |_| Reply::raw(format!("{head}{body}")).wait(Duration::ZERO));
    let weir = Weir::new();
    weir.write(
        "large.hurl",
        format!("GET {}\nHTTP 200\n[Asserts]\njsonpath \"$.token\" == \"of the end\"\n", server.url("/")),
    );
    let run = weir.load("large.hurl", &["--users", "1", "-n", "5"]);
    assert_eq!((run.requests.ok, run.requests.failed), (5, 0), "{:?}", run.steps[0].samples);
}

#[test]
fn what_does_not_go_together_is_one_line() {
    let weir = Weir::new();
    let cases = [
        (["--stream=xml"].as_slice(), "unknown stream format 'xml'; choose sse, ndjson, chunks or json"),
        (&["--stall-timeout", "1s"], "--stream"),
        (&["--max-events", "3"], "--stream"),
        (&["--stream", "--max-events", "0"], "--max-events"),
        (&["--stream", "--pipeline", "2"], "--pipeline and --stream cannot be combined"),
        (&["--slo", "gap.p99<1s"], "--slo 'gap.p99<1s': figures of streams need --stream"),
        (
            &["--stream", "--slo", "ttft.p99<1s"],
            "--slo 'ttft.p99<1s': figures of language models are those of 'weir llm'",
        ),
    ];
    for (flags, expected) in cases {
        let output = weir.run(&[&["load", "http://127.0.0.1:1/"], flags].concat());
        assert_eq!(output.code, 2, "{flags:?} {output:?}");
        assert!(output.one_line().contains(expected), "{flags:?} {output:?}");
    }
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    #[cfg_attr(weir_portable, ignore = "arrival times are Linux's")]
    fn the_times_of_a_load_are_those_of_the_service_s_own_record() {
        let flags = ["stream", "--events", "30", "--gap", "1ms..20ms", "--first-delay", "5ms..50ms", "--seed", "3"];
        for version in VERSIONS {
            let serving = Serving::start(&flags);
            let run = load(&url(&serving, "/sse"), &[version, &["-c", "8", "-n", "80", "--stream"]].concat());
            let (gap_ms, own) = (run.streams.unwrap().gap_ms, &stats(&serving)["gap_ms"]);
            // Gaps that the service itself saw are longer where the machine was late, and so are those of weir.
            for (name, seen) in [("p50", gap_ms.p50), ("p90", gap_ms.p90), ("mean", gap_ms.mean)] {
                let (seen, sent) = (seen.unwrap(), own[name].as_f64().unwrap());
                assert!((seen - sent).abs() < 0.1 * sent + 1.0, "{version:?}: {name} {seen} of {sent}");
            }
        }
    }
}
