//! Rate limits in tokens of language models: estimated from a request, corrected by the usage of its response.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use super::started::{Started, started};
use weir_testing::{Answer, Reply, Server, until};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

fn gate(server: &Server) -> Started {
    started(&format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/v1/{{*rest}}\" }}\n\
         caller = {{ header = \"authorization\" }}\n\
         rate_limit = {{ rate = \"1000/1h\", weight = {{ tokens = \"usage\" }}, headers = true }}\n",
        server.url("")
    ))
}

/// A request of 12 tokens of text, and this output.
fn ask(gate: &Started, key: &str, max_tokens: u64) -> Answer {
    let body = format!("{{\"messages\":[{{\"content\":\"{}\"}}],\"max_tokens\":{max_tokens}}}", "four".repeat(12));
    send(gate, key, &body)
}

fn send(gate: &Started, key: &str, body: &str) -> Answer {
    let mut client = gate.connect();
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nAccept-Encoding: gzip\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer()
}

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
    assert!(over.header("retry-after").is_some() && over.text().ends_with("(rate_limited)\n"));
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
