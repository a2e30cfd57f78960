//! Connections: their upgrade and first messages, and their failures.

use super::super::connect::CONNECT_RETRY_DELAY;
use super::{REPLY_STATUS, WebSocketMessages, Worker};
use crate::connection::ConnectionPhase;
use crate::flight::ReadTimes;
use crate::websocket::{ConnectionOpening, HeardMessages, UpgradeResponse, WebSocketExchange};
use crate::worker::flow::{FailedConnection, Flow};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::stream_timeline::StreamTimeline;
use weir_net::wire::DecodedResponse;
use weir_websocket::deflate::Inflater;
use weir_websocket::handshake::{HandshakeAgreement, HandshakeError};

impl Worker<'_, WebSocketMessages<'_>> {
    /// Time at which the next missing connection of an open loop may be made.
    pub(super) fn next_opening(&self) -> Option<Nanos> {
        if !self.is_open_loop() || self.flow.is_stopping || !self.connections.can_open() {
            return None;
        }
        let ramp_up = self.flow.plan.ramp_up;
        let held = self.connections.in_use() as u64;
        let of_ramp = Nanos(ramp_up.0 / self.connections.max().max(1) as u64 * held);
        let at = of_ramp.max(self.flow.reconnect_at);
        // Behind the end there is one only for messages that were due before it, which would else wait for their timeout.
        (at < self.until || self.feed.next_due().is_some()).then_some(at)
    }

    /// Makes the connections of an open loop that are due: it holds all that are allowed.
    pub(super) fn open_missing(&mut self) {
        while let Some(at) = self.next_opening() {
            let now = self.clock.now();
            if at > now {
                return;
            }
            if let Err(reason) = WebSocketMessages::connect(self, 0, None) {
                self.results.counters.record_detail(FailureKind::Connect, || reason);
                self.connection_failed();
                return;
            }
        }
    }

    /// Sends the request of the upgrade on a connection that has just been made.
    pub(super) fn request_upgrade(&mut self, index: u32) {
        let number = self.flow.salt | self.flow.upgrades;
        self.flow.upgrades += 1;
        let (request, key) = self.flow.plan.upgrade_request(self.shared.plan.seed, number);
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        slot.phase = ConnectionPhase::AwaitingUpgrade;
        let upgrade = Some((UpgradeResponse::default(), key));
        slot.exchange.opening = Some(Box::new(ConnectionOpening { upgrade, first_sent: 0, awaited: 0 }));
        slot.exchange.out = request;
        if self.flow.plan.listens.is_some()
            && let Some(flight) = slot.flights.front_mut()
        {
            flight.sent = now;
            let timeline = StreamTimeline::new(flight.intended, now);
            slot.exchange.heard = Some(Box::new(HeardMessages { timeline, wire: 0, body: 0 }));
        }
        self.write_out(index, now);
    }

    /// Takes bytes of the response to an upgrade; whether it is over, with the bytes behind it in `rest`.
    pub(super) fn take_upgrade(&mut self, index: u32, rest: &mut &[u8], times: ReadTimes) -> bool {
        let Some(slot) = self.connections.get(index) else { return false };
        let Some(opening) = &mut slot.exchange.opening else { return true };
        let Some((response, key)) = &mut opening.upgrade else { return true };
        let result = match response.take(rest, &self.flow.plan.offer, key) {
            Ok(None) => return false,
            Ok(Some(result)) => result,
            Err(why) => {
                self.fail(index, FailureKind::Protocol, &|| why.clone());
                return false;
            }
        };
        opening.upgrade = None;
        if let Some(heard) = &mut slot.exchange.heard {
            heard.timeline.record_bytes(times.at);
        }
        match result.agreement {
            Ok(HandshakeAgreement { deflate: Some(deflate), .. }) => {
                slot.exchange.is_deflated = true;
                slot.exchange.reader.set_inflater(Inflater::new(!deflate.server_no_context));
            }
            Ok(_) if self.flow.plan.offer.deflate.is_some() => self.websocket_counts().uncompressed += 1,
            Ok(_) => {}
            Err(HandshakeError::Status(status)) => {
                self.rejected(index, status, result.head_bytes as u64, times);
                return false;
            }
            Err(error) => {
                self.fail(index, FailureKind::Protocol, &|| error.to_string());
                return false;
            }
        }
        self.results.counters.counts().server.get_or_insert(result.server);
        self.websocket_counts().upgraded += 1;
        self.flow.newly_upgraded += 1;
        self.send_first_message(index, times.now)
    }

    /// Sends the next first message of a connection, or opens it for others; whether it still exists.
    pub(super) fn send_first_message(&mut self, index: u32, now: Nanos) -> bool {
        let Self { flow, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return false };
        let Some(opening) = &mut slot.exchange.opening else { return true };
        while opening.awaited == 0
            && let Some(message) = flow.plan.first_messages.get(opening.first_sent)
        {
            flow.writer.write(message.opcode, &message.data, &mut slot.exchange.out);
            opening.first_sent += 1;
            opening.awaited = flow.plan.first_replies;
        }
        if opening.awaited > 0 {
            self.write_out(index, now);
            return self.connections.get(index).is_some();
        }
        slot.exchange.opening = None;
        if let Some(interval) = flow.plan.ping_interval {
            slot.exchange.next_ping = now + interval;
        }
        self.write_out(index, now);
        if self.connections.get(index).is_some() {
            self.set_opened(index);
        }
        self.connections.get(index).is_some()
    }

    /// Takes a message of the service that may belong to the first messages of a connection; whether it does.
    pub(super) fn take_first_reply(&mut self, index: u32, now: Nanos) -> bool {
        let Some(opening) = self.connections.get(index).and_then(|slot| slot.exchange.opening.as_mut()) else {
            return false;
        };
        opening.awaited = opening.awaited.saturating_sub(1);
        self.send_first_message(index, now);
        true
    }

    /// Takes a connection that has failed without a message on it.
    pub(super) fn unused_failed(&mut self, phase: ConnectionPhase, kind: FailureKind, detail: &dyn Fn() -> String) {
        // The end of an open one is counted by its code.
        if phase != ConnectionPhase::Open {
            self.results.counters.record_detail(kind, detail);
            self.connection_failed();
        }
    }

    fn connection_failed(&mut self) {
        self.websocket_counts().failed += 1;
        self.flow.reconnect_at = self.clock.now() + CONNECT_RETRY_DELAY;
    }

    /// Ends a connection whose upgrade was rejected; its messages have that status.
    fn rejected(&mut self, index: u32, status: u16, head_bytes: u64, ReadTimes { at, now }: ReadTimes) {
        self.websocket_counts().rejected.record(status);
        self.flow.reconnect_at = now + CONNECT_RETRY_DELAY;
        let timeout = self.shared.plan.timeout;
        let Some(slot) = self.connections.get(index) else { return };
        let (user, flights) = (slot.user, std::mem::take(&mut slot.flights));
        self.connections.close(index);
        let answer = DecodedResponse { status, body: 0, wire: head_bytes, keep_alive: false };
        for mut flight in flights {
            // Its message was not sent.
            flight.sent = flight.sent.min(at);
            self.end(&flight.completed(&answer, at, 0, timeout), user);
        }
        self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
    }

    /// Takes messages whose connection has failed.
    pub(super) fn messages_failed(
        &mut self,
        failed: FailedConnection<WebSocketExchange>,
        kind: FailureKind,
        now: Nanos,
    ) {
        let FailedConnection { user, phase, flights, exchange, .. } = failed;
        let written = exchange.written_messages();
        for (nth, flight) in flights.iter().enumerate() {
            let bytes = exchange.sent.get(nth).filter(|_| nth < written).map_or(0, |sent| sent.bytes as usize);
            let mut outcome = flight.failed(kind, now, bytes);
            if let Some(heard) = exchange.heard.as_deref() {
                (outcome.bytes_in, outcome.body_in) = (heard.wire, heard.body);
            }
            self.end(&outcome, user);
        }
        if phase != ConnectionPhase::Open {
            self.connection_failed();
        } else if let Some(heard) = exchange.heard.as_deref() {
            self.record_heard(heard, kind);
        }
        if self.is_open_loop() {
            return;
        }
        if phase == ConnectionPhase::Open {
            self.start_anew(user, now);
        } else {
            self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
        }
    }

    /// Fails a connection whose service has upgraded it, and does not reply to its first messages; whether it has.
    pub(super) fn expire_first_reply(&mut self, index: u32, now: Nanos) -> bool {
        let (timeout, latest) = (self.shared.plan.timeout, self.latest_timeout_start());
        let Some(slot) = self.connections.get(index) else { return false };
        let since = slot.waiting_since().unwrap_or(slot.opened);
        let Some(opening) = slot.exchange.opening.as_ref().filter(|opening| opening.upgrade.is_none()) else {
            return false;
        };
        let (sent, awaited) = (opening.first_sent, opening.awaited);
        let is_late = now - since.min(latest) > timeout;
        if is_late {
            self.fail(index, FailureKind::Timeout, &|| {
                format!(
                    "--first-message {sent} has too few replies after {timeout}, {awaited} missing; see --first-replies"
                )
            });
        }
        is_late
    }

    /// Ends connections without messages that are not open within the timeout. Messages have timeouts of their own.
    pub(super) fn expire_openings(&mut self, now: Nanos) {
        let timeout = self.shared.plan.timeout;
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let is_late = slot.phase != ConnectionPhase::Open && now - slot.opened > timeout;
            if is_late && slot.flights.is_empty() {
                self.fail(index, FailureKind::Timeout, &|| format!("no response to the upgrade within {timeout}"));
            }
        }
    }

    /// Answer of a whole reply.
    pub(super) fn reply_of(wire: u64, body: u64) -> DecodedResponse {
        DecodedResponse { status: REPLY_STATUS, body, wire, keep_alive: true }
    }
}
