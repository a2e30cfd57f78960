//! Cost of a step: rendering its request and evaluating its response, in nanoseconds of one core.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

#[path = "../tests/step_player/mod.rs"]
mod step_player;

use std::time::Instant;

use step_player::StepPlayer;
use weir_scenario::evaluate::ResponseView;

const ITERATIONS: u32 = 300_000;
const ROUNDS: u32 = 7;

const SHOP: &str = r#"POST http://shop/login
{"user": "bob{{n}}", "password": "x"}
HTTP 200
[Captures]
token: jsonpath "$.token"

GET http://shop/items
Authorization: Bearer {{token}}
HTTP 200
[Captures]
id: jsonpath "$.items[7].id"

POST http://shop/orders/{{id}}
Authorization: Bearer {{token}}
{"item": {{id}}}
HTTP 200
[Asserts]
jsonpath "$.status" == "ok"
"#;

const FIXED: &str = "GET http://shop/1\nHTTP 200\n\nGET http://shop/2\nHTTP 200\n\nGET http://shop/3\nHTTP 200\n";

/// The same requests, and nothing that looks into a body.
const RENDERED: &str = r#"POST http://shop/login
{"user": "bob{{n}}", "password": "x"}
HTTP 200

GET http://shop/items
Authorization: Bearer {{n}}
HTTP 200

POST http://shop/orders/{{n}}
Authorization: Bearer {{n}}
{"item": {{n}}}
HTTP 200
"#;

/// Body of about 1 KB, with values at both ends.
fn body() -> String {
    let items: Vec<String> = (0..14)
        .map(|id| format!("{{\"id\": {id}, \"name\": \"item number {id}\", \"price\": 12.5, \"tags\": [\"a\"]}}"))
        .collect();
    format!("{{\"token\": \"0123456789abcdef\", \"items\": [{}], \"status\": \"ok\"}}", items.join(", "))
}

fn measure(name: &str, text: &str, body: &str, headers: &[(&str, &[u8])]) {
    let mut player = StepPlayer::new(text);
    let view = view(headers, body.as_bytes());
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (started, mut steps) = (Instant::now(), 0_u32);
        for sequence in 0..ITERATIONS {
            steps += player.play(u64::from(sequence), i64::from(sequence), &view);
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / f64::from(steps));
    }
    println!("{name}: {best:.0} ns per step");
}

fn main() {
    let body = body();
    println!("body of {} bytes", body.len());
    let cookie: [(&str, &[u8]); 2] = [("Content-Type", b"application/json"), ("Set-Cookie", b"s=0123456789; Path=/")];
    measure("fixed requests", FIXED, &body, &cookie[..1]);
    measure("requests with variables", RENDERED, &body, &cookie[..1]);
    measure("login, list, buy", SHOP, &body, &cookie[..1]);
    measure("login, list, buy, with a cookie", SHOP, &body, &cookie);
}

fn view<'a>(headers: &'a [(&'a str, &'a [u8])], body: &'a [u8]) -> ResponseView<'a> {
    ResponseView { version: "1.1", status: 200, headers, body, raw_body: body, ..ResponseView::default() }
}
