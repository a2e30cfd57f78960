//! Writing of connections with streams, and what they need now and then.

use super::super::readiness::failure_of;
use super::super::{Flow, Worker};
use crate::connection::ConnectionPhase;
use crate::http2::StreamWriting;
use std::io;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

/// Idle time after which a PING checks that the service is still there.
const PING_AFTER: Nanos = Nanos::from_secs(10);
/// Time that a service has to respond to that.
const PING_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Interval of [`Worker::care_for_streams`].
const CARE_INTERVAL: Nanos = Nanos::SECOND;

impl<F: Flow> Worker<'_, F> {
    /// Notes that a connection has something to write.
    pub(in crate::worker) fn mark_dirty(&mut self, index: u32) {
        if let Some(streams) = self.streams_of(index)
            && !std::mem::replace(&mut streams.is_dirty, true)
        {
            self.streams.unwritten.push(index);
        }
    }

    /// Writes what connections have got to write since the last call.
    pub(in crate::worker) fn flush_streams(&mut self) {
        while let Some(index) = self.streams.unwritten.pop() {
            self.write_streams(index);
        }
    }

    /// Writes what a connection has to write, as far as its socket accepts it.
    pub(in crate::worker) fn write_streams(&mut self, index: u32) {
        let now = self.clock.now();
        // A head that is observed is wanted as well.
        let knows_server = self.results.counters.counts().server.is_some() && self.observers.is_none();
        let requests = &self.shared.plan.requests;
        let Some(slot) = self.connections.get(index) else { return };
        let is_open = match slot.phase {
            ConnectionPhase::Open => true,
            ConnectionPhase::AwaitingSettings | ConnectionPhase::AwaitingUpgrade => false,
            ConnectionPhase::Connecting | ConnectionPhase::Handshaking => {
                // They are written when the connection opens.
                if let Some(streams) = &mut slot.streams {
                    streams.is_dirty = false;
                }
                return;
            }
        };
        let Some(streams) = &mut slot.streams else { return };
        streams.is_dirty = false;
        let knows_server = knows_server && !streams.has_calls;
        let written = streams.write(&mut slot.stream, requests, StreamWriting { opens: is_open, knows_server }, now);
        if written.is_ok() && streams.has_written() && !slot.stream.has_pending_tls() {
            streams.note_written(self.clock.now());
        }
        let next_message = streams.next_wake();
        let is_spent = streams.protocol.is_spent() && !streams.is_retired && streams.protocol.failure().is_none();
        let unsendable = streams.take_unsendable();
        if let Some(at) = next_message {
            self.note_message(index, at);
        }
        // A peer that has closed may still have sent responses: reading shows which.
        if let Err(error) = written
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            return self.fail(index, failure_of(&error), &|| error.to_string());
        }
        if is_spent {
            self.retire(index);
        }
        for (exchange, error) in unsendable {
            self.results.counters.record_detail(FailureKind::Protocol, || error.to_string());
            let user = exchange.user;
            if self.fail_exchange(exchange, FailureKind::Protocol, None, now) {
                F::continue_on_streams(self, index, user, now, now);
            }
        }
    }

    /// About once a second: asks idle connections whether they still work, and ends those that do not respond.
    pub(in crate::worker) fn care_for_streams(&mut self, now: Nanos) {
        if self.shared.http2.is_none() || now < self.streams.next_care {
            return;
        }
        self.streams.next_care = now + CARE_INTERVAL;
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let is_idle = slot.idle_since.is_some_and(|since| now - since > PING_AFTER);
            let is_open = slot.phase == ConnectionPhase::Open;
            let Some(streams) = slot.streams.as_mut().filter(|_| is_open) else { continue };
            streams.protocol.renew_budget();
            match streams.pinged {
                Some(at) if now - at > PING_TIMEOUT && streams.is_empty() => self.connections.close(index),
                Some(_) => {}
                None if is_idle => {
                    streams.protocol.ping(now.0.to_be_bytes());
                    streams.pinged = Some(now);
                    self.mark_dirty(index);
                }
                None => {}
            }
        }
        self.flush_streams();
    }
}
