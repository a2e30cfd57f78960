//! One connection: what it is sent, by what it sends.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::WebSocketState;
use super::hostile::HostileReply;
use super::options::Options;
use super::tunnel::{TunnelChannel, TunnelEnd};
use crate::vocabulary;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::timer::Timer;
use weir_websocket::close_code::CloseCode;
use weir_websocket::close_handshake::{CloseHandshake, CloseStep};
use weir_websocket::deflate::{DeflateAgreement, Deflater, Inflater};
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::message_reader::{Received, WebSocketReader};

/// What a connection does, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Each message comes back.
    Echo,
    /// Messages at a rate, whatever comes.
    Push,
    /// Messages are taken and have no reply.
    Silent,
    /// The first message is followed by a close with this code.
    Close(CloseCode),
    /// The first message is followed by a breach of the protocol.
    Hostile(HostileReply),
}

/// Message that waits for its time to be sent.
#[derive(Debug)]
struct DueMessage {
    due: Nanos,
    is_text: bool,
    data: Vec<u8>,
}

/// Longest wait for the client's close frame and its end.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(10);

/// One connection.
pub(super) struct Conversation {
    state: Arc<WebSocketState>,
    manner: Manner,
    timer: Timer,
    channel: TunnelChannel,
    reader: WebSocketReader,
    writer: FrameWriter,
    deflater: Option<Deflater>,
    close: CloseHandshake,
    /// Messages to be sent, the earliest first.
    waiting: VecDeque<DueMessage>,
    /// Random numbers of delays, faults and words.
    draws: [SeededRng; 3],
    received: u64,
    pushed: u64,
}

impl Conversation {
    pub(super) fn new(
        state: Arc<WebSocketState>,
        (manner, deflate): (Manner, Option<DeflateAgreement>),
        number: u64,
        timer: Timer,
        channel: TunnelChannel,
    ) -> Self {
        let mut reader = WebSocketReader::new(Endpoint::Server, state.options.max_message_bytes);
        if let Some(deflate) = deflate {
            reader.set_inflater(Inflater::new(!deflate.client_no_context));
        }
        let seed = state.options.seed;
        let draws = [61, 62, 63].map(|salt: u64| SeededRng::new(seed, (salt << 48) ^ number));
        state.stats.opened();
        Self {
            state,
            manner,
            timer,
            channel,
            reader,
            writer: FrameWriter::new(Endpoint::Server, seed),
            deflater: deflate.map(|deflate| Deflater::new(!deflate.server_no_context)),
            close: CloseHandshake::default(),
            waiting: VecDeque::new(),
            draws,
            received: 0,
            pushed: 0,
        }
    }

    fn options(&self) -> &Options {
        &self.state.options
    }

    /// Plays the connection to its end.
    pub(super) async fn play(mut self) -> TunnelEnd {
        if self.manner == Manner::Push {
            self.push_next(self.timer.now());
        }
        let mut closes_at = Nanos::NEVER;
        loop {
            let wake_at = self.waiting.front().map_or(Nanos::NEVER, |message| message.due).min(closes_at);
            if self.wait_for_bytes(wake_at).await {
                let bytes = self.channel.read().await;
                if bytes.is_empty() {
                    return TunnelEnd::Closed;
                }
                if let Some(end) = self.take(&bytes).await {
                    return end;
                }
            }
            let now = self.timer.now();
            if now >= closes_at {
                return TunnelEnd::Cut;
            }
            if self.close.has_begun() {
                self.waiting.clear();
                closes_at = closes_at.min(now + CLOSE_TIMEOUT);
            }
            self.send_due(now).await;
        }
    }

    /// Waits until bytes, or the end, have been received, or until a time; whether it is the former.
    async fn wait_for_bytes(&self, until: Nanos) -> bool {
        if until == Nanos::NEVER {
            poll_fn(|_| if self.channel.has_received() { Poll::Ready(()) } else { Poll::Pending }).await;
            return true;
        }
        let mut sleep = pin!(self.timer.sleep_until(until));
        poll_fn(|cx| {
            if self.channel.has_received() {
                return Poll::Ready(true);
            }
            sleep.as_mut().poll(cx).map(|()| false)
        })
        .await
    }

    /// Takes received bytes; an end if they cause one.
    async fn take(&mut self, bytes: &[u8]) -> Option<TunnelEnd> {
        let mut rest = bytes;
        loop {
            let mut out = Vec::new();
            let received = match self.reader.next_message(&mut rest) {
                Ok(None) => return None,
                Ok(Some(received)) => received,
                Err(violation) => {
                    self.state.stats.violated(violation);
                    self.writer.write_close(Some(violation.close_code()), &violation.to_string(), &mut out);
                    self.channel.send(&out).await;
                    return Some(TunnelEnd::Closed);
                }
            };
            match received {
                Received::Message(message) => {
                    let (is_text, data) = (message.is_text, message.data.to_vec());
                    self.state.stats.received(data.len());
                    if let Some(end) = self.react(is_text, data).await {
                        return Some(end);
                    }
                }
                Received::Ping(payload) => {
                    self.state.stats.pinged();
                    self.writer.write(Opcode::Pong, payload, &mut out);
                    self.channel.send(&out).await;
                }
                Received::Pong(_) => self.state.stats.ponged(),
                Received::Close(code, _) => {
                    if let CloseStep::Reply(code) = self.close.receive(code) {
                        self.writer.write_close(code, "", &mut out);
                        self.channel.send(&out).await;
                    }
                    // A server ends the connection first.
                    return Some(TunnelEnd::Closed);
                }
            }
        }
    }

    /// Does what a message is followed by; an end if that is one.
    async fn react(&mut self, is_text: bool, data: Vec<u8>) -> Option<TunnelEnd> {
        let number = self.received;
        self.received += 1;
        if self.close.has_begun() {
            return None;
        }
        let [_, faults, _] = &self.draws;
        let options = &self.state.options.faults;
        let is_drawn = |nth: u64, fraction: f64| faults.unit_at(number << 2 | nth) <= fraction;
        if is_drawn(0, options.cut) {
            return Some(TunnelEnd::Cut);
        }
        if is_drawn(1, options.close) {
            self.begin_close(CloseCode(options.close_code)).await;
            return None;
        }
        if is_drawn(2, options.ignore) {
            return None;
        }
        match self.manner {
            Manner::Echo => {
                let due = self.timer.now() + self.options().delay.at(&self.draws[0], number);
                let message = DueMessage { due, is_text, data };
                let at = match self.options().unordered {
                    true => self.waiting.partition_point(|other| other.due <= due),
                    false => self.waiting.len(),
                };
                self.waiting.insert(at, message);
            }
            Manner::Push | Manner::Silent => {}
            Manner::Close(code) => self.begin_close(code).await,
            Manner::Hostile(reply) => {
                let (bytes, end) = reply.bytes();
                self.channel.send(&bytes).await;
                return end;
            }
        }
        None
    }

    async fn begin_close(&mut self, code: CloseCode) {
        let mut out = Vec::new();
        self.writer.write_close(Some(code), "on purpose", &mut out);
        self.close.sent(Some(code));
        self.channel.send(&out).await;
    }

    /// Queues the next message of a push, due a gap after `from`.
    fn push_next(&mut self, from: Nanos) {
        let due = from + self.options().gap.at(&self.draws[0], self.pushed);
        let text = vocabulary::text(&self.draws[2], self.pushed << 20, self.options().message_bytes);
        self.pushed += 1;
        let data = format!("{{\"n\":{},\"text\":\"{text}\"}}", self.pushed).into_bytes();
        self.waiting.push_back(DueMessage { due, is_text: true, data });
    }

    /// Sends what is due at `now`.
    async fn send_due(&mut self, now: Nanos) {
        while self.waiting.front().is_some_and(|message| message.due <= now) {
            let Some(message) = self.waiting.pop_front() else { break };
            let out = self.frames(&message);
            self.state.stats.sent(message.data.len());
            self.channel.send(&out).await;
            if self.manner != Manner::Push {
                continue;
            }
            if self.pushed == self.options().messages {
                self.begin_close(CloseCode::NORMAL).await;
            } else {
                self.push_next(message.due);
            }
        }
    }

    /// Frames of a message.
    fn frames(&mut self, message: &DueMessage) -> Vec<u8> {
        let mut compressed = Vec::new();
        let payload = match &mut self.deflater {
            Some(deflater) => {
                deflater.deflate(&message.data, &mut compressed);
                &compressed
            }
            None => &message.data,
        };
        let opcode = if message.is_text { Opcode::Text } else { Opcode::Binary };
        let mut out = Vec::with_capacity(payload.len() + 16);
        let fragments = self.state.options.fragments.min(payload.len().max(1));
        for nth in 0..fragments {
            let [from, to] = [nth, nth + 1].map(|nth| nth * payload.len() / fragments);
            let (kind, is_first) = if nth == 0 { (opcode, true) } else { (Opcode::Continuation, false) };
            let flags = (nth + 1 == fragments, is_first && self.deflater.is_some());
            self.writer.write_fragment(kind, &payload[from..to], flags, &mut out);
            if self.state.options.pings && nth + 1 < fragments {
                self.writer.write(Opcode::Ping, b"between", &mut out);
            }
        }
        out
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.state.stats.ended(self.close.peer_code());
    }
}
