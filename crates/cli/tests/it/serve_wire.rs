//! What goes over a service's connections: HTTP as it is spoken, HTTP as it is not, and peers that keep it waiting.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::time::{Duration, Instant};

use weir_testing::{Raw, Serving, until};

/// Far beyond any limit that the tests set; a busy machine is late.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

const GET: &str = "GET /status/200 HTTP/1.1\r\nHost: test\r\n\r\n";

/// The service answers others as if nothing had been.
fn is_sound(body: &Serving) {
    assert_eq!(body.post("/echo", "sound").text(), "sound");
}

fn ended(body: &Serving, cause: &str) -> f64 {
    body.metric(&format!("weir_connections_ended_total{{cause=\"{cause}\"}}"))
}

/// All that comes until the close is one refusal.
fn is_refused(left: &[u8], status: &str, why: &str) {
    let text = String::from_utf8_lossy(left);
    let once = text.matches("HTTP/1.").count() == 1;
    assert!(once && text.starts_with(&format!("HTTP/1.1 {status} ")), "{why}: {text}");
}

#[test]
fn a_connection_is_kept_and_requests_in_a_row_are_answered_in_their_order() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let all: String = (0..100).map(|k| format!("GET /static?bytes={k} HTTP/1.1\r\nHost: test\r\n\r\n")).collect();
    connection.send(all);
    for k in 0..100 {
        assert_eq!(connection.answer().body.len(), k);
    }
    let mixed = format!(
        "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc{GET}HEAD / HTTP/1.1\r\nHost: t\r\n\r\n"
    );
    connection.send(mixed);
    assert_eq!(connection.answer().text(), "abc");
    assert_eq!(connection.answer().status, 200);
    assert_eq!(connection.head().status, 200);
    // A byte at a time.
    for byte in GET.as_bytes() {
        connection.send([*byte]);
    }
    assert_eq!(connection.answer().status, 200);
    assert!(body.metric("weir_connections_total") == 2.0, "this one, and that of /metrics");
}

#[test]
fn a_connection_ends_when_the_client_says_so() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert_eq!(connection.answer().header("connection"), Some("close"));
    assert!(!connection.is_reset());

    let mut connection = body.connect();
    connection.send("GET /static?bytes=10 HTTP/1.0\r\n\r\n");
    let answer = connection.answer();
    assert_eq!(
        (answer.status, answer.version.as_str(), answer.header("content-length")),
        (200, "HTTP/1.0", Some("10"))
    );
    assert!(!connection.is_reset());

    let mut connection = body.connect();
    for _ in 0..3 {
        connection.send("GET /static?bytes=10 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let answer = connection.answer();
        assert_eq!((answer.header("connection"), answer.body.len()), (Some("keep-alive"), 10));
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame: kind, flags, stream, payload.
fn next_frame(connection: &mut Raw) -> (u8, u8, u32, Vec<u8>) {
    let head = connection.take(9);
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    (head[3], head[4], stream, connection.take(length as usize))
}

#[test]
fn http_2_without_tls_is_spoken_from_the_first_byte() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send(PREFACE);
    connection.send(frame(4, 0, 0, &[]));
    // Of the static table: :method GET, :scheme http, :path /; then :authority with a literal (RFC 7541, A).
    let get = [[0x82, 0x86, 0x84].as_slice(), &[0x41, 4], b"test"].concat();
    for stream in [1, 3, 5] {
        connection.send(frame(1, 0x05, stream, &get));
    }
    let (mut bodies, mut done) = (vec![Vec::new(); 6], 0);
    while done < 3 {
        let (kind, flags, stream, payload) = next_frame(&mut connection);
        match kind {
            0 => bodies[stream as usize].extend(payload),
            1 => assert_eq!(payload[0], 0x88, ":status 200 of the static table"),
            4 | 6 | 8 => continue,
            _ => panic!("a frame of kind {kind}"),
        }
        done += i32::from(flags & 1);
    }
    let index = body.get("/").body;
    assert!(bodies[1] == index && bodies[3] == index && bodies[5] == index);
    // A frame that is longer than was agreed on is an error of the connection.
    connection.send(frame(0, 0, 1, &[0; 20_000]));
    let rest = connection.rest();
    assert!(rest.windows(4).any(|window| window == [7, 0, 0, 0]), "GOAWAY: {rest:?}");
    is_sound(&body);
}

#[test]
fn what_is_no_http_2_after_its_preface_ends_the_connection() {
    let body = Serving::start(&["httpbin"]);
    for wrong in [
        [0xff; 100].as_slice(),
        b"GET / HTTP/1.1\r\n\r\n",
        &frame(1, 0x05, 2, &[0x82]),
        &[frame(4, 0, 0, &[]), frame(1, 0x05, 1, &[0xff; 50])].concat(),
    ] {
        let mut connection = body.connect();
        connection.send(PREFACE);
        let _ = connection.try_send(wrong);
        connection.rest();
    }
    // Almost a preface.
    is_refused(&body.raw("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), "400", "almost a preface");
    is_sound(&body);
}

#[test]
fn malformed_requests_are_refused() {
    let body = Serving::start(&["httpbin"]);
    for wrong in [
        "\r\nhello\r\n\r\n".as_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1 \r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"G\0T / HTTP/1.1\r\n\r\n",
        b"GET /a\0b HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : test\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX\0Y: ab\r\n\r\n",
        b"GET / HTTP/1.1\r\n: nameless\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: x\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nContent-Length: -5\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        // What follows must not be taken for a request.
        let left = body.raw([wrong, GET.as_bytes()].concat());
        is_refused(&left, "400", &String::from_utf8_lossy(wrong));
    }
    assert_eq!(ended(&body, "malformed"), 22.0);
    is_sound(&body);
}

#[test]
fn a_request_with_a_length_and_chunks_is_not_read_in_two_ways() {
    let body = Serving::start(&["httpbin"]);
    let smuggled =
        "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let left = body.raw(format!("{smuggled}GET /status/418 HTTP/1.1\r\nHost: test\r\n\r\n"));
    let text = String::from_utf8_lossy(&left);
    // RFC 9112, 6.3: refuse it, or read the chunks and close.
    assert!(!text.contains(" 418 "), "{text}");
}

#[test]
fn a_head_beyond_the_limit_is_431() {
    let body = Serving::start(&["httpbin"]);
    for wrong in [
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024)),
        format!("GET / HTTP/1.1\r\n{}\r\n", "X-Many: 1\r\n".repeat(6000)),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 * 1024)),
        "x".repeat(64 * 1024),
    ] {
        is_refused(&body.raw(&wrong), "431", &wrong[..20]);
    }
    let long = format!("GET /headers HTTP/1.1\r\nHost: test\r\nX: {}\r\n\r\n", "x".repeat(30_000));
    let mut connection = body.connect();
    connection.send(&long);
    assert_eq!(connection.answer().status, 200, "below the limit");
    is_sound(&body);

    let wide = Serving::start(&["httpbin", "--max-head", "100000"]);
    let mut connection = wide.connect();
    connection.send(format!("GET /headers HTTP/1.1\r\nHost: test\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024)));
    assert_eq!(connection.answer().json()["x"].as_str().unwrap().len(), 64 * 1024);
}

#[test]
fn a_body_that_is_longer_than_announced_is_the_next_request() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello and more\r\n\r\n");
    assert_eq!(connection.answer().text(), "hello");
    is_refused(&connection.rest(), "400", "what is too much");
    is_sound(&body);
}

#[test]
fn half_of_a_next_head_does_not_keep_the_event_loop_busy_for_ever() {
    let body = Serving::start(&["httpbin", "--head-timeout", "1s"]);
    // Room for a large head is held, and given back between two requests: with a part of the next one in hand, that was
    // done again and again.
    for length in [5, 9_000, 20_000] {
        let mut connection = body.connect();
        connection.send(format!("{GET}{}", "h".repeat(length)));
        assert_eq!(connection.answer().status, 200);
        is_sound(&body);
    }
}

#[test]
fn a_body_that_ends_early_is_no_body() {
    let body = Serving::start(&["httpbin"]);
    for path in ["/echo", "/validate", "/status/200", "/nope"] {
        for framing in ["Content-Length: 100\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n40\r\n{}"] {
            let mut connection = body.connect();
            connection.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\n{framing}"));
            connection.finish();
            let left = connection.rest();
            let text = String::from_utf8_lossy(&left);
            assert!(!text.contains("\"valid\""), "{path}: half a body is not judged: {text}");
        }
    }
    for wrong in ["xyz\r\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "fffffffffffffffff\r\nhello", "-1\r\nx\r\n"] {
        let mut connection = body.connect();
        connection.send(format!("POST /validate HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n{wrong}"));
        is_refused(&connection.rest(), "400", wrong);
    }
    is_sound(&body);
    until("the end of all requests", TEST_TIMEOUT, || body.metric("weir_http_requests_in_flight") == 1.0);
}

#[test]
fn a_head_that_drips_in_is_cut_off() {
    let body = Serving::start(&["httpbin", "--head-timeout", "300ms"]);
    // What drips in after it: each byte comes long before the limit, and gains nothing.
    for (first, drip) in
        [("GET / HTTP/1.1\r\nX: ", "x"), ("GET / HTTP/1.1\r\n", "X: y\r\n"), ("PRI * HTTP/2.0\r\n", "")]
    {
        let (mut connection, begun) = (body.connect(), Instant::now());
        connection.send(first);
        while !connection.has_ended(Duration::from_millis(20)) {
            let _ = connection.try_send(drip);
            assert!(begun.elapsed() < TEST_TIMEOUT, "{first:?} may drip for ever");
        }
        assert!(begun.elapsed() >= Duration::from_millis(250), "{first:?}: {:?}", begun.elapsed());
    }
    assert_eq!(ended(&body, "slow_head"), 3.0);
    is_sound(&body);
}

#[test]
fn a_connection_that_asks_for_nothing_is_let_go() {
    let body = Serving::start(&["httpbin", "--idle-timeout", "300ms"]);
    let (mut fresh, mut used) = (body.connect(), body.connect());
    assert_eq!(used.get("/status/200").status, 200);
    assert!(!fresh.is_reset() && !used.is_reset());
    assert_eq!(ended(&body, "idle"), 2.0);
    // Who waits for an answer is not idle.
    assert_eq!(body.get("/delay/900").status, 200);
    assert_eq!(body.get("/drip?duration_ms=900&bytes=2").status, 200);
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let body = Serving::start(&["httpbin", "--stall-timeout", "300ms"]);
    for path in ["/echo", "/validate"] {
        let (mut connection, begun) = (body.connect(), Instant::now());
        connection.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\nhello"));
        connection.rest();
        assert!(
            begun.elapsed() >= Duration::from_millis(250) && begun.elapsed() < TEST_TIMEOUT,
            "{:?}",
            begun.elapsed()
        );
    }
    assert_eq!(ended(&body, "slow_body"), 2.0);
    is_sound(&body);
}

#[test]
fn a_reader_that_does_not_read_is_let_go() {
    let body = Serving::start(&["httpbin", "--stall-timeout", "300ms"]);
    for path in
        ["/static?bytes=1000000000", "/chunked?chunks=100000&bytes=10000", "/drip?bytes=1000000000&duration_ms=0"]
    {
        let before = ended(&body, "slow_reader");
        let mut connection = body.connect().with_a_small_buffer();
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        until("the end of a reader's time", TEST_TIMEOUT, || ended(&body, "slow_reader") > before);
    }
    is_sound(&body);
}

#[test]
fn good_and_bad_connections_leave_nothing_behind() {
    let body = Serving::start(&["httpbin"]);
    let files = body.open_files();
    for _ in 0..50 {
        is_sound(&body);
        body.raw("nonsense\r\n\r\n");
        body.connect();
        body.connect().send("GET / HT");
        let mut cut = body.connect();
        cut.send("GET /static?bytes=100000000 HTTP/1.1\r\nHost: test\r\n\r\n");
        cut.head();
        drop(cut);
        let mut reset = body.connect();
        reset.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhello");
        reset.head();
        reset.reset();
        let mut waiting = body.connect();
        waiting.send("GET /drip?duration_ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
        waiting.head();
        let mut delayed = body.connect();
        delayed.send("GET /delay/600000 HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    until("the end of all connections", TEST_TIMEOUT, || body.open_files() <= files);
    assert_eq!(body.metric("weir_connections_open"), 1.0, "that of /metrics");
    assert_eq!(body.metric("weir_http_requests_in_flight"), 1.0);
}
