//! Connections over WebSocket: what they begin with, hear, compress and ping, and a service that stands still.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and has a clock"
)]

use crate::load_websocket::{failed_load, failures, stats, url, websocket};
use weir_testing::{Serving, Weir, load};

#[test]
fn first_messages_come_one_after_the_other_before_all_others() {
    let serving = Serving::start(&["ws", "--delay", "20ms"]);
    let first = ["--first-message", "hello", "--first-message", "subscribe"];
    let run = load(&url(&serving, "/"), &[&["-c", "2", "-n", "10", "-b", "x"], &first[..]].concat());
    assert_eq!((run.requests.ok, websocket(&run).unmatched), (10, 0));
    assert_eq!(stats(&serving)["received_bytes"], 2 * 14 + 10);
    // A connection is made once both have their replies.
    assert!(run.connect_ms.min.unwrap() >= 39.9, "{:?}", run.connect_ms);
    let alone = ["-b", "x", "--first-replies", "0"];
    let run = load(&url(&serving, "/"), &[&["-c", "1", "-n", "2"], &alone[..], &first].concat());
    assert_eq!(run.requests.ok, 2);
    // Where no reply comes, a connection that waited for one would send no message.
    let silent = Serving::start(&["ws"]);
    let flags = [&["-c", "1", "-n", "1", "--timeout", "5s"], &alone[..], &first].concat();
    let run = failed_load(&url(&silent, "/silent"), &flags);
    assert_eq!((failures(&run, "timeout"), websocket(&run).upgraded), (1, 1), "{:?}", run.failures);
    assert_eq!(stats(&silent)["received_bytes"], 14 + 1);
}

#[test]
fn what_the_service_pushes_is_heard_as_a_stream_of_events() {
    let serving = Serving::start(&["ws", "--gap", "10ms", "--messages", "7"]);
    let run = load(&url(&serving, "/push"), &["--listen", "-c", "3", "-n", "12"]);
    let streams = run.streams.clone().unwrap();
    assert_eq!((run.requests.ok, streams.complete, streams.events), (12, 12, 84), "{:?}", run.failures);
    // The connection that tries the address is closed at once, where the machine is not late.
    assert!(stats(&serving)["sent"].as_u64().is_some_and(|sent| (84..=84 + 7).contains(&sent)));
    assert!(streams.first_event_ms.min.unwrap() >= 9.9, "{streams:?}");
    assert!(run.response_ms.min.unwrap() >= 69.9, "{:?}", run.response_ms);
    assert_eq!(websocket(&run).closes["1000"], 12);
    let run = load(&url(&serving, "/push"), &["--listen", "-c", "3", "-n", "6", "--max-events", "2"]);
    let streams = run.streams.unwrap();
    assert_eq!((run.requests.ok, streams.stopped, streams.events), (6, 6, 12));
}

#[test]
fn connections_that_listen_end_with_the_load_and_stall_without_messages() {
    let serving = Serving::start(&["ws", "--gap", "20ms"]);
    let run = load(&url(&serving, "/push"), &["--listen", "-c", "4", "-d", "3s", "--timeout", "5s"]);
    let streams = run.streams.clone().unwrap();
    assert_eq!((run.requests.ok, streams.stopped, run.requests.unfinished), (4, 4, 0), "{:?}", run.failures);
    // No message is sent before its time: what the machine delays comes nearer to the next, or to the first.
    let gaps_ms = streams.gap_ms.mean.unwrap() * (streams.events - 4) as f64;
    let heard_ms = 4.0 * streams.first_event_ms.mean.unwrap() + gaps_ms;
    assert!(streams.events > 40 && heard_ms > 19.8 * streams.events as f64, "{heard_ms} {streams:?}");
    let hello = ["--first-message", "hello", "--first-replies", "0"];
    let run =
        load(&url(&serving, "/echo"), &[&["--listen", "-c", "2", "-n", "2", "--max-events", "1"], &hello[..]].concat());
    assert_eq!((run.requests.ok, run.streams.as_ref().unwrap().events), (2, 2), "what follows a subscription");
    let flags = ["--listen", "-c", "2", "-n", "2", "--stall-timeout", "200ms"];
    let run = failed_load(&url(&serving, "/echo"), &[&flags[..], &hello].concat());
    assert_eq!((failures(&run, "stalled"), run.streams.as_ref().unwrap().stalled), (2, 2), "{:?}", run.failures);
    let run = failed_load(&url(&serving, "/silent"), &["--listen", "-c", "1", "-n", "1", "--timeout", "5s"]);
    assert_eq!(failures(&run, "timeout"), 1, "no first message: {:?}", run.failures);
    let cut = Serving::start(&["ws", "--close", "100%", "--close-code", "1011"]);
    let run = failed_load(&url(&cut, "/echo"), &[&["--listen", "-c", "1", "-n", "2"], &hello[..]].concat());
    assert_eq!((failures(&run, "broken_off"), run.streams.as_ref().unwrap().broken_off), (2, 2), "{:?}", run.failures);
    assert_eq!(websocket(&run).closes["1011"], 2);
}

#[test]
fn pings_have_their_round_trip_times_and_those_of_the_service_their_pongs() {
    let serving = Serving::start(&["ws", "--fragments", "2", "--pings"]);
    let flags = ["-c", "2", "--rate", "50", "-d", "1s", "-b", "hello", "--ping-interval", "100ms"];
    let run = load(&url(&serving, "/"), &flags);
    let (stats, websocket) = (stats(&serving), websocket(&run));
    assert_eq!(stats["pings"].as_u64(), Some(websocket.pings_sent));
    assert!(websocket.pings_sent >= 4 && websocket.ping_ms.min.unwrap() > 0.0, "{websocket:?}");
    assert_eq!((websocket.pings, stats["pongs"].as_u64()), (50, Some(50)));
}

#[test]
fn connections_of_an_open_loop_are_made_over_the_ramp() {
    let serving = Serving::start(&["ws"]);
    let run = load(&url(&serving, "/"), &["-c", "10", "--ramp-up", "1s", "--rate", "100", "-d", "2s", "-b", "x"]);
    assert_eq!((run.requests.ok, run.connections.opened, websocket(&run).upgraded), (200, 10, 10));
}

#[test]
fn messages_are_compressed_if_the_service_agrees() {
    let body = "again and again and again and again and again and again";
    for (serve, flag) in [
        (&["ws", "--deflate"][..], "--deflate"),
        (&["ws", "--deflate", "--no-context"], "--deflate"),
        (&["ws", "--deflate", "--fragments", "3"], "--deflate=no-context"),
    ] {
        let serving = Serving::start(serve);
        for message in [body, "{{seq}} again and again and again and again and again"] {
            let run = load(&url(&serving, "/"), &["-c", "2", "-n", "100", "-b", message, flag]);
            assert_eq!(run.requests.ok, 100, "{serve:?} {:?}", run.failures);
            assert!(run.bytes.read < run.bytes.body_in, "{:?}", run.bytes);
            assert!(run.bytes.written < run.bytes.body_in, "{:?}", run.bytes);
        }
        assert_eq!(stats(&serving)["violations"], serde_json::json!({}));
    }
    let plain = Serving::start(&["ws"]);
    let run = load(&url(&plain, "/"), &["-c", "1", "-n", "10", "-b", body, "--deflate"]);
    assert_eq!((run.requests.ok, run.bytes.body_in), (10, 10 * body.len() as u64), "the service has declined");
    let hostile = Serving::start(&["ws", "--deflate"]);
    let run = failed_load(&url(&hostile, "/hostile/deflate"), &["-c", "1", "-n", "2", "-b", "x", "--deflate"]);
    assert_eq!(run.target.failure_details["protocol"], "a compressed message that cannot be decompressed");
}

/// What judges a duration, and runs alone.
mod timed {
    use std::time::{Duration, Instant};

    use rustix::process::Signal;
    use weir_testing::until;

    use super::*;

    #[test]
    fn a_freeze_of_the_service_shows_in_full_in_an_open_loop_of_messages() {
        let serving = Serving::start(&["ws"]);
        let weir = Weir::new();
        let address = url(&serving, "/");
        let running =
            weir.start(&["load", &address, "-c", "4", "--rate", "500", "-d", "4s", "-b", "x", "--format", "json"]);
        until("messages", Duration::from_secs(20), || stats(&serving)["received"].as_u64() > Some(300));
        let begun = Instant::now();
        serving.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(200));
        serving.signal(Signal::CONT);
        let frozen_ms = begun.elapsed().as_secs_f64() * 1e3;
        let run = running.finish().json();
        assert_eq!(run.requests.ok, 2000, "{:?}", run.failures);
        // A hundred messages were due within it, each of which waited for its end: 20 of 2,000 for longer than this.
        let truth = frozen_ms - 20.0 / 500.0 * 1e3;
        let noise = run.lateness_ms.max.unwrap().max(5.0);
        let p99 = run.response_ms.p99.unwrap();
        assert!((p99 - truth).abs() <= truth * 0.01 + noise, "{p99} ms, not {truth}; late {noise}");
    }
}
