//! `weir serve ws` from outside: what it echoes and pushes, and each of its faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weir_testing::Serving;
use weir_websocket::close_code::CloseCode;
use weir_websocket::deflate::{DeflateAgreement, Deflater, Inflater};
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::handshake::{HandshakeAgreement, HandshakeKey, HandshakeOffer};
use weir_websocket::message_reader::{Received, WebSocketReader};
use weir_websocket::violation::Violation;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// What a client has received.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
    Violation(Violation),
    /// The connection has ended.
    End,
}

/// A client of plain sockets.
struct Client {
    stream: TcpStream,
    reader: WebSocketReader,
    writer: FrameWriter,
    received: Vec<u8>,
    agreement: HandshakeAgreement,
}

impl Client {
    fn open(serving: &Serving, path: &str, offer: &HandshakeOffer) -> Self {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let key = HandshakeKey::of([9; 16]);
        let lines: String =
            offer.header_lines(&key).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n{lines}\r\n").as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap()[9..12].parse().unwrap();
        let fields = lines.filter_map(|line| line.split_once(": "));
        let agreement = offer.check(&key, status, fields.map(|(name, value)| (name, value.as_bytes()))).unwrap();
        let mut reader = WebSocketReader::new(Endpoint::Client, 1 << 20);
        if let Some(deflate) = agreement.deflate {
            reader.set_inflater(Inflater::new(!deflate.server_no_context));
        }
        Self { stream, reader, writer: FrameWriter::new(Endpoint::Client, 3), received: Vec::new(), agreement }
    }

    fn plain(serving: &Serving, path: &str) -> Self {
        Self::open(serving, path, &HandshakeOffer::default())
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let mut out = Vec::new();
        self.writer.write(opcode, payload, &mut out);
        self.stream.write_all(&out).unwrap();
    }

    fn next(&mut self) -> Event {
        loop {
            let taken = std::mem::take(&mut self.received);
            let mut rest = taken.as_slice();
            let event = match self.reader.next_message(&mut rest) {
                Ok(None) => None,
                Ok(Some(Received::Message(message))) if message.is_text => {
                    Some(Event::Text(String::from_utf8(message.data.to_vec()).unwrap()))
                }
                Ok(Some(Received::Message(message))) => Some(Event::Binary(message.data.to_vec())),
                Ok(Some(Received::Ping(data))) => Some(Event::Ping(data.to_vec())),
                Ok(Some(Received::Pong(data))) => Some(Event::Pong(data.to_vec())),
                Ok(Some(Received::Close(code, _))) => Some(Event::Close(code.map(|code| code.0))),
                Err(violation) => Some(Event::Violation(violation)),
            };
            self.received = rest.to_vec();
            if let Some(event) = event {
                return event;
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return Event::End,
                Ok(read) => self.received.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

#[test]
fn messages_come_back_in_frames_and_pings_have_pongs() {
    let serving = Serving::start(&["ws", "--fragments", "3", "--pings"]);
    let mut client = Client::plain(&serving, "/echo");
    client.send(Opcode::Text, "grüße".as_bytes());
    client.send(Opcode::Binary, &[0xFF; 70_000]);
    client.send(Opcode::Ping, b"?");
    let mut events: Vec<Event> = (0..7).map(|_| client.next()).collect();
    // A pong may come between any two frames.
    let pong = events.iter().position(|event| *event == Event::Pong(b"?".to_vec()));
    events.remove(pong.unwrap_or_else(|| panic!("no pong: {events:?}")));
    let between = || Event::Ping(b"between".to_vec());
    let (text, binary) = (Event::Text("grüße".to_owned()), Event::Binary(vec![0xFF; 70_000]));
    assert_eq!(events, [between(), between(), text, between(), between(), binary]);
    client.send(Opcode::Close, &1000u16.to_be_bytes());
    assert_eq!((client.next(), client.next()), (Event::Close(Some(1000)), Event::End));
    let stats = serving.get("/stats").json();
    assert_eq!((&stats["received"], &stats["sent"], &stats["open"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(stats["closes"]["1000"], 1);
    assert_eq!(serving.metric("weir_websocket_received_messages_total"), 2.0);
}

#[test]
fn a_push_has_its_number_of_messages_and_closes() {
    let serving = Serving::start(&["ws", "--gap", "1ms", "--messages", "3"]);
    let mut client = Client::plain(&serving, "/push");
    for n in 1..=3 {
        let Event::Text(text) = client.next() else { panic!("no text") };
        assert!(text.starts_with(&format!("{{\"n\":{n},")), "{text}");
    }
    assert_eq!(client.next(), Event::Close(Some(1000)));
    client.send(Opcode::Close, &1000u16.to_be_bytes());
    assert_eq!(client.next(), Event::End);
}

#[test]
fn replies_come_in_order_or_as_their_delays_end() {
    for (flags, is_ordered) in [(&[][..], true), (&["--unordered"], false)] {
        let serving = Serving::start(&[&["ws", "--delay", "1ms..40ms", "--seed", "4"], flags].concat());
        let mut client = Client::plain(&serving, "/");
        let sent: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        sent.iter().for_each(|text| client.send(Opcode::Text, text.as_bytes()));
        let mut found = Vec::new();
        while found.len() < sent.len() {
            let Event::Text(text) = client.next() else { panic!("no text") };
            found.push(text);
        }
        assert_eq!(found == sent, is_ordered, "{found:?}");
        found.sort_by_key(|text| text.parse::<u32>().unwrap());
        assert_eq!(found, sent);
    }
}

#[test]
fn compression_and_a_subprotocol_are_agreed_on() {
    for (flags, no_context) in [(&[][..], false), (&["--no-context"], true)] {
        let serving =
            Serving::start(&[&["ws", "--deflate", "--subprotocol", "b", "--subprotocol", "a"], flags].concat());
        let offer = HandshakeOffer {
            subprotocols: vec!["x".to_owned(), "a".to_owned(), "b".to_owned()],
            deflate: Some(DeflateAgreement::default()),
        };
        let mut client = Client::open(&serving, "/echo", &offer);
        assert_eq!(client.agreement.subprotocol.as_deref(), Some("a"), "the first of the client's");
        assert_eq!(client.agreement.deflate.unwrap().server_no_context, no_context);
        let mut deflater = Deflater::new(!no_context);
        for _ in 0..3 {
            let (mut compressed, mut out) = (Vec::new(), Vec::new());
            deflater.deflate(b"again and again and again", &mut compressed);
            client.writer.write_compressed(Opcode::Text, &compressed, &mut out);
            client.stream.write_all(&out).unwrap();
            assert_eq!(client.next(), Event::Text("again and again and again".to_owned()));
        }
    }
}

#[test]
fn a_hostile_reply_is_the_breach_of_its_name() {
    let serving = Serving::start(&["ws"]);
    for (name, expected) in [
        ("masked", Event::Violation(Violation::Masked)),
        ("length", Event::Violation(Violation::NegativeLength)),
        ("long-length", Event::Violation(Violation::LongLength(2))),
        ("utf8", Event::Violation(Violation::Utf8)),
        ("reserved", Event::Violation(Violation::ReservedBit)),
        ("opcode", Event::Violation(Violation::Opcode(3))),
        ("control", Event::Violation(Violation::LongControl(126))),
        ("fragmented-control", Event::Violation(Violation::FragmentedControl)),
        ("interrupted", Event::Violation(Violation::Interrupted)),
        ("orphan", Event::Violation(Violation::Orphan)),
        ("close-code", Event::Violation(Violation::CloseCode(1005))),
        ("close-race", Event::Close(Some(1001))),
        ("half", Event::End),
        ("deflate", Event::Violation(Violation::ReservedBit)),
    ] {
        let mut client = Client::plain(&serving, &format!("/hostile/{name}"));
        client.send(Opcode::Text, b"go");
        assert_eq!(client.next(), expected, "{name}");
    }
    let mut client = Client::plain(&serving, "/hostile/after-close");
    client.send(Opcode::Text, b"go");
    assert_eq!((client.next(), client.next()), (Event::Close(Some(1000)), Event::Violation(Violation::AfterClose)));
}

#[test]
fn closes_have_their_code_and_breaches_of_the_client_theirs() {
    let serving = Serving::start(&["ws", "--max-message", "10"]);
    let mut client = Client::plain(&serving, "/close/4321");
    client.send(Opcode::Text, b"go");
    assert_eq!(client.next(), Event::Close(Some(4321)));
    let mut client = Client::plain(&serving, "/echo");
    client.send(Opcode::Text, b"more than ten");
    assert_eq!(client.next(), Event::Close(Some(CloseCode::TOO_BIG.0)));
    let mut client = Client::plain(&serving, "/echo");
    client.stream.write_all(&[0x81, 0]).unwrap();
    assert_eq!(client.next(), Event::Close(Some(CloseCode::PROTOCOL.0)));
    let mut client = Client::plain(&serving, "/silent");
    client.send(Opcode::Text, b"nothing");
    client.send(Opcode::Close, &[]);
    assert_eq!(client.next(), Event::Close(None));
}

#[test]
fn what_is_not_an_upgrade_is_rejected() {
    let serving = Serving::start(&["ws"]);
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (line, fields, status) in [
        ("GET /echo", String::new(), "426"),
        ("GET /echo", format!("{upgrade}{key}"), "426"),
        ("GET /echo", format!("{upgrade}{key}Sec-WebSocket-Version: 8\r\n"), "426"),
        ("GET /echo", format!("{upgrade}Sec-WebSocket-Version: 13\r\n"), "400"),
        ("POST /echo", format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n"), "405"),
        ("GET /other", format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"), "404"),
        ("GET /close/1005", format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"), "404"),
        ("GET /hostile/other", format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"), "404"),
    ] {
        let bytes = serving.raw(format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n"));
        let head = String::from_utf8_lossy(&bytes);
        assert_eq!(head.get(9..12), Some(status), "{line} {fields} {head}");
    }
}
