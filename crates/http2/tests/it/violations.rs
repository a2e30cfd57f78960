//! Frames that break the rules of RFC 9113 sections 4 to 6 and 8: each ends its stream or the connection with the right
//! code.

use weir_http2::connection::{ClientConnection, ClientSettings, Event, ResetSide};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{FrameKind, SettingId};

use super::peer::{
    GET, OK_BLOCK, POST, Seen, block, connection, data, feed, frame, goaway, headers, request, sent, settings,
    window_update,
};

/// How a violation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The connection, with this code.
    Connection(ErrorCode),
    /// Stream 1 alone.
    Stream(ErrorCode),
    /// Nothing: it is permitted or has to be ignored.
    Nothing,
}

use End::{Connection, Nothing, Stream};

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
const CLOSED: ErrorCode = ErrorCode::STREAM_CLOSED;
const CALM: ErrorCode = ErrorCode::ENHANCE_YOUR_CALM;

/// A connection with stream 1 (GET) and stream 3 (POST of 10 bytes) open.
fn prepared() -> ClientConnection {
    let client = ClientSettings { stream_window_bytes: 40_000, ..ClientSettings::default() };
    let mut connection = connection(&client, &[]);
    connection.open(&request(GET, 0, 1)).unwrap();
    connection.open(&request(POST, 10, 3)).unwrap();
    sent(&mut connection);
    connection
}

/// How the bytes end, by the error or event, and by the frames sent, which have to agree.
fn end_of(connection: &mut ClientConnection, bytes: &[u8]) -> End {
    let (events, result) = feed(connection, bytes);
    let frames = sent(connection);
    if let Err(error) = result {
        let (header, payload) = frames.last().unwrap();
        assert_eq!(header.kind, FrameKind::GoAway);
        assert_eq!(payload[..], [0_u32.to_be_bytes(), error.code.0.to_be_bytes()].concat());
        assert_eq!(connection.receive(b""), Err(error));
        assert_eq!(connection.failure(), Some(error));
        assert!(!connection.can_open() && connection.is_spent());
        return Connection(error.code);
    }
    let resets: Vec<ErrorCode> = events
        .iter()
        .filter_map(|event| match event {
            Seen::Other(Event::Reset { key: 1, reset }) if reset.side == ResetSide::Client => Some(reset.code),
            _ => None,
        })
        .collect();
    let frames: Vec<ErrorCode> = frames
        .iter()
        .filter(|(header, _)| header.kind == FrameKind::RstStream && header.stream == 1)
        .map(|(_, payload)| ErrorCode(u32::from_be_bytes(payload[..].try_into().unwrap())))
        .collect();
    assert_eq!(resets, frames);
    // The other stream and the connection go on.
    let (events, result) = feed(connection, &headers(3, 1, OK_BLOCK));
    assert_eq!((events.len(), result), (2, Ok(())));
    resets.first().map_or(Nothing, |code| Stream(*code))
}

fn check(cases: &[(&str, Vec<u8>, End)]) {
    for (name, bytes, expected) in cases {
        assert_eq!(end_of(&mut prepared(), bytes), *expected, "{name}");
    }
}

/// Frames one behind the other.
fn all(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.concat()
}

fn big(kind: FrameKind, stream: u32) -> Vec<u8> {
    frame(kind, 0, stream, &vec![0; 16_385])
}

#[test]
fn violations_of_framing_end_the_connection() {
    check(&[
        ("4.2: DATA beyond the maximum", big(FrameKind::Data, 1), Connection(SIZE)),
        ("4.2: SETTINGS beyond the maximum", big(FrameKind::Settings, 0), Connection(SIZE)),
        ("4.2: an unknown frame beyond the maximum", big(FrameKind::Unknown(99), 1), Connection(SIZE)),
        ("4.1: an unknown frame", frame(FrameKind::Unknown(99), 0xff, 7, b"whatever"), Nothing),
        ("4.1: flags without meaning", frame(FrameKind::Ping, 0xfe, 0, &[0; 8]), Nothing),
        (
            "4.3: a block interrupted by a frame of the stream",
            all(&[frame(FrameKind::Headers, 0, 1, OK_BLOCK), data(1, 0, b"x")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block interrupted by an unknown frame",
            all(&[frame(FrameKind::Headers, 0, 1, OK_BLOCK), frame(FrameKind::Unknown(99), 0, 1, b"")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block continued on another stream",
            all(&[frame(FrameKind::Headers, 0, 1, OK_BLOCK), frame(FrameKind::Continuation, 4, 3, b"")]),
            Connection(PROTOCOL),
        ),
        ("6.10: CONTINUATION without HEADERS", frame(FrameKind::Continuation, 4, 1, OK_BLOCK), Connection(PROTOCOL)),
        (
            "6.10: CONTINUATION behind a whole block",
            all(&[headers(1, 0, OK_BLOCK), frame(FrameKind::Continuation, 4, 1, b"")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block in three frames",
            all(&[
                frame(FrameKind::Headers, 1, 1, b""),
                frame(FrameKind::Continuation, 0, 1, OK_BLOCK),
                frame(FrameKind::Continuation, 4, 1, b""),
            ]),
            Nothing,
        ),
        ("4.3: a block that does not decode", headers(1, 0, &[0xff]), Connection(ErrorCode::COMPRESSION_ERROR)),
        ("6.1: DATA on stream 0", data(0, 0, b"x"), Connection(PROTOCOL)),
        ("6.2: HEADERS on stream 0", headers(0, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("6.3: PRIORITY on stream 0", frame(FrameKind::Priority, 0, 0, &[0; 5]), Connection(PROTOCOL)),
        ("6.3: PRIORITY of a wrong length", frame(FrameKind::Priority, 0, 1, &[0; 4]), Stream(SIZE)),
        ("6.3: PRIORITY", frame(FrameKind::Priority, 0, 1, &[0; 5]), Nothing),
        ("6.3: PRIORITY of an idle stream", frame(FrameKind::Priority, 0, 99, &[0; 5]), Nothing),
        ("6.4: RST_STREAM on stream 0", frame(FrameKind::RstStream, 0, 0, &[0; 4]), Connection(PROTOCOL)),
        ("6.4: RST_STREAM of an idle stream", frame(FrameKind::RstStream, 0, 5, &[0; 4]), Connection(PROTOCOL)),
        ("6.4: RST_STREAM of a wrong length", frame(FrameKind::RstStream, 0, 1, &[0; 3]), Connection(SIZE)),
        ("6.6: PUSH_PROMISE", frame(FrameKind::PushPromise, 4, 1, &[0, 0, 0, 2, 0x82]), Connection(PROTOCOL)),
        ("6.7: PING on a stream", frame(FrameKind::Ping, 0, 1, &[0; 8]), Connection(PROTOCOL)),
        ("6.7: PING of a wrong length", frame(FrameKind::Ping, 0, 0, &[0; 7]), Connection(SIZE)),
        ("6.7: an acknowledgement of no PING", frame(FrameKind::Ping, 1, 0, &[0; 8]), Nothing),
        ("6.8: GOAWAY on a stream", frame(FrameKind::GoAway, 0, 1, &[0; 8]), Connection(PROTOCOL)),
        ("6.8: GOAWAY that is too short", frame(FrameKind::GoAway, 0, 0, &[0; 7]), Connection(SIZE)),
        ("6.8: GOAWAY with data", frame(FrameKind::GoAway, 0, 0, b"\0\0\0\x05\0\0\0\0bye"), Nothing),
        ("6.8: GOAWAY twice", all(&[goaway(0x7fff_ffff, 0), goaway(5, 0)]), Nothing),
        ("6.8: GOAWAY that takes back", all(&[goaway(3, 0), goaway(5, 0)]), Connection(PROTOCOL)),
    ]);
}

#[test]
fn violations_of_settings_and_windows_have_the_codes_of_section_6() {
    let one = |id, value| settings(&[(id, value)]);
    check(&[
        ("6.5: SETTINGS on a stream", frame(FrameKind::Settings, 0, 1, b""), Connection(PROTOCOL)),
        ("6.5: SETTINGS of a wrong length", frame(FrameKind::Settings, 0, 0, &[0; 5]), Connection(SIZE)),
        ("6.5: an acknowledgement with a payload", frame(FrameKind::Settings, 1, 0, &[0; 6]), Connection(SIZE)),
        ("6.5: an acknowledgement too many", frame(FrameKind::Settings, 1, 0, b""), Connection(PROTOCOL)),
        ("6.5.2: push", one(SettingId::ENABLE_PUSH, 1), Connection(PROTOCOL)),
        ("6.5.2: push of 2", one(SettingId::ENABLE_PUSH, 2), Connection(PROTOCOL)),
        ("6.5.2: no push", one(SettingId::ENABLE_PUSH, 0), Nothing),
        ("6.5.2: a window too large", one(SettingId::INITIAL_WINDOW_SIZE, 1 << 31), Connection(FLOW)),
        ("6.5.2: a frame too small", one(SettingId::MAX_FRAME_SIZE, 16_383), Connection(PROTOCOL)),
        ("6.5.2: a frame too large", one(SettingId::MAX_FRAME_SIZE, 1 << 24), Connection(PROTOCOL)),
        ("6.5.2: an unknown setting", one(SettingId(77), 1 << 31), Nothing),
        ("6.9: WINDOW_UPDATE of a wrong length", frame(FrameKind::WindowUpdate, 0, 1, &[0; 3]), Connection(SIZE)),
        ("6.9: nothing for a stream", window_update(1, 0), Stream(PROTOCOL)),
        ("6.9: nothing for the connection", window_update(0, 0), Connection(PROTOCOL)),
        ("6.9: an idle stream", window_update(5, 1), Connection(PROTOCOL)),
        ("6.9.1: a stream's window overflows", window_update(1, 0x7fff_ffff), Stream(FLOW)),
        ("6.9.1: the connection's window overflows", window_update(0, 0x7fff_ffff), Connection(FLOW)),
        (
            "6.9.2: a setting makes a stream's window overflow",
            all(&[window_update(1, 0x7fff_0000), one(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_0000)]),
            Connection(FLOW),
        ),
    ]);
}

#[test]
fn a_peer_that_ignores_the_windows_is_stopped() {
    // Without the credit of whole frames no window of 65,535 bytes can be exceeded: it is given back at half.
    let client = ClientSettings { stream_window_bytes: 1000, ..ClientSettings::default() };
    let mut one = connection(&client, &[]);
    one.open(&request(GET, 0, 1)).unwrap();
    let bytes = [headers(1, 0, OK_BLOCK), data(1, 0, &[0; 1001])].concat();
    let (events, result) = feed(&mut one, &bytes);
    assert_eq!(result, Ok(()));
    let Some(Seen::Other(Event::Reset { key: 1, reset })) = events.last() else { panic!("{events:?}") };
    assert_eq!(reset.code, FLOW);

    // The connection: the frames of a stream that was cancelled count too.
    let client = ClientSettings { connection_window_bytes: 65_535, ..ClientSettings::default() };
    let mut one = connection(&client, &[]);
    let stream = one.open(&request(GET, 0, 1)).unwrap();
    one.cancel(stream, ErrorCode::CANCEL);
    let mut credit = 0;
    for _ in 0..20 {
        assert_eq!(feed(&mut one, &data(1, 0, &[0; 16_384])), (Vec::new(), Ok(())));
        for (header, payload) in sent(&mut one) {
            if header.kind == FrameKind::WindowUpdate {
                assert_eq!(header.stream, 0);
                credit += u32::from_be_bytes(payload[..].try_into().unwrap());
            }
        }
    }
    assert!(credit >= 20 * 16_384 - 65_535, "{credit}");
}

#[test]
fn padding_longer_than_the_frame_ends_the_connection() {
    check(&[
        ("6.1: padding of the whole frame", frame(FrameKind::Data, 8, 1, &[1, 0]), Stream(PROTOCOL)),
        ("6.1: padding longer than the frame", frame(FrameKind::Data, 8, 1, &[2, 0]), Connection(PROTOCOL)),
        ("6.1: no length of the padding", frame(FrameKind::Data, 8, 1, &[]), Connection(SIZE)),
        ("6.2: padding longer than HEADERS", frame(FrameKind::Headers, 12, 1, &[2, 0x88]), Connection(PROTOCOL)),
        ("6.2: padding of HEADERS", frame(FrameKind::Headers, 13, 1, &[2, 0x88, 0, 0]), Nothing),
        ("6.2: no length of the padding of HEADERS", frame(FrameKind::Headers, 12, 1, &[]), Connection(SIZE)),
        ("6.2: priority that is too short", frame(FrameKind::Headers, 0x24, 1, &[0; 4]), Connection(SIZE)),
        ("6.2: priority", frame(FrameKind::Headers, 0x25, 1, &[0, 0, 0, 0, 9, 0x88]), Nothing),
    ]);
}

#[test]
fn frames_on_streams_that_are_not_open_follow_section_5_1() {
    let ended = || headers(1, 1, OK_BLOCK);
    check(&[
        ("an idle stream: HEADERS", headers(5, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("an idle stream: DATA", data(5, 0, b"x"), Connection(PROTOCOL)),
        ("a stream of the server", headers(2, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("an ended stream: HEADERS", all(&[ended(), headers(1, 1, OK_BLOCK)]), Connection(CLOSED)),
        ("an ended stream: DATA", all(&[ended(), data(1, 1, b"x")]), Connection(CLOSED)),
        ("an ended stream: WINDOW_UPDATE", all(&[ended(), window_update(1, 9)]), Nothing),
        ("an ended stream: RST_STREAM", all(&[ended(), frame(FrameKind::RstStream, 0, 1, &[0; 4])]), Nothing),
        ("an ended stream: PRIORITY", all(&[ended(), frame(FrameKind::Priority, 0, 1, &[0; 5])]), Nothing),
        (
            "a stream reset by the peer: DATA",
            all(&[frame(FrameKind::RstStream, 0, 1, &[0; 4]), data(1, 0, b"x")]),
            Connection(CLOSED),
        ),
        (
            "a stream reset by the client: any",
            all(&[data(1, 0, b"x"), headers(1, 0, OK_BLOCK), data(1, 1, b"x"), window_update(1, 0)]),
            Stream(PROTOCOL),
        ),
    ]);
}

#[test]
fn malformed_responses_end_their_stream() {
    let ok = (":status", "200");
    let head = |fields: &[(&str, &str)]| headers(1, 1, &block(fields));
    let trailers = |flags, fields: &[(&str, &str)]| all(&[headers(1, 0, OK_BLOCK), headers(1, flags, &block(fields))]);
    let long = "x".repeat(120);
    let many: Vec<(&str, &str)> = std::iter::once(ok).chain((0..450).map(|_| ("x", long.as_str()))).collect();
    let many = block(&many);
    let (first, rest) = many.split_at(16_000);
    let mut large = frame(FrameKind::Headers, 0, 1, first);
    let mut chunks = rest.chunks(16_000).peekable();
    while let Some(chunk) = chunks.next() {
        large.extend(frame(FrameKind::Continuation, if chunks.peek().is_none() { 4 } else { 0 }, 1, chunk));
    }
    check(&[
        ("8.1: DATA before the head", data(1, 0, b"x"), Stream(PROTOCOL)),
        ("8.1: trailers that do not end", trailers(0, &[("x", "y")]), Stream(PROTOCOL)),
        ("8.1: trailers", trailers(1, &[("x", "y")]), Nothing),
        ("8.1: trailers with a status", trailers(1, &[ok]), Stream(PROTOCOL)),
        ("8.1: trailers with a path", trailers(1, &[(":path", "/")]), Stream(PROTOCOL)),
        ("8.1: an interim head that ends", headers(1, 1, &block(&[(":status", "103")])), Stream(PROTOCOL)),
        ("8.6: status 101", headers(1, 0, &block(&[(":status", "101")])), Stream(PROTOCOL)),
        (
            "8.1: interim heads",
            all(&[
                headers(1, 0, &block(&[(":status", "100")])),
                headers(1, 0, &block(&[(":status", "103"), ("link", "a")])),
                head(&[ok]),
            ]),
            Nothing,
        ),
        ("8.3.2: no status", head(&[("x", "y")]), Stream(PROTOCOL)),
        ("8.3.2: an empty block", head(&[]), Stream(PROTOCOL)),
        ("8.3.2: a status of two digits", head(&[(":status", "20")]), Stream(PROTOCOL)),
        ("8.3.2: a status of letters", head(&[(":status", "2xx")]), Stream(PROTOCOL)),
        ("8.3.2: a status below 100", head(&[(":status", "099")]), Stream(PROTOCOL)),
        ("8.3: a status twice", head(&[ok, ok]), Stream(PROTOCOL)),
        ("8.3: a status behind a field", head(&[("x", "y"), ok]), Stream(PROTOCOL)),
        ("8.3: a request's field", head(&[ok, (":method", "GET")]), Stream(PROTOCOL)),
        ("8.3: an unknown pseudo-header field", head(&[ok, (":x", "y")]), Stream(PROTOCOL)),
        ("8.2.1: an upper-case name", head(&[ok, ("X", "y")]), Stream(PROTOCOL)),
        ("8.2.1: an empty name", head(&[ok, ("", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a space in a name", head(&[ok, ("a b", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a colon in a name", head(&[ok, ("a:b", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a line end in a value", head(&[ok, ("x", "y\nz")]), Stream(PROTOCOL)),
        ("8.2.1: a carriage return in a value", head(&[ok, ("x", "y\rz")]), Stream(PROTOCOL)),
        ("8.2.1: a NUL in a value", head(&[ok, ("x", "y\0")]), Stream(PROTOCOL)),
        ("8.2.1: a blank before a value", head(&[ok, ("x", " y")]), Stream(PROTOCOL)),
        ("8.2.1: a blank behind a value", head(&[ok, ("x", "y\t")]), Stream(PROTOCOL)),
        ("8.2.2: Connection", head(&[ok, ("connection", "close")]), Stream(PROTOCOL)),
        ("8.2.2: Transfer-Encoding", head(&[ok, ("transfer-encoding", "chunked")]), Stream(PROTOCOL)),
        ("8.2.2: Keep-Alive", head(&[ok, ("keep-alive", "1")]), Stream(PROTOCOL)),
        ("8.2.2: Proxy-Connection", head(&[ok, ("proxy-connection", "x")]), Stream(PROTOCOL)),
        ("8.2.2: Upgrade", head(&[ok, ("upgrade", "x")]), Stream(PROTOCOL)),
        ("8.2.2: TE", head(&[ok, ("te", "gzip")]), Stream(PROTOCOL)),
        ("8.1.1: content-length of letters", head(&[ok, ("content-length", "x")]), Stream(PROTOCOL)),
        ("8.1.1: two lengths", head(&[ok, ("content-length", "0"), ("content-length", "1")]), Stream(PROTOCOL)),
        ("8.1.1: two equal lengths", head(&[ok, ("content-length", "0, 0")]), Nothing),
        ("8.1.1: no content where some is announced", head(&[ok, ("content-length", "1")]), Stream(PROTOCOL)),
        (
            "8.1.1: too little content",
            all(&[headers(1, 0, &block(&[ok, ("content-length", "3")])), data(1, 1, b"ab")]),
            Stream(PROTOCOL),
        ),
        (
            "8.1.1: too much content",
            all(&[headers(1, 0, &block(&[ok, ("content-length", "3")])), data(1, 0, b"ab"), data(1, 0, b"cd")]),
            Stream(PROTOCOL),
        ),
        (
            "8.1.1: content that was not to come",
            all(&[headers(1, 0, &block(&[(":status", "204")])), data(1, 1, b"ab")]),
            Stream(PROTOCOL),
        ),
        ("8.1.1: a length with 304", head(&[(":status", "304"), ("content-length", "9")]), Nothing),
        ("10.5.1: fields that are too large", large, Stream(CALM)),
    ]);
}

#[test]
fn floods_end_the_connection() {
    let repeated = |frame: Vec<u8>| frame.repeat(20_000);
    let mut endless = frame(FrameKind::Headers, 0, 1, OK_BLOCK);
    endless.extend(frame(FrameKind::Continuation, 0, 1, b"").repeat(100));
    let mut long = frame(FrameKind::Headers, 0, 1, OK_BLOCK);
    long.extend(frame(FrameKind::Continuation, 0, 1, &[0x88; 16_384]).repeat(9));
    check(&[
        ("CONTINUATION without end", endless, Connection(CALM)),
        ("a block without end", long, Connection(CALM)),
        ("PING", repeated(frame(FrameKind::Ping, 0, 0, &[0; 8])), Connection(CALM)),
        ("SETTINGS", repeated(settings(&[])), Connection(CALM)),
        ("large SETTINGS", settings(&[(SettingId::INITIAL_WINDOW_SIZE, 9); 2_000]).repeat(6), Connection(CALM)),
        ("WINDOW_UPDATE", repeated(window_update(1, 1)), Connection(CALM)),
        ("PRIORITY", repeated(frame(FrameKind::Priority, 0, 1, &[0; 5])), Connection(CALM)),
        ("unknown frames", repeated(frame(FrameKind::Unknown(99), 0, 0, b"")), Connection(CALM)),
        ("empty DATA", all(&[headers(1, 0, OK_BLOCK), repeated(data(1, 0, b""))]), Connection(CALM)),
        ("interim heads", repeated(headers(1, 0, &block(&[(":status", "100")]))), Connection(CALM)),
        ("resets of a closed stream", repeated(frame(FrameKind::RstStream, 0, 1, &[0; 4])), Connection(CALM)),
        ("GOAWAY", repeated(goaway(7, 0)), Connection(CALM)),
    ]);
}

#[test]
fn a_peer_that_does_not_read_its_acknowledgements_is_stopped() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let mut end = Ok(());
    for _ in 0..20 {
        one.renew_budget();
        end = feed(&mut one, &frame(FrameKind::Ping, 0, 0, &[0; 8]).repeat(9_000)).1;
        if end.is_err() {
            break;
        }
    }
    assert_eq!(end.unwrap_err().code, CALM);
    assert!(one.output().len() < 2 << 20);
}

#[test]
fn the_first_frame_is_settings() {
    let cases: [(Vec<u8>, &str); 4] = [
        (frame(FrameKind::Settings, 1, 0, b""), "its first frame is not SETTINGS"),
        (frame(FrameKind::Ping, 0, 0, &[0; 8]), "its first frame is not SETTINGS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "it speaks HTTP/1.1"),
        (b"HTTP/1.0 400 Bad Request\r\n\r\n".to_vec(), "it speaks HTTP/1.1"),
    ];
    for (bytes, reason) in cases {
        let mut connection = ClientConnection::new(&ClientSettings::default());
        let (events, result) = feed(&mut connection, &bytes);
        assert!(events.is_empty());
        let error = result.unwrap_err();
        assert_eq!((error.code, error.reason), (PROTOCOL, reason));
        assert_eq!(error.to_string(), format!("the service violates HTTP/2: {reason} (PROTOCOL_ERROR)"));
    }
}
