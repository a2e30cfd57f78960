//! A server that obeys RFC 9113 and otherwise does what its seed says: responses of all shapes, settings, windows, and
//! the end of the connection.

use weir_base::rng::SeededRng;
use weir_http2::frame::{FrameFlags, FrameHeader, FrameKind, MAX_31_BITS, SettingId, SettingsPayload};
use weir_http2::hpack::{HpackEncoder, IndexingPolicy, LiteralKind};
use weir_testing::hostile::{data, frame, goaway, window_update};

use super::client_output::{ClientOutput, OpenedRequest};
use super::served_stream::{ExpectedEnd, SentResponse, ServedStream};

const MAX_FRAME_BYTES: u64 = 16_384;
/// Bytes beyond which no window of the client is opened further.
const MAX_CLIENT_WINDOW_BYTES: i64 = 1 << 24;

/// A server, as far as one connection needs it.
#[derive(Debug)]
pub(crate) struct SeededServer {
    pub(crate) rng: SeededRng,
    pub(crate) client: ClientOutput,
    encoder: HpackEncoder,
    /// By key.
    pub(crate) sent: Vec<SentResponse>,
    pub(crate) last_stream: Option<u32>,
}

impl SeededServer {
    pub(crate) fn new(mut rng: SeededRng) -> Self {
        let policy = if rng.below(2) == 0 { IndexingPolicy::All } else { IndexingPolicy::Repeated };
        let mut encoder = HpackEncoder::new([4096, 0, 200, 65_536][rng.below(4)], policy);
        if rng.below(4) == 0 {
            encoder = encoder.without_huffman();
        }
        Self { rng, client: ClientOutput::default(), encoder, sent: Vec::new(), last_stream: None }
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.rng.below(n) == 0
    }

    /// Notes a request, of which the server reads at some time.
    pub(crate) fn opened(&mut self, request: OpenedRequest) {
        self.client.requests.push(request);
        self.sent.push(SentResponse::default());
    }

    /// SETTINGS as the first frame, or later ones.
    pub(crate) fn settings(&mut self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        for _ in 0..self.rng.below(4) {
            let (id, value) = match self.rng.below(7) {
                0 => (SettingId::HEADER_TABLE_SIZE, [0, 64, 300, 4096, 1 << 20][self.rng.below(5)]),
                1 => (SettingId::MAX_CONCURRENT_STREAMS, self.rng.below(40) as u32),
                2 => (SettingId::INITIAL_WINDOW_SIZE, [0, 1, 1000, 65_535, 1 << 20][self.rng.below(5)]),
                3 => (SettingId::MAX_FRAME_SIZE, [16_384, 20_000, (1 << 24) - 1][self.rng.below(3)]),
                4 => (SettingId::MAX_HEADER_LIST_SIZE, self.rng.bits() as u32),
                5 => (SettingId::ENABLE_PUSH, 0),
                _ => (SettingId(0x99), self.rng.bits() as u32),
            };
            SettingsPayload::push(&mut payload, id, value);
        }
        self.client.settings_sent(&payload);
        out.extend(frame(FrameKind::Settings, 0, 0, &payload));
    }

    /// Whether nothing is left to do: the connection ends and all its requests have.
    pub(crate) fn is_done(&self) -> bool {
        self.last_stream.is_some() && self.client.streams.is_empty()
    }

    /// Appends what the server does next, mostly a frame of a response.
    pub(crate) fn act(&mut self, out: &mut Vec<u8>) {
        if self.client.must_acknowledge && self.one_in(3) {
            self.client.acknowledge();
            self.encoder.limit_table(self.client.header_table_bytes);
            out.extend(frame(FrameKind::Settings, 1, 0, b""));
        } else if self.client.streams.is_empty() || self.one_in(4) {
            self.control(out);
        } else {
            let index = self.rng.below(self.client.streams.len());
            self.respond(index, out);
        }
    }

    fn control(&mut self, out: &mut Vec<u8>) {
        let number = self.rng.bits() as u32;
        let key = self.rng.below(self.sent.len());
        match self.rng.below(16) {
            0 => self.settings(out),
            1 | 2 => {
                self.client.pings += 1;
                out.extend(frame(FrameKind::Ping, 0, 0, &self.rng.bits().to_be_bytes()));
            }
            3 => out.extend(frame(FrameKind::Ping, 1, 0, &self.rng.bits().to_be_bytes())),
            4 | 5 => out.extend(frame(FrameKind::Priority, number as u8, 1 + number % 99, &[0; 5])),
            6 | 7 => {
                let (kind, length) = (FrameKind::Unknown(0xa + number as u8 % 0xf0), self.rng.below(40));
                out.extend(frame(kind, (number >> 9) as u8, number >> 20, &vec![0xaa; length]));
            }
            8 | 9 if self.client.window < MAX_CLIENT_WINDOW_BYTES => {
                let increment = 1 + number % 100_000;
                self.client.window += i64::from(increment);
                out.extend(window_update(0, increment));
            }
            10..=12 if !self.client.streams.is_empty() => {
                let index = self.rng.below(self.client.streams.len());
                let stream = &mut self.client.streams[index];
                if stream.client_window < MAX_CLIENT_WINDOW_BYTES {
                    let increment = 1 + number % 100_000;
                    stream.client_window += i64::from(increment);
                    out.extend(window_update(stream.number(), increment));
                }
            }
            // Of a stream that has ended, as they may be late.
            13 if self.sent.get(key).is_some_and(|sent| sent.end.is_some()) => {
                let stream = 2 * key as u32 + 1;
                out.extend(frame(FrameKind::RstStream, 0, stream, &8_u32.to_be_bytes()));
                out.extend(window_update(stream, 1 + number % 9));
            }
            14 if self.one_in(100) => self.go_away(out),
            _ => out.extend(frame(FrameKind::Ping, 1, 0, b"whatever")),
        }
    }

    fn go_away(&mut self, out: &mut Vec<u8>) {
        let newest = self.client.streams.last().map_or(0, ServedStream::number);
        let last = match (self.rng.below(3), self.last_stream) {
            (0, None) => MAX_31_BITS,
            (1, earlier) => newest.min(earlier.unwrap_or(MAX_31_BITS)),
            (_, earlier) => {
                let index = self.rng.below(self.client.streams.len().max(1));
                let some = self.client.streams.get(index).map_or(0, ServedStream::number);
                some.min(earlier.unwrap_or(MAX_31_BITS))
            }
        };
        self.last_stream = Some(last);
        for (key, sent) in self.sent.iter_mut().enumerate() {
            if 2 * key as u32 + 1 > last && sent.end.is_none() {
                sent.end = Some(ExpectedEnd::Unprocessed);
            }
        }
        self.client.streams.retain(|stream| stream.number() <= last);
        out.extend(goaway(last, self.rng.below(14) as u32));
    }

    /// Appends the next frames of a response.
    fn respond(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = self.client.streams[index];
        if self.one_in(40) {
            let code = [0, 1, 7, 8, 11, 999][self.rng.below(6)];
            self.finish(index, ExpectedEnd::Reset(code));
            out.extend(frame(FrameKind::RstStream, 0, stream.number(), &code.to_be_bytes()));
        } else if stream.status == 0 {
            self.head(index, out);
        } else {
            self.content(index, out);
        }
    }

    fn finish(&mut self, index: usize, end: ExpectedEnd) {
        let stream = self.client.finish(index);
        self.sent[stream.key as usize].end = Some(end);
    }

    fn head(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = self.client.streams[index];
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        if self.one_in(10) {
            self.encoder.field(b":status", [b"100", b"103"][self.rng.below(2)], &mut block);
            self.fields(&mut block);
            self.block(stream, FrameFlags::NONE, &block, out);
            return;
        }
        let status = [200_u16, 200, 200, 204, 304, 404, 503][self.rng.below(7)];
        let has_content = !stream.is_head && status != 204 && status != 304;
        let size = [1, 30, 3000, 40_000][self.rng.below(4)];
        let length = self.one_in(2).then(|| self.rng.below(size) as u64);
        self.encoder.field(b":status", status.to_string().as_bytes(), &mut block);
        self.fields(&mut block);
        if let Some(length) = length {
            self.encoder.field(b"content-length", length.to_string().as_bytes(), &mut block);
        }
        let is_end = if has_content { length.unwrap_or(0) == 0 && self.one_in(3) } else { !self.one_in(4) };
        let flags = if is_end { FrameFlags::END_STREAM } else { FrameFlags::NONE };
        self.block(stream, flags, &block, out);
        let sent = &mut self.sent[stream.key as usize];
        (sent.status, sent.content_length) = (status, length);
        let place = &mut self.client.streams[index];
        place.status = status;
        place.content_left = if has_content { length } else { Some(0) };
        if is_end {
            self.finish(index, ExpectedEnd::Whole);
        }
    }

    /// Appends fields of a response to a block, of which some repeat.
    fn fields(&mut self, block: &mut Vec<u8>) {
        for _ in 0..self.rng.below(5) {
            let number = self.rng.below(50).to_string();
            match self.rng.below(7) {
                0 => self.encoder.field(b"server", b"nginx", block),
                1 => self.encoder.field(b"content-type", b"text/plain", block),
                2 => self.encoder.field(b"x-request", number.as_bytes(), block),
                3 => self.encoder.field(format!("x-{number}").as_bytes(), b"", block),
                4 => self.encoder.field(b"set-cookie", b"session=0123456789abcdef0123", block),
                5 => self.encoder.literal(LiteralKind::Never, b"etag", number.as_bytes(), block),
                _ => self.encoder.field(b"content-encoding", b"gzip", block),
            }
        }
    }

    /// Appends a field block in HEADERS and up to five CONTINUATION frames.
    fn block(&mut self, stream: ServedStream, flags: FrameFlags, block: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let continuations = if self.one_in(5) { self.rng.below(6) } else { 0 };
        let mut rest = block;
        for index in 0..=continuations {
            let is_last = index == continuations;
            let length = if is_last { rest.len() } else { self.rng.below(rest.len() + 1) };
            let (fragment, behind) = rest.split_at(length);
            rest = behind;
            let end = if is_last { FrameFlags::END_HEADERS } else { FrameFlags::NONE };
            if index > 0 {
                out.extend(frame(FrameKind::Continuation, end.0, stream.number(), fragment));
                continue;
            }
            let (mut payload, mut flags) = (Vec::new(), flags | end);
            let padding = if self.one_in(8) { self.rng.below(20) } else { 0 };
            if padding > 0 {
                flags = flags | FrameFlags::PADDED;
                payload.push(padding as u8);
            }
            if self.one_in(8) {
                flags = flags | FrameFlags::PRIORITY;
                payload.extend([0, 0, 0, 0, 9]);
            }
            payload.extend_from_slice(fragment);
            payload.resize(payload.len() + padding, 0);
            out.extend(frame(FrameKind::Headers, flags.0, stream.number(), &payload));
        }
        self.sent[stream.key as usize].wire += (out.len() - start) as u64;
    }

    fn content(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = self.client.streams[index];
        let left = stream.content_left.unwrap_or(u64::MAX);
        if left == 0 || (stream.content_left.is_none() && self.one_in(4)) {
            if left != 0 || self.one_in(2) {
                let mut block = Vec::new();
                self.encoder.begin(&mut block);
                self.encoder.field(b"x-checksum", self.rng.below(9).to_string().as_bytes(), &mut block);
                self.block(stream, FrameFlags::END_STREAM, &block, out);
            } else {
                self.sent[stream.key as usize].wire += FrameHeader::LENGTH as u64;
                out.extend(data(stream.number(), 1, b""));
            }
            self.finish(index, ExpectedEnd::Whole);
            return;
        }
        let padding = if self.one_in(10) { Some(self.rng.below(30) as u64) } else { None };
        let framing = padding.map_or(0, |padding| padding + 1);
        let window = stream.window.min(self.client.server_window).max(0) as u64;
        let size = [10, 10, 100, 100, 1000, 17_000][self.rng.below(6)];
        let asked = self.rng.below(size) as u64;
        let Some(room) = window.min(MAX_FRAME_BYTES).checked_sub(framing) else { return };
        let length = asked.min(room).min(left);
        let is_end = length == left && self.one_in(2);
        let mut payload = Vec::new();
        payload.extend(padding.map(|padding| padding as u8));
        payload.resize(payload.len() + (length + padding.unwrap_or(0)) as usize, 0);
        let padded = if padding.is_some() { FrameFlags::PADDED.0 } else { 0 };
        out.extend(data(stream.number(), padded | u8::from(is_end), &payload));
        let bytes = payload.len() as u64;
        let sent = &mut self.sent[stream.key as usize];
        sent.body += length;
        sent.wire += FrameHeader::LENGTH as u64 + bytes;
        let place = &mut self.client.streams[index];
        place.window -= bytes as i64;
        place.content_left = place.content_left.map(|left| left - length);
        self.client.server_window -= bytes as i64;
        if is_end {
            self.finish(index, ExpectedEnd::Whole);
        }
    }
}
