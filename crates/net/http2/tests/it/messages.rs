//! Requests and responses as they are on the wire and as callers see them.

use proptest::prelude::*;
use weir_http2::connection::{ClientSettings, Event, OpenError, ResponseNotes, StreamRequest};
use weir_http2::frame::{FrameFlags, FrameKind, SettingId};
use weir_http2::hpack::{HpackDecoder, HpackEncoder, IndexingPolicy};
use weir_http2::request::{RequestEncoder, RequestHeadError};
use weir_http2::response::ResponseDecoder;

use super::hpack_examples::Fields;
use super::peer::{GET, Seen, block, connection, data, events, headers, open, request, sent};

#[test]
fn the_head_of_a_response_is_text_of_http_1() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let fields = [(":status", "404"), ("content-type", "text/plain"), ("set-cookie", "a=b"), ("content-length", "2")];
    for round in 0..3 {
        open(&mut one, round);
        let number = 2 * round + 1;
        let bytes = [headers(number, 0, &block(&fields)), data(number, 1, b"no")].concat();
        let first = one.receive(&bytes).unwrap();
        let head = ResponseNotes { status: 404, content_length: Some(2), sets_cookie: true, is_encoded: false };
        assert_eq!(first.event, Some(Event::Head { key: round, head }));
        let text = "HTTP/2 404\r\ncontent-type: text/plain\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(str::from_utf8(one.head_text()).unwrap(), text);
        let rest = events(&mut one, &bytes[first.used..]);
        assert_eq!(rest[0], Seen::Data(round, b"no".to_vec()));
        let Seen::Other(Event::Ended { key, totals }) = &rest[1] else { panic!("{rest:?}") };
        assert_eq!((*key, totals.status, totals.body, totals.wire), (round, 404, 2, bytes.len() as u64));
    }
}

#[test]
fn a_status_of_grpc_is_that_of_the_last_fields_and_its_trailers_are_text_if_they_are_wanted() {
    let trailers = |status| block(&[("grpc-status", status), ("grpc-message", "no")]);
    for (wants_trailers, round) in [false, true].into_iter().flat_map(|wants| (0..3).map(move |round| (wants, round))) {
        let mut one = connection(&ClientSettings { wants_trailers, ..ClientSettings::default() }, &[]);
        for (at, (status, code)) in [("0", 0), ("14", 14), ("17", 2), ("x", 2), ("14", 14)].into_iter().enumerate() {
            let key = round * 9 + at as u32;
            let number = open(&mut one, key).number();
            let head = block(&[(":status", "200"), ("grpc-status", "5")]);
            let bytes =
                [headers(number, 0, &head), data(number, 0, b"no"), headers(number, 1, &trailers(status))].concat();
            let seen = events(&mut one, &bytes);
            let Some(Seen::Other(Event::Ended { totals, .. })) = seen.last() else { panic!("{seen:?}") };
            assert_eq!((totals.status, totals.grpc_status), (200, Some(code)), "{status}");
            let text = format!("grpc-status: {status}\r\ngrpc-message: no\r\n\r\n");
            assert_eq!(one.head_text() == text.as_bytes(), wants_trailers, "{:?}", str::from_utf8(one.head_text()));
        }
        // All of it in the head, and none of it at all.
        for (fields, code) in
            [(&[(":status", "200"), ("grpc-status", "7")][..], Some(7)), (&[(":status", "200")], None)]
        {
            let number = open(&mut one, 99).number();
            let seen = events(&mut one, &headers(number, 1, &block(fields)));
            let Some(Seen::Other(Event::Ended { totals, .. })) = seen.last() else { panic!("{seen:?}") };
            assert_eq!(totals.grpc_status, code);
            assert!(one.head_text().starts_with(b"HTTP/2 200\r\n"));
        }
    }
}

#[test]
fn a_long_head_is_split_into_continuations() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\n\r\n", "\u{1}".repeat(40_000));
    one.open(&request(head.as_bytes(), 0, 1)).unwrap();
    let frames = sent(&mut one);
    let kinds: Vec<_> = frames.iter().map(|(header, _)| (header.kind, header.flags, header.length)).collect();
    assert_eq!(kinds[0], (FrameKind::Headers, FrameFlags::END_STREAM, 16_384));
    assert_eq!(kinds[1], (FrameKind::Continuation, FrameFlags::NONE, 16_384));
    assert_eq!((kinds[2].0, kinds[2].1, kinds.len()), (FrameKind::Continuation, FrameFlags::END_HEADERS, 3));
    let block: Vec<u8> = frames.into_iter().flat_map(|(_, payload)| payload).collect();
    let mut fields = Fields::default();
    HpackDecoder::default().decode(&block, &mut fields).unwrap();
    assert_eq!(fields.0.last().unwrap().1.len(), 40_000);
}

#[test]
fn a_request_that_cannot_be_translated_opens_no_stream() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let error = one.open(&request(b"CONNECT h:1 HTTP/1.1\r\n\r\n", 0, 1)).unwrap_err();
    assert_eq!(error, OpenError::Head(RequestHeadError::Connect));
    assert_eq!((one.open_streams(), one.output()), (0, &[][..]));
    assert_eq!(open(&mut one, 2).number(), 1);
}

#[test]
fn the_request_is_the_same_after_a_change_of_the_table() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let mut decoder = HpackDecoder::default();
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        [(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/a")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
    let mut lengths = Vec::new();
    for round in 0_u32..12 {
        if round == 4 || round == 8 {
            // Without a table, then with it again.
            let size = if round == 4 { 0 } else { 4096 };
            events(&mut one, &super::peer::settings(&[(SettingId::HEADER_TABLE_SIZE, size)]));
            decoder.limit_table(size as usize);
        }
        open(&mut one, round);
        let frames = sent(&mut one);
        let (_, block) = frames.iter().find(|(header, _)| header.kind == FrameKind::Headers).unwrap();
        let mut fields = Fields::default();
        decoder.decode(block, &mut fields).unwrap();
        assert_eq!(fields.0, expected, "round {round}");
        lengths.push(block.len());
    }
    assert_eq!((lengths[2], lengths[3], lengths[10], lengths[11]), (4, 4, 4, 4), "{lengths:?}");
    assert!(lengths[4..8].iter().all(|length| *length > 4), "{lengths:?}");
}

/// A field of a response, of which many repeat.
fn field() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec!["content-type", "date", "server", "x-a", "etag", "set-cookie"]);
    let value = prop_oneof![Just("text/html".to_owned()), Just("weir".to_owned()), "[a-z0-9]{1,20}"];
    (name.prop_map(str::to_owned), value)
}

proptest! {
    #[test]
    fn cached_blocks_of_responses_mean_what_decoded_ones_do(
        heads in prop::collection::vec((prop::sample::select(vec!["200", "404", "503"]), prop::collection::vec(field(), 0..4)), 1..5),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..60),
        is_nginx: bool,
    ) {
        // The encoder is that of requests: nothing in it depends on the direction. nginx inserts and never refers.
        let mut encoder = HpackEncoder::new(4096, IndexingPolicy::All);
        let mut cached = ResponseDecoder::new(HpackDecoder::default(), 1 << 16);
        for (index, wants_text) in order {
            let (status, fields) = &heads[index.index(heads.len())];
            let mut block = Vec::new();
            if is_nginx {
                // Index of :status, value as a literal; then literals to be inserted.
                block.extend([0x48, 3]);
                block.extend(status.bytes());
                for (name, value) in fields {
                    block.extend([0x40, name.len() as u8]);
                    block.extend(name.bytes());
                    block.push(value.len() as u8);
                    block.extend(value.bytes());
                }
            } else {
                encoder.begin(&mut block);
                encoder.field(b":status", status.as_bytes(), &mut block);
                fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
            }
            let found = cached.decode(&block, wants_text).unwrap();
            prop_assert_eq!(found.violation, None);
            prop_assert_eq!(found.status, status.parse().ok());
            prop_assert_eq!(found.sets_cookie, fields.iter().any(|(name, _)| name == "set-cookie"));
            if wants_text {
                let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                prop_assert_eq!(str::from_utf8(cached.text()).unwrap(), format!("HTTP/2 {status}\r\n{lines}\r\n"));
            }
        }
    }

    #[test]
    fn cached_blocks_of_requests_mean_what_encoded_ones_do(
        paths in prop::collection::vec("[a-z]{0,9}", 1..4),
        order in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..3, 0_u32..30), 1..60),
    ) {
        let mut encoder = RequestEncoder::new(HpackEncoder::default(), false);
        let mut decoder = HpackDecoder::default();
        for (index, template, resize) in order {
            if resize < 2 {
                encoder.limit_table(resize as usize * 300);
                decoder.limit_table(resize as usize * 300);
            }
            let path = &paths[index.index(paths.len())];
            let text = format!("HEAD /{path} HTTP/1.1\r\nHost: h\r\nX-Path: {path}-\r\n\r\n");
            let mut block = Vec::new();
            let encoded = encoder.encode(text.as_bytes(), template, &mut block).unwrap();
            prop_assert!(encoded.is_head);
            let mut fields = Fields::default();
            prop_assert!(decoder.decode(&block, &mut fields).is_ok());
            let text: Vec<String> = fields.0.into_iter().map(|(_, value)| String::from_utf8(value).unwrap()).collect();
            prop_assert_eq!(text, ["HEAD".to_owned(), "http".to_owned(), "h".to_owned(), format!("/{path}"), format!("{path}-")]);
        }
    }
}

#[test]
fn a_head_that_is_not_wanted_has_no_text() {
    let mut one = connection(&ClientSettings::default(), &[]);
    one.open(&StreamRequest { wants_head: false, ..request(GET, 0, 1) }).unwrap();
    let seen = events(&mut one, &headers(1, 1, &block(&[(":status", "200"), ("a", "b")])));
    assert_eq!((seen.len(), one.head_text()), (2, &[][..]));
}
