//! Callers that hold what others need: streams that stand still, floods of frames that carry nothing, deadlines too short
//! for any response, more connections than there are descriptors. Others are served all the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test has a clock of its own")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_testing::{Frame, Frames, Over, Raw, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(120);
const IN_FLIGHT: &str = "weir_gate_in_flight{upstream=\"upstream\"}";
/// RST_STREAM's CANCEL, and GOAWAY's ENHANCE_YOUR_CALM.
const CANCEL: u32 = 8;
const CALM: u32 = 11;
/// A response that no buffer on the way holds.
const LARGE: &str = "/static?bytes=50000000";

fn ended(gate: &Serving, cause: &str) -> f64 {
    gate.metric(&format!("weir_connections_ended_total{{cause=\"{cause}\"}}"))
}

/// A gateway in front of this server.
fn gate(upstream: &str, flags: &[&str]) -> Serving {
    Serving::gate(&[&["--upstream", upstream], flags].concat())
}

/// Streams that were reset, as their frames come; each with CANCEL.
fn resets(frames: &mut Frames, count: usize) -> Vec<u32> {
    let mut streams: Vec<u32> = Vec::new();
    while streams.len() < count {
        let reset = frames.next_of(Frame::RST_STREAM);
        assert_eq!(reset.code_at(0), CANCEL);
        streams.push(reset.stream);
    }
    streams.sort_unstable();
    streams
}

/// Sends the same bytes again and again, on the same connection, until the test has seen enough.
fn repeating<T>(frames: &mut Frames, bytes: &[u8], test: impl FnOnce(&mut Frames) -> T) -> T {
    let (mut twin, is_over) = (frames.twin(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && twin.try_send(bytes) {
                thread::sleep(Duration::from_millis(10));
            }
        });
        let _over = Over(&is_over);
        test(frames)
    })
}

#[test]
fn a_stream_that_does_not_read_ends_though_its_connection_is_busy() {
    let upstream = Serving::start(&["httpbin"]);
    let gate = gate(&upstream.url, &["--stall-timeout", "500ms"]);
    let mut frames = Frames::on(gate.connect(), 0);
    let streams: Vec<u32> = (0..20).map(|_| frames.request("GET", LARGE, &[], true)).collect();
    // Control frames are no progress.
    let noise = [Frame::new(Frame::PING, 0, 0, [0; 8]), Frame::new(Frame::SETTINGS, 0, 0, [])];
    let noise: Vec<u8> = noise.iter().flat_map(Frame::bytes).collect();
    assert_eq!(repeating(&mut frames, &noise, |frames| resets(frames, 20)), streams);
    // With an adaptive limit, once a later call has a response.
    until("free slots", PATIENCE, || gate.get("/status/204").status == 204 && gate.metric(IN_FLIGHT) == 0.0);
    assert_eq!(ended(&gate, "slow_reader"), 20.0);
    // The connection is as good as before.
    let stream = frames.request("GET", "/status/204", &[], true);
    assert_eq!(frames.next_of(Frame::HEADERS).stream, stream);
}

#[test]
fn a_stream_whose_body_does_not_go_on_ends_though_its_connection_is_busy() {
    let upstream = Serving::start(&["httpbin"]);
    let gate = gate(&upstream.url, &["--stall-timeout", "500ms"]);
    let mut frames = Frames::on(gate.connect(), 1 << 20);
    let streams: Vec<u32> = (0..20)
        .map(|number| {
            let stream = frames.request("POST", "/validate", &[("content-length", "100000")], false);
            // Half of them begin.
            if number % 2 == 0 {
                frames.send(Frame::DATA, 0, stream, *b"begun");
            }
            stream
        })
        .collect();
    let noise = Frame::new(Frame::PING, 0, 0, [0; 8]).bytes();
    assert_eq!(repeating(&mut frames, &noise, |frames| resets(frames, 20)), streams);
    assert_eq!(ended(&gate, "slow_body"), 20.0);
    // With an adaptive limit, once a later call has a response.
    until("free slots", PATIENCE, || gate.get("/status/204").status == 204 && gate.metric(IN_FLIGHT) == 0.0);
}

#[test]
fn a_peer_below_the_minimum_rate_ends_though_it_never_stands_still() {
    let upstream = Serving::start(&["httpbin"]);
    let gate = gate(&upstream.url, &["--stall-timeout", "1s", "--min-rate", "10000"]);
    // A window that opens by single bytes.
    let mut frames = Frames::on(gate.connect(), 1);
    let stream = frames.request("GET", LARGE, &[], true);
    let byte = Frame::new(Frame::WINDOW_UPDATE, 0, stream, 1_u32.to_be_bytes()).bytes();
    assert_eq!(repeating(&mut frames, &byte, |frames| resets(frames, 1)), [stream]);
    // A body in single bytes, over HTTP/2 and HTTP/1.
    let stream = frames.request("POST", "/validate", &[], false);
    let byte = Frame::new(Frame::DATA, 0, stream, *b"x").bytes();
    assert_eq!(repeating(&mut frames, &byte, |frames| resets(frames, 1)), [stream]);
    let mut upload = gate.connect();
    upload.send("POST /validate HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
    let mut twin = upload.twin();
    thread::scope(|scope| {
        scope.spawn(move || {
            while twin.try_send("x").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        upload.rest();
    });
    assert_eq!((ended(&gate, "slow_reader"), ended(&gate, "slow_body")), (1.0, 2.0));
}

#[test]
fn responses_with_pauses_and_slow_services_are_no_slow_readers() {
    let pause = Duration::from_millis(1200);
    let server = Server::start(move |_| {
        let event = "7\r\ndata: x\r\n";
        Reply::nothing()
            .wait(pause)
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            .wait(pause)
            .send(event)
            .wait(pause)
            .send(event)
            .send("0\r\n\r\n")
    });
    let gate = gate(&server.url(""), &["--stall-timeout", "300ms"]);
    let mut frames = Frames::on(gate.connect(), 1 << 20);
    let streams: Vec<u32> = (0..3).map(|_| frames.request("GET", "/events", &[], true)).collect();
    let mut over_http1 = gate.connect();
    over_http1.send("GET /events HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut whole = 0;
    while whole < streams.len() {
        let frame = frames.next_frame();
        assert!(!matches!(frame.kind, Frame::RST_STREAM | Frame::GOAWAY), "{frame:?}");
        whole += usize::from(frame.kind == Frame::DATA && frame.flags & 1 != 0);
    }
    assert_eq!(over_http1.answer().text(), "data: xdata: x");
    assert_eq!(ended(&gate, "slow_reader") + ended(&gate, "slow_body"), 0.0);
}

#[test]
fn one_connection_cannot_keep_all_slots_while_others_want_some() {
    let upstream = Serving::start(&["httpbin"]);
    let gate = gate(&upstream.url, &["--max-in-flight", "40"]);
    let mut frames = Frames::on(gate.connect(), 0);
    for _ in 0..60 {
        frames.request("GET", LARGE, &[], true);
    }
    until("all slots", PATIENCE, || gate.metric(IN_FLIGHT) == 40.0);
    // It was alone, and the stall timeout is a minute: but its streams are not waited for while others are rejected.
    assert_eq!(gate.get("/status/204").status, 503);
    until("a slot", PATIENCE, || gate.get("/status/204").status == 204);
    // From now on it is not alone.
    for _ in 0..60 {
        frames.request("GET", LARGE, &[], true);
    }
    frames.ping();
    until("its share", PATIENCE, || gate.metric(IN_FLIGHT) >= 30.0);
    for _ in 0..100 {
        assert_eq!(gate.get("/status/204").status, 204);
    }
    assert!(gate.metric(IN_FLIGHT) < 40.0);
}

#[test]
fn a_deadline_shorter_than_any_response_holds_no_slot_for_nothing() {
    let start = |more: &str| {
        let server = Server::start(|seen| {
            let is_quick = seen.line().contains("/quick");
            Reply::ok("late").after(Duration::from_millis(if is_quick { 20 } else { 6000 }))
        });
        let weir = Weir::new();
        let file = format!(
            "{more}\n[upstreams.upstream]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n",
            server.url("")
        );
        weir.write("gate.toml", file);
        let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
        // Enough for a mean service time, which a busy machine does not exceed below.
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| assert_eq!(gate.get("/").status, 200));
            }
        });
        (server, gate)
    };
    let ask = |gate: &Serving, header: &str| {
        let mut client = gate.connect();
        client.send(format!("GET /quick HTTP/1.1\r\nHost: test\r\n{header}\r\n\r\n"));
        client.answer().status
    };
    let headers = ["x-envoy-expected-rq-timeout-ms: 1", "grpc-timeout: 1m"];
    let (_server, gate) = start("");
    for header in headers {
        assert_eq!(ask(&gate, header), 200, "{header}: it counts as the mean service time");
    }
    let (_server, gate) = start("trusted_proxies = [\"127.0.0.1\"]");
    for header in headers {
        assert_eq!(ask(&gate, header), 504, "{header}: a proxy of ours means it");
    }
}

#[test]
fn callers_with_tiny_deadlines_cost_others_nothing() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(30)));
    let gate = gate(&server.url(""), &[]);
    let is_over = AtomicBool::new(false);
    let rejected: usize = thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..6 {
            scope.spawn(|| {
                let mut kept = gate.connect();
                while !is_over.load(Ordering::Relaxed) {
                    kept.send("GET / HTTP/1.1\r\nHost: test\r\nx-envoy-expected-rq-timeout-ms: 1\r\n\r\n");
                    kept.answer();
                }
            });
        }
        let others: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut kept = gate.connect();
                    (0..60).filter(|_| kept.get("/").status == 503).count()
                })
            })
            .collect();
        others.into_iter().map(|other| other.join().unwrap()).sum()
    });
    assert_eq!(rejected, 0);
}

#[test]
fn floods_of_frames_that_carry_nothing_end_their_connection_alone() {
    let server = Server::hello();
    let gate = gate(&server.url(""), &[]);
    let update = Frame::new(Frame::WINDOW_UPDATE, 0, 0, 1_u32.to_be_bytes());
    let references = Frame::new(Frame::HEADERS, 5, 1, vec![0x82; 8000]);
    let floods = [
        ("PING", Frame::new(Frame::PING, 0, 0, [0; 8])),
        ("SETTINGS", Frame::new(Frame::SETTINGS, 0, 0, [])),
        ("PRIORITY", Frame::new(Frame::PRIORITY, 0, 1, [0, 0, 0, 3, 1])),
        ("WINDOW_UPDATE", update),
        ("unknown frames", Frame::new(0x77, 0, 0, [1, 2, 3])),
        ("references of HPACK", references),
    ];
    for (number, (name, frame)) in floods.into_iter().enumerate() {
        let mut frames = Frames::on(gate.connect(), 1 << 20);
        let is_headers = frame.kind == Frame::HEADERS;
        let mut twin = frames.twin();
        let sender = thread::spawn(move || {
            let mut stream = 1_u32;
            loop {
                let mut bytes = Vec::new();
                for _ in 0..if is_headers { 1 } else { 1000 } {
                    bytes.extend(
                        Frame { stream: if is_headers { stream } else { frame.stream }, ..frame.clone() }.bytes(),
                    );
                    stream += 2;
                }
                if !twin.try_send(&bytes) {
                    return;
                }
            }
        });
        until(name, PATIENCE, || ended(&gate, "control_frames") == number as f64 + 1.0);
        frames.read_to_end();
        sender.join().unwrap();
        assert_eq!(gate.get("/").status, 200);
    }
}

#[test]
fn the_end_of_a_flood_says_why() {
    let server = Server::hello();
    let gate = gate(&server.url(""), &[]);
    let mut frames = Frames::on(gate.connect(), 1 << 20);
    frames.ping();
    let stream = frames.request("GET", "/", &[], true);
    assert_eq!(frames.next_of(Frame::HEADERS).stream, stream);
    let flood: Vec<u8> = (0..25_000).flat_map(|_| Frame::new(0x77, 0, 0, []).bytes()).collect();
    let mut twin = frames.twin();
    let sender = thread::spawn(move || twin.try_send(&flood));
    let goaway = frames.next_of(Frame::GOAWAY);
    assert_eq!((goaway.code_at(4), goaway.code_at(0)), (CALM, stream));
    sender.join().unwrap();
}

#[test]
fn an_http_2_connection_with_nothing_but_pings_is_idle_and_no_slow_head() {
    let server = Server::hello();
    let gate = gate(&server.url(""), &["--head-timeout", "2s", "--idle-timeout", "60s"]);
    let mut frames = Frames::on(gate.connect(), 1 << 20);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3000) {
        frames.ping();
        thread::sleep(Duration::from_millis(50));
    }
    let stream = frames.request("GET", "/", &[], true);
    assert_eq!(frames.next_of(Frame::HEADERS).stream, stream);
    // A head that does not go on is one.
    frames.try_send(&Frame::new(Frame::HEADERS, 0, stream + 2, [0x82]).bytes());
    until("the end of the head's time", PATIENCE, || ended(&gate, "slow_head") == 1.0);
    assert_eq!(ended(&gate, "idle"), 0.0);
}

#[test]
fn connections_beyond_the_limit_take_the_place_of_idle_ones_or_are_closed() {
    let server = Server::hello();
    let gate = gate(&server.url(""), &["--max-connections", "10", "--admin", "127.0.0.1:0"]);
    let admin = gate.announced["admin"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let cause = |cause: &str| {
        let mut client = Raw::connect(&admin);
        client.send("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let answer = client.answer();
        let name = format!("weir_connections_ended_total{{cause=\"{cause}\"}} ");
        answer.text().lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok()).unwrap_or(0.0)
    };
    // Each has begun a request: none is idle.
    let mut busy: Vec<Raw> = (0..5).map(|_| gate.connect()).collect();
    busy.iter_mut().for_each(|connection| connection.send("GET / HTTP/1.1\r\nHost: t"));
    // Half of all from one address.
    let refused = || gate.connect().has_ended(PATIENCE);
    until("the limit of an address", PATIENCE, refused);
    assert!(cause("max_connections_per_address") >= 1.0);
    busy.truncate(2);
    until("room", PATIENCE, || !gate.connect().has_ended(Duration::from_millis(100)));
    // The gate may still count one that was closed just now, and close one of these in its place.
    let mut idle: Vec<Raw> = Vec::new();
    until("idle ones", PATIENCE, || {
        let mut another = gate.connect();
        if !another.has_ended(Duration::from_millis(100)) {
            idle.push(another);
        }
        idle.len() == 3
    });
    let get = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    until("an idle one's place", PATIENCE, || gate.raw(get).starts_with(b"HTTP/1.1 200"));
    assert!(cause("evicted") >= 1.0);
    drop(idle);
    let log = gate.stop();
    assert!(log.stderr.contains("(max_connections_per_address)"), "{}", log.stderr);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_reader_that_takes_some_all_the_time_is_no_slow_reader_though_the_system_has_no_room() {
        let upstream = Serving::start(&["httpbin"]);
        let gate = gate(&upstream.url, &["--stall-timeout", "2s"]);
        let mut over_http1 = gate.connect();
        over_http1.send(format!("GET {LARGE} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let mut over_http2 = Frames::on(gate.connect(), 1 << 30);
        over_http2.request("GET", LARGE, &[], true);
        let began = Instant::now();
        // A third of the system's buffer is some hundred KiB.
        while began.elapsed() < Duration::from_secs(5) {
            // Some 200 KB/s, each.
            over_http1.take(20_000);
            over_http2.take(20_000);
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(ended(&gate, "slow_reader"), 0.0);
    }
}
