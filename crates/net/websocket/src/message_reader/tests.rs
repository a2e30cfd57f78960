//! Reading: the same in pieces of any size, against a naive reader of whole input.

use super::*;
use crate::frame_writer::FrameWriter;
use proptest::prelude::*;

/// What was received, as owned values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

fn owned(received: Received<'_>) -> Owned {
    match received {
        Received::Message(ReceivedMessage { is_text: true, data, .. }) => {
            Owned::Text(String::from_utf8(data.to_vec()).expect("text is UTF-8"))
        }
        Received::Message(message) => Owned::Binary(message.data.to_vec()),
        Received::Ping(data) => Owned::Ping(data.to_vec()),
        Received::Pong(data) => Owned::Pong(data.to_vec()),
        Received::Close(code, reason) => Owned::Close(code.map(|code| code.0), reason.to_owned()),
    }
}

/// Reads the input in pieces of these sizes, in turn.
fn read(endpoint: Endpoint, input: &[u8], sizes: &[usize]) -> (Vec<Owned>, Option<Violation>) {
    let mut reader = WebSocketReader::new(endpoint, MAX_BYTES);
    let mut found = Vec::new();
    let mut left = input;
    for size in sizes.iter().cycle() {
        let (mut piece, rest) = left.split_at((*size).clamp(1, left.len().max(1)).min(left.len()));
        left = rest;
        loop {
            match reader.next_message(&mut piece) {
                Ok(Some(received)) => found.push(owned(received)),
                Ok(None) => break,
                Err(violation) => return (found, Some(violation)),
            }
        }
        assert!(piece.is_empty());
        if left.is_empty() {
            break;
        }
    }
    (found, None)
}

const MAX_BYTES: u64 = 70_000;

/// Reader that has all input at once, and nothing clever. What comes before the first wrong frame is returned.
fn naive(endpoint: Endpoint, input: &[u8]) -> (Vec<Owned>, bool) {
    let (mut found, mut at, mut message) = (Vec::new(), 0, None::<(bool, Vec<u8>)>);
    loop {
        let byte = |index: usize| input.get(at + index).copied();
        let Some(first) = byte(0) else { return (found, true) };
        let opcode = first & 15;
        if first & 0x30 != 0 || !matches!(opcode, 0..=2 | 8..=10) || (opcode >= 8 && first & 0x80 == 0) {
            return (found, false);
        }
        let Some(second) = byte(1) else { return (found, true) };
        let short = u64::from(second & 127);
        if opcode >= 8 && short > 125 {
            return (found, false);
        }
        let wide = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mut length = if wide == 0 { short } else { 0 };
        for index in 0..wide {
            let Some(byte) = byte(2 + index) else { return (found, true) };
            length = length << 8 | u64::from(byte);
        }
        if (wide == 2 && length < 126) || (wide == 8 && !(65_536..1 << 63).contains(&length)) {
            return (found, false);
        }
        let is_masked = second & 128 != 0;
        let head = 2 + wide + if is_masked { 4 } else { 0 };
        if input.len() < at + head {
            return (found, true);
        }
        // Whether compression was agreed on is looked at once the head is whole.
        if first & 0x40 != 0 || is_masked != (endpoint == Endpoint::Server) {
            return (found, false);
        }
        match (opcode, &message) {
            (1 | 2, Some(_)) | (0, None) => return (found, false),
            _ => {}
        }
        let before = message.as_ref().map_or(0, |(_, data)| data.len() as u64);
        if opcode < 8 && before + length > MAX_BYTES {
            return (found, false);
        }
        let start = at + head;
        let end = input.len().min(start + length as usize);
        let key = if is_masked { &input[start - 4..start] } else { &[][..] };
        let data = input[start..end].iter().enumerate();
        let data: Vec<u8> = data.map(|(index, byte)| if is_masked { byte ^ key[index % 4] } else { *byte }).collect();
        let is_whole = data.len() as u64 == length;
        at = end;
        if opcode < 8 {
            let (is_text, mut joined) = message.take().unwrap_or((opcode == 1, Vec::new()));
            joined.extend(data);
            let is_last = is_whole && first & 0x80 != 0;
            if is_text
                && let Err(error) = std::str::from_utf8(&joined)
                && (is_last || error.error_len().is_some())
            {
                return (found, false);
            }
            if !is_last {
                message = Some((is_text, joined));
                if !is_whole {
                    return (found, true);
                }
                continue;
            }
            found.push(match is_text {
                true => Owned::Text(String::from_utf8(joined).expect("checked")),
                false => Owned::Binary(joined),
            });
            continue;
        }
        if !is_whole {
            return (found, true);
        }
        match opcode {
            9 => found.push(Owned::Ping(data)),
            10 => found.push(Owned::Pong(data)),
            _ => {
                let code = data.first_chunk().map(|code| u16::from_be_bytes(*code));
                let reason = std::str::from_utf8(data.get(2..).unwrap_or_default());
                let is_code = |code| matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
                match (code, reason) {
                    (None, _) if !data.is_empty() => return (found, false),
                    (Some(code), _) if !is_code(code) => return (found, false),
                    (_, Err(_)) => return (found, false),
                    (code, Ok(reason)) => found.push(Owned::Close(code, reason.to_owned())),
                }
                return (found, at == input.len());
            }
        }
    }
}

/// Frames that are mostly right, as bytes of one side.
fn frames(endpoint: Endpoint) -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        "[a-zäöü€😀]{0,40}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..40),
        (prop_oneof![Just(125usize), Just(126), Just(65_535), Just(65_536)]).prop_map(|length| vec![b'x'; length]),
    ];
    let opcode = prop::sample::select(vec![0u8, 0, 0, 1, 1, 2, 8, 9, 10, 1, 2, 0, 3]);
    let one = (opcode, any::<bool>(), text, 0..40u8);
    prop::collection::vec(one, 0..12).prop_map(move |frames| {
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::new(endpoint, 7);
        for (opcode, is_last, payload, mistake) in frames {
            let kind = Opcode::of(opcode).unwrap_or(Opcode::Text);
            let payload = if kind.is_control() { &payload[..payload.len().min(125)] } else { &payload[..] };
            let start = bytes.len();
            writer.write_fragment(kind, payload, (is_last || kind.is_control(), false), &mut bytes);
            match mistake {
                0 => bytes[start] ^= 0x10,
                1 => bytes[start] ^= 0x80,
                2 => bytes[start + 1] ^= 0x80,
                _ if opcode == 3 => bytes[start] = bytes[start] & 0xF0 | 3,
                _ => {}
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_by_the_naive_reader(
        input in prop_oneof![frames(Endpoint::Server), prop::collection::vec(any::<u8>(), 0..60)],
        sizes in prop::collection::vec(1..50usize, 1..6),
    ) {
        let expected = naive(Endpoint::Client, &input);
        for sizes in [&[usize::MAX][..], &[1], &sizes] {
            let (found, violation) = read(Endpoint::Client, &input, sizes);
            prop_assert_eq!(&(found, violation.is_none()), &expected, "{:?} {:?}", sizes, violation);
        }
    }

    #[test]
    fn a_server_reads_masked_frames_as_the_naive_reader(
        input in frames(Endpoint::Client), sizes in prop::collection::vec(1..50usize, 1..6),
    ) {
        let expected = naive(Endpoint::Server, &input);
        for sizes in [&[usize::MAX][..], &[1], &sizes] {
            let (found, violation) = read(Endpoint::Server, &input, sizes);
            prop_assert_eq!(&(found, violation.is_none()), &expected, "{:?} {:?}", sizes, violation);
        }
    }
}

#[test]
fn each_violation_has_its_name() {
    let text = |bytes: &[u8]| [&[0x81, bytes.len() as u8][..], bytes].concat();
    for (bytes, expected) in [
        (vec![0x81, 0x80, 0, 0, 0, 0], Violation::Masked),
        (vec![0xC1, 0], Violation::ReservedBit),
        (vec![0x80, 0], Violation::Orphan),
        (vec![0x01, 1, b'a', 0x81, 0], Violation::Interrupted),
        (text(b"\xFF"), Violation::Utf8),
        (text("€".as_bytes()[..2].as_ref()), Violation::Utf8),
        (vec![0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255], Violation::TooBig(MAX_BYTES)),
        (vec![0x88, 1, 3], Violation::ShortClose),
        (vec![0x88, 2, 3, 0xED], Violation::CloseCode(1005)),
        (vec![0x88, 3, 3, 0xE8, 0xFF], Violation::CloseReason),
        (vec![0x88, 0, 0x81, 0], Violation::AfterClose),
    ] {
        let (_, violation) = read(Endpoint::Client, &bytes, &[usize::MAX]);
        assert_eq!(violation, Some(expected), "{bytes:?}");
        assert!(expected.close_code().is_sendable());
    }
    let (_, violation) = read(Endpoint::Server, &[0x81, 0], &[1]);
    assert_eq!(violation, Some(Violation::Unmasked));
}

#[test]
fn bad_utf8_over_fragments_is_found_with_its_byte() {
    let euro = "€".as_bytes();
    let mut reader = WebSocketReader::new(Endpoint::Client, MAX_BYTES);
    let mut first = &[0x01, 2, euro[0], euro[1]][..];
    assert_eq!(reader.next_message(&mut first), Ok(None));
    assert!(reader.is_within_message());
    // Its payload has two bytes, and the first is wrong already.
    let mut second = &[0x80, 2, b'a'][..];
    assert_eq!(reader.next_message(&mut second), Err(Violation::Utf8));
}

#[test]
fn a_message_has_the_bytes_of_its_frames_without_those_between() {
    let input = [0x01, 1, b'a', 0x89, 1, b'p', 0x80, 1, b'b', 0x82, 0];
    let mut reader = WebSocketReader::new(Endpoint::Client, MAX_BYTES);
    let mut rest = &input[..];
    assert_eq!(reader.next_message(&mut rest), Ok(Some(Received::Ping(b"p"))));
    let joined = ReceivedMessage { is_text: true, data: b"ab", wire_bytes: 6 };
    assert_eq!(reader.next_message(&mut rest), Ok(Some(Received::Message(joined))));
    let empty = ReceivedMessage { is_text: false, data: b"", wire_bytes: 2 };
    assert_eq!(reader.next_message(&mut rest), Ok(Some(Received::Message(empty))));
    assert!(!reader.is_within_message());
}

#[test]
fn compressed_messages_are_read_if_they_were_agreed_on() {
    let mut compressed = Vec::new();
    crate::deflate::Deflater::new(false).deflate("häuser".as_bytes(), &mut compressed);
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(Endpoint::Server, 0);
    let (first, second) = compressed.split_at(2);
    writer.write_fragment(Opcode::Text, first, (false, true), &mut bytes);
    writer.write_fragment(Opcode::Continuation, second, (true, false), &mut bytes);
    assert_eq!(read(Endpoint::Client, &bytes, &[3]).1, Some(Violation::ReservedBit));
    let mut reader = WebSocketReader::new(Endpoint::Client, MAX_BYTES);
    reader.set_inflater(Inflater::new(false));
    let mut rest = &bytes[..];
    let received = reader.next_message(&mut rest).unwrap().unwrap();
    assert_eq!(owned(received), Owned::Text("häuser".into()));
}
