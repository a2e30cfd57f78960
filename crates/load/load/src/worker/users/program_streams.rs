//! Responses that users of a program read as streams of events: parts go to them as they arrive, and they may end one
//! before its end.

use std::collections::HashMap;

use super::super::Worker;
use super::UserRequests;
use crate::exchange::FlowExchange as _;
use crate::flight::ReadTimes;
use crate::steps::{FlowEvent, StepExchange, UserAction};
use weir_base::Nanos;
use weir_http2::error_code::ErrorCode;

/// Time that responses which users of a program read as streams of events have for their end, after that of the load.
const STREAM_GRACE: Nanos = Nanos::from_secs(10);

/// Places of the responses that users of a program read as streams of events.
#[derive(Debug, Default)]
pub(super) struct ProgramStreams {
    places: HashMap<u32, StreamPlace>,
}

/// Place of a response: index and key of its connection, and with HTTP/2 the key of its request there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamPlace {
    index: u32,
    connection: u64,
    stream: Option<u32>,
}

impl Worker<'_, UserRequests<'_>> {
    /// Passes the part of a response that has arrived at `at` on to its user; true if the user ends the response.
    /// `stream` is the key of its request on a connection with HTTP/2.
    pub(super) fn pass_events(&mut self, index: u32, stream: Option<u32>, ReadTimes { at, now }: ReadTimes) -> bool {
        let connection = self.connections.key(index);
        let Some((user, sent, place)) = self.read_step(index, stream) else { return false };
        let Some(mut exchange) = place.take() else { return false };
        let Some(status) = exchange.part_to_pass() else {
            *place = Some(exchange);
            return false;
        };
        if !exchange.has_passed_head {
            self.flow.streams.places.insert(user, StreamPlace { index, connection, stream });
        }
        let event = FlowEvent::Events { exchange: &exchange, status, service: at - sent };
        let action = self.ask(user, |users, unix_s| users.response(user, &event, at, unix_s));
        exchange.set_passed();
        let ends = matches!(action, UserAction::EndStream);
        if let (true, Some(observer)) = (ends, &mut exchange.observer) {
            observer.stop();
        }
        if let Some((.., place)) = self.read_step(index, stream) {
            *place = Some(exchange);
        }
        // Nothing is sent, and no iteration ends, while a response is open.
        self.act(user, Some(if matches!(action, UserAction::Stop) { action } else { UserAction::Wait }), now);
        ends
    }

    /// The same over HTTP/2, where an end is carried out.
    pub(super) fn pass_events_on_stream(&mut self, index: u32, key: u32, ReadTimes { at, now }: ReadTimes) {
        let is_read = self
            .read_step(index, Some(key))
            .is_some_and(|(.., place)| place.as_ref().is_some_and(|exchange| exchange.passes_events));
        if is_read && self.pass_events(index, Some(key), ReadTimes { at, now }) {
            self.end_read_stream(index, key, now);
        }
    }

    /// Ends the response that a user reads as a stream of events.
    pub(super) fn end_stream_of(&mut self, user: u32, now: Nanos) {
        let Some(StreamPlace { index, stream, .. }) = self.take_place(user) else { return };
        if let Some((.., Some(exchange))) = self.read_step(index, stream)
            && let Some(observer) = &mut exchange.observer
        {
            observer.stop();
        }
        if let Some(key) = stream {
            return self.end_read_stream(index, key, now);
        }
        let Some(slot) = self.connections.get(index) else { return };
        let (Some(answer), Some(flight)) = (slot.decoder.abandon(), slot.flights.pop_front()) else { return };
        self.step_response(index, &flight, &answer, ReadTimes { at: now, now }, false);
    }

    /// Drops responses that users read as streams of events if they go on for too long after the end of the load.
    pub(super) fn cut_program_streams(&mut self, now: Nanos) {
        if !self.flow.streams.places.is_empty() && now >= self.until + STREAM_GRACE {
            self.drop_program_streams(now);
        }
    }

    /// Drops responses that users read as streams of events, also those without a head: the end of the load cuts them
    /// off, and an endless one would keep its user from its own end.
    pub(super) fn drop_program_streams(&mut self, now: Nanos) {
        let is_read = |step: &Option<Box<StepExchange>>| step.as_ref().is_some_and(|step| step.passes_events);
        let mut dropped = 0;
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let Some(streams) = &mut slot.streams else {
                if is_read(&slot.exchange) {
                    dropped += slot.flights.len() as u64;
                    let observer = slot.exchange.take_observer();
                    self.connections.close(index);
                    observer.into_iter().for_each(|observer| self.cut_off(observer, now));
                }
                continue;
            };
            let taken = streams.take_where(|exchange| is_read(&exchange.inner));
            if !taken.is_empty() {
                dropped += taken.len() as u64;
                self.mark_dirty(index);
            }
            for mut exchange in taken {
                exchange.inner.take_observer().into_iter().for_each(|observer| self.cut_off(observer, now));
            }
        }
        self.flow.streams.places.clear();
        self.results.counters.give_up(dropped, now);
    }

    /// Place of the response that a user reads as a stream of events, if it is open.
    fn take_place(&mut self, user: u32) -> Option<StreamPlace> {
        let place = self.flow.streams.places.remove(&user)?;
        if self.connections.key(place.index) != place.connection {
            return None;
        }
        let (of, _, exchange) = self.read_step(place.index, place.stream)?;
        (of == user && exchange.as_ref()?.passes_events).then_some(place)
    }

    fn end_read_stream(&mut self, index: u32, key: u32, now: Nanos) {
        let Some(streams) = self.connections.get(index).and_then(|slot| slot.streams.as_mut()) else { return };
        let Some(stream) = streams.get(key).and_then(|exchange| exchange.stream) else { return };
        if let Some(totals) = streams.protocol.cancel(stream, ErrorCode::CANCEL) {
            self.mark_dirty(index);
            self.stream_ended(index, key, &totals, now, now);
        }
    }

    /// User of the request whose response is read, the time of its send, and the place of its exchange.
    fn read_step(&mut self, index: u32, stream: Option<u32>) -> Option<(u32, Nanos, &mut Option<Box<StepExchange>>)> {
        let slot = self.connections.get(index)?;
        match (stream, &mut slot.streams) {
            (Some(key), Some(streams)) => {
                let exchange = streams.get(key)?;
                Some((exchange.user, exchange.flight.sent, &mut exchange.inner))
            }
            (None, None) => Some((slot.user, slot.flights.front()?.sent, &mut slot.exchange)),
            _ => None,
        }
    }
}
