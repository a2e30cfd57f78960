//! A peer made of bytes: frames to feed a connection, and what came of them.

use weir_http2::connection::{ClientConnection, ClientSettings, ConnectionError, Event, StreamId, StreamRequest};
use weir_http2::frame::{CLIENT_PREFACE, FrameHeader, FrameKind, SettingId};
pub(crate) use weir_testing::hostile::{OK_BLOCK, block, data, frame, goaway, headers, settings, window_update};

pub(crate) const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
pub(crate) const HEAD: &[u8] = b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n";
pub(crate) const POST: &[u8] = b"POST /a HTTP/1.1\r\nHost: h\r\n\r\n";

/// Event without a lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Data(u32, Vec<u8>),
    Other(Event<'static>),
}

impl Seen {
    fn of(event: Event<'_>) -> Self {
        match event {
            Event::Data { key, bytes } => Self::Data(key, bytes.to_vec()),
            Event::Settings => Self::Other(Event::Settings),
            Event::Head { key, head } => Self::Other(Event::Head { key, head }),
            Event::Ended { key, totals } => Self::Other(Event::Ended { key, totals }),
            Event::Reset { key, reset } => Self::Other(Event::Reset { key, reset }),
            Event::PingAck { payload } => Self::Other(Event::PingAck { payload }),
            Event::GoAway { last_stream, code, unprocessed } => {
                Self::Other(Event::GoAway { last_stream, code, unprocessed })
            }
        }
    }
}

/// Frames of a connection's output, which is taken; without the preface.
pub(crate) fn sent(connection: &mut ClientConnection) -> Vec<(FrameHeader, Vec<u8>)> {
    let output = connection.output().to_vec();
    connection.advance(output.len());
    let mut rest = output.strip_prefix(CLIENT_PREFACE).unwrap_or(&output);
    let mut frames = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk() {
        let header = FrameHeader::decode(header);
        let (payload, after) = behind.split_at(header.length as usize);
        frames.push((header, payload.to_vec()));
        rest = after;
    }
    assert!(rest.is_empty(), "{rest:?}");
    frames
}

/// Passes bytes to a connection until they are used.
pub(crate) fn feed(connection: &mut ClientConnection, bytes: &[u8]) -> (Vec<Seen>, Result<(), ConnectionError>) {
    let mut events = Vec::new();
    let mut rest = bytes;
    loop {
        let step = match connection.receive(rest) {
            Ok(step) => step,
            Err(error) => return (events, Err(error)),
        };
        rest = &rest[step.used..];
        let Some(event) = step.event else {
            assert!(rest.is_empty(), "bytes left without an event");
            return (events, Ok(()));
        };
        events.push(Seen::of(event));
    }
}

/// The same, and the bytes are valid.
pub(crate) fn events(connection: &mut ClientConnection, bytes: &[u8]) -> Vec<Seen> {
    let (events, end) = feed(connection, bytes);
    end.unwrap();
    events
}

/// A connection whose peer has sent its settings and acknowledged the client's.
pub(crate) fn connection(client: &ClientSettings, peer: &[(SettingId, u32)]) -> ClientConnection {
    let mut connection = ClientConnection::new(client);
    let greeting = [settings(peer), frame(FrameKind::Settings, 1, 0, &[])].concat();
    assert_eq!(events(&mut connection, &greeting), [Seen::Other(Event::Settings)]);
    sent(&mut connection);
    connection
}

pub(crate) fn request(head: &[u8], body_length: u64, key: u32) -> StreamRequest<'_> {
    StreamRequest { head, body_length, key, template: 0, wants_head: true }
}

/// Opens a stream without a body.
pub(crate) fn open(connection: &mut ClientConnection, key: u32) -> StreamId {
    connection.open(&request(GET, 0, key)).unwrap()
}
