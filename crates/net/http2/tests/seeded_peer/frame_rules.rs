//! What RFC 9113 demands of a client for each frame, as far as the header, the length and the states of streams decide it:
//! an oracle that is written the simple way, apart from the product.

use std::collections::BTreeMap;

use weir_http2::connection::{ClientSettings, Event, ResetSide};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{FrameFlags, FrameHeader, FrameKind, MAX_31_BITS, SettingId, SettingsPayload};

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
const CLOSED: ErrorCode = ErrorCode::STREAM_CLOSED;
const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
const COMPRESSION: ErrorCode = ErrorCode::COMPRESSION_ERROR;
const CALM: ErrorCode = ErrorCode::ENHANCE_YOUR_CALM;

const MAX_FRAME_BYTES: u32 = 16_384;
/// Frames without content from which on a client may speak of a flood.
const MIN_FLOOD_FRAMES: u32 = 10_000;
/// CONTINUATION frames from which on it may.
const MIN_FLOOD_CONTINUATIONS: u32 = 64;
/// Streams ended by the client from which on it may have forgotten the first of them.
const REMEMBERED_STREAMS: usize = 128;

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndedBy {
    /// Nothing may come behind it.
    Server,
    /// Anything may still be on the way.
    Client,
}

/// Codes that may end a connection or a stream because of a frame.
#[derive(Debug, Default)]
pub(crate) struct FrameVerdict {
    /// If not empty, the connection has to end with one of these.
    pub(crate) must: Vec<ErrorCode>,
    /// Further codes with which the connection may end.
    pub(crate) may: Vec<ErrorCode>,
    /// If not empty and the connection goes on, the stream has to be reset with one of these.
    pub(crate) must_reset: Vec<ErrorCode>,
    /// Further codes with which the stream may be reset.
    pub(crate) may_reset: Vec<ErrorCode>,
}

impl FrameVerdict {
    fn must(&mut self, code: ErrorCode, is_so: bool) {
        if is_so {
            self.must.push(code);
        }
    }

    /// Whether a connection may go on, `None`, or end with this code.
    pub(crate) fn permits(&self, end: Option<ErrorCode>) -> bool {
        match end {
            None => self.must.is_empty(),
            Some(code) => self.must.contains(&code) || self.may.contains(&code),
        }
    }

    /// Whether a client may send these resets.
    pub(crate) fn permits_resets(&self, resets: &[ErrorCode]) -> bool {
        match resets {
            [] => self.must_reset.is_empty(),
            [code] => self.must_reset.contains(code) || self.may_reset.contains(code),
            _ => false,
        }
    }
}

/// A field block that is not whole yet.
#[derive(Debug)]
struct OpenBlock {
    stream: u32,
    continuations: u32,
    bytes: usize,
}

/// State of a connection as far as the rules need it.
#[derive(Debug)]
pub(crate) struct FrameRules {
    max_block_bytes: usize,
    connection_window_bytes: u64,
    is_greeted: bool,
    is_acknowledged: bool,
    /// Number of the next stream.
    next_stream: u32,
    ended: BTreeMap<u32, EndedBy>,
    ended_by_client: usize,
    /// Bodies of requests, to tell a stream that the client has to end behind the response.
    body_lengths: Vec<u64>,
    has_head: Vec<bool>,
    block: Option<OpenBlock>,
    /// Bytes of DATA without credit for them.
    uncredited_bytes: u64,
    last_stream: Option<u32>,
    control_frames: u32,
}

impl FrameRules {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        Self {
            max_block_bytes: 2 * settings.max_fields_bytes as usize,
            connection_window_bytes: u64::from(settings.connection_window_bytes),
            is_greeted: false,
            is_acknowledged: false,
            next_stream: 1,
            ended: BTreeMap::new(),
            ended_by_client: 0,
            body_lengths: Vec::new(),
            has_head: Vec::new(),
            block: None,
            uncredited_bytes: 0,
            last_stream: None,
            control_frames: 0,
        }
    }

    pub(crate) fn opened(&mut self, body_length: u64) {
        self.next_stream += 2;
        self.body_lengths.push(body_length);
        self.has_head.push(false);
    }

    pub(crate) fn cancelled(&mut self, key: u32) {
        self.end(key, EndedBy::Client);
    }

    pub(crate) fn budget_renewed(&mut self) {
        self.control_frames = 0;
    }

    /// Takes credit that the client has given for the connection.
    pub(crate) fn credited(&mut self, bytes: u32) {
        self.uncredited_bytes -= u64::from(bytes);
    }

    /// Takes an event of the client.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Head { key, .. } => self.has_head[*key as usize] = true,
            Event::Ended { key, totals } => {
                // A response that comes before the end of the body is the end of both: the client resets the stream.
                let is_sent = totals.body_sent == self.body_lengths[*key as usize];
                self.end(*key, if is_sent { EndedBy::Server } else { EndedBy::Client });
            }
            Event::Reset { key, reset } => {
                let by_frame = reset.side == ResetSide::Peer && !self.is_unprocessed(*key);
                self.end(*key, if by_frame { EndedBy::Server } else { EndedBy::Client });
            }
            Event::GoAway { last_stream, .. } => self.last_stream = Some(*last_stream),
            Event::Data { .. } | Event::Settings | Event::PingAck { .. } => {}
        }
    }

    fn is_unprocessed(&self, key: u32) -> bool {
        self.last_stream.is_some_and(|last| 2 * key + 1 > last)
    }

    fn end(&mut self, key: u32, by: EndedBy) {
        self.ended.insert(2 * key + 1, by);
        self.ended_by_client += usize::from(by == EndedBy::Client);
    }

    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream >= self.next_stream
    }

    fn is_open(&self, stream: u32) -> bool {
        !self.is_idle(stream) && !self.ended.contains_key(&stream)
    }

    /// Judges a frame on a stream that may be closed: DATA or a field block.
    fn message(&self, verdict: &mut FrameVerdict, stream: u32) {
        verdict.must(PROTOCOL, self.is_idle(stream));
        if self.ended.get(&stream) == Some(&EndedBy::Server) {
            // Streams that the client no longer remembers may all have been ended by it.
            let codes = if self.ended_by_client < REMEMBERED_STREAMS { &mut verdict.must } else { &mut verdict.may };
            codes.push(CLOSED);
        }
    }

    /// Judges the next frame, before the client gets it. Of a frame that is too large the header is enough.
    pub(crate) fn judge(&mut self, header: FrameHeader, payload: &[u8]) -> FrameVerdict {
        let mut verdict = FrameVerdict::default();
        let is_acknowledgement = header.flags.has(FrameFlags::ACK);
        verdict.must(SIZE, header.length > MAX_FRAME_BYTES);
        let is_greeting = header.kind == FrameKind::Settings && !is_acknowledgement;
        verdict.must(PROTOCOL, !self.is_greeted && !is_greeting);
        self.is_greeted = true;
        let continued = self.block.as_ref().map(|block| block.stream);
        let is_continuation = header.kind == FrameKind::Continuation;
        verdict.must(PROTOCOL, continued.is_some() != is_continuation);
        verdict.must(PROTOCOL, continued.is_some_and(|stream| stream != header.stream));
        if !verdict.must.is_empty() {
            return verdict;
        }
        self.control_frames += 1;
        match header.kind {
            FrameKind::Data => self.data(&mut verdict, header, payload),
            FrameKind::Headers => self.headers(&mut verdict, header, payload),
            FrameKind::Continuation => self.continuation(&mut verdict, header, payload),
            FrameKind::Priority => self.priority(&mut verdict, header),
            FrameKind::RstStream => {
                verdict.must(SIZE, header.length != 4);
                verdict.must(PROTOCOL, self.is_idle(header.stream));
            }
            FrameKind::Settings => self.settings(&mut verdict, header, payload),
            FrameKind::PushPromise => verdict.must(PROTOCOL, true),
            FrameKind::Ping => {
                verdict.must(SIZE, header.length != 8);
                verdict.must(PROTOCOL, header.stream != 0);
            }
            FrameKind::GoAway => self.goaway(&mut verdict, header, payload),
            FrameKind::WindowUpdate => self.window_update(&mut verdict, header, payload),
            FrameKind::Unknown(_) => {}
        }
        if self.control_frames > MIN_FLOOD_FRAMES {
            verdict.may.push(CALM);
        }
        verdict
    }

    fn data(&mut self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        verdict.must(PROTOCOL, header.stream == 0);
        if header.flags.has(FrameFlags::PADDED) {
            verdict.must(SIZE, payload.is_empty());
            verdict.must(PROTOCOL, payload.first().is_some_and(|padding| usize::from(*padding) >= payload.len()));
        }
        self.message(verdict, header.stream);
        self.uncredited_bytes += u64::from(header.length);
        verdict.must(FLOW, self.uncredited_bytes > self.connection_window_bytes);
        if self.is_open(header.stream) {
            if !self.has_head[header.stream as usize / 2] {
                verdict.must_reset.push(PROTOCOL);
            }
            verdict.may_reset.extend([PROTOCOL, FLOW]);
        }
    }

    fn headers(&mut self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        verdict.must(PROTOCOL, header.stream == 0);
        let (is_padded, has_priority) = (header.flags.has(FrameFlags::PADDED), header.flags.has(FrameFlags::PRIORITY));
        let fixed = usize::from(is_padded) + if has_priority { 5 } else { 0 };
        verdict.must(SIZE, payload.len() < fixed);
        let padding = payload.first().filter(|_| is_padded).map_or(0, |padding| usize::from(*padding));
        verdict.must(PROTOCOL, payload.len() >= fixed && payload.len() - fixed < padding);
        if header.flags.has(FrameFlags::END_HEADERS) {
            self.whole_block(verdict, header.stream);
            return;
        }
        let bytes = payload.len().saturating_sub(fixed + padding);
        if bytes > self.max_block_bytes {
            verdict.must.push(CALM);
        }
        self.block = Some(OpenBlock { stream: header.stream, continuations: 0, bytes });
    }

    fn continuation(&mut self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        let Some(block) = &mut self.block else { return };
        block.continuations += 1;
        block.bytes += payload.len();
        if block.continuations > MIN_FLOOD_CONTINUATIONS || block.bytes > self.max_block_bytes {
            verdict.must.push(CALM);
        }
        if header.flags.has(FrameFlags::END_HEADERS) {
            self.block = None;
            self.whole_block(verdict, header.stream);
        }
    }

    fn whole_block(&self, verdict: &mut FrameVerdict, stream: u32) {
        verdict.may.push(COMPRESSION);
        self.message(verdict, stream);
        if self.is_open(stream) {
            verdict.may_reset.extend([PROTOCOL, CALM]);
        }
    }

    fn priority(&self, verdict: &mut FrameVerdict, header: FrameHeader) {
        verdict.must(PROTOCOL, header.stream == 0);
        if header.length == 5 {
            return;
        }
        if self.is_open(header.stream) {
            verdict.must_reset.push(SIZE);
        } else {
            verdict.must(SIZE, true);
        }
    }

    fn settings(&mut self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        verdict.must(PROTOCOL, header.stream != 0);
        if header.flags.has(FrameFlags::ACK) {
            verdict.must(SIZE, !payload.is_empty());
            verdict.must(PROTOCOL, self.is_acknowledged);
            self.is_acknowledged = true;
            return;
        }
        verdict.must(SIZE, !payload.len().is_multiple_of(SettingsPayload::ENTRY_BYTES));
        for (id, value) in SettingsPayload(payload).entries() {
            self.control_frames += 1;
            match id {
                SettingId::ENABLE_PUSH => verdict.must(PROTOCOL, value != 0),
                SettingId::INITIAL_WINDOW_SIZE => {
                    verdict.must(FLOW, value > MAX_31_BITS);
                    // Of a stream with credit of its own the window may overflow.
                    verdict.may.push(FLOW);
                }
                SettingId::MAX_FRAME_SIZE => verdict.must(PROTOCOL, !(1 << 14..1 << 24).contains(&value)),
                _ => {}
            }
        }
    }

    fn goaway(&self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        verdict.must(PROTOCOL, header.stream != 0);
        verdict.must(SIZE, payload.len() < 8);
        let last = payload.first_chunk().map_or(0, |four| u32::from_be_bytes(*four) & MAX_31_BITS);
        verdict.must(PROTOCOL, self.last_stream.is_some_and(|earlier| last > earlier));
    }

    fn window_update(&self, verdict: &mut FrameVerdict, header: FrameHeader, payload: &[u8]) {
        verdict.must(SIZE, header.length != 4);
        let increment = payload.first_chunk().map_or(0, |four| u32::from_be_bytes(*four) & MAX_31_BITS);
        if header.stream == 0 {
            verdict.must(PROTOCOL, increment == 0);
            verdict.may.push(FLOW);
            return;
        }
        verdict.must(PROTOCOL, self.is_idle(header.stream));
        if self.is_open(header.stream) {
            if increment == 0 {
                verdict.must_reset.push(PROTOCOL);
            }
            verdict.may_reset.push(FLOW);
        }
    }
}
