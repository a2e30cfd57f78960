//! CPU time per event: reading it, and finding its token. `cargo bench -p weir-events`
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use weir_events::llm::{LlmApi, TokenKind};
use weir_events::{EventReader, StreamFormat};

const EVENTS: usize = 2_000;
const ROUNDS: usize = 200;

fn main() {
    let chat = |token: usize| {
        format!(
            "data: {{\"id\":\"chatcmpl-9f3c1d\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"weir-llm\",\
             \"system_fingerprint\":null,\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{token}\"}},\"logprobs\":null,\
             \"finish_reason\":null}}]}}\n\n"
        )
    };
    let short = |number: usize| format!("data: {number}\n\n");
    let lines = |number: usize| {
        format!("{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":\"w{number}\"}},\"done\":false}}\n")
    };
    for (name, format, api, event) in [
        ("sse, 9 bytes", StreamFormat::Sse, None, &short as &dyn Fn(usize) -> String),
        ("sse, chat chunk", StreamFormat::Sse, None, &chat),
        ("sse, chat chunk, token", StreamFormat::Sse, Some(LlmApi::Chat), &chat),
        ("ndjson", StreamFormat::JsonLines, None, &lines),
        ("ndjson, token", StreamFormat::JsonLines, Some(LlmApi::Ollama), &lines),
    ] {
        let events: Vec<Vec<u8>> = (0..EVENTS).map(|number| event(number).into_bytes()).collect();
        let body = events.concat();
        // An event per piece, many in a piece, and pieces that cut events.
        let pieces: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
        for (cut, pieces) in
            [("each", pieces), ("many", body.chunks(16_384).collect()), ("cut", body.chunks(100).collect())]
        {
            println!("{name:24} {cut:5} {:7.1} ns per event", time(format, api, &pieces));
        }
    }
}

/// Least time per event of all rounds, in nanoseconds.
fn time(format: StreamFormat, api: Option<LlmApi>, pieces: &[&[u8]]) -> f64 {
    let mut reader = EventReader::new(format);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        reader.restart(format);
        let (begin, mut events, mut tokens) = (Instant::now(), 0, 0);
        for piece in pieces {
            let mut rest = *piece;
            while let Some(event) = reader.next_event(&mut rest) {
                events += 1;
                if let Some(api) = api {
                    let event = api.read(black_box(event.data));
                    tokens += usize::from(event.is_ok_and(|event| event.token == Some(TokenKind::Text)));
                }
            }
        }
        let spent = begin.elapsed().as_secs_f64() * 1e9;
        assert!(events == EVENTS && (api.is_none() || tokens == EVENTS), "{events} events, {tokens} tokens");
        least = least.min(spent / EVENTS as f64);
    }
    least
}
