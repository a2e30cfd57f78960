//! Connections with HTTP/2: what their events mean for the requests on them.

mod calls;
mod care;
mod ends;
mod message_times;
mod placing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub(super) use self::placing::MovedRequest;
use super::receive::{MAX_READS, ReceivedPart};
use super::{Flow, Worker};
use crate::connection::ConnectionPhase;
use crate::exchange::FlowExchange;
use crate::flight::ReadTimes;
use crate::http2::StreamGroups;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::connection::{Event, ResetSide, ResponseTotals, StreamReset};
use weir_http2::error_code::ErrorCode;
use weir_machine::readiness_event::ReadinessEvent;
use weir_net::wire::{DecodedResponse, ResponseObserver};

/// How often a request is sent to other connections, since a service says that it did not process it.
const MAX_RESENDS: u8 = 10;
/// Maximum reads in a row that leave nothing unread, before the requests that follow are written.
const MAX_DRAINED_READS: usize = 3;

/// State of a thread's HTTP/2 besides its connections.
pub(super) struct StreamWork<X> {
    /// Connections that have something to write.
    unwritten: Vec<u32>,
    /// Connections that users share.
    pub(super) groups: StreamGroups,
    /// Requests whose connections have ended before they were processed.
    pub(super) moved: VecDeque<MovedRequest<X>>,
    /// Times of messages that are sent later than those before them, with the keys of their connections.
    message_times: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// Time of the next check of connections.
    next_care: Nanos,
}

impl<X> Default for StreamWork<X> {
    fn default() -> Self {
        Self {
            unwritten: Vec::new(),
            groups: StreamGroups::default(),
            moved: VecDeque::new(),
            message_times: BinaryHeap::new(),
            next_care: Nanos::ZERO,
        }
    }
}

impl<F: Flow> Worker<'_, F> {
    /// Begins HTTP/2 on a connection whose transport is there.
    pub(super) fn begin_streams(&mut self, index: u32) {
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        slot.phase = ConnectionPhase::AwaitingSettings;
        if let Some(streams) = &mut slot.streams {
            (streams.began, streams.received) = (now, now);
        }
        self.write_streams(index);
    }

    /// Reads a connection with streams, and writes what follows from it.
    ///
    /// While several requests are in flight, it is read until nothing is left: a service writes head and content, and
    /// one response after the other, and what comes while the first ones are handled spares a wake-up and a write.
    pub(in crate::worker) fn read_streams(&mut self, event: ReadinessEvent, index: u32) {
        let key = self.connections.key(index);
        let mut buffer = std::mem::take(&mut self.reading.buffer);
        let mut reads = 0;
        while let Some(ReceivedPart { taken, is_last, times }) = self.receive(index, &mut buffer) {
            if !self.process_streams(index, key, &buffer[..taken], times) {
                break;
            }
            reads += 1;
            let has_others = self.streams_of(index).is_some_and(|streams| streams.len() > 1);
            if is_last && !event.hung_up && (!has_others || reads >= MAX_DRAINED_READS) {
                break;
            }
            if reads >= MAX_READS {
                // The poller reports only new events, and this is not one.
                self.reading.unread.push(event);
                break;
            }
        }
        self.reading.buffer = buffer;
        self.settle_streams(index, key, self.clock.now());
    }

    /// Takes bytes that came on a connection with streams; true if it is still open.
    fn process_streams(&mut self, index: u32, key: u64, mut bytes: &[u8], ReadTimes { at, now }: ReadTimes) -> bool {
        if let Some(streams) = self.streams_of(index) {
            streams.received = now;
        }
        loop {
            // What a request's end has led to may have ended the connection, and its place may have another one.
            if self.connections.key(index) != key {
                return false;
            }
            let Some(streams) = self.streams_of(index) else { return false };
            let step = match streams.protocol.receive(bytes) {
                Ok(step) => step,
                Err(error) => {
                    // The peer is told why, as far as the socket accepts it.
                    self.write_streams(index);
                    self.fail(index, FailureKind::Protocol, &|| error.to_string());
                    return false;
                }
            };
            bytes = &bytes[step.used..];
            let Some(event) = step.event else { return true };
            self.take_event(index, event, at, now);
        }
    }

    fn take_event(&mut self, index: u32, event: Event<'_>, at: Nanos, now: Nanos) {
        match event {
            Event::Data { key, bytes } if self.observes_stream(index, key) => {
                self.observe_data(index, key, bytes, ReadTimes { at, now });
                F::pass_events(self, index, Some(key), ReadTimes { at, now });
            }
            Event::Data { key, bytes } => {
                let streams = self.connections.get(index).and_then(|slot| slot.streams.as_mut());
                let Some(exchange) = streams.and_then(|streams| streams.get(key)) else { return };
                if exchange.inner.is_call_stream() {
                    return F::messages_arrived(self, index, key, bytes, ReadTimes { at, now });
                }
                if let Some(kept) = exchange.inner.kept() {
                    kept.body(bytes);
                }
            }
            Event::Head { key, head } => {
                let Some(slot) = self.connections.get(index) else { return };
                let Some(streams) = &mut slot.streams else { return };
                let text = streams.receive_head(key, &head, ReadTimes { at, now });
                if self.results.counters.counts().server.is_none() {
                    self.results.counters.find_server_field(text);
                }
                if self.observes_stream(index, key) {
                    self.observe_head(index, key, &head, at);
                    F::pass_events(self, index, Some(key), ReadTimes { at, now });
                }
            }
            Event::Ended { key, totals } => self.stream_ended(index, key, &totals, at, now),
            Event::Reset { key, reset } => self.stream_reset(index, key, &reset, now),
            Event::Settings => self.settings_received(index, now),
            Event::PingAck { .. } => {
                if let Some(streams) = self.connections.get(index).and_then(|slot| slot.streams.as_mut()) {
                    streams.pinged = None;
                }
            }
            Event::GoAway { .. } => {
                // A service may say it twice: that it will end the connection, and when.
                if self.streams_of(index).is_some_and(|streams| !streams.is_retired) {
                    self.results.counters.counts().http2.goaways += 1;
                }
                self.retire(index);
            }
        }
    }

    /// Opens a connection: its settings have come. Later ones may permit more streams, or fewer.
    fn settings_received(&mut self, index: u32, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        let is_first = slot.phase == ConnectionPhase::AwaitingSettings;
        let opened = slot.opened;
        let set_up = slot.set_up;
        let Some(streams) = &mut slot.streams else { return };
        let permitted = streams.protocol.peer_settings().max_streams;
        let (settings_time, is_unused, is_bound) = (now - streams.began, streams.is_empty(), streams.group.is_some());
        if is_first {
            for exchange in streams.waiting_exchanges() {
                exchange.flight.connect = now - exchange.joined;
                exchange.flight.set_up = set_up.since(exchange.joined);
                // A late start of connecting is weir's own delay, its duration is not.
                exchange.flight.ready += exchange.flight.connect;
            }
            self.connections.set_open(index);
        }
        self.results.counters.counts().http2.permit(permitted);
        if is_first {
            self.results.counters.counts().http2.settings.record(settings_time);
            self.note_protocol(index);
            if is_unused {
                self.results.counters.preconnected(now - opened);
            }
        }
        self.mark_dirty(index);
        F::fill_permitted(self, index, is_bound, now);
    }

    /// Takes a whole response.
    pub(super) fn stream_ended(&mut self, index: u32, key: u32, totals: &ResponseTotals, at: Nanos, now: Nanos) {
        let status = match self.streams_of(index).is_some_and(|streams| streams.has_calls) {
            false => Ok(totals.status),
            true => self.call_ended(index, key, totals),
        };
        let Some(slot) = self.connections.get(index) else { return };
        let Some(exchange) = slot.streams.as_mut().and_then(|streams| streams.take(key)) else { return };
        self.note_unused(index, now);
        if !self.shared.plan.keep_alive {
            self.retire(index);
        }
        let at = at.max(exchange.flight.sent.min(now));
        let status = match status {
            Ok(status) => status,
            Err(kind) => {
                let user = exchange.user;
                if self.fail_exchange(exchange, kind, None, now) {
                    F::continue_on_streams(self, index, user, at, now);
                }
                return;
            }
        };
        let (body, wire) = (totals.body, totals.wire);
        let answer = DecodedResponse { status, body, wire, keep_alive: true };
        F::stream_responded(self, index, exchange, &answer, ReadTimes { at, now });
    }

    /// Takes the end of a stream without a whole response.
    fn stream_reset(&mut self, index: u32, key: u32, reset: &StreamReset, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        let Some(streams) = &mut slot.streams else { return };
        let (is_going_away, has_calls) = (streams.protocol.is_going_away(), streams.has_calls);
        let Some(mut exchange) = streams.take(key) else { return };
        let origin = slot.origin;
        self.note_unused(index, now);
        if reset.is_unprocessed && is_going_away && exchange.resends < MAX_RESENDS && exchange.may_restart() {
            self.results.counters.counts().http2.resent += 1;
            exchange.reset(now);
            self.streams.moved.push_back(MovedRequest { exchange, origin });
            return;
        }
        let code = reset.code;
        self.results.counters.counts().http2.record_error(code.name());
        let plan = self.shared.plan;
        let timeout = exchange.inner.timeout().unwrap_or(plan.timeout);
        let is_at_deadline = has_calls && now - exchange.flight.sent >= timeout;
        let (kind, why) = match (reset.side, reset.reason) {
            (ResetSide::Client, reason) => {
                let reason = reason.unwrap_or("the response is malformed");
                (FailureKind::Protocol, format!("{reason} ({code})"))
            }
            (ResetSide::Peer, _) if reset.is_unprocessed && is_going_away => {
                let times = exchange.resends + 1;
                (FailureKind::Closed, format!("{times} connections ended without processing the request ({code})"))
            }
            // The service has the deadline of a call as well, and may be the first to end it.
            (ResetSide::Peer, _) if is_at_deadline && code == ErrorCode::CANCEL => {
                (FailureKind::Timeout, "the service ended the call at its deadline (CANCEL)".to_owned())
            }
            (ResetSide::Peer, _) => (FailureKind::Reset, format!("the service reset the stream ({code})")),
        };
        let kind = exchange.failure_kind(kind);
        self.results.counters.record_detail(kind, || why);
        let user = exchange.user;
        if self.fail_exchange(exchange, kind, Some(code), now) {
            F::continue_on_streams(self, index, user, now, now);
        }
    }

    /// Writes what the events of a connection have led to, and ends it if nothing is left on it.
    fn settle_streams(&mut self, index: u32, key: u64, now: Nanos) {
        self.place_moved(now);
        if self.connections.key(index) == key {
            // Acknowledgements, and bodies that windows permit again, have no event.
            self.mark_dirty(index);
        }
        self.flush_streams();
        if self.connections.key(index) == key {
            self.close_if_drained(index);
        }
    }

    /// Notes that a connection is without requests, if it is.
    pub(in crate::worker) fn note_unused(&mut self, index: u32, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        if slot.is_unused() {
            slot.idle_since = Some(now);
        }
    }
}
