//! Cost of a request over HTTP/2 without a socket: opening a stream, and receiving a response of 13 bytes, with 100
//! streams open, in nanoseconds of one core.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a failed precondition ends the benchmark")]

use std::hint::black_box;
use std::time::Instant;

use weir_http2::connection::{ClientConnection, ClientSettings, Event, StreamRequest};
use weir_http2::frame::{FrameFlags, FrameHeader, FrameKind};

const STREAMS: u32 = 100;
const BATCHES: u32 = 3_000;
const ROUNDS: u32 = 9;

const CONTENT: &[u8] = b"Hello, world!";

/// How a service writes its heads.
#[derive(Clone, Copy)]
struct ServiceStyle {
    name: &'static str,
    /// Block of the first response, ...
    first: &'static [u8],
    /// ... and of the following ones.
    next: &'static [u8],
}

/// As nginx 1.22, whose bytes these are: nothing but `:status` is an index, and each block inserts its fields again.
const INSERTING: &[u8] =
    b"\x88\x76\x89\xaa\x63\x55\xe5\x80\xae\x21\x2e\x1f\x61\x96\xe4\x59\x3e\x94\x13\x6a\x69\x3f\x75\x04\
    \x01\x38\xa0\x99\xb8\x26\xee\x04\x2a\x62\xd1\xbf\x5f\x87\x49\x7c\xa5\x8a\xe8\x19\xaa\x5c\x02\x31\x33";

/// As services with a table: the first block inserts three fields, the next ones are indexes.
const INDEXED_FIRST: &[u8] = b"\x88\x76\x04weir\x5f\x0atext/plain\x5c\x02\x31\x33";
const INDEXED: &[u8] = b"\x88\xc0\xbf\xbe";

const STYLES: [ServiceStyle; 2] = [
    ServiceStyle { name: "blocks of indexes", first: INDEXED_FIRST, next: INDEXED },
    ServiceStyle { name: "blocks that insert", first: INSERTING, next: INSERTING },
];

fn write(out: &mut Vec<u8>, kind: FrameKind, flags: FrameFlags, stream: u32, payload: &[u8]) {
    FrameHeader::new(kind, flags, stream, payload.len() as u32).write(out);
    out.extend_from_slice(payload);
}

/// Runs batches of requests; returns nanoseconds for opening and for receiving one.
fn run(style: ServiceStyle, template: impl Fn(u32) -> Vec<u8>, wants_head: bool) -> (f64, f64) {
    let mut connection = ClientConnection::new(&ClientSettings::default());
    let mut greeting = Vec::new();
    write(&mut greeting, FrameKind::Settings, FrameFlags::NONE, 0, &[]);
    assert_eq!(connection.receive(&greeting).unwrap().event, Some(Event::Settings));
    let (mut opening, mut receiving) = (0_u128, 0_u128);
    let (mut responses, mut next) = (Vec::with_capacity(1 << 16), 1);
    let mut heads = Vec::new();
    let mut block = style.first;
    for batch in 0..BATCHES {
        heads.clear();
        heads.extend((0..STREAMS).map(|stream| template(batch * STREAMS + stream)));
        let start = Instant::now();
        for (key, head) in heads.iter().enumerate() {
            let request = StreamRequest { head, body_length: 0, key: key as u32, template: 0, wants_head };
            black_box(connection.open(&request).unwrap());
        }
        opening += start.elapsed().as_nanos();
        connection.advance(connection.output().len());
        responses.clear();
        for _ in 0..STREAMS {
            write(&mut responses, FrameKind::Headers, FrameFlags::END_HEADERS, next, block);
            write(&mut responses, FrameKind::Data, FrameFlags::END_STREAM, next, CONTENT);
            (next, block) = (next + 2, style.next);
        }
        let start = Instant::now();
        let (mut rest, mut ended) = (responses.as_slice(), 0);
        loop {
            let step = connection.receive(rest).unwrap();
            rest = &rest[step.used..];
            match step.event {
                None => break,
                Some(Event::Ended { .. }) => ended += 1,
                Some(event) => drop(black_box(event)),
            }
        }
        receiving += start.elapsed().as_nanos();
        assert_eq!(ended, STREAMS);
    }
    let count = f64::from(BATCHES * STREAMS);
    (opening as f64 / count, receiving as f64 / count)
}

fn fixed(_: u32) -> Vec<u8> {
    b"GET /items HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: weir/0.1.0\r\nAccept: */*\r\n\r\n".to_vec()
}

fn changing(number: u32) -> Vec<u8> {
    format!("GET /items/{number} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: weir/0.1.0\r\nAccept: */*\r\n\r\n")
        .into_bytes()
}

/// Prints the fastest of the rounds, which others on the machine disturbed least.
fn main() {
    for style in STYLES {
        for (request, template) in [("the same head", fixed as fn(u32) -> Vec<u8>), ("changing paths", changing)] {
            for wants_head in [false, true] {
                let rounds = (0..ROUNDS).map(|_| run(style, template, wants_head));
                let (open, receive) =
                    rounds.reduce(|best, round| (best.0.min(round.0), best.1.min(round.1))).unwrap_or_default();
                let heads = if wants_head { "heads as text" } else { "heads counted" };
                println!(
                    "{:<18} {request:<14} {heads:<13}: open {open:4.0} ns, receive {receive:4.0} ns a request",
                    style.name
                );
            }
        }
    }
}
