//! Which connection has the next message, and its frames.

use std::io::{self, IoSlice};

use super::super::connect::CONNECT_RETRY_DELAY;
use super::super::{MAX_STARTS, Worker};
use super::WebSocketMessages;
use crate::connection::ConnectionPhase;
use crate::flight::Flight;
use crate::websocket::{SentMessage, opcode_of};
use crate::worker::flow::Flow;
use crate::worker::readiness::failure_of;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::readiness_event::ReadinessEvent;
use weir_pace::feed::DueRequest;

impl Worker<'_, WebSocketMessages<'_>> {
    /// Whether a message can be started now.
    pub(super) fn can_send(&self) -> bool {
        !self.flow.ready.is_empty() || (!self.is_open_loop() && self.connections.can_open())
    }

    /// Starts due messages; a limited number at a time, since replies must be read too.
    pub(super) fn send_due(&mut self) {
        for _ in 0..MAX_STARTS {
            if !self.can_send() {
                return;
            }
            self.refill_permits();
            let now = self.clock.now();
            let ready = self.take_ready();
            if ready.is_none() && self.is_open_loop() {
                return;
            }
            let Some(start) = self.feed.due(now) else {
                ready.into_iter().for_each(|index| self.set_ready(index, now, true));
                return;
            };
            match ready {
                Some(index) => {
                    let free = self.flow.ready_since;
                    let ready = self.results.counters.ready(start.arrival.intended, true, free);
                    if !self.is_open_loop()
                        && let Some(slot) = self.connections.get(index)
                    {
                        slot.user = start.user;
                    }
                    self.add_message(index, &start, ready, now);
                    self.frame_waiting(index, now);
                    if self.is_open_loop() {
                        self.write_out(index, now);
                        self.set_ready(index, now, false);
                    } else {
                        self.fill_connection(index, now, now);
                    }
                }
                None => self.connect_for(&start, start.arrival.intended, now),
            }
        }
    }

    /// Next connection that takes a message of any user.
    fn take_ready(&mut self) -> Option<u32> {
        while let Some(key) = self.flow.ready.pop_front() {
            let event = ReadinessEvent { key, readable: false, writable: false, hung_up: false };
            let Some(index) = self.connections.owner(&event) else { continue };
            let Some(slot) = self.connections.get(index) else { continue };
            if std::mem::take(&mut slot.exchange.is_ready) && !slot.exchange.close.has_begun() {
                return Some(index);
            }
        }
        None
    }

    /// Lets a connection that is free since then take messages of any user, if it has room; `is_next`: before all
    /// others.
    pub(super) fn set_ready(&mut self, index: u32, free: Nanos, is_next: bool) {
        let most = self.shared.plan.pipeline;
        let key = self.connections.key(index);
        let Some(slot) = self.connections.get(index) else { return };
        if slot.exchange.is_ready || slot.flights.len() >= most || slot.exchange.close.has_begun() {
            return;
        }
        slot.exchange.is_ready = true;
        if is_next {
            self.flow.ready.push_front(key);
            return;
        }
        if self.flow.ready.is_empty() {
            self.flow.ready_since = free;
        }
        self.flow.ready.push_back(key);
    }

    /// Adds a message to those of an open connection, without its frame. Its timeout begins now, unless it is sent later.
    fn add_message(&mut self, index: u32, start: &DueRequest, ready: Nanos, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.results.counters.begin(start.arrival.intended, now);
        if let Some(slot) = self.connections.get(index) {
            slot.flights.push_back(Flight { sent: now, ..Flight::new(start, ready, request) });
        }
    }

    /// Frames the messages of an open connection that are not framed, as far as the ones before are written.
    #[inline]
    pub(super) fn frame_waiting(&mut self, index: u32, now: Nanos) {
        if self.flow.renderer.is_some() {
            return self.frame_rendered(index, now);
        }
        let Self { flow: WebSocketMessages { plan, writer, .. }, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return };
        let exchange = &mut slot.exchange;
        let mut repeated_ids = 0;
        for flight in slot.flights.iter_mut().skip(exchange.sent.len()) {
            let Some(message) = plan.messages.get(flight.request as usize).filter(|_| exchange.has_room()) else {
                break;
            };
            let before = exchange.out.len();
            match exchange.is_deflated {
                true => writer.write_compressed(message.opcode, &message.compressed, &mut exchange.out),
                false => writer.write(message.opcode, &message.data, &mut exchange.out),
            }
            let key = message.key.unwrap_or_default();
            let sent = SentMessage {
                start: exchange.written + before as u64,
                key,
                bytes: u32::try_from(exchange.out.len() - before).unwrap_or(u32::MAX),
            };
            let is_repeated = plan.reply.is_some() && exchange.sent.back().is_some_and(|sent| sent.key == key);
            repeated_ids += u64::from(is_repeated);
            exchange.sent.push_back(sent);
            exchange.unsent += 1;
            flight.sent = now;
        }
        if repeated_ids > 0 {
            self.websocket_counts().repeated_ids += repeated_ids;
        }
    }

    /// Renders and frames the messages of an open connection that are not framed. One without a text has failed.
    fn frame_rendered(&mut self, index: u32, now: Nanos) {
        loop {
            let Self { flow, connections, .. } = self;
            let WebSocketMessages { plan, writer, renderer: Some(renderer), text, deflater, compressed, .. } = flow
            else {
                return;
            };
            let Some(slot) = connections.get(index) else { return };
            let exchange = &mut slot.exchange;
            let next = slot.flights.get_mut(exchange.sent.len()).filter(|_| exchange.has_room());
            let Some(flight) = next else { return };
            text.clear();
            let rendered = renderer.render(slot.user, flight.number, now, text).and_then(|()| match &plan.reply {
                None => Ok(0),
                Some(query) => query.key(text).ok_or_else(|| "the message lacks the value of --reply".to_owned()),
            });
            let key = match rendered {
                Ok(key) => key,
                Err(why) => {
                    let (mut flight, user) = (*flight, slot.user);
                    slot.flights.remove(exchange.sent.len());
                    flight.sent = now;
                    self.results.counters.record_detail(FailureKind::Request, || why);
                    self.end(&flight.failed(FailureKind::Request, now, 0), user);
                    continue;
                }
            };
            let before = exchange.out.len();
            let opcode = opcode_of(text, plan.is_binary);
            match deflater.as_mut().filter(|_| exchange.is_deflated) {
                Some(deflater) => {
                    compressed.clear();
                    deflater.deflate(text, compressed);
                    writer.write_compressed(opcode, compressed, &mut exchange.out);
                }
                None => writer.write(opcode, text, &mut exchange.out),
            }
            let bytes = u32::try_from(exchange.out.len() - before).unwrap_or(u32::MAX);
            let is_repeated = plan.reply.is_some() && exchange.sent.back().is_some_and(|sent| sent.key == key);
            exchange.sent.push_back(SentMessage { start: exchange.written + before as u64, key, bytes });
            exchange.unsent += 1;
            flight.sent = now;
            if is_repeated {
                self.websocket_counts().repeated_ids += 1;
            }
        }
    }

    /// Starts the messages that the connection's user or the schedule has for it, and writes them. It has been `free`
    /// since then: messages intended later waited for weir alone.
    pub(super) fn fill_connection(&mut self, index: u32, free: Nanos, now: Nanos) {
        let most = self.shared.plan.pipeline;
        // Waiting arrivals had no connection only if none was ready.
        let capped = self.flow.ready.is_empty();
        loop {
            self.refill_permits();
            let Some(slot) = self.connections.get(index) else { return };
            if slot.flights.len() >= most || slot.exchange.close.has_begun() {
                break;
            }
            let Some(start) = self.feed.next_on(slot.user, now) else { break };
            let ready = self.results.counters.ready(start.arrival.intended, capped, free);
            self.add_message(index, &start, ready, now);
            self.frame_waiting(index, now);
            if self.connections.get(index).is_some_and(|slot| slot.flights.is_empty()) && !self.is_open_loop() {
                // It could not be rendered; without a pause all others would fail at once.
                self.feed.pause_user(start.user, now + CONNECT_RETRY_DELAY);
                return self.set_ready(index, now, false);
            }
        }
        self.write_out(index, now);
        let Some(slot) = self.connections.get(index) else { return };
        if slot.exchange.close.has_begun() {
            return;
        }
        let is_unused = slot.flights.is_empty();
        if self.is_open_loop() {
            self.set_ready(index, free, false);
        } else if is_unused {
            self.end_connection(index);
        }
    }

    /// Makes a connection for a message, which could have been sent at `ready` with an existing one.
    fn connect_for(&mut self, start: &DueRequest, ready: Nanos, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.results.counters.begin(start.arrival.intended, now);
        let flight = Flight::new(start, ready, request);
        match WebSocketMessages::connect(self, start.user, None) {
            Ok(index) => {
                if let Some(slot) = self.connections.get(index) {
                    slot.flights.push_back(flight);
                }
            }
            Err(reason) => {
                self.end(&flight.failed(FailureKind::Connect, now, 0), start.user);
                self.results.counters.record_detail(FailureKind::Connect, || reason);
                self.feed.pause_user(start.user, now + CONNECT_RETRY_DELAY);
            }
        }
    }

    /// Starts what is next for a user whose connection has ended, on a new one.
    pub(super) fn start_anew(&mut self, user: u32, now: Nanos) {
        self.refill_permits();
        if let Some(start) = self.feed.next_on(user, now) {
            self.connect_for(&start, start.arrival.intended, now);
        }
    }

    /// Writes what a connection has to write, as far as its socket accepts it, and frames the messages that had to wait
    /// for that.
    #[inline]
    pub(super) fn write_out(&mut self, index: u32, now: Nanos) {
        while self.write_framed(index, now) {
            let Some(slot) = self.connections.get(index) else { return };
            let exchange = &slot.exchange;
            let framed = exchange.sent.len();
            let waits = slot.phase == ConnectionPhase::Open && slot.flights.len() > framed;
            if !waits || !exchange.has_room() || exchange.close.has_begun() {
                return;
            }
            self.frame_waiting(index, now);
            let is_open_loop = self.is_open_loop();
            let Some(slot) = self.connections.get(index) else { return };
            if slot.flights.is_empty() && !is_open_loop {
                // None of them could be rendered.
                let user = slot.user;
                self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
                return self.set_ready(index, now, false);
            }
            if slot.exchange.sent.len() == framed {
                return;
            }
        }
    }

    /// Writes what is framed, as far as the socket accepts it; false if the connection has failed.
    #[inline]
    fn write_framed(&mut self, index: u32, now: Nanos) -> bool {
        let Some(slot) = self.connections.get(index) else { return false };
        // What a socket did not accept has waited for the service, and not for weir.
        let was_blocked = std::mem::take(&mut slot.exchange.is_blocked);
        let written = loop {
            if slot.exchange.pending().is_empty() {
                break slot.stream.flush();
            }
            match slot.stream.write(&[IoSlice::new(slot.exchange.pending())]) {
                Ok(bytes) => {
                    for nth in slot.exchange.advance(bytes) {
                        if let Some(flight) = slot.flights.get_mut(nth) {
                            flight.sent = now;
                            flight.ready = if was_blocked { flight.ready.max(now) } else { flight.ready };
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    slot.exchange.is_blocked = true;
                    break slot.stream.flush();
                }
                Err(error) => break Err(error),
            }
        };
        // A peer that has closed may still have sent why: reading shows it.
        if let Err(error) = written
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, failure_of(&error), &|| error.to_string());
            return false;
        }
        true
    }
}
