//! Rate limits in tokens of language models: estimated from a request, corrected by the usage of its response.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::json;

use super::started::{Started, started};
use weir_testing::{Answer, Frames, Gate, Raw, Reply, Server, until};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

fn gate(server: &Server) -> Started {
    gate_with(server, "")
}

/// A gateway with these further keys of its route.
fn gate_with(server: &Server, keys: &str) -> Started {
    started(&format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/v1/{{*rest}}\" }}\n\
         caller = {{ header = \"authorization\" }}\n\
         rate_limit = {{ rate = \"1000/1h\", weight = {{ tokens = \"usage\" }}, headers = true }}\n{keys}",
        server.url("")
    ))
}

/// Status and message of an error, which is all that its body has beside its type and its code.
fn error(answer: &Answer, kind: &str, code: Option<&str>) -> (u16, String) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    let body = answer.json();
    let message = body["error"]["message"].as_str().unwrap().to_owned();
    let error = json!({ "type": kind, "message": message, "code": code, "param": null });
    assert_eq!(body, json!({ "type": "error", "error": error }));
    (answer.status, message)
}

/// A request of 12 tokens of text, and this output.
fn ask(gate: &Started, key: &str, max_tokens: u64) -> Answer {
    let body = format!("{{\"messages\":[{{\"content\":\"{}\"}}],\"max_tokens\":{max_tokens}}}", "four".repeat(12));
    send(gate, key, &body)
}

fn send(gate: &Started, key: &str, body: &str) -> Answer {
    asked(gate, key, body).answer()
}

/// A connection on which a request was sent.
fn asked(gate: &Started, key: &str, body: &str) -> Raw {
    let mut client = gate.connect();
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nAccept-Encoding: gzip\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client
}

/// A request of 12 tokens of text whose body is of unknown length.
fn chunked(gate: &Started, key: &str, rest: &str) -> Answer {
    let mut client = gate.connect();
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    for part in ["{\"prompt\":\"", &"four".repeat(12), "\"", rest, "}"].into_iter().filter(|part| !part.is_empty()) {
        client.send(format!("{:x}\r\n{part}\r\n", part.len()));
    }
    client.send("0\r\n\r\n");
    client.answer()
}

/// A reply of these events, which goes on once the gate is open.
fn stream_of(events: &str, then: &Gate) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    Reply::raw(format!("{head}{:x}\r\n{events}\r\n", events.len())).wait_for(then).send("0\r\n\r\n")
}

const PROMPT: &str = "{\"prompt\":\"four four four four four four four four four fou\"}";

fn left(answer: &Answer) -> u64 {
    assert_eq!(answer.header("x-ratelimit-limit-tokens"), Some("1000"), "{:?}", answer.headers);
    answer.header("x-ratelimit-remaining-tokens").unwrap().parse().unwrap()
}

/// Tokens left to a caller: those of a request that is rejected.
fn left_now(gate: &Started, key: &str) -> u64 {
    let answer = ask(gate, key, 5000);
    assert_eq!(answer.status, 429);
    left(&answer)
}

fn json_of(total: u64) -> Reply {
    Reply::ok(&format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"total_tokens\":{total}}}}}"))
}

#[test]
fn a_call_takes_what_it_asks_for_and_gives_back_what_it_did_not_use() {
    let server = Server::start(|seen| {
        // Compressed bodies could not be read.
        assert_eq!(seen.header("accept-encoding"), None);
        json_of(30)
    });
    let gate = gate(&server);
    let first = ask(&gate, "a", 500);
    assert_eq!((first.status, left(&first)), (200, 970));
    assert_eq!(left(&ask(&gate, "a", 500)), 940);
    // More than is there is never sent.
    let over = ask(&gate, "a", 930);
    assert_eq!((over.status, left(&over)), (429, 940));
    assert!(over.header("retry-after").is_some());
    let (_, message) = error(&over, "rate_limit_error", Some("rate_limit_exceeded"));
    assert_eq!(message, "the caller is over its rate limit (rate_limited)");
    let reset = over.header("x-ratelimit-reset-tokens").unwrap();
    assert!(reset.starts_with("3m") && reset.ends_with('s'), "{reset}");
    assert_eq!(left(&ask(&gate, "b", 500)), 970, "each caller has its own");
    assert_eq!(server.requests(), 3);
}

#[test]
fn a_response_that_used_more_is_paid_later() {
    let server = Server::start(|_| json_of(1500));
    let gate = gate(&server);
    let first = ask(&gate, "a", 10);
    assert_eq!((first.status, left(&first)), (200, 0));
    let next = ask(&gate, "a", 10);
    // 500 tokens that were not there, and 22 more: half an hour.
    let wait: u64 = next.header("retry-after").unwrap().parse().unwrap();
    assert!(next.status == 429 && (1800..=1880).contains(&wait), "{wait}");
}

#[test]
fn the_usage_of_a_stream_is_read_as_it_passes() {
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\\\"total_tokens\\\":9}\"}}],\"usage\":null}\n\n\
                  data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":70,\"total_tokens\":75}}\n\ndata: [DONE]\n\n";
    let server = Server::start(move |_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        // In pieces that cut the key.
        let (first, second) = events.split_at(events.rfind("age\":{").unwrap());
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        Reply::nothing().send(head).send(chunk(first)).send(chunk(second)).send("0\r\n\r\n")
    });
    let gate = gate(&server);
    let answer = ask(&gate, "a", 500);
    assert_eq!((answer.status, answer.text()), (200, events));
    // Its head was sent before its usage was known.
    assert!(left(&answer) == 488 || left(&answer) == 925, "{}", left(&answer));
    until("the correction", PATIENCE, || left_now(&gate, "a") == 925);
}

#[test]
fn errors_cost_a_token_and_responses_without_usage_their_estimate() {
    let server = Server::start(|seen| match seen.header("authorization") {
        Some("Bearer bad") => Reply::status(400, "{\"error\":{}}"),
        Some("Bearer gone") => Reply::nothing(),
        _ => Reply::ok("{\"choices\":[]}"),
    });
    let gate = gate(&server);
    assert_eq!(left(&ask(&gate, "bad", 500)), 999);
    assert_eq!(left(&ask(&gate, "silent", 500)), 488);
    assert_eq!(left(&send(&gate, "text", &"x".repeat(400))), 900, "no JSON: by its length");
    // Longer than the buffer: by its length, and streamed.
    assert_eq!(send(&gate, "long", &"x".repeat(100_000)).status, 429);
}

#[test]
fn a_call_that_asks_for_more_than_a_bucket_holds_is_one_clear_error() {
    let server = Server::start(|_| json_of(30));
    let gate = gate(&server);
    for max_tokens in [989, u64::MAX] {
        let answer = ask(&gate, "a", max_tokens);
        assert_eq!((answer.status, left(&answer), answer.header("retry-after")), (429, 1000, None));
        // SDKs retry a 429 without it.
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        let asked = max_tokens.saturating_add(12);
        assert_eq!(
            error(&answer, "rate_limit_error", Some("rate_limit_exceeded")),
            (
                429,
                format!(
                    "the call asks for {asked} tokens, its text and max_tokens; its caller's rate limit allows 1000 at \
                     once (rate_limited)"
                )
            )
        );
    }
    // Nothing was taken.
    assert_eq!(left(&ask(&gate, "a", 988)), 970);
    assert_eq!(ask(&gate, "a", 970).header("x-should-retry"), None);
    assert_eq!(server.requests(), 1);
}

#[test]
fn numbers_that_cannot_be_leave_the_estimate() {
    let usages = [
        ("{\"total_tokens\":18446744073709551615}", 488),
        ("{\"prompt_tokens\":18446744073709551615,\"completion_tokens\":18446744073709551615}", 488),
        ("{\"total_tokens\":1e300}", 488),
        ("{\"total_tokens\":-30}", 488),
        ("{\"total_tokens\":30.5}", 488),
        ("{\"total_tokens\":\"30\"}", 488),
        ("[30]", 488),
        ("{\"total_tokens\":-1,\"prompt_tokens\":20,\"completion_tokens\":10}", 970),
        // Of a tool's arguments, which the model wrote.
        ("{\"input_tokens\":20,\"output_tokens\":10},\"input\":{\"usage\":{\"total_tokens\":1}}", 970),
    ];
    let server = Server::start(move |seen| {
        let key = seen.header("authorization").unwrap().trim_start_matches("Bearer ");
        Reply::ok(&format!("{{\"usage\":{}}}", usages[key.parse::<usize>().unwrap()].0))
    });
    let gate = gate(&server);
    for (key, (usage, expected)) in usages.iter().enumerate() {
        let answer = ask(&gate, &key.to_string(), 500);
        assert_eq!((answer.status, left(&answer)), (200, *expected), "{usage}");
    }
}

#[test]
fn a_compressed_response_costs_the_estimate() {
    // {"choices": [], "usage": {"total_tokens": 30}}, by an upstream that compresses unasked.
    const GZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\xce\xc8\xcf\x4c\x4e\x2d\x56\xb2\
        \x52\x88\x8e\xd5\x51\x50\x2a\x2d\x4e\x4c\x4f\x05\x72\xaa\x95\x4a\xf2\x4b\x12\x73\xe2\x4b\xf2\xb3\x53\xf3\
        \x40\xb2\xc6\x06\xb5\xb5\x00\x83\x43\xb9\xbd\x2e\x00\x00\x00";
    let server = Server::start(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", GZIPPED.len());
        Reply::raw(head).send(GZIPPED)
    });
    let gate = gate(&server);
    let answer = ask(&gate, "a", 500);
    assert_eq!((answer.status, answer.body.as_slice(), left(&answer)), (200, GZIPPED, 488));
}

#[test]
fn bodies_of_unknown_length_are_estimated_as_others() {
    let server = Server::start(|_| Reply::ok("{}"));
    let gate = gate(&server);
    let answer = chunked(&gate, "a", ",\"max_tokens\":500");
    assert_eq!((answer.status, left(&answer)), (200, 488));
    // Longer than the buffer: as long as that at least.
    let sent = server.requests();
    assert_eq!(chunked(&gate, "b", &" ".repeat(70_000)).status, 429);
    assert_eq!((server.requests(), left_now(&gate, "b")), (sent, 1000));
}

#[test]
fn calls_over_http2_are_counted() {
    let server = Server::start(|seen| {
        assert_eq!(seen.header("accept-encoding"), None);
        json_of(30)
    });
    let gate = gate(&server);
    let mut frames = Frames::on(gate.connect(), 1 << 20);
    let fields = [("authorization", "Bearer a"), ("accept-encoding", "br")];
    let stream = frames.request("POST", "/v1/chat/completions", &fields, false);
    let body = PROMPT.replace('}', ",\"max_tokens\":500}");
    // DATA, END_STREAM.
    frames.send(0, 1, stream, body.as_bytes());
    let answer = frames.next_of(0);
    assert!(String::from_utf8_lossy(&answer.payload).contains("\"total_tokens\":30"), "{answer:?}");
    until("the correction", PATIENCE, || left_now(&gate, "a") == 970);
    let stream = frames.request("POST", "/v1/chat/completions", &fields, false);
    frames.send(0, 1, stream, PROMPT.replace('}', ",\"max_tokens\":990}").into_bytes());
    let answer = frames.next_of(0);
    assert!(
        String::from_utf8_lossy(&answer.payload).contains("\"message\":\"the call asks for 1002 tokens"),
        "{answer:?}"
    );
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_stream_that_its_caller_leaves_costs_no_less_than_the_estimate() {
    let opens = Gate::default();
    let held = opens.clone();
    // Anthropic says the input first, and the output at the end.
    let input = "data: {\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n".to_owned();
    let texts = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".repeat(40);
    let calls = [
        ("a", PROMPT.replace('}', ",\"max_tokens\":500}"), input, 488),
        ("b", PROMPT.to_owned(), texts, 1000 - 12 - 40),
    ];
    let events = calls.clone().map(|(_, _, events, _)| events);
    let server = Server::start(move |seen| {
        let of_a = seen.header("authorization") == Some("Bearer a");
        stream_of(&events[usize::from(!of_a)], &held)
    });
    let gate = gate(&server);
    for (key, body, events, expected) in &calls {
        let mut client = asked(&gate, key, body);
        assert_eq!(client.head().status, 200);
        client.take(events.len());
        drop(client);
        until("the correction", PATIENCE, || left_now(&gate, key) == *expected);
    }
    opens.open();
}

#[test]
fn a_stream_that_does_not_say_what_it_used_costs_its_events() {
    let opens = Gate::default();
    opens.open();
    let server = Server::start(move |_| stream_of(&"data: {}\n\n".repeat(40), &opens));
    let gate = gate(&server);
    assert_eq!(send(&gate, "a", PROMPT).status, 200);
    until("the correction", PATIENCE, || left_now(&gate, "a") == 1000 - 12 - 40);
    // Less than it may be.
    assert_eq!(ask(&gate, "b", 500).status, 200);
    assert_eq!(left_now(&gate, "b"), 488);
}

#[test]
fn a_call_without_a_response_costs_a_token() {
    let server = Server::start(|_| Reply::nothing().close());
    let gate = gate(&server);
    assert_eq!(ask(&gate, "a", 500).status, 502);
    until("the correction", PATIENCE, || left_now(&gate, "a") == 999);
}

#[test]
fn errors_of_the_gateway_are_those_of_the_apis() {
    let server = Server::start(|_| Reply::nothing().close());
    let gate = gate_with(&server, "max_body = \"1KiB\"\n");
    let (status, message) = error(&ask(&gate, "a", 500), "api_error", None);
    assert!(status == 502 && message.starts_with("no response from the upstream ("), "{status} {message}");
    let large = send(&gate, "a", &"x".repeat(2000));
    assert_eq!(error(&large, "request_too_large", None), (413, "a body of more than 1024 bytes".to_owned()));
    let held = Gate::default();
    let slow = Server::start({
        let held = held.clone();
        move |_| Reply::nothing().wait_for(&held)
    });
    let crowded = gate_with(&slow, "max_in_flight = 1\nmax_queue = 0\n");
    let first = asked(&crowded, "a", PROMPT);
    until("the first call", PATIENCE, || slow.requests() == 1);
    let (status, message) = error(&ask(&crowded, "b", 1), "overloaded_error", None);
    assert!(status == 503 && message.ends_with("(queue_full)"), "{status} {message}");
    held.open();
    drop(first);
}

#[test]
fn configured_bodies_and_responses_of_the_upstream_stay_as_they_are() {
    let server = Server::start(|_| Reply::status(429, "slow down"));
    let gate = gate_with(&server, "response.rejected = { content_type = \"text/plain\", body = \"no\" }\n");
    let own = ask(&gate, "a", 5000);
    assert_eq!((own.status, own.header("content-type"), own.text()), (429, Some("text/plain"), "no"));
    assert_eq!(own.header("x-should-retry"), Some("false"));
    let passed = ask(&gate, "a", 1);
    assert_eq!((passed.status, passed.text()), (429, "slow down"));
}

#[test]
fn a_call_of_grpc_has_a_status_of_grpc() {
    let server = Server::hello();
    let gate = gate(&server);
    let mut client = gate.connect();
    let head = "POST /v1/a.S/Do HTTP/1.1\r\nHost: t\r\nContent-Type: application/grpc\r\nAuthorization: Bearer a\r\n";
    client.send(format!("{head}Content-Length: 8000\r\n\r\n{}", "x".repeat(8000)));
    let answer = client.answer();
    // RESOURCE_EXHAUSTED.
    assert_eq!(
        (answer.status, answer.header("grpc-status"), answer.header("content-type")),
        (200, Some("8"), Some("application/grpc"))
    );
    assert!(answer.header("grpc-message").unwrap().starts_with("the call asks for 2000 tokens"), "{answer:?}");
}
