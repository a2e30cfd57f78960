//! The life of streams: windows, bodies, bounds, GOAWAY.

use weir_http2::connection::{ClientConnection, ClientSettings, Event, OpenError, ResetSide, StreamReset};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{FrameFlags, FrameKind, SettingId};

use super::peer::{
    GET, HEAD, OK_BLOCK, POST, Seen, block, connection, data, events, frame, goaway, headers, open, request, sent,
    settings, window_update,
};

/// Sends all that can be sent of bodies of zeros; returns stream and length of each DATA frame.
fn pump(connection: &mut ClientConnection) -> Vec<(u32, u32)> {
    let mut frames = sent(connection);
    while let Some(body) = connection.next_body() {
        assert!(connection.send_body(body.stream, &[0; 100_000]) > 0);
        frames.extend(sent(connection));
    }
    frames.iter().filter(|(header, _)| header.kind == FrameKind::Data).map(|(h, _)| (h.stream, h.length)).collect()
}

fn keys(events: &[Seen]) -> Vec<u32> {
    events
        .iter()
        .filter_map(|event| match event {
            Seen::Other(Event::Ended { key, .. } | Event::Reset { key, .. }) => Some(*key),
            _ => None,
        })
        .collect()
}

#[test]
fn the_preface_has_the_settings_and_the_window() {
    let mut one = ClientConnection::new(&ClientSettings { header_table_bytes: 8192, ..ClientSettings::default() });
    assert!(one.output().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let frames = sent(&mut one);
    assert_eq!((frames[0].0.kind, frames[0].0.length), (FrameKind::Settings, 24));
    assert_eq!((frames[1].0.kind, frames[1].0.stream), (FrameKind::WindowUpdate, 0));
    assert_eq!(frames[1].1, ((15_u32 << 20) - 65_535).to_be_bytes());
    assert_eq!(frames.len(), 2);
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let mut one = ClientConnection::new(&ClientSettings::default());
    sent(&mut one);
    let bytes = [settings(&[(SettingId::MAX_CONCURRENT_STREAMS, 7)]), frame(FrameKind::Ping, 0, 0, b"12345678")];
    assert_eq!(events(&mut one, &bytes.concat()), [Seen::Other(Event::Settings)]);
    let frames = sent(&mut one);
    assert_eq!((frames[0].0.kind, frames[0].0.flags, frames[0].0.length), (FrameKind::Settings, FrameFlags::ACK, 0));
    assert_eq!((frames[1].0.kind, frames[1].0.flags), (FrameKind::Ping, FrameFlags::ACK));
    assert_eq!(frames[1].1, b"12345678");
    assert_eq!((one.peer_settings().max_streams, one.peer_settings().is_received), (7, true));

    one.ping(*b"abcdefgh");
    assert_eq!(sent(&mut one)[0].1, b"abcdefgh");
    let acknowledged = events(&mut one, &frame(FrameKind::Ping, 1, 0, b"abcdefgh"));
    assert_eq!(acknowledged, [Seen::Other(Event::PingAck { payload: *b"abcdefgh" })]);
}

#[test]
fn a_body_is_sent_within_both_windows_and_goes_on_with_their_updates() {
    let mut one = connection(&ClientSettings::default(), &[(SettingId::INITIAL_WINDOW_SIZE, 40_000)]);
    one.open(&request(POST, 50_000, 1)).unwrap();
    one.open(&request(POST, 50_000, 3)).unwrap();
    // 40,000 of the first, the rest of the connection's 65,535 of the second; then the first is stuck by its own window.
    assert_eq!(pump(&mut one), [(1, 16_384), (1, 16_384), (1, 7_232), (3, 16_384), (3, 9_151)]);
    assert_eq!(pump(&mut one), []);
    events(&mut one, &window_update(1, 5_000));
    assert_eq!(pump(&mut one), []);
    events(&mut one, &window_update(0, 100_000));
    assert_eq!(pump(&mut one), [(3, 14_465), (1, 5_000)]);
    // A larger initial window frees both.
    events(&mut one, &settings(&[(SettingId::INITIAL_WINDOW_SIZE, 60_000)]));
    assert_eq!(pump(&mut one), [(1, 5_000), (3, 10_000)]);
    assert!(one.next_body().is_none());
}

#[test]
fn a_window_below_zero_has_to_be_filled_first() {
    let mut one = connection(&ClientSettings::default(), &[(SettingId::INITIAL_WINDOW_SIZE, 1_000)]);
    one.open(&request(POST, 3_000, 1)).unwrap();
    assert_eq!(pump(&mut one), [(1, 1_000)]);
    events(&mut one, &settings(&[(SettingId::INITIAL_WINDOW_SIZE, 100)]));
    events(&mut one, &window_update(1, 900));
    assert_eq!(pump(&mut one), []);
    events(&mut one, &window_update(1, 1));
    assert_eq!(pump(&mut one), [(1, 1)]);
    events(&mut one, &settings(&[(SettingId::INITIAL_WINDOW_SIZE, 5_000)]));
    assert_eq!(pump(&mut one), [(1, 1_999)]);
}

#[test]
fn bodies_take_turns_and_the_output_is_bounded() {
    let window = [(SettingId::INITIAL_WINDOW_SIZE, 1 << 30)];
    let mut one = connection(&ClientSettings::default(), &window);
    events(&mut one, &window_update(0, 1 << 30));
    for key in [1, 3, 5] {
        one.open(&request(POST, 1 << 20, key)).unwrap();
    }
    let mut order = Vec::new();
    while let Some(body) = one.next_body() {
        order.push(body.key);
        one.send_body(body.stream, &[0; 10_000]);
    }
    assert_eq!(order[..6], [1, 3, 5, 1, 3, 5]);
    assert!(one.output().len() <= 64 * 1024 + 1024, "{}", one.output().len());
    assert!(!one.can_open() || one.output().len() < 64 * 1024);
    let pending = one.output().len();
    one.advance(pending - 1);
    assert!(one.next_body().is_some_and(|body| body.sent > 0));
}

#[test]
fn the_last_data_of_a_body_ends_the_request() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let stream = one.open(&request(POST, 5, 1)).unwrap();
    assert_eq!(one.send_body(stream, b"abc"), 3);
    assert_eq!(one.next_body().map(|body| body.sent), Some(3));
    assert_eq!(one.send_body(stream, b"defgh"), 2);
    assert_eq!(one.send_body(stream, b"more"), 0);
    let frames: Vec<_> = sent(&mut one).into_iter().map(|(header, payload)| (header.flags, payload)).collect();
    assert_eq!(frames[0].0, FrameFlags::END_HEADERS);
    assert_eq!(frames[1..], [(FrameFlags::NONE, b"abc".to_vec()), (FrameFlags::END_STREAM, b"de".to_vec())]);
}

#[test]
fn an_early_response_ends_the_upload() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let stream = one.open(&request(POST, 10, 1)).unwrap();
    one.send_body(stream, b"abc");
    sent(&mut one);
    let seen = events(&mut one, &headers(1, 1, OK_BLOCK));
    let Some(Seen::Other(Event::Ended { key: 1, totals })) = seen.last() else { panic!("{seen:?}") };
    assert_eq!(totals.body_sent, 3);
    let frames = sent(&mut one);
    assert_eq!((frames[0].0.kind, &frames[0].1[..]), (FrameKind::RstStream, &ErrorCode::CANCEL.0.to_be_bytes()[..]));
    assert!(one.next_body().is_none());
    // The peer may ask for that by itself.
    assert_eq!(events(&mut one, &frame(FrameKind::RstStream, 0, 1, &[0; 4])), []);
}

#[test]
fn windows_are_given_back_when_half_of_them_is_used() {
    let client =
        ClientSettings { stream_window_bytes: 30_000, connection_window_bytes: 65_535, ..ClientSettings::default() };
    let mut one = connection(&client, &[]);
    open(&mut one, 1);
    sent(&mut one);
    events(&mut one, &[headers(1, 0, OK_BLOCK), data(1, 0, &[0; 14_999])].concat());
    assert_eq!(sent(&mut one).len(), 0);
    events(&mut one, &data(1, 0, b"x"));
    let frames = sent(&mut one);
    assert_eq!((frames.len(), frames[0].0.stream), (1, 1));
    assert_eq!(frames[0].1, 15_000_u32.to_be_bytes());
    // Padding counts; the stream that ends needs no credit.
    let mut padded = vec![200];
    padded.extend([0; 16_200]);
    events(&mut one, &[frame(FrameKind::Data, 8, 1, &padded), data(1, 1, &[0; 1_566])].concat());
    let credits: Vec<_> = sent(&mut one).into_iter().map(|(header, payload)| (header.stream, payload)).collect();
    assert_eq!(credits, [(1, 16_201_u32.to_be_bytes().to_vec()), (0, 32_767_u32.to_be_bytes().to_vec())]);
}

#[test]
fn no_more_streams_are_open_than_both_sides_permit() {
    let mut one = connection(&ClientSettings { max_streams: 3, ..ClientSettings::default() }, &[]);
    for key in 0..3 {
        open(&mut one, key);
    }
    assert!(!one.can_open());
    assert_eq!(one.open(&request(GET, 0, 9)), Err(OpenError::Busy));
    // Fewer than are open: they go on, and none is opened until enough have ended.
    events(&mut one, &settings(&[(SettingId::MAX_CONCURRENT_STREAMS, 1)]));
    events(&mut one, &[headers(1, 1, OK_BLOCK), headers(3, 1, OK_BLOCK)].concat());
    assert_eq!((one.open_streams(), one.can_open()), (1, false));
    events(&mut one, &headers(5, 1, OK_BLOCK));
    assert_eq!((one.free_streams(), one.open_streams()), (1, 0));
    events(&mut one, &settings(&[(SettingId::MAX_CONCURRENT_STREAMS, 0)]));
    assert!(!one.can_open() && !one.is_spent());
}

#[test]
fn goaway_returns_the_streams_that_are_not_processed() {
    let mut one = connection(&ClientSettings::default(), &[]);
    for key in 1..=4 {
        open(&mut one, key);
    }
    let seen = events(&mut one, &[goaway(3, 0), headers(1, 1, OK_BLOCK), headers(3, 1, OK_BLOCK)].concat());
    let away = Event::GoAway { last_stream: 3, code: ErrorCode::NO_ERROR, unprocessed: 2 };
    let reset =
        StreamReset { code: ErrorCode::REFUSED_STREAM, side: ResetSide::Peer, is_unprocessed: true, reason: None };
    assert_eq!(seen[0], Seen::Other(away));
    assert_eq!(seen[1], Seen::Other(Event::Reset { key: 4, reset }));
    assert_eq!(seen[2], Seen::Other(Event::Reset { key: 3, reset }));
    assert_eq!(keys(&seen[3..]), [1, 2]);
    assert!(one.is_going_away() && one.is_spent());
    assert_eq!(one.open(&request(GET, 0, 9)), Err(OpenError::Spent));
}

#[test]
fn a_graceful_goaway_comes_twice() {
    let mut one = connection(&ClientSettings::default(), &[]);
    for key in 1..=2 {
        open(&mut one, key);
    }
    assert_eq!(keys(&events(&mut one, &goaway(0x7fff_ffff, 0))), [] as [u32; 0]);
    assert_eq!(keys(&events(&mut one, &goaway(1, 0))), [2]);
    assert_eq!(keys(&events(&mut one, &headers(1, 1, OK_BLOCK))), [1]);
}

#[test]
fn a_refused_stream_is_unprocessed() {
    let mut one = connection(&ClientSettings::default(), &[]);
    for (index, code) in [ErrorCode::REFUSED_STREAM, ErrorCode::INTERNAL_ERROR, ErrorCode(99)].into_iter().enumerate() {
        let stream = open(&mut one, 7);
        let seen = events(&mut one, &frame(FrameKind::RstStream, 0, stream.number(), &code.0.to_be_bytes()));
        let reset = StreamReset { code, side: ResetSide::Peer, is_unprocessed: index == 0, reason: None };
        assert_eq!(seen, [Seen::Other(Event::Reset { key: 7, reset })]);
    }
    assert_eq!(one.open_streams(), 0);
}

#[test]
fn a_cancelled_stream_has_no_events() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let stream = one.open(&request(POST, 10, 1)).unwrap();
    let ended = open(&mut one, 2);
    sent(&mut one);
    one.cancel(stream, ErrorCode::CANCEL);
    one.cancel(stream, ErrorCode::CANCEL);
    let frames = sent(&mut one);
    assert_eq!((frames.len(), frames[0].0.kind, frames[0].0.stream), (1, FrameKind::RstStream, 1));
    assert!(one.next_body().is_none());
    let late = [headers(1, 0, &block(&[(":status", "200")])), data(1, 1, b"late"), window_update(1, 7)].concat();
    assert_eq!(events(&mut one, &late), []);
    // Also between the head and the end, and within content.
    let whole = headers(3, 1, OK_BLOCK);
    let step = one.receive(&whole).unwrap();
    assert!(matches!(step.event, Some(Event::Head { key: 2, .. })));
    one.cancel(ended, ErrorCode::CANCEL);
    assert_eq!(events(&mut one, b""), []);
    let third = open(&mut one, 3);
    events(&mut one, &headers(5, 0, OK_BLOCK));
    let content = data(5, 0, b"abcdef");
    assert_eq!(events(&mut one, &content[..11]), [Seen::Data(3, b"ab".to_vec())]);
    one.cancel(third, ErrorCode::CANCEL);
    assert_eq!(events(&mut one, &content[11..]), []);
    assert_eq!(one.open_streams(), 0);
}

#[test]
fn many_cancelled_streams_may_still_receive_frames() {
    let mut one = connection(&ClientSettings::default(), &[]);
    for round in 0..500 {
        let stream = open(&mut one, round);
        one.cancel(stream, ErrorCode::CANCEL);
    }
    for number in [1, 501, 999] {
        assert_eq!(events(&mut one, &[headers(number, 0, OK_BLOCK), data(number, 1, b"x")].concat()), []);
    }
}

#[test]
fn the_response_to_head_has_a_length_and_no_content() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let length = block(&[(":status", "200"), ("content-length", "500")]);
    one.open(&request(HEAD, 0, 1)).unwrap();
    assert_eq!(keys(&events(&mut one, &headers(1, 1, &length))), [1]);
    one.open(&request(HEAD, 0, 3)).unwrap();
    let seen = events(&mut one, &[headers(3, 0, &length), data(3, 1, b"")].concat());
    assert!(matches!(seen.last(), Some(Seen::Other(Event::Ended { key: 3, .. }))), "{seen:?}");
    one.open(&request(HEAD, 0, 5)).unwrap();
    let seen = events(&mut one, &[headers(5, 0, &length), data(5, 1, b"x")].concat());
    let Some(Seen::Other(Event::Reset { key: 5, reset })) = seen.last() else { panic!("{seen:?}") };
    assert_eq!((reset.side, reset.code), (ResetSide::Client, ErrorCode::PROTOCOL_ERROR));
    assert_eq!(reset.reason, Some("the content is longer than content-length"));
}

#[test]
fn a_stream_that_stays_open_does_not_hinder_a_hundred_thousand_others() {
    let mut one = connection(&ClientSettings::default(), &[]);
    let slow = open(&mut one, u32::MAX);
    for round in 0..100_000_u32 {
        let stream = open(&mut one, round);
        let seen = events(&mut one, &[headers(stream.number(), 0, OK_BLOCK), data(stream.number(), 1, b"x")].concat());
        assert_eq!(keys(&seen), [round]);
        let pending = one.output().len();
        one.advance(pending);
    }
    assert_eq!(keys(&events(&mut one, &headers(slow.number(), 1, OK_BLOCK))), [u32::MAX]);
}
