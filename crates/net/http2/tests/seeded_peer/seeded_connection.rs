//! One connection of a seed, from its settings to its end.

use std::collections::BTreeMap;

use weir_base::rng::SeededRng;
use weir_http2::connection::{ClientSettings, ConnectionError, Event, ResetSide};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::{FrameHeader, FrameKind};

use super::client_output::OpenedRequest;
use super::driven_client::DrivenClient;
use super::frame_mistakes::{FrameMistakes, misplaced, mutate};
use super::frame_rules::{FrameRules, FrameVerdict};
use super::seeded_server::SeededServer;
use super::served_stream::ExpectedEnd;

/// Turns of a connection that nothing ends.
const MAX_TURNS: usize = 1500;
/// Turns after which the budget of frames without content begins anew, as by a clock.
const RENEWAL_TURNS: usize = 400;
/// Largest header of a frame that is passed on without its payload.
const MAX_FRAME_BYTES: u32 = 16_384;

/// Counts of what was played.
#[derive(Debug, Default)]
pub(crate) struct FrameTally {
    pub(crate) connections: u64,
    /// Frames that the client got, by type: 0 to 9, and all others.
    pub(crate) frames: [u64; 11],
    pub(crate) requests: u64,
    /// Responses that were whole, and the same as sent where the server kept the rules.
    pub(crate) whole: u64,
    pub(crate) compared: u64,
    pub(crate) mistakes: u64,
    /// Connections that ended by a violation, by code.
    pub(crate) ends: BTreeMap<u32, u64>,
    /// Streams that the client ended by a violation, by code.
    pub(crate) resets: BTreeMap<u32, u64>,
    /// Largest memory of a connection, in bytes, ...
    pub(crate) max_held_bytes: i64,
    /// ... and largest output that waited to be written.
    pub(crate) max_output_bytes: usize,
}

impl FrameTally {
    pub(crate) fn frame_count(&self) -> u64 {
        self.frames.iter().sum()
    }
}

struct SeededConnection<'a> {
    rng: SeededRng,
    client: DrivenClient,
    server: SeededServer,
    rules: FrameRules,
    tally: &'a mut FrameTally,
    /// What the client has written and the server not read.
    unread: Vec<u8>,
    /// Bytes of it that the rules know.
    seen: usize,
    /// Part of a frame that was cut off by a mistake; what follows is its rest.
    partial: Vec<u8>,
}

/// Plays the connection of a seed.
///
/// # Panics
/// If the client does anything else than RFC 9113 demands or permits.
pub(crate) fn play(seed: u64, mistakes: &FrameMistakes, tally: &mut FrameTally) {
    let mut rng = SeededRng::new(seed, 0);
    let settings = ClientSettings {
        is_tls: rng.below(2) == 0,
        max_streams: [1, 10, 100][rng.below(3)],
        stream_window_bytes: [1, 5_000, 40_000, 6 << 20][rng.below(4)],
        connection_window_bytes: [65_535, 100_000, 15 << 20][rng.below(3)],
        header_table_bytes: [4096, 4096, 0, 200, 65_536][rng.below(5)],
        max_fields_bytes: [2_000, 64 << 10][rng.below(2)],
        ..ClientSettings::default()
    };
    let mut connection = SeededConnection {
        client: DrivenClient::new(&settings),
        server: SeededServer::new(SeededRng::new(seed, 1)),
        rules: FrameRules::new(&settings),
        rng,
        tally,
        unread: Vec::new(),
        seen: 0,
        partial: Vec::new(),
    };
    // Mistakes are rare, so that most come when much has happened, or frequent: then a connection is short.
    let turns_between = [usize::MAX, 300, 100, 30, 10, 3, 2, 2, 2, 2][connection.rng.below(10)];
    connection.tally.connections += 1;
    connection.play(mistakes, turns_between);
    connection.tally.requests += u64::from(connection.client.request_count());
}

impl SeededConnection<'_> {
    fn play(&mut self, mistakes: &FrameMistakes, turns_between: usize) {
        // The preface raises the window of the connection: that is no credit for anything received.
        self.client.take_output(&mut self.unread);
        self.seen = self.unread.len();
        let mut frames = Vec::new();
        self.server.settings(&mut frames);
        if self.feed(&frames).is_err() {
            return;
        }
        for turn in 1..=MAX_TURNS {
            self.request();
            if turn.is_multiple_of(RENEWAL_TURNS) {
                self.client.renew_budget();
                self.rules.budget_renewed();
            }
            self.take_output();
            if turn.is_multiple_of(50) || self.rng.below(3) == 0 {
                self.server_reads();
            }
            frames.clear();
            if turns_between < usize::MAX && self.rng.below(turns_between) == 0 {
                self.mistake(mistakes, &mut frames);
            } else {
                self.server.act(&mut frames);
            }
            if self.feed(&frames).is_err() || self.server.is_done() {
                break;
            }
        }
        self.check_ends();
    }

    /// What the client's caller does: opens and cancels requests, sends bodies, asks whether the server is there.
    fn request(&mut self) {
        for _ in 0..self.rng.below(3) {
            let method = ["GET", "GET", "HEAD", "POST"][self.rng.below(4)];
            let path = if self.rng.below(3) == 0 { format!("/item/{}", self.rng.below(999)) } else { "/a".to_owned() };
            let size = [9, 3_000, 200_000][self.rng.below(3)];
            let body_length = if method == "POST" { self.rng.below(size) as u64 } else { 0 };
            let head = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nX-Test: seeded\r\n\r\n");
            let wants_head = self.rng.below(2) == 0;
            let Some(_) = self.client.open(head.as_bytes(), body_length, wants_head) else { break };
            self.server.opened(OpenedRequest { method, path, body_length });
            self.rules.opened(body_length);
        }
        let count = self.client.request_count() as usize;
        if count > 0 && self.rng.below(30) == 0 {
            let key = (count - 1 - self.rng.below(count.min(20))) as u32;
            if !self.client.is_over(key) {
                self.client.cancel(key);
                self.rules.cancelled(key);
            }
        }
        if self.rng.below(100) == 0 {
            self.client.ping();
        }
        self.client.send_bodies();
    }

    /// Takes what the client has written; the rules get the credit at once, the server when it reads.
    fn take_output(&mut self) {
        let pending = self.client.connection().output().len();
        self.tally.max_output_bytes = self.tally.max_output_bytes.max(pending);
        self.client.take_output(&mut self.unread);
        let mut at = self.seen;
        while let Some((header, behind)) = self.unread.get(at..).and_then(|rest| rest.split_first_chunk()) {
            let header = FrameHeader::decode(header);
            if header.kind == FrameKind::WindowUpdate && header.stream == 0 {
                self.rules.credited(u32::from_be_bytes(*behind.first_chunk().expect("four bytes")));
            }
            at += FrameHeader::LENGTH + header.length as usize;
        }
        self.seen = self.unread.len();
    }

    fn server_reads(&mut self) {
        self.server.client.read(&self.unread, self.server.last_stream);
        self.unread.clear();
        self.seen = 0;
    }

    fn mistake(&mut self, mistakes: &FrameMistakes, frames: &mut Vec<u8>) {
        self.tally.mistakes += 1;
        self.server.client.is_strict = false;
        let count = self.client.request_count().max(1);
        let stream = 2 * (count - 1 - self.rng.below(count.min(12) as usize) as u32) + 1;
        match self.rng.below(20) {
            0..=5 => misplaced(&mut self.rng, stream, frames),
            6..=10 => mistakes.known(&mut self.rng, stream, frames),
            11 if self.rng.below(100) == 0 => mistakes.flood(&mut self.rng, stream, frames),
            _ => {
                for _ in 0..=self.rng.below(2) {
                    self.server.act(frames);
                }
                mutate(&mut self.rng, frames);
            }
        }
    }

    /// Passes bytes on, frame by frame, and compares what the client does with the rules.
    fn feed(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.partial.extend_from_slice(bytes);
        let frames = std::mem::take(&mut self.partial);
        let mut rest = frames.as_slice();
        while let Some(header) = rest.first_chunk() {
            let header = FrameHeader::decode(header);
            let length = FrameHeader::LENGTH + header.length as usize;
            let is_large = header.length > MAX_FRAME_BYTES;
            let Some(frame) = rest.get(..if is_large { FrameHeader::LENGTH } else { length }) else { break };
            rest = &rest[frame.len()..];
            let verdict = self.rules.judge(header, &frame[FrameHeader::LENGTH..]);
            self.tally.frames[usize::from(header.kind.number()).min(10)] += 1;
            self.pass(header, frame, &verdict)?;
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn pass(&mut self, header: FrameHeader, frame: &[u8], verdict: &FrameVerdict) -> Result<(), ConnectionError> {
        let cut = if self.rng.below(8) == 0 { self.rng.below(frame.len() + 1) } else { frame.len() };
        let mut resets = Vec::new();
        let mut end = Ok(());
        for piece in [&frame[..cut], &frame[cut..]] {
            let Self { client, rules, server, tally, .. } = self;
            end = end.and_then(|()| {
                client.receive(piece, |event, head_text| {
                    rules.event(&event);
                    expect(server, &event, head_text, tally);
                    if let Event::Reset { reset, .. } = event
                        && reset.side == ResetSide::Client
                    {
                        resets.push(reset.code);
                        *tally.resets.entry(reset.code.0).or_default() += 1;
                    }
                })
            });
        }
        self.tally.max_held_bytes = self.tally.max_held_bytes.max(self.client.held_bytes());
        let code = end.err().map(|error| error.code);
        assert!(verdict.permits(code), "{end:?} for {header:?}, where {verdict:?}");
        assert!(!self.server.client.is_strict || end.is_ok(), "{end:?} for the valid {header:?}");
        if let Some(code) = code {
            *self.tally.ends.entry(code.0).or_default() += 1;
        } else {
            assert!(verdict.permits_resets(&resets), "resets {resets:?} for {header:?}, where {verdict:?}");
        }
        self.check_codes(code, &resets);
        end
    }

    /// Compares the codes on the wire with those of the events.
    fn check_codes(&mut self, code: Option<ErrorCode>, resets: &[ErrorCode]) {
        if code.is_none() && resets.is_empty() {
            return;
        }
        self.take_output();
        self.server.client.resets.clear();
        self.server_reads();
        assert_eq!(self.server.client.goaway, code, "GOAWAY");
        let last = self.server.client.resets.last().map(|(_, code)| *code);
        assert!(resets.is_empty() || last == resets.last().copied(), "RST_STREAM {last:?} for {resets:?}");
    }

    /// Every request that the server has ended has ended for the client.
    fn check_ends(&self) {
        for (key, sent) in self.server.sent.iter().enumerate() {
            let has_end = self.client.is_over(key as u32);
            assert!(has_end || sent.end.is_none() || !self.server.client.is_strict, "request {key}: {sent:?}");
        }
    }
}

/// Compares an event with what the server has sent, if it has kept the rules.
fn expect(server: &SeededServer, event: &Event<'_>, head_text: &[u8], tally: &mut FrameTally) {
    tally.whole += u64::from(matches!(event, Event::Ended { .. }));
    if !server.client.is_strict {
        return;
    }
    match event {
        Event::Head { key, head } => {
            let sent = server.sent[*key as usize];
            assert_eq!((head.status, head.content_length), (sent.status, sent.content_length), "head of {key}");
            let start = format!("HTTP/2 {}\r\n", sent.status);
            assert!(head_text.is_empty() || head_text.starts_with(start.as_bytes()), "{}", head_text.escape_ascii());
        }
        Event::Ended { key, totals } => {
            let sent = server.sent[*key as usize];
            let received = (totals.status, totals.body, totals.wire, Some(ExpectedEnd::Whole));
            assert_eq!(received, (sent.status, sent.body, sent.wire, sent.end), "response to {key}");
            tally.compared += 1;
        }
        Event::Reset { key, reset } => {
            let end = match reset.is_unprocessed && server.last_stream.is_some_and(|last| 2 * key + 1 > last) {
                true => ExpectedEnd::Unprocessed,
                false => ExpectedEnd::Reset(reset.code.0),
            };
            assert_eq!((reset.side, Some(end)), (ResetSide::Peer, server.sent[*key as usize].end), "{key}: {reset:?}");
            tally.compared += 1;
        }
        Event::Data { .. } | Event::Settings | Event::PingAck { .. } | Event::GoAway { .. } => {}
    }
}
