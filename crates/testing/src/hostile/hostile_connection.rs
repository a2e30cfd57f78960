//! One connection: reads requests, breaks rules, and watches the client.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_base::rng::SeededRng;
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{
    CLIENT_PREFACE, FrameFlags, FrameHeader, FrameKind, MIN_MAX_FRAME_BYTES, SettingId, write_goaway, write_ping,
    write_reset, write_window_update,
};
use weir_http2::hpack::{FieldSink, HpackDecoder};

use super::hostile_state::HostileState;
use super::options::HostileOptions;
use super::{ViolationEnd, block, data, frame, headers, settings};

/// Streams of a connection at the same time.
const MAX_STREAMS: u32 = 100;
/// Time that a client has to end what it has to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time that a client has to close a connection that has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Idle time after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of a field block, in bytes.
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// A connection of a client.
pub(super) struct HostileConnection<'a> {
    stream: TcpStream,
    shared: &'a Arc<HostileState>,
    hpack: HpackDecoder,
    /// Requests whose body is still to come.
    open: HashSet<u32>,
    /// Streams that the client has to reset: the violation, and the code.
    awaited: HashMap<u32, (&'static str, ErrorCode)>,
    /// Last stream that is processed, after GOAWAY.
    last_stream: Option<u32>,
    /// Whether the client has gone on where it had to end the connection.
    is_ignored: bool,
}

/// Reaction of a client to a violation.
#[derive(Clone, Copy)]
enum Reaction {
    /// End of the stream or the connection with this code.
    Code(Option<ErrorCode>),
    /// Close of the connection without a code.
    Closed,
    None,
}

/// Fields of a request, which has the same response whatever they are.
struct IgnoredFields;

impl FieldSink for IgnoredFields {
    fn field(&mut self, _: &[u8], _: &[u8], _: bool) {}
}

impl<'a> HostileConnection<'a> {
    pub(super) fn new(stream: TcpStream, shared: &'a Arc<HostileState>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
        Ok(Self {
            stream,
            shared,
            hpack: HpackDecoder::new(4096),
            open: HashSet::new(),
            awaited: HashMap::new(),
            last_stream: None,
            is_ignored: false,
        })
    }

    /// Serves the client until one side ends the connection.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut preface = [0; CLIENT_PREFACE.len()];
        self.stream.read_exact(&mut preface)?;
        if preface != CLIENT_PREFACE {
            return Ok(());
        }
        self.shared.counts.lock().unwrap().connections += 1;
        self.stream.write_all(&settings(&[(SettingId::MAX_CONCURRENT_STREAMS, MAX_STREAMS)]))?;
        let ended = self.serve();
        for (name, expected) in std::mem::take(&mut self.awaited).into_values() {
            self.judge(name, if self.is_ignored { Reaction::None } else { Reaction::Closed }, expected);
        }
        self.drain()?;
        ended
    }

    /// Ends the connection so that what was written arrives: a close with unread bytes resets it.
    fn drain(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(DRAIN_TIMEOUT))?;
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return Ok(()),
                // A read with a timeout ends so when this process was stopped for a while.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    read?;
                }
            }
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        while let Some((header, payload)) = self.read_frame()? {
            let ends = header.flags.has(FrameFlags::END_STREAM);
            match header.kind {
                FrameKind::Settings if !header.flags.has(FrameFlags::ACK) => {
                    self.stream.write_all(&frame(FrameKind::Settings, 1, 0, &[]))?;
                }
                FrameKind::Ping if !header.flags.has(FrameFlags::ACK) => {
                    let mut out = Vec::new();
                    write_ping(&mut out, payload.first_chunk().copied().unwrap_or_default(), FrameFlags::ACK);
                    self.stream.write_all(&out)?;
                }
                FrameKind::Headers => {
                    self.read_block(header.flags, payload)?;
                    if ends && !self.request(header.stream)? {
                        return Ok(());
                    }
                    if !ends {
                        self.open.insert(header.stream);
                    }
                }
                FrameKind::Data => {
                    self.give_credit(&header)?;
                    if ends && self.open.remove(&header.stream) && !self.request(header.stream)? {
                        return Ok(());
                    }
                }
                FrameKind::RstStream => {
                    self.open.remove(&header.stream);
                    if let Some((name, expected)) = self.awaited.remove(&header.stream) {
                        self.judge(name, Reaction::Code(code_of(&payload, 0)), expected);
                    }
                }
                FrameKind::GoAway => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Does something with a request; false if that ends the connection.
    fn request(&mut self, stream: u32) -> io::Result<bool> {
        if self.last_stream.is_some_and(|last| stream > last) {
            self.shared.counts.lock().unwrap().unprocessed += 1;
            return Ok(true);
        }
        self.shared.counts.lock().unwrap().requests += 1;
        let options = self.shared.options;
        let mut random = SeededRng::new(options.seed, self.shared.next.fetch_add(1, Ordering::SeqCst));
        let mut chance = 1.0 - random.unit();
        let mut takes = |share: f64| {
            let taken = (0.0..share).contains(&chance);
            chance -= share;
            taken
        };
        if takes(options.violation) {
            return self.violate(stream);
        }
        if takes(options.goaway) {
            self.shared.counts.lock().unwrap().unprocessed += 1;
            // Streams are opened in the order of their numbers, and lower ones have their responses.
            let last = stream.saturating_sub(2);
            self.last_stream = Some(last);
            let mut out = Vec::new();
            write_goaway(&mut out, last, ErrorCode::NO_ERROR);
            return self.stream.write_all(&out).map(|()| true);
        }
        if takes(options.reset) {
            self.shared.counts.lock().unwrap().resets += 1;
            let mut out = Vec::new();
            write_reset(&mut out, stream, ErrorCode::INTERNAL_ERROR);
            return self.stream.write_all(&out).map(|()| true);
        }
        if takes(options.close) {
            self.shared.counts.lock().unwrap().closes += 1;
            // What the client would have ended is not known.
            self.awaited.clear();
            return Ok(false);
        }
        // What looks strange and is permitted.
        let strange = match random.below(8) {
            0 => frame(FrameKind::Unknown(0xee), 0xff, stream, b"whatever"),
            1 => frame(FrameKind::Priority, 0, stream, &[0, 0, 0, 0, 9]),
            2 => frame(FrameKind::Ping, 0, 0, b"are you?"),
            3 => settings(&[(SettingId(0x77), 1)]),
            4 => headers(stream, 0, &block(&[(":status", "103"), ("link", "</a>")])),
            _ => Vec::new(),
        };
        self.stream.write_all(&strange)?;
        self.respond(stream)?;
        self.shared.counts.lock().unwrap().responses += 1;
        Ok(true)
    }

    fn respond(&mut self, stream: u32) -> io::Result<()> {
        let mut out = headers(stream, 0, &block(&[(":status", "200"), ("content-type", "text/plain")]));
        out.extend(data(stream, 1, b"good\n"));
        self.stream.write_all(&out)
    }

    /// Breaks a rule; false if that ends the connection.
    fn violate(&mut self, stream: u32) -> io::Result<bool> {
        let violations = HostileOptions::frames(stream);
        // In turn, so that each is played after some hundred requests.
        let number = self.shared.options.seed.wrapping_add(self.shared.violations.fetch_add(1, Ordering::SeqCst));
        let which = number % (violations.len() as u64).max(1);
        let Some(violation) = violations.into_iter().nth(which as usize) else { return Ok(true) };
        let name = violation.name;
        {
            let mut counts = self.shared.counts.lock().unwrap();
            counts.violations.entry(name).or_default().sent += 1;
            counts.responses += u64::from(name.starts_with("an ended stream"));
        }
        match violation.end {
            ViolationEnd::Stream(code) => {
                self.awaited.insert(stream, (name, code));
                self.stream.write_all(&violation.bytes)?;
                Ok(true)
            }
            ViolationEnd::Connection(code) => {
                // A client may end a flood before its last frame.
                let _ = self.stream.write_all(&violation.bytes);
                let found = self.await_goaway();
                self.judge(name, found, code);
                Ok(false)
            }
            ViolationEnd::Nothing => Ok(true),
        }
    }

    /// Reads the client's reaction to a violation that ends the connection.
    fn await_goaway(&mut self) -> Reaction {
        if self.stream.set_read_timeout(Some(PATIENCE)).is_err() {
            return Reaction::Closed;
        }
        loop {
            let (header, payload) = match self.read_frame() {
                Ok(Some(frame)) => frame,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    self.is_ignored = true;
                    return Reaction::None;
                }
                Ok(None) | Err(_) => return Reaction::Closed,
            };
            match header.kind {
                // It has no more requests.
                FrameKind::GoAway if code_of(&payload, 4) == Some(ErrorCode::NO_ERROR) => return Reaction::Closed,
                FrameKind::GoAway => return Reaction::Code(code_of(&payload, 4)),
                FrameKind::RstStream => {
                    if let Some((name, expected)) = self.awaited.remove(&header.stream) {
                        self.judge(name, Reaction::Code(code_of(&payload, 0)), expected);
                    }
                }
                _ => {}
            }
        }
    }

    fn judge(&self, name: &'static str, reaction: Reaction, expected: ErrorCode) {
        let mut counts = self.shared.counts.lock().unwrap();
        let counts = counts.violations.entry(name).or_default();
        match reaction {
            Reaction::Code(Some(code)) if code == expected => counts.right += 1,
            Reaction::Code(code) => {
                counts.other_code += 1;
                counts.last_code = code.map(|code| code.to_string());
            }
            Reaction::Closed => counts.closed += 1,
            Reaction::None => counts.ignored += 1,
        }
    }

    /// Gives the client credit for what it has sent.
    fn give_credit(&mut self, header: &FrameHeader) -> io::Result<()> {
        if header.length == 0 {
            return Ok(());
        }
        let mut out = Vec::new();
        write_window_update(&mut out, 0, header.length);
        if !header.flags.has(FrameFlags::END_STREAM) {
            write_window_update(&mut out, header.stream, header.length);
        }
        self.stream.write_all(&out)
    }

    /// Reads the block of a request, which begins with this payload.
    fn read_block(&mut self, mut flags: FrameFlags, payload: Vec<u8>) -> io::Result<()> {
        let mut block = payload;
        while !flags.has(FrameFlags::END_HEADERS) && block.len() < MAX_BLOCK_BYTES {
            let Some((header, more)) = self.read_frame()? else { break };
            flags = header.flags;
            block.extend(more);
        }
        self.hpack.decode(&block, &mut IgnoredFields).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(())
    }

    /// Next frame; `None` at the end of the connection.
    fn read_frame(&mut self) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
        let mut header = [0; FrameHeader::LENGTH];
        match self.stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let header = FrameHeader::decode(&header);
        if header.length > MIN_MAX_FRAME_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut payload = vec![0; header.length as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(Some((header, payload)))
    }
}

/// Error code at an offset of a payload.
fn code_of(payload: &[u8], at: usize) -> Option<ErrorCode> {
    let bytes = payload.get(at..)?.first_chunk()?;
    Some(ErrorCode(u32::from_be_bytes(*bytes)))
}
