//! Frames to replies, pongs and closes.

use super::{WebSocketMessages, Worker};
use crate::flight::{ReadTimes, ReceivedBytes};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_websocket::close_code::CloseCode;
use weir_websocket::frame::Opcode;
use weir_websocket::message_reader::Received;
use weir_websocket::violation::Violation;

/// What has been received, without its content.
enum Arrived {
    /// A message: its size, and the key that it repeats.
    Message(ReceivedBytes, Option<u64>),
    Ping,
    Pong,
    /// A close frame: its code, and why.
    Close(Option<CloseCode>, String),
    Violation(Violation),
}

impl Worker<'_, WebSocketMessages<'_>> {
    /// Takes bytes that came at `at` on a connection; true if it is still open.
    pub(super) fn take_frames(&mut self, index: u32, bytes: &[u8], times: ReadTimes) -> bool {
        let ReadTimes { at, now } = times;
        let mut rest = bytes;
        if !self.is_open(index) && !self.take_upgrade(index, &mut rest, times) {
            return self.connections.get(index).is_some();
        }
        let mut has_replied = false;
        loop {
            let Self { flow, connections, .. } = self;
            let Some(slot) = connections.get(index) else { return false };
            let exchange = &mut slot.exchange;
            let has_room = exchange.has_room();
            let arrived = match exchange.reader.next_message(&mut rest) {
                Ok(None) => break,
                Ok(Some(Received::Message(message))) => {
                    let key = flow.plan.reply.as_ref().and_then(|query| query.key(message.data));
                    Arrived::Message(ReceivedBytes { wire: message.wire_bytes, body: message.data.len() as u64 }, key)
                }
                Ok(Some(Received::Ping(payload))) => {
                    // A peer that pings and reads nothing gets none.
                    if has_room {
                        flow.writer.write(Opcode::Pong, payload, &mut exchange.out);
                    }
                    Arrived::Ping
                }
                Ok(Some(Received::Pong(_))) => Arrived::Pong,
                Ok(Some(Received::Close(code, reason))) => Arrived::Close(code, reason.to_owned()),
                Err(violation) => Arrived::Violation(violation),
            };
            match arrived {
                Arrived::Message(..) if self.take_first_reply(index, now) => {}
                Arrived::Message(received, _) if self.flow.plan.listens.is_some() => {
                    if !self.hear(index, received, times) {
                        return false;
                    }
                }
                Arrived::Message(received, key) => has_replied |= self.reply_arrived(index, received, key, times),
                Arrived::Ping => {
                    self.websocket_counts().pings += 1;
                    self.write_out(index, now);
                }
                Arrived::Pong => self.pong_arrived(index, at),
                Arrived::Close(code, reason) => {
                    self.close_received(index, code, &reason);
                    return false;
                }
                Arrived::Violation(violation) => {
                    self.violated(index, violation);
                    return false;
                }
            }
        }
        let Some(slot) = self.connections.get(index) else { return false };
        if slot.exchange.reader.is_within_message() {
            slot.exchange.first_byte.get_or_insert(at);
        }
        if has_replied {
            self.fill_connection(index, at, now);
        }
        true
    }

    fn pong_arrived(&mut self, index: u32, at: Nanos) {
        let pinged_at = self.connections.get(index).and_then(|slot| slot.exchange.pinged_at.take());
        if let Some(pinged_at) = pinged_at {
            self.websocket_counts().ping.record(at - pinged_at);
        }
    }

    /// Takes a message of the service: the reply to the one with its key, or to the oldest one in flight. False if there
    /// is none.
    fn reply_arrived(
        &mut self,
        index: u32,
        ReceivedBytes { wire, body }: ReceivedBytes,
        key: Option<u64>,
        ReadTimes { at, now }: ReadTimes,
    ) -> bool {
        let timeout = self.shared.plan.timeout;
        let by_key = self.flow.plan.reply.is_some();
        let Some(slot) = self.connections.get(index) else { return false };
        let began = slot.exchange.first_byte.take();
        // What comes before a message is sent is not its reply.
        let written = slot.exchange.written_messages();
        let nth = match key {
            Some(key) => slot.exchange.sent.iter().take(written).position(|sent| sent.key == key),
            None => (!by_key && written > 0).then_some(0),
        };
        let Some((nth, mut flight)) = nth.and_then(|nth| Some((nth, slot.flights.remove(nth)?))) else {
            self.websocket_counts().unmatched += 1;
            return false;
        };
        let bytes_out = slot.exchange.sent.remove(nth).map_or(0, |sent| sent.bytes as usize);
        slot.exchange.has_replied = true;
        let user = slot.user;
        if !by_key && !slot.exchange.sent.is_empty() {
            self.websocket_counts().matched_in_order += 1;
        }
        // A timestamp may be older than the send by the clocks' difference; a reply never precedes its message.
        let at = at.max(flight.sent.min(now));
        flight.first_byte = Some(began.unwrap_or(at).max(flight.sent.min(now)));
        let outcome = flight.completed(&Self::reply_of(wire, body), at, bytes_out, timeout);
        self.end(&outcome, user);
        true
    }

    /// Fails a connection whose peer has broken the protocol.
    fn violated(&mut self, index: u32, violation: Violation) {
        self.websocket_counts().violations += 1;
        let now = self.clock.now();
        let Self { flow, connections, .. } = self;
        if let Some(slot) = connections.get(index) {
            let reason = violation.to_string();
            flow.writer.write_close(Some(violation.close_code()), &reason, &mut slot.exchange.out);
            self.write_out(index, now);
        }
        self.results.counters.record_detail(FailureKind::Protocol, || violation.to_string());
        self.delay_reconnection(index, now);
        let kind = self.end_kind(index, FailureKind::Protocol);
        self.fail(index, kind, &|| violation.to_string());
    }
}
