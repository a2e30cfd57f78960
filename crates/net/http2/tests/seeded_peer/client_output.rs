//! What a client writes, read by its server: frames are well-formed, requests are those that were given to it, and
//! windows, limits and acknowledgements are kept.

use std::collections::VecDeque;

use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{CLIENT_PREFACE, FrameFlags, FrameHeader, FrameKind, SettingId, SettingsPayload};
use weir_http2::hpack::{DEFAULT_TABLE_BYTES, FieldSink, HpackDecoder};

use super::served_stream::ServedStream;

const DEFAULT_WINDOW_BYTES: i64 = 65_535;

/// A request that was given to the client.
#[derive(Clone, Debug)]
pub(crate) struct OpenedRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body_length: u64,
}

#[derive(Default)]
struct RequestLine {
    method: Vec<u8>,
    path: Vec<u8>,
}

impl FieldSink for RequestLine {
    fn field(&mut self, name: &[u8], value: &[u8], _: bool) {
        match name {
            b":method" => self.method = value.to_vec(),
            b":path" => self.path = value.to_vec(),
            _ => {}
        }
    }
}

/// State of a client as its server knows it.
#[derive(Debug)]
pub(crate) struct ClientOutput {
    /// Whether the server has kept all rules, so that the client has to keep all of its own.
    pub(crate) is_strict: bool,
    /// By key.
    pub(crate) requests: Vec<OpenedRequest>,
    /// Streams that the server has not ended, by key.
    pub(crate) streams: Vec<ServedStream>,
    /// Bytes that the server may send on the connection.
    pub(crate) server_window: i64,
    /// Bytes that the client may send on the connection.
    pub(crate) window: i64,
    /// PINGs without an acknowledgement.
    pub(crate) pings: u32,
    pub(crate) must_acknowledge: bool,
    pub(crate) header_table_bytes: usize,
    /// Code of the last RST_STREAM, and of GOAWAY.
    pub(crate) resets: Vec<(u32, ErrorCode)>,
    pub(crate) goaway: Option<ErrorCode>,
    has_preface: bool,
    next_key: u32,
    stream_window: i64,
    next_stream_window: i64,
    client_stream_window: i64,
    max_streams: u32,
    max_frame_bytes: u32,
    unacknowledged: VecDeque<Vec<u8>>,
    decoder: HpackDecoder,
    block: Vec<u8>,
    is_block_end: bool,
}

impl Default for ClientOutput {
    fn default() -> Self {
        Self {
            is_strict: true,
            requests: Vec::new(),
            streams: Vec::new(),
            server_window: DEFAULT_WINDOW_BYTES,
            window: DEFAULT_WINDOW_BYTES,
            pings: 0,
            must_acknowledge: false,
            header_table_bytes: DEFAULT_TABLE_BYTES,
            resets: Vec::new(),
            goaway: None,
            has_preface: false,
            next_key: 0,
            stream_window: DEFAULT_WINDOW_BYTES,
            next_stream_window: DEFAULT_WINDOW_BYTES,
            client_stream_window: DEFAULT_WINDOW_BYTES,
            max_streams: u32::MAX,
            max_frame_bytes: 16_384,
            unacknowledged: VecDeque::new(),
            decoder: HpackDecoder::new(DEFAULT_TABLE_BYTES),
            block: Vec::new(),
            is_block_end: false,
        }
    }
}

impl ClientOutput {
    /// SETTINGS that the server sends, and the client acknowledges.
    pub(crate) fn settings_sent(&mut self, payload: &[u8]) {
        self.unacknowledged.push_back(payload.to_vec());
    }

    /// The server acknowledges the client's settings, and obeys them from then on.
    pub(crate) fn acknowledge(&mut self) {
        self.must_acknowledge = false;
        let difference = self.next_stream_window - self.stream_window;
        self.stream_window = self.next_stream_window;
        self.streams.iter_mut().for_each(|stream| stream.window += difference);
    }

    /// Removes a stream that the server ends.
    pub(crate) fn finish(&mut self, index: usize) -> ServedStream {
        self.streams.remove(index)
    }

    fn check(&self, is_so: bool, what: &str, header: FrameHeader) {
        assert!(is_so || !self.is_strict, "{what}: {header:?}");
    }

    /// Reads what the client has written; streams above `last_stream` are not served.
    pub(crate) fn read(&mut self, written: &[u8], last_stream: Option<u32>) {
        let mut rest = written;
        if !self.has_preface {
            rest = rest.strip_prefix(CLIENT_PREFACE).expect("the preface is first");
            self.has_preface = true;
        }
        while let Some((header, behind)) = rest.split_first_chunk() {
            let header = FrameHeader::decode(header);
            let (payload, after) = behind.split_at(header.length as usize);
            self.frame(header, payload, last_stream);
            rest = after;
        }
        assert!(rest.is_empty(), "a part of a frame");
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8], last_stream: Option<u32>) {
        self.check(header.length <= self.max_frame_bytes, "larger than permitted", header);
        assert_eq!(self.goaway, None, "{header:?} behind GOAWAY");
        match header.kind {
            FrameKind::Settings if header.flags.has(FrameFlags::ACK) => self.settings_acknowledged(header),
            FrameKind::Settings => {
                for (id, value) in SettingsPayload(payload).entries() {
                    match id {
                        SettingId::HEADER_TABLE_SIZE => self.header_table_bytes = value as usize,
                        SettingId::INITIAL_WINDOW_SIZE => self.next_stream_window = i64::from(value),
                        _ => {}
                    }
                }
                self.must_acknowledge = true;
            }
            FrameKind::WindowUpdate => {
                let increment = i64::from(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                assert!(increment > 0, "{header:?} of nothing");
                if header.stream == 0 {
                    self.server_window += increment;
                } else if let Some(stream) = self.stream(header.stream) {
                    stream.window += increment;
                }
            }
            FrameKind::Headers => {
                assert_eq!(header.stream, 2 * self.next_key + 1, "the next stream");
                self.block.clear();
                self.is_block_end = header.flags.has(FrameFlags::END_STREAM);
                self.fragment(header, payload, last_stream);
            }
            FrameKind::Continuation => self.fragment(header, payload, last_stream),
            FrameKind::Data => self.data(header),
            FrameKind::RstStream => {
                let code = ErrorCode(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                self.resets.push((header.stream, code));
                self.streams.retain(|stream| stream.number() != header.stream);
            }
            FrameKind::Ping if header.flags.has(FrameFlags::ACK) => {
                self.check(self.pings > 0, "an acknowledgement of no PING", header);
                self.pings = self.pings.saturating_sub(1);
            }
            FrameKind::Ping => {}
            FrameKind::GoAway => {
                assert_eq!(payload[..4], [0; 4], "no stream of a server is processed");
                let code = payload[4..].try_into().expect("a code without data");
                self.goaway = Some(ErrorCode(u32::from_be_bytes(code)));
            }
            FrameKind::Priority | FrameKind::PushPromise | FrameKind::Unknown(_) => {
                panic!("a client does not send {header:?}")
            }
        }
    }

    fn stream(&mut self, number: u32) -> Option<&mut ServedStream> {
        let index = self.streams.binary_search_by_key(&number, ServedStream::number).ok()?;
        self.streams.get_mut(index)
    }

    fn settings_acknowledged(&mut self, header: FrameHeader) {
        let settings = self.unacknowledged.pop_front();
        self.check(settings.is_some(), "an acknowledgement of no SETTINGS", header);
        for (id, value) in SettingsPayload(&settings.unwrap_or_default()).entries() {
            match id {
                SettingId::HEADER_TABLE_SIZE => self.decoder.limit_table(value as usize),
                SettingId::MAX_CONCURRENT_STREAMS => self.max_streams = value,
                SettingId::MAX_FRAME_SIZE => self.max_frame_bytes = value,
                SettingId::INITIAL_WINDOW_SIZE => {
                    let difference = i64::from(value) - self.client_stream_window;
                    self.client_stream_window = i64::from(value);
                    self.streams.iter_mut().for_each(|stream| stream.client_window += difference);
                }
                _ => {}
            }
        }
    }

    fn fragment(&mut self, header: FrameHeader, payload: &[u8], last_stream: Option<u32>) {
        self.block.extend_from_slice(payload);
        if !header.flags.has(FrameFlags::END_HEADERS) {
            return;
        }
        let mut line = RequestLine::default();
        let decoded = self.decoder.decode(&self.block, &mut line);
        self.check(decoded.is_ok(), "a block that does not decode", header);
        let request = &self.requests[self.next_key as usize];
        let is_same = line.method == request.method.as_bytes() && line.path == request.path.as_bytes();
        self.check(is_same, "another request than the one that was opened", header);
        assert_eq!(self.is_block_end, request.body_length == 0, "{header:?}");
        self.check((self.streams.len() as u32) < self.max_streams, "more streams than permitted", header);
        let stream = ServedStream {
            key: self.next_key,
            is_head: request.method == "HEAD",
            body_left: request.body_length,
            status: 0,
            content_left: None,
            window: self.stream_window,
            client_window: self.client_stream_window,
        };
        self.next_key += 1;
        if last_stream.is_none_or(|last| stream.number() <= last) {
            self.streams.push(stream);
        }
    }

    fn data(&mut self, header: FrameHeader) {
        let length = i64::from(header.length);
        self.check(length <= self.window, "more than the connection's window", header);
        self.window -= length;
        let Some(&stream) = self.stream(header.stream).map(|stream| &*stream) else { return };
        self.check(length <= stream.client_window, "more than the stream's window", header);
        let left = stream.body_left.checked_sub(u64::from(header.length)).expect("no more than the body");
        assert_eq!(left == 0, header.flags.has(FrameFlags::END_STREAM), "{header:?}");
        if let Some(place) = self.stream(header.stream) {
            place.client_window -= length;
            place.body_left = left;
        }
    }
}
