//! Client of HTTP/2: the same events, output and end however the bytes are cut, at most one end for each request, and
//! memory within its bounds.
//!
//! Input: a byte of options, then sizes of pieces, then the stream behind the server's settings. Options: bits 0 and 1:
//! number of sizes less one; bits 2 and 3: repetitions of the stream; bit 4: the stream is a recipe (see [`cook`]), since
//! random bytes hardly ever make a frame.

use std::iter;

use weir_http2::connection::{ClientSettings, ConnectionError, Event};
use weir_http2::frame::{FrameFlags, FrameHeader, FrameKind};

#[allow(dead_code, reason = "seeded connections use more of it")]
#[path = "../../../crates/net/http2/tests/seeded_peer/driven_client.rs"]
mod driven_client;

use crate::allocation;
use crate::stream_pieces::pieces;
use driven_client::DrivenClient;

/// Requests that are open before the stream.
const REQUESTS: u32 = 6;

/// Event without the received bytes; content is a sum, since pieces differ.
#[derive(Debug, PartialEq)]
enum Seen {
    Content(u32, u64),
    Other(String),
}

type Received = (Vec<Seen>, Vec<u8>, Result<(), ConnectionError>);

/// A client with requests of each kind; one is cancelled.
fn prepared() -> DrivenClient {
    let settings = ClientSettings { stream_window_bytes: 5_000, max_fields_bytes: 2_000, ..ClientSettings::default() };
    let mut client = DrivenClient::new(&settings);
    let greeting = FrameHeader::new(FrameKind::Settings, FrameFlags::NONE, 0, 0).encode();
    let mut events = 0;
    let greeted = client.receive(&greeting, |event, _| events += u32::from(event == Event::Settings));
    assert_eq!((greeted, events), (Ok(()), 1));
    for key in 0..REQUESTS {
        let head: &[u8] = match key % 3 {
            0 => b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            1 => b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            _ => b"POST / HTTP/1.1\r\nHost: h\r\n\r\n",
        };
        let opened = client.open(head, u64::from(key % 3 == 2) * 100_000, key < 3);
        assert_eq!(opened, Some(key), "six streams fit");
        if key == 3 {
            client.cancel(key);
        }
    }
    client
}

fn receive<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Received {
    let mut client = prepared();
    let (mut seen, mut end) = (Vec::<Seen>::new(), Ok(()));
    for piece in pieces {
        end = client.receive(piece, |event, head_text| match (event, seen.last_mut()) {
            (Event::Data { key, bytes }, Some(Seen::Content(last, sum))) if *last == key => {
                *sum += bytes.len() as u64;
            }
            (Event::Data { key, bytes }, _) => seen.push(Seen::Content(key, bytes.len() as u64)),
            (event, _) => seen.push(Seen::Other(format!("{event:?} {}", head_text.escape_ascii()))),
        });
        if end.is_err() {
            break;
        }
    }
    client.send_bodies();
    (seen, client.connection().output().to_vec(), end)
}

/// A stream of frames: each is kind, flags, stream and length of a payload, which follows.
fn cook(recipe: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut rest = recipe;
    while let Some(([kind, flags, number, length], behind)) = rest.split_first_chunk::<4>() {
        let (payload, after) = behind.split_at(usize::from(*length).min(behind.len()));
        let number = u32::from(*number & 15);
        let header = FrameHeader::new(FrameKind::of(*kind % 11), FrameFlags(*flags), number, payload.len() as u32);
        stream.extend_from_slice(&header.encode());
        stream.extend_from_slice(payload);
        rest = after;
    }
    stream
}

crate::target!(|data: &[u8]| {
    let Some((&options, rest)) = data.split_first() else { return };
    let Some((sizes, stream)) = rest.split_at_checked(1 + usize::from(options & 3)) else { return };
    let stream = if options >> 4 & 1 == 1 { cook(stream) } else { stream.to_vec() };
    let stream = stream.repeat([1, 1, 3, 200][usize::from(options >> 2 & 3)]);

    let whole = receive(iter::once(stream.as_slice()));
    assert_eq!(receive(pieces(&stream, sizes)), whole, "cut");
    // A long one byte by byte would take too long.
    assert_eq!(receive(stream.chunks(1 + stream.len() / 8192 * 60)), whole, "byte by byte");
});
