//! Echoes, static bodies, chunks, delays and connections that are closed.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::page;
use weir_testing::{Answer, Serving, Weir, load};

#[test]
fn an_echo_is_the_body_that_came() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        connection.send(format!("{method} /echo?x=1 HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello"));
        let answer = connection.answer();
        assert_eq!((answer.status, answer.text(), answer.header("content-length")), (200, "hello", Some("5")));
        assert_eq!(answer.header("content-type"), None);
    }
    let empty = connection.get("/echo");
    assert_eq!((empty.status, empty.text(), empty.header("content-length")), (200, "", Some("0")));
    connection.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Type: image/x\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send("3\r\nabc\r\n");
    let answer = connection.head();
    assert_eq!(answer.header("content-type"), Some("image/x"));
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{:?}", answer.headers);
    assert_eq!(connection.take(8), *b"3\r\nabc\r\n", "it comes back before the request is complete");
    connection.send("1\r\nd\r\n0\r\n\r\n");
    assert_eq!(connection.take(11), *b"1\r\nd\r\n0\r\n\r\n");
}

#[test]
fn an_echo_may_be_longer_than_all_buffers() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let (mut sender, sent) = (connection.twin(), page(20_000_000));
    let expected = sent.clone();
    let sending = thread::spawn(move || {
        sender.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 20000000\r\n\r\n");
        sender.send(sent);
    });
    assert!(connection.answer().body == expected);
    sending.join().unwrap();
    assert_eq!(connection.get("/status/200").status, 200, "the connection stays in step");
}

#[test]
fn static_bodies_have_the_length_that_was_asked_for() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let answer = connection.get("/static");
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert!(answer.body == page(5 << 20));
    for bytes in [0, 1, 63, 64, 65, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_333_333] {
        let answer = connection.get(&format!("/static?x=y&bytes={bytes}"));
        assert_eq!((answer.status, answer.header("content-length")), (200, Some(bytes.to_string().as_str())));
        assert!(answer.body == page(bytes), "{bytes}");
    }
    connection.send("GET /static?bytes=1099511627776 HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(connection.head().header("content-length"), Some("1099511627776"));
    assert!(connection.take(10_000_000) == page(10_000_000));
}

#[test]
fn head_is_get_without_a_body() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for path in [
        "/",
        "/static",
        "/static?bytes=0",
        "/chunked",
        "/drip?duration_ms=0",
        "/headers",
        "/validate/schema",
        "/validate/example",
        "/validate/invalid",
        "/status/404",
        "/delay/0",
        "/echo",
        "/metrics",
    ] {
        let get = connection.get(path);
        connection.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = connection.head();
        let told = |answer: &Answer| {
            // The length of /metrics grows; what frames a body may be left out where there is none (RFC 9110, 8.6).
            let differs = |name: &str, value: &str| match name {
                "date" | "transfer-encoding" => true,
                "content-length" => path == "/metrics" || value == "0",
                _ => false,
            };
            let told = |(name, value): &&(String, String)| !differs(name, value);
            answer.headers.iter().filter(told).cloned().collect::<Vec<_>>()
        };
        assert_eq!((head.status, told(&head)), (get.status, told(&get)), "{path}");
        assert_eq!(connection.get("/status/200").status, 200, "{path}: no body comes in between");
    }
}

#[test]
fn chunks_are_as_many_and_as_long_as_asked_for() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for (query, count, bytes, delay_ms) in [
        ("", 10, 1024, 0),
        ("?chunks=0", 0, 1, 0),
        ("?chunks=3&bytes=1", 3, 1, 0),
        ("?chunks=3&bytes=1048576", 3, 1 << 20, 0),
        ("?chunks=5&bytes=7&delay_ms=20", 5, 7, 20),
    ] {
        let begun = Instant::now();
        connection.send(format!("GET /chunked{query} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = connection.head();
        assert_eq!((head.status, head.header("transfer-encoding")), (200, Some("chunked")));
        assert_eq!(head.header("content-length"), None);
        for k in 0..count {
            let mut chunk = format!("{bytes:X}\r\n").into_bytes();
            chunk.extend(page(bytes));
            chunk.extend(b"\r\n");
            assert!(connection.take(chunk.len()) == chunk, "{query}: chunk {k}");
            assert!(begun.elapsed() >= Duration::from_millis(k * delay_ms), "{query}: chunk {k} is early");
        }
        assert_eq!(connection.take(5), *b"0\r\n\r\n", "{query}");
    }
    connection.send("GET /chunked?chunks=2&bytes=3 HTTP/1.0\r\n\r\n");
    assert_eq!(connection.answer().text(), "weiwei", "HTTP/1.0 knows no chunks: the close is the end");
}

#[test]
fn a_drip_is_even_and_never_early() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let begun = Instant::now();
    connection.send("GET /drip?duration_ms=200&bytes=10&delay_ms=50&code=503 HTTP/1.1\r\nHost: test\r\n\r\n");
    let head = connection.head();
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert_eq!((head.status, head.header("content-length")), (503, Some("10")));
    for (k, byte) in page(10).into_iter().enumerate() {
        assert_eq!(connection.take(1), [byte]);
        assert!(begun.elapsed() >= Duration::from_millis(50 + 20 * (k as u64 + 1)), "byte {k} is early");
    }
    let answer = connection.get("/drip?duration_ms=0&bytes=3000000");
    assert!(answer.body == page(3_000_000));
    let begun = Instant::now();
    let answer = connection.get("/drip?duration_ms=30&bytes=3000001");
    assert!(begun.elapsed() >= Duration::from_millis(30) && answer.body == page(3_000_001));
    assert_eq!(connection.get("/drip?code=204").body, b"");
}

#[test]
fn a_delay_is_never_early() {
    let body = Serving::start(&["httpbin"]);
    let begun = Instant::now();
    let answer = body.post("/delay/120", "hi");
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert_eq!((answer.status, answer.json()), (200, json!({"delay_ms": 120})));
}

#[test]
fn a_connection_closes_where_it_was_asked_to() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("GET /close HTTP/1.1\r\nHost: test\r\n\r\nGET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let answer = connection.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(answer.body, page(1024));
    assert_eq!(connection.rest(), b"", "what came behind is not answered");

    for bytes in [2, 1000, 65_536] {
        let mut connection = body.connect();
        connection.send(format!("GET /close?at=middle&bytes={bytes} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let answer = connection.cut_answer();
        assert_eq!((answer.status, answer.header("content-length")), (200, Some(bytes.to_string().as_str())));
        assert_eq!(answer.body, page(bytes / 2));
    }
    let mut connection = body.connect();
    connection.send("GET /close?at=start HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(connection.is_reset());
}

#[test]
fn weir_load_counts_what_is_cut_and_reset_as_failed() {
    let body = Serving::start(&["httpbin"]);
    for (path, kind) in [("/close?at=middle", "closed"), ("/close?at=start", "reset")] {
        let output = Weir::new().run(&["load", &format!("{}{path}", body.url), "-n", "20", "--format", "json"]);
        assert_eq!(output.json().failures_of(kind), 20, "{output:?}");
    }
    let run = load(&format!("{}/close", body.url), &["-n", "20", "-c", "1"]);
    assert_eq!((run.requests.ok, run.connections.opened), (20, 20));
    let (example, invalid) = (body.get("/validate/example"), body.get("/validate/invalid"));
    body.weir.write("order.json", example.body);
    body.weir.write("wrong.json", invalid.body);
    let url = format!("{}/validate", body.url);
    let args = ["-b", "@order.json", "-b", "@wrong.json", "-n", "300"];
    let run = body.weir.load(&url, &args);
    let (good, wrong) = (run.status["200"], run.status["422"]);
    assert_eq!((good + wrong, run.requests.ok), (300, good));
    assert!(good > 90 && wrong > 90, "{good} and {wrong}");
}
