//! Examples of the WHATWG's HTML standard, section 9.2, and others by hand.

use super::oracle::Whole;
use super::properties::read;
use crate::{EventReader, StreamFormat};

/// Type, data and last ID of each event, the same for each line end.
fn sse(body: &str) -> Vec<(String, String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let events = |body: &str| -> Vec<_> {
        let events = read(&mut EventReader::new(StreamFormat::Sse), &[body.as_bytes()]);
        events.into_iter().map(|event| (text(&event.name), text(&event.data), text(&event.id))).collect()
    };
    let found = events(body);
    for end in ["\r\n", "\r"] {
        assert_eq!(events(&body.replace('\n', end)), found, "{end:?}");
    }
    found
}

fn data(body: &str) -> Vec<String> {
    sse(body).into_iter().map(|(_, data, _)| data).collect()
}

#[test]
fn lines_of_data_are_joined() {
    let messages = "data: This is the first message.\n\ndata: This is the second message, it\ndata: has two lines.\n\n\
                    data: This is the third message.\n\n";
    assert_eq!(
        data(messages),
        ["This is the first message.", "This is the second message, it\nhas two lines.", "This is the third message."]
    );
    assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
}

#[test]
fn events_have_types() {
    let events =
        sse("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\ndata: 1\n\n");
    let names: Vec<&str> = events.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["add", "remove", "add", ""]);
}

/// "Four blocks. The first has just a comment, the second has two fields with names "data" and "id", the third resets
/// the last event ID and its data begins with a space, the last is discarded, since it is not followed by a blank line."
#[test]
fn comments_fire_nothing_and_ids_stay_until_they_are_reset() {
    let body = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
    let expected = [("", "first event", "1"), ("", "second event", "")];
    assert_eq!(sse(body), expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    assert_eq!(data(&format!("{body}\n")), ["first event", "second event", " third event"]);
    let mut reader = EventReader::new(StreamFormat::Sse);
    read(&mut reader, &[body.as_bytes()]);
    assert!(reader.is_within_event());
}

/// "The first block fires events with the data set to the empty string, as would the last block if it was followed by a
/// blank line. The middle block fires an event with the data set to a single newline character."
#[test]
fn empty_data_is_an_event() {
    assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
}

#[test]
fn one_space_behind_the_colon_is_ignored() {
    assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
}

#[test]
fn an_event_without_data_is_none_and_its_type_is_forgotten() {
    assert_eq!(sse("event: ping\n\ndata: x\n\n"), [(String::new(), "x".to_owned(), String::new())]);
}

#[test]
fn an_id_with_a_null_is_ignored() {
    let ids: Vec<String> =
        sse("id: 1\ndata\n\nid: 2\0\ndata\n\nid: 3\n\ndata\n\n").into_iter().map(|it| it.2).collect();
    assert_eq!(ids, ["1", "1", "3"]);
}

#[test]
fn a_byte_order_mark_is_skipped_once_and_only_at_the_start() {
    assert_eq!(data("\u{feff}data: 1\n\n\u{feff}data: 2\n\ndata: 3\n\n"), ["1", "3"]);
}

#[test]
fn a_retry_is_digits_only() {
    let read = |body: &str| {
        let events = read(&mut EventReader::new(StreamFormat::Sse), &[body.as_bytes()]);
        events.into_iter().map(|event| event.retry_ms).collect::<Vec<_>>()
    };
    assert_eq!(read("retry: 10000\ndata\n\nretry: -1\ndata\n\nretry: 2s\nretry\ndata\n\n"), [Some(10_000); 3]);
    assert_eq!(read("data\n\n"), [None]);
}

#[test]
fn a_cr_completes_an_event_before_its_lf_comes() {
    let mut reader = EventReader::new(StreamFormat::Sse);
    let mut piece: &[u8] = b"data: 1\r\n\r";
    assert_eq!(reader.next_event(&mut piece).map(|event| (event.data, event.end)), Some((&b"1"[..], 10)));
    let mut piece: &[u8] = b"\ndata: 2\r\r";
    assert_eq!(reader.next_event(&mut piece).map(|event| (event.data, event.start)), Some((&b"2"[..], 11)));
}

#[test]
fn data_of_one_line_within_a_piece_is_not_copied() {
    let piece: &[u8] = b"event: a\nid: 1\ndata: content\n\n";
    let mut reader = EventReader::new(StreamFormat::Sse);
    let event = reader.next_event(&mut { piece }).expect("an event");
    assert!(piece.as_ptr_range().contains(&event.data.as_ptr()));
}

#[test]
fn events_behind_a_long_one_are_read() {
    let mut reader = EventReader::with_max_data(StreamFormat::Sse, 4);
    let events = read(&mut reader, &[b"data: 123456789", b"0\n\ndata: 1234\n\n"]);
    let cut: Vec<(&[u8], bool)> = events.iter().map(|event| (event.data.as_slice(), event.is_truncated)).collect();
    assert_eq!(cut, [(&b"1234"[..], true), (b"1234", false)]);
}

#[test]
fn a_last_line_of_json_needs_no_line_end() {
    let events = read(&mut EventReader::new(StreamFormat::JsonLines), &[b"{\"a\":1}\r\n\r\n \n[2", b"]"]);
    let data = |event: &Whole| String::from_utf8(event.data.clone()).expect("text");
    assert_eq!(events.iter().map(data).collect::<Vec<_>>(), ["{\"a\":1}", "[2]"]);
    assert_eq!((events[1].start, events[1].end), (13, 16));
}

#[test]
fn a_format_is_chosen_by_content_type_or_by_name() {
    for (value, expected) in [
        ("text/event-stream", StreamFormat::Sse),
        ("Text/Event-Stream ; charset=utf-8", StreamFormat::Sse),
        ("application/x-ndjson", StreamFormat::JsonLines),
        ("application/jsonl;charset=utf-8", StreamFormat::JsonLines),
        ("application/json", StreamFormat::Json),
        ("Application/Problem+JSON; charset=utf-8", StreamFormat::Json),
        ("text/html", StreamFormat::Chunks),
        ("", StreamFormat::Chunks),
    ] {
        assert_eq!(StreamFormat::of_content_type(value.as_bytes()), expected, "{value}");
    }
    for format in StreamFormat::ALL {
        assert_eq!(StreamFormat::parse(format.name()), Ok(format));
    }
    let error = StreamFormat::parse("xml");
    assert_eq!(error, Err("unknown stream format 'xml'; choose sse, ndjson, chunks or json".to_owned()));
}
