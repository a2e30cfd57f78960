//! Any cut of any body gives the events of the naive parser.

use proptest::prelude::*;

use super::oracle::{self, Whole};
use crate::{EventReader, StreamEvent, StreamFormat};

fn owned(event: StreamEvent<'_>) -> Whole {
    Whole {
        name: event.name.to_vec(),
        data: event.data.to_vec(),
        id: event.id.to_vec(),
        retry_ms: event.retry_ms,
        start: event.start,
        end: event.end,
        is_truncated: event.is_truncated,
    }
}

/// Events of pieces, and those that had come with each piece.
pub(super) fn read(reader: &mut EventReader, pieces: &[&[u8]]) -> Vec<Whole> {
    let mut events = Vec::new();
    let mut offset = 0;
    for piece in pieces {
        let mut rest = *piece;
        while let Some(event) = reader.next_event(&mut rest) {
            let is_in_piece = event.end > offset && event.end <= offset + piece.len() as u64;
            assert!(is_in_piece, "{event:?} completed by another piece than the one at {offset}");
            events.push(owned(event));
        }
        assert!(rest.is_empty());
        offset += piece.len() as u64;
    }
    events.extend(reader.end().map(owned));
    events
}

/// Body of the parts that matter to either format.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => Just(b"data:".to_vec()),
        2 => Just(b"data: ".to_vec()),
        1 => Just(b"data".to_vec()),
        1 => Just(b"id: ".to_vec()),
        1 => Just(b"event: x".to_vec()),
        1 => Just(b"event".to_vec()),
        1 => Just(b"retry: 15".to_vec()),
        1 => Just(b"retry:99999999999999999999".to_vec()),
        1 => Just(b":".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"\xef\xbb".to_vec()),
        1 => Just(b"\0".to_vec()),
        4 => Just(b"\n".to_vec()),
        3 => Just(b"\r".to_vec()),
        4 => Just(b"\r\n".to_vec()),
        3 => Just(b"\n\n".to_vec()),
        2 => Just(b" ".to_vec()),
        3 => "[a-z]{1,12}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn pieces<'a>(body: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_cut_body_has_the_events_of_the_whole(
        body in body(),
        sizes in prop::collection::vec(1_usize..30, 1..6),
        max in prop_oneof![Just(usize::MAX), 0_usize..20],
    ) {
        for (format, naive) in [
            (StreamFormat::Sse, oracle::sse as fn(&[u8], usize) -> Vec<Whole>),
            (StreamFormat::JsonLines, oracle::json_lines),
            (StreamFormat::Json, oracle::document),
        ] {
            let expected = naive(&body, max);
            let mut reader = EventReader::with_max_data(format, max);
            for cut in [pieces(&body, &sizes), pieces(&body, &[1]), pieces(&body, &[body.len().max(1)])] {
                prop_assert_eq!(&read(&mut reader, &cut), &expected, "{:?} {}", cut, format.name());
                reader.restart(format);
            }
        }
    }

    #[test]
    fn chunks_are_the_pieces(body in body(), sizes in prop::collection::vec(1_usize..30, 1..6)) {
        let cut = pieces(&body, &sizes);
        let events = read(&mut EventReader::new(StreamFormat::Chunks), &cut);
        let data: Vec<&[u8]> = events.iter().map(|event| event.data.as_slice()).collect();
        prop_assert_eq!(data, cut);
        prop_assert_eq!(events.last().map_or(0, |event| event.end), body.len() as u64);
    }

    #[test]
    fn a_body_that_ends_within_an_event_is_noticed(body in body(), size in 1_usize..30) {
        let mut reader = EventReader::new(StreamFormat::Sse);
        read(&mut reader, &pieces(&body, &[size]));
        // What is behind the last event: lines that are not empty, and then an empty one, would end the current event.
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
        let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
        let is_complete = text.is_empty() || text == "\n" || text.ends_with("\n\n");
        let only_blank = text.bytes().all(|byte| byte == b'\n');
        prop_assert_eq!(reader.is_within_event(), !is_complete && !only_blank);
    }
}
