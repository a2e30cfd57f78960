//! Messages over WebSocket: each is a request, whose response is its reply; or each connection is a request, which
//! listens.
//!
//! - `opening`: connections, from their upgrade to their reconnection
//! - `sending`: which connection has the next message, and its frames
//! - `receiving`: frames to replies, pongs and closes
//! - `listening`: connections that only listen
//! - `closing`: ends of connections

mod closing;
mod listening;
mod opening;
mod receiving;
mod sending;

use std::collections::VecDeque;

use super::Worker;
use super::flow::{ArrivedResponse, FailedConnection, Flow, ScenarioOrigin};
use crate::connection::{ConnectionPhase, LoadConnection};
use crate::flight::ReadTimes;
use crate::http2::StreamExchange;
use crate::plan::LoadPlan;
use crate::websocket::{MessagePlan, MessageRenderer, WebSocketExchange};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::error_code::ErrorCode;
use weir_machine::readiness_event::ReadinessEvent;
use weir_measure::outcome::Outcome;
use weir_measure::recorder::Interval;
use weir_measure::websocket_counts::WebSocketCounts;
use weir_measure::websocket_series::WebSocketPoint;
use weir_net::wire::DecodedResponse;
use weir_pace::feed::Feed;
use weir_websocket::deflate::Deflater;
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;

/// Status of replies: that of the upgrade of their connection.
const REPLY_STATUS: u16 = 101;

/// Flow of messages over WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketMessages<'a> {
    plan: &'a MessagePlan,
    writer: FrameWriter,
    /// Renderer of messages with templates, and the text of the last one.
    renderer: Option<MessageRenderer<'a>>,
    text: Vec<u8>,
    /// Compressor of these, and the last one compressed.
    deflater: Option<Deflater>,
    compressed: Vec<u8>,
    /// Number of upgrades of this thread so far, and the salt of their keys.
    upgrades: u64,
    salt: u64,
    /// Keys of connections that take a message of any user, the next one first; some have ended meanwhile.
    ready: VecDeque<u64>,
    /// Time since when there is one of these; until then messages waited for a connection.
    ready_since: Nanos,
    /// Earliest time of the next connection of an open loop, after one that has failed.
    reconnect_at: Nanos,
    /// Connections whose upgrade succeeded since the last interval.
    newly_upgraded: u64,
    has_begun: bool,
    is_stopping: bool,
}

impl<'a> WebSocketMessages<'a> {
    /// Flow of a thread.
    pub(crate) fn new(load: &LoadPlan, plan: &'a MessagePlan, thread: u64) -> Self {
        let salt = thread << 40;
        let renderer = |mix| MessageRenderer::new(mix, load.seed, load.user_numbers(thread));
        Self {
            plan,
            writer: FrameWriter::new(Endpoint::Client, load.seed ^ salt.rotate_left(20)),
            renderer: plan.templates.as_ref().map(renderer),
            text: Vec::new(),
            // Made here, since it would not fit on the stack of a thread of the load.
            deflater: (plan.templates.is_some() && plan.offer.deflate.is_some()).then(|| Deflater::new(false)),
            compressed: Vec::new(),
            upgrades: 0,
            salt,
            ready: VecDeque::new(),
            ready_since: Nanos::ZERO,
            reconnect_at: Nanos::ZERO,
            newly_upgraded: 0,
            has_begun: false,
            is_stopping: false,
        }
    }
}

impl Flow for WebSocketMessages<'_> {
    type Exchange = WebSocketExchange;

    const MAX_CLAIM: u64 = 64;
    const READS_TOGETHER: bool = true;
    const TAKES_ANY_CONNECTION: bool = true;

    #[inline]
    fn is_framed(_connection: &LoadConnection<WebSocketExchange>) -> bool {
        true
    }

    fn has_idle(worker: &Worker<'_, Self>) -> bool {
        !worker.flow.ready.is_empty()
    }

    fn next_due(worker: &Worker<'_, Self>) -> Option<Nanos> {
        let message = if worker.can_send() { worker.feed.next_due() } else { None };
        message.into_iter().chain(worker.next_opening()).min()
    }

    fn start_due(worker: &mut Worker<'_, Self>) {
        if !std::mem::replace(&mut worker.flow.has_begun, true) {
            // Times before the start are of another clock.
            (worker.flow.ready_since, worker.flow.reconnect_at) = (Nanos::ZERO, Nanos::ZERO);
        }
        worker.open_missing();
        worker.send_due();
    }

    fn connect(worker: &mut Worker<'_, Self>, user: u32, _origin: Option<ScenarioOrigin>) -> Result<u32, String> {
        let plan = worker.shared.plan;
        worker.open(&plan.addresses, user).map_err(|error| error.to_string())
    }

    fn upgrade(worker: &mut Worker<'_, Self>, index: u32) {
        worker.request_upgrade(index);
    }

    fn opened_unused(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) {
        worker.set_ready(index, now, false);
    }

    fn opened(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) {
        if worker.flow.plan.listens.is_none() {
            worker.frame_waiting(index, now);
            worker.fill_connection(index, now, now);
        }
    }

    fn unused_failed(
        worker: &mut Worker<'_, Self>,
        phase: ConnectionPhase,
        kind: FailureKind,
        detail: &dyn Fn() -> String,
    ) {
        worker.unused_failed(phase, kind, detail);
    }

    fn frames_received(worker: &mut Worker<'_, Self>, index: u32, bytes: &[u8], times: ReadTimes) -> bool {
        worker.take_frames(index, bytes, times)
    }

    fn write_frames(worker: &mut Worker<'_, Self>, index: u32) {
        let now = worker.clock.now();
        worker.write_out(index, now);
    }

    fn ended_by_peer(worker: &mut Worker<'_, Self>, index: u32) {
        worker.connection_ended(index);
    }

    fn expires_otherwise(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) -> bool {
        worker.expire_messages(index, now)
    }

    fn responded(_worker: &mut Worker<'_, Self>, _index: u32, _response: &ArrivedResponse) -> bool {
        // Replies are frames.
        false
    }

    fn failed(
        worker: &mut Worker<'_, Self>,
        failed: FailedConnection<WebSocketExchange>,
        kind: FailureKind,
        now: Nanos,
    ) {
        worker.messages_failed(failed, kind, now);
    }

    fn stream_responded(
        _worker: &mut Worker<'_, Self>,
        _index: u32,
        _exchange: StreamExchange<WebSocketExchange>,
        _answer: &DecodedResponse,
        _times: ReadTimes,
    ) {
        // There is no HTTP/2.
    }

    fn stream_failed(
        _worker: &mut Worker<'_, Self>,
        _exchange: StreamExchange<WebSocketExchange>,
        _kind: FailureKind,
        _code: Option<ErrorCode>,
        _now: Nanos,
    ) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    fn tick(worker: &mut Worker<'_, Self>, now: Nanos) {
        worker.expire_openings(now);
        worker.send_pings(now);
        worker.end_listening(now);
    }

    fn add_to_interval(worker: &mut Worker<'_, Self>, interval: &mut Interval) {
        let held = worker.connections.in_use().saturating_sub(worker.connections.connecting()) as u64;
        let upgraded = std::mem::take(&mut worker.flow.newly_upgraded);
        interval.websocket = Some(Box::new(WebSocketPoint { held, upgraded }));
    }

    fn stop(worker: &mut Worker<'_, Self>, ready: &mut Vec<ReadinessEvent>) {
        worker.close_all(ready);
    }
}

impl Worker<'_, WebSocketMessages<'_>> {
    fn websocket_counts(&mut self) -> &mut WebSocketCounts {
        self.results.counters.counts().websocket.get_or_insert_default()
    }

    fn is_open_loop(&self) -> bool {
        matches!(self.feed, Feed::Open(_))
    }

    /// Whether a connection is open for messages.
    fn is_open(&mut self, index: u32) -> bool {
        self.connections.get(index).is_some_and(|slot| slot.phase == ConnectionPhase::Open)
    }

    /// Records the end of a message.
    #[inline]
    fn end(&mut self, outcome: &Outcome, user: u32) {
        self.results.counters.end(outcome);
        self.log_request(outcome, user, 0, "");
    }

    /// Fails messages that wait for longer than the timeout, if they do so without their connection; false if they fail
    /// with it.
    fn expire_messages(&mut self, index: u32, now: Nanos) -> bool {
        let (timeout, latest) = (self.shared.plan.timeout, self.latest_timeout_start());
        if self.expire_first_reply(index, now) {
            return true;
        }
        if self.flow.plan.reply.is_none() || !self.is_open(index) {
            // What listens waits for its first message alone.
            let slot = self.connections.get(index);
            return slot.and_then(|slot| slot.exchange.heard.as_ref()).is_some_and(|heard| heard.timeline.events > 0);
        }
        // Later replies are told apart by their keys.
        while let Some(slot) = self.connections.get(index)
            && slot.exchange.written_messages() > 0
            && let Some(flight) = slot.flights.front().copied()
            && now - flight.sent.min(latest) > timeout
        {
            slot.flights.pop_front();
            let bytes = slot.exchange.sent.pop_front().map_or(0, |sent| sent.bytes as usize);
            let user = slot.user;
            self.results.counters.record_detail(FailureKind::Timeout, || format!("no reply within {timeout}"));
            self.end(&flight.failed(FailureKind::Timeout, now, bytes), user);
            self.fill_connection(index, now, now);
        }
        // A connection that accepts no byte of the oldest one fails as a whole.
        self.connections.get(index).is_none_or(|slot| slot.flights.is_empty() || slot.exchange.written_messages() > 0)
    }

    /// Sends the pings that are due.
    fn send_pings(&mut self, now: Nanos) {
        let Some(interval) = self.flow.plan.ping_interval else { return };
        for index in self.connections.indices() {
            let Self { flow, connections, .. } = self;
            let Some(slot) = connections.get(index).filter(|slot| slot.exchange.next_ping <= now) else { continue };
            if slot.exchange.close.has_begun() {
                continue;
            }
            slot.exchange.next_ping = now + interval;
            // One without a pong stays so: the next one would take its pong.
            if slot.exchange.pinged_at.is_some() {
                continue;
            }
            slot.exchange.pinged_at = Some(now);
            flow.writer.write(Opcode::Ping, &[], &mut slot.exchange.out);
            self.websocket_counts().pings_sent += 1;
            self.write_out(index, now);
        }
    }
}
