//! A client that speaks HTTP/2 by single frames, as no library would.

use super::raw::Raw;

/// A connection over which frames are sent and received one by one.
#[derive(Debug)]
pub struct Frames {
    raw: Raw,
    next_stream: u32,
}

/// A frame of RFC 9113.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;

    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Error code of RST_STREAM (at 0) or GOAWAY (at 4).
    pub fn code_at(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

impl Frames {
    /// Greets the server; each stream's window has room for `window` bytes, the connection's for all.
    pub fn on(raw: Raw, window: u32) -> Self {
        let mut frames = Self { raw, next_stream: 1 };
        frames.raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frames.send(Frame::SETTINGS, 0, 0, [&[0, 4][..], &window.to_be_bytes()].concat());
        frames.send(Frame::WINDOW_UPDATE, 0, 0, (1_u32 << 30).to_be_bytes());
        frames
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) {
        self.raw.send(Frame::new(kind, flags, stream, payload).bytes());
    }

    /// False once the other end has closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.raw.try_send(bytes).is_ok()
    }

    /// Sends the head of a request, with its end or without; its stream.
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)], is_end: bool) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let pseudo = [(":method", method), (":scheme", "http"), (":authority", "test"), (":path", path)];
        let mut block = Vec::new();
        for (name, value) in pseudo.iter().chain(fields) {
            // A literal without Huffman and index.
            block.push(0);
            for text in [name, value] {
                assert!(text.len() < 127);
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.send(Frame::HEADERS, 4 | u8::from(is_end), stream, block);
        stream
    }

    /// The next frame; settings are acknowledged.
    pub fn next_frame(&mut self) -> Frame {
        let head = self.raw.take(9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap()) & 0x7fff_ffff;
        let frame = Frame::new(head[3], head[4], stream, self.raw.take(length));
        if frame.kind == Frame::SETTINGS && frame.flags & 1 == 0 {
            self.send(Frame::SETTINGS, 1, 0, []);
        }
        frame
    }

    /// The next frame of this kind.
    pub fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next_frame();
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Sends a PING and awaits its answer: what was sent before has been read then.
    pub fn ping(&mut self) {
        self.send(Frame::PING, 0, 0, *b"01234567");
        while self.next_of(Frame::PING).flags & 1 == 0 {}
    }

    /// Bytes of frames, however they are cut.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        self.raw.take(count)
    }

    /// Reads until the other end closes, in order or with a reset.
    pub fn read_to_end(&mut self) {
        self.raw.rest();
    }

    /// The same connection once more, for a thread that sends while this one reads.
    pub fn twin(&self) -> Self {
        Self { raw: self.raw.twin(), next_stream: self.next_stream }
    }
}
