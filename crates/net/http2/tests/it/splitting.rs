//! The same events and the same output however the received bytes are split.

use proptest::prelude::*;
use weir_http2::connection::{ClientConnection, ClientSettings, ConnectionError, Event};
use weir_http2::frame::{FrameKind, SettingId};

use super::peer::{
    GET, HEAD, OK_BLOCK, POST, Seen, block, connection, data, feed, frame, goaway, headers, request, settings,
    window_update,
};

/// What came of bytes: events with the pieces of content joined, the output, the end.
type Outcome = (Vec<Seen>, Vec<u8>, Result<(), ConnectionError>);

fn prepared() -> ClientConnection {
    let client = ClientSettings { stream_window_bytes: 3_000, ..ClientSettings::default() };
    let mut connection = connection(&client, &[]);
    for (key, head) in [(1, GET), (3, HEAD), (5, POST), (7, GET)] {
        connection.open(&request(head, u64::from(key == 5) * 10, key)).unwrap();
    }
    connection.ping(*b"weirping");
    connection
}

fn joined(events: Vec<Seen>) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    for event in events {
        match (all.last_mut(), event) {
            (Some(Seen::Data(before, content)), Seen::Data(key, more)) if *before == key => content.extend(more),
            (_, event) => all.push(event),
        }
    }
    all
}

fn outcome<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut connection = prepared();
    let (mut all, mut end) = (Vec::new(), Ok(()));
    for piece in pieces {
        let (events, result) = feed(&mut connection, piece);
        all.extend(events);
        end = result;
        if end.is_err() {
            break;
        }
    }
    (joined(all), connection.output().to_vec(), end)
}

/// A frame that a server may send, and some that it may not.
fn some_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = || prop::sample::select(vec![1_u32, 1, 3, 5, 7, 7, 0, 9]);
    let status = || prop::sample::select(vec!["200", "100", "204", "404", "2"]);
    let flags = || prop::sample::select(vec![0_u8, 0, 1, 8, 9]);
    prop_oneof![
        3 => (stream(), 0_u8..2, status()).prop_map(|(stream, end, status)| {
            headers(stream, end, &block(&[(":status", status), ("content-type", "text/plain")]))
        }),
        2 => (stream(), 0_u8..2).prop_map(|(stream, end)| {
            // Inserted, then used.
            headers(stream, end, &[0x88, 0x5f, 0x03, b'a', b'/', b'b', 0x7e, 0x01, b'c'])
        }),
        1 => (stream(), 0_u8..2).prop_map(|(stream, end)| {
            [
                frame(FrameKind::Headers, end, stream, OK_BLOCK),
                frame(FrameKind::Continuation, 0, stream, &block(&[("x", "y")])),
                frame(FrameKind::Continuation, 4, stream, b""),
            ].concat()
        }),
        4 => (stream(), flags(), prop::collection::vec(0_u8..20, 0..2000)).prop_map(|(stream, flags, content)| {
            data(stream, flags, &content)
        }),
        1 => (stream(), 0_u32..9).prop_map(|(stream, code)| frame(FrameKind::RstStream, 0, stream, &code.to_be_bytes())),
        1 => (stream(), 0_u32..9).prop_map(|(stream, increment)| window_update(stream, increment)),
        1 => (0_u8..2, any::<[u8; 8]>()).prop_map(|(ack, payload)| frame(FrameKind::Ping, ack, 0, &payload)),
        1 => (0_u32..70_000).prop_map(|size| settings(&[(SettingId::INITIAL_WINDOW_SIZE, size), (SettingId(9), 9)])),
        1 => (0_u32..9).prop_map(|last| goaway(last, 0)),
        1 => (any::<u8>(), stream(), prop::collection::vec(any::<u8>(), 0..30)).prop_map(|(kind, stream, payload)| {
            frame(FrameKind::of(kind), 0, stream, &payload)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_splitting_gives_the_same_events_and_output(
        frames in prop::collection::vec(some_frame(), 0..25),
        sizes in prop::collection::vec(1_usize..40, 1..10),
    ) {
        let bytes = frames.concat();
        let whole = outcome([bytes.as_slice()].into_iter());
        prop_assert_eq!(&outcome(bytes.chunks(1)), &whole);
        let mut rest = bytes.as_slice();
        let mut sizes = sizes.iter().cycle();
        let pieces = std::iter::from_fn(|| {
            let (piece, after) = rest.split_at((*sizes.next()?).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(&outcome(pieces), &whole);
    }

    #[test]
    fn no_bytes_panic_and_each_key_ends_once(bytes in prop::collection::vec(any::<u8>(), 0..400), frames in prop::collection::vec(some_frame(), 0..25)) {
        let (events, _, _) = outcome([frames.concat().as_slice(), &bytes].into_iter());
        let mut ended = Vec::new();
        for event in events {
            let (key, is_end) = match event {
                Seen::Data(key, _) | Seen::Other(Event::Head { key, .. }) => (key, false),
                Seen::Other(Event::Ended { key, .. } | Event::Reset { key, .. }) => (key, true),
                Seen::Other(_) => continue,
            };
            prop_assert!(!ended.contains(&key), "{key} after its end");
            if is_end {
                ended.push(key);
            }
        }
    }
}
