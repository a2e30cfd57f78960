//! `weir serve httpbin` from outside: its routes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

mod support;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Answer, Serving, Weir};

const SCHEMA: &str = include_str!("../docs/order.schema.json");

/// What the service makes bodies of.
fn page(bytes: usize) -> Vec<u8> {
    let line = b"weir: sixty-four bytes of a body that is the same in every line\n";
    line.iter().copied().cycle().take(bytes).collect()
}

/// Paths of faults, in their order.
fn faults(answer: &Answer) -> Vec<String> {
    let verdict = answer.json();
    assert_eq!(verdict["valid"], false, "{verdict}");
    verdict["faults"].as_array().unwrap().iter().map(|fault| fault["path"].as_str().unwrap().to_owned()).collect()
}

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
fn an_order_is_judged_by_the_published_schema() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let schema = connection.get("/validate/schema");
    assert_eq!((schema.text(), schema.header("content-type")), (SCHEMA, Some("application/json")));
    assert_eq!(schema.json()["$schema"], "https://json-schema.org/draft/2020-12/schema");

    let example = connection.get("/validate/example");
    assert!((500..2048).contains(&example.body.len()));
    let answer = connection.post("/validate", &example.body);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json(), json!({"valid": true, "faults": []}));

    let wrong = connection.get("/validate/invalid");
    let answer = connection.post("/validate", &wrong.body);
    assert_eq!((answer.status, answer.header("content-type")), (422, Some("application/json")));
    assert_eq!(faults(&answer), ["/customer/contact/email", "/lines/1/quantity", "/payment"]);
    let messages = answer.json();
    assert_eq!(messages["faults"][1]["message"], "0 is less than the minimum of 1");
    assert!(messages["faults"][2]["message"].as_str().unwrap().contains("last_digits"));
    assert_eq!(messages.get("more"), None);
}

#[test]
fn each_part_of_an_order_is_looked_at() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let example = connection.get("/validate/example").json();
    for (path, value, fault) in [
        ("/id", json!("ORD-7q2m9xk4"), "/id"),
        ("/created_at", json!("2026-02-30T09:26:53Z"), "/created_at"),
        ("/created_at", json!("yesterday"), "/created_at"),
        ("/currency", json!("XYZ"), "/currency"),
        ("/customer/id", json!(1.5), "/customer/id"),
        ("/customer/name", json!(""), "/customer/name"),
        ("/customer/contact/phone", json!("0701234567"), "/customer/contact/phone"),
        ("/customer/addresses", json!([]), "/customer/addresses"),
        ("/customer/addresses/1/country", json!("Sweden"), "/customer/addresses/1/country"),
        ("/lines", json!({}), "/lines"),
        ("/lines/0/sku", json!(null), "/lines/0/sku"),
        ("/lines/0/options/1/value", json!([]), "/lines/0/options/1/value"),
        ("/lines/2/unit_price", json!(-1), "/lines/2/unit_price"),
        ("/payment/kind", json!("cash"), "/payment/kind"),
        ("/payment/expires/month", json!(13), "/payment/expires/month"),
        ("/payment", json!({"kind": "transfer", "iban": "SE12"}), "/payment/iban"),
        ("/payment", json!({"kind": "invoice", "due_days": 14, "extra": 1}), "/payment"),
        ("/totals/total", json!("18718"), "/totals/total"),
        ("/note", json!("x".repeat(501)), "/note"),
    ] {
        let mut order = example.clone();
        *order.pointer_mut(path).unwrap() = value;
        let answer = connection.post("/validate", order.to_string());
        assert!(faults(&answer).contains(&fault.to_owned()), "{path}: {}", answer.text());
        assert_eq!(answer.status, 422);
    }
    for (path, value) in [
        ("/payment", json!({"kind": "transfer", "iban": "SE4550000000058398257466", "reference": "7Q2M9XK4"})),
        ("/payment", json!({"kind": "invoice", "due_days": 14, "purchase_order": null})),
        ("/note", json!(null)),
        ("/created_at", json!("2024-02-29T23:59:59.999-08:00")),
    ] {
        let mut order = example.clone();
        *order.pointer_mut(path).unwrap() = value;
        let answer = connection.post("/validate", order.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

#[test]
fn what_is_not_json_is_400_with_the_place() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for (wrong, place) in [
        (b"".as_slice(), "line 1 column 0"),
        (b"{\"id\": 1,\n \"x\" 2}", "line 2 column 6"),
        (b"{} {}", "line 1 column 4"),
        (b"\"\xff\"", "line 1 column 2"),
        (b"NaN", "line 1 column 1"),
        (&[b'['; 100_000], "recursion limit exceeded at line 1 column 128"),
        (&br#"{"a":"#.repeat(100_000), "recursion limit exceeded at line 1 column 636"),
    ] {
        let answer = connection.post("/validate", wrong);
        assert_eq!((answer.status, faults(&answer)), (400, vec![String::new()]));
        let message = answer.json()["faults"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("not JSON: ") && message.contains(place), "{message}");
    }
}

#[test]
fn a_body_with_many_faults_has_a_short_answer() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let names: Vec<String> = (0..50_000).map(|k| format!("\"name {k}\":0")).collect();
    for (wrong, listed) in [
        (format!("{{\"lines\":[{}{{}}]}}", "{},".repeat(600)), 100),
        (format!("{{\"lines\":[{}0]}}", "0,".repeat(500_000)), 1),
        (format!("{{{}}}", names.join(",")), 1),
        (format!("{{\"{}\":0}}", "x".repeat(1_000_000)), 8),
        (format!("{{\"id\":\"{}\"}}", "x".repeat(1_000_000)), 7),
    ] {
        let answer = connection.post("/validate", wrong);
        assert_eq!((answer.status, faults(&answer).len()), (422, listed));
        assert_eq!(answer.json()["more"] == true, matches!(listed, 1 | 100));
        assert!(answer.body.len() < 20_000, "{}", answer.body.len());
    }
}

#[test]
fn a_body_that_is_too_long_is_413() {
    let body = Serving::start(&["httpbin"]);
    let at_most = format!("[{}]", " ".repeat((1 << 20) - 2));
    assert_eq!(body.post("/validate", &at_most).status, 422, "1 MiB is read");
    assert_eq!(body.post("/validate", at_most.clone() + " ").status, 413);
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999999\r\n");
    connection.send("Expect: 100-continue\r\n\r\n");
    assert_eq!(connection.answer().status, 413, "before it is sent");

    let body = Serving::start(&["httpbin", "--max-body", "10"]);
    assert_eq!(body.post("/validate", "[        ]").status, 422);
    let answer = body.post("/validate", "[         ]");
    assert_eq!((answer.status, answer.text()), (413, "the body is longer than 10 bytes"));
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send("6\r\n[     \r\n6\r\n     ]\r\n0\r\n\r\n");
    assert_eq!(connection.answer().status, 413);
    assert_eq!(body.post("/echo", "longer than ten bytes").status, 200, "others have no such bound");
}

#[test]
fn a_body_is_announced_with_100_continue_only_if_it_is_read() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(connection.head().status, 100);
    connection.send("{}");
    assert_eq!(connection.answer().status, 422);
}

#[test]
fn a_status_is_what_was_asked_for() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for code in [200, 201, 202, 204, 205, 206, 226, 301, 302, 304, 308, 400, 404, 418, 429, 500, 503, 599] {
        for method in ["GET", "POST", "DELETE"] {
            connection.send(format!("{method} /status/{code} HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi"));
            let answer = connection.answer();
            assert_eq!(answer.status, code);
            assert_eq!(answer.body.is_empty(), matches!(code, 204 | 205 | 304), "{code}: {answer:?}");
            assert_eq!(answer.header("location"), matches!(code, 301 | 302 | 308).then_some("/"));
        }
    }
}

#[test]
fn a_choice_of_statuses_is_repeated_by_its_seed() {
    let choices = |args: &[&str], path: &str| {
        let body = Serving::start(&[&["httpbin"], args].concat());
        let mut connection = body.connect();
        (0..200).map(|_| connection.get(path).status).collect::<Vec<_>>()
    };
    let first = choices(&["--seed", "1"], "/status/200,500");
    assert_eq!(first, choices(&["--seed", "1", "--workers", "3"], "/status/200,500"));
    assert_ne!(first, choices(&["--seed", "2"], "/status/200,500"));
    let errors = first.iter().filter(|status| **status == 500).count();
    assert!((60..140).contains(&errors), "{errors} of 200, which is 1 in 10^8 by chance");
    let weighted = choices(&[], "/status/200:9,404:0,503:1");
    let errors = weighted.iter().filter(|status| **status == 503).count();
    assert!((4..50).contains(&errors) && !weighted.contains(&404), "{errors} of 200");
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
    let run = support::load(&format!("{}/close", body.url), &["-n", "20", "-c", "1"]);
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

#[test]
fn headers_are_shown_as_they_came() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("GET /headers HTTP/1.1\r\nHost: test\r\nX-A: 1\r\nX-B: \"q\"\r\nx-a: 2\r\nX-C:\r\nX-D: ");
    connection.send(b"\xe9\r\n\r\n");
    let shown = json!({"host": "test", "x-a": ["1", "2"], "x-b": "\"q\"", "x-c": "", "x-d": "\u{fffd}"});
    assert_eq!(connection.answer().json(), shown);
}

#[test]
fn parameters_out_of_range_are_400_with_what_is_expected() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for (path, expected) in [
        ("/static?bytes=-1", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=1099511627777", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=99999999999999999999999", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/chunked?chunks=1000001", "chunks: expected a whole number from 0 to 1000000"),
        ("/chunked?bytes=0", "bytes: expected a whole number from 1 to 1048576"),
        ("/chunked?delay_ms=1e3", "delay_ms: expected a whole number from 0 to 600000"),
        ("/drip?duration_ms=600001", "duration_ms: expected a whole number from 0 to 600000"),
        ("/drip?bytes=0", "bytes: expected a whole number from 1 to 1099511627776"),
        ("/drip?delay_ms=x", "delay_ms: expected a whole number from 0 to 600000"),
        ("/drip?code=100", "code: expected a whole number from 200 to 599"),
        ("/delay/", "delay: expected a whole number from 0 to 600000"),
        ("/delay/600001", "delay: expected a whole number from 0 to 600000"),
        ("/status/", "status: expected a whole number from 200 to 599"),
        ("/status/101", "status: expected a whole number from 200 to 599"),
        ("/status/200,x", "status: expected a whole number from 200 to 599"),
        ("/status/200:-1", "weight: expected a whole number from 0 to 1000000"),
        ("/close?at=once", "at: expected start, middle or end"),
        ("/close?bytes=65537", "bytes: expected a whole number from 2 to 65536"),
    ] {
        let answer = connection.get(path);
        assert_eq!((answer.status, answer.text()), (400, expected), "{path}");
    }
}

#[test]
fn unknown_paths_are_404_and_wrong_methods_405() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for path in ["/nope", "/static/", "/Static", "//", "/validate/x", "/status", "/%2e%2e/etc/passwd"] {
        assert_eq!(connection.get(path).status, 404, "{path}");
    }
    for path in ["/", "/static", "/chunked", "/drip", "/headers", "/validate/schema", "/validate/example"] {
        let answer = connection.post(path, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{path}");
    }
    let answer = connection.get("/validate");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn the_index_names_every_route() {
    let body = Serving::start(&["httpbin"]);
    let index = body.get("/");
    assert_eq!(index.header("content-type"), Some("text/plain; charset=utf-8"));
    for route in ["/echo", "/static", "/validate", "/status/", "/chunked", "/drip", "/delay/", "/close", "/headers"] {
        assert!(index.text().lines().any(|line| line.trim().starts_with(route)), "{route}");
    }
}

#[test]
fn all_that_the_first_page_of_the_docs_loads_is_there() {
    let page = include_str!("../docs/start.md");
    let body = Serving::start(&["httpbin"]);
    let mut paths: Vec<&str> = page
        .split("http://localhost:8080")
        .skip(1)
        .map(|rest| rest.split(|c: char| c.is_whitespace() || "\"`,)".contains(c)).next().unwrap())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    assert!(paths.contains(&"/") && paths.len() > 1, "{paths:?}");
    for path in paths {
        assert_eq!(body.get(path).status, 200, "{path}");
    }
    assert_eq!(body.post("/echo", "{\"order\": 1}").status, 200);
}
