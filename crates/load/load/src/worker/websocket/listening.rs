//! Connections that only listen: each is a request, and what it receives is a stream of events.

use super::{WebSocketMessages, Worker};
use crate::flight::{ReadTimes, ReceivedBytes};
use crate::websocket::HeardMessages;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::stream_timeline::StreamEnd;
use weir_websocket::close_code::CloseCode;

impl Worker<'_, WebSocketMessages<'_>> {
    /// Takes a message that a listening connection has received; false if the connection has ended with it.
    pub(super) fn hear(&mut self, index: u32, received: ReceivedBytes, ReadTimes { at, now }: ReadTimes) -> bool {
        let Self { flow, connections, results, .. } = self;
        let (Some(options), Some(slot)) = (flow.plan.listens, connections.get(index)) else { return true };
        let (Some(heard), Some(flight)) = (slot.exchange.heard.as_deref_mut(), slot.flights.front_mut()) else {
            return true;
        };
        let at = at.max(flight.sent.min(now));
        let intended = flight.intended;
        flight.first_byte.get_or_insert(heard.timeline.first_byte.unwrap_or(at));
        let gap = heard.timeline.record_event(at);
        (heard.wire, heard.body) = (heard.wire + received.wire, heard.body + received.body);
        let is_last = options.max_events.is_some_and(|most| heard.timeline.events >= most);
        // A connection may listen for hours: each interval has what came in it.
        results.counters.record_arrived(received.wire);
        let sinks = results.counters.stream_sinks(&options, intended);
        sinks.interval.record_event(gap);
        if gap.is_none() {
            sinks.interval.record_first_event(&heard.timeline);
        }
        if sinks.window.contains(at) {
            sinks.streams.events_in_window += 1;
            sinks.streams.bytes_in_window += received.body;
        }
        if let Some(gap) = gap.filter(|_| sinks.is_counted) {
            sinks.streams.record_gap(gap);
        }
        if is_last {
            self.finish_listening(index, StreamEnd::Stopped, at, now);
        }
        !is_last
    }

    /// Ends a listening connection as a success.
    pub(super) fn finish_listening(&mut self, index: u32, end: StreamEnd, done: Nanos, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        let (Some(flight), Some(heard)) = (slot.flights.pop_front(), slot.exchange.heard.take()) else { return };
        let user = slot.user;
        self.end(&flight.completed(&Self::reply_of(heard.wire, heard.body), done, 0, Nanos::NEVER), user);
        self.record_end(&heard, end);
        self.end_connection(index);
        self.start_anew(user, now);
    }

    /// Records what a listening connection has received before it failed.
    pub(super) fn record_heard(&mut self, heard: &HeardMessages, kind: FailureKind) {
        let end = match kind {
            FailureKind::Stalled => StreamEnd::Stalled,
            FailureKind::Timeout => StreamEnd::TimedOut,
            _ => StreamEnd::BrokenOff,
        };
        self.record_end(heard, end);
    }

    fn record_end(&mut self, heard: &HeardMessages, end: StreamEnd) {
        let Some(options) = self.flow.plan.listens else { return };
        // The outcome has all bytes, which the intervals have had one by one.
        self.results.counters.take_back_arrived(heard.wire);
        let sinks = self.results.counters.stream_sinks(&options, heard.timeline.intended);
        if sinks.is_counted {
            sinks.streams.record_response(&heard.timeline, end, heard.body);
        }
    }

    /// Ends the connections that listen at the end of the load, and those that have stalled.
    pub(super) fn end_listening(&mut self, now: Nanos) {
        let Some(options) = self.flow.plan.listens else { return };
        for index in self.connections.indices() {
            if !self.is_open(index) {
                continue;
            }
            if now >= self.until {
                self.finish_listening(index, StreamEnd::Stopped, self.until, now);
                continue;
            }
            let Some(timeout) = options.stall_timeout else { continue };
            let heard = self.connections.get(index).and_then(|slot| slot.exchange.heard.as_ref());
            if heard.is_some_and(|heard| heard.timeline.stalls_at(timeout) <= now) {
                self.fail(index, FailureKind::Stalled, &|| format!("no message within {timeout}"));
            }
        }
    }

    /// Ends the connections that listen when the load is stopped: what they have received counts.
    pub(super) fn stop_listening(&mut self, now: Nanos) {
        for index in self.connections.indices() {
            if self.is_open(index) {
                self.finish_listening(index, StreamEnd::Stopped, now, now);
            }
        }
    }

    /// Kind of failure of a connection that the service has ended.
    pub(super) fn end_kind(&mut self, index: u32, kind: FailureKind) -> FailureKind {
        let is_heard = self.connections.get(index).is_some_and(|slot| slot.exchange.heard.is_some());
        if is_heard { FailureKind::BrokenOff } else { kind }
    }

    /// Whether a close with this code is the end of what a listening connection receives.
    pub(super) fn ends_listening(&mut self, index: u32, code: CloseCode) -> bool {
        let is_heard = self.connections.get(index).is_some_and(|slot| slot.exchange.heard.is_some());
        is_heard && code.is_regular()
    }
}
