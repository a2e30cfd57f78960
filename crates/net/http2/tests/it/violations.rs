//! Frames that break the rules of RFC 9113 sections 4 to 6 and 8: each ends its stream or the connection with the right
//! code.

use weir_http2::connection::{ClientConnection, ClientSettings, Event, ResetSide};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::FrameKind;
use weir_testing::hostile::{Violation, ViolationEnd, violations};

use super::peer::{GET, OK_BLOCK, POST, Seen, connection, data, feed, frame, headers, request, sent};

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
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
fn end_of(connection: &mut ClientConnection, bytes: &[u8]) -> ViolationEnd {
    let (events, result) = feed(connection, bytes);
    let frames = sent(connection);
    if let Err(error) = result {
        let (header, payload) = frames.last().unwrap();
        assert_eq!(header.kind, FrameKind::GoAway);
        assert_eq!(payload[..], [0_u32.to_be_bytes(), error.code.0.to_be_bytes()].concat());
        assert_eq!(connection.receive(b""), Err(error));
        assert_eq!(connection.failure(), Some(error));
        assert!(!connection.can_open() && connection.is_spent());
        return ViolationEnd::Connection(error.code);
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
    resets.first().map_or(ViolationEnd::Nothing, |code| ViolationEnd::Stream(*code))
}

#[test]
fn a_violation_ends_what_the_rfc_demands() {
    let violations = violations(1);
    assert!(violations.len() > 110, "{}", violations.len());
    for Violation { name, bytes, end } in violations {
        assert_eq!(end_of(&mut prepared(), &bytes), end, "{name}");
    }
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

#[test]
fn streams_end_alone_again_and_again() {
    let mut one = connection(&ClientSettings { stream_window_bytes: 40_000, ..ClientSettings::default() }, &[]);
    let mut stream = 1;
    for round in 0..3 {
        for violation in violations(1).into_iter().filter(|violation| matches!(violation.end, ViolationEnd::Stream(_)))
        {
            one.open(&request(GET, 0, stream)).unwrap();
            let of_stream = violations(stream).into_iter().find(|other| other.name == violation.name).unwrap();
            assert_eq!(feed(&mut one, &of_stream.bytes).1, Ok(()), "{round} {}", violation.name);
            stream += 2;
        }
    }
}
