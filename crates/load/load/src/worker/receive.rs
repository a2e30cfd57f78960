//! Receiving: bytes to responses, and what the connection does next.

use std::io;

use super::flow::ArrivedResponse;
use super::{Flow, Worker};
use crate::exchange::FlowExchange;
use crate::flight::ReadTimes;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::readiness_event::ReadinessEvent;
use weir_net::stream::StreamRead;
use weir_net::wire::WireError;

pub(super) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Minimum size of a body, in bytes, that the kernel discards unread.
const MIN_SKIP_BYTES: u64 = 1 << 20;

/// Maximum reads of one connection in a row, before the others and due sends have their turn.
pub(super) const MAX_READS: usize = 16;

/// Bytes of one read.
pub(super) struct ReceivedPart {
    /// Number of bytes in the buffer; those that the kernel discarded are not.
    pub(super) taken: usize,
    /// Whether the socket has nothing more for now.
    pub(super) is_last: bool,
    pub(super) times: ReadTimes,
}

impl<F: Flow> Worker<'_, F> {
    /// Reads a connection until it is drained.
    #[inline]
    pub(super) fn read(&mut self, event: ReadinessEvent, index: u32) {
        if self.connections.get(index).is_some_and(|slot| slot.streams.is_some()) {
            return self.read_streams(event, index);
        }
        let mut buffer = std::mem::take(&mut self.reading.buffer);
        let mut reads = 0;
        while let Some(ReceivedPart { taken, is_last, times }) = self.receive(index, &mut buffer) {
            let is_framed = self.connections.get(index).is_some_and(|slot| F::is_framed(slot));
            let open = match is_framed {
                true => F::frames_received(self, index, &buffer[..taken], times),
                false => self.process(index, &buffer[..taken], times),
            };
            if !open || (is_last && !event.hung_up) {
                break;
            }
            reads += 1;
            if reads == MAX_READS {
                // The poller reports only new events, and this is not one.
                self.reading.unread.push(event);
                break;
            }
        }
        self.reading.buffer = buffer;
    }

    /// Time when the last byte of a read has arrived.
    #[inline]
    fn arrival(&mut self, received: &StreamRead, now: Nanos) -> Nanos {
        if let Some(observers) = &mut self.observers {
            observers.note_read(self.reading.wall.is_some() && received.received_at.is_some());
        }
        match (self.reading.wall, received.received_at) {
            (Some(wall), Some(stamp)) => wall.at(stamp).min(now),
            _ => now,
        }
    }

    /// Reads a connection at once, whether or not it has an event.
    pub(super) fn read_now(&mut self, index: u32) {
        let event =
            ReadinessEvent { key: self.connections.key(index), readable: true, writable: false, hung_up: false };
        // Within the handling of another read the buffer is in use.
        let is_nested = self.reading.buffer.is_empty();
        if is_nested {
            self.reading.buffer = vec![0; READ_BUFFER_BYTES].into_boxed_slice();
        }
        self.read(event, index);
        if is_nested {
            self.reading.buffer = Box::default();
        }
    }

    /// The next bytes; `None` when there are none for now, or the connection has ended.
    #[inline]
    pub(super) fn receive(&mut self, index: u32, buffer: &mut [u8]) -> Option<ReceivedPart> {
        let (received, taken) = self.read_socket(index, buffer)?;
        let now = self.clock.now();
        if received.bytes == 0 {
            self.closed_by_peer(index, now);
            return None;
        }
        let at = self.arrival(&received, now);
        Some(ReceivedPart { taken, is_last: received.drained, times: ReadTimes { at, now } })
    }

    /// Bytes of the socket, read into the buffer, and their number.
    #[inline]
    fn read_socket(&mut self, index: u32, buffer: &mut [u8]) -> Option<(StreamRead, usize)> {
        let slot = self.connections.get(index)?;
        let left = slot.decoder.remaining_body();
        let received = if left > MIN_SKIP_BYTES && slot.stream.can_skip() && !slot.exchange.looks_into_body() {
            if self.reading.scratch.is_empty() {
                // Zeroed by the system and never written to: address space without memory.
                self.reading.scratch = vec![0; MIN_SKIP_BYTES as usize];
            }
            // The last part is read, for its arrival time.
            slot.stream.skip(left - READ_BUFFER_BYTES as u64, &mut self.reading.scratch).map(|received| {
                slot.decoder.skip(received.bytes as u64);
                (received, 0)
            })
        } else {
            slot.stream.read(buffer).map(|received| (received, received.bytes))
        };
        match received {
            Ok(received) => Some(received),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => {
                self.fail(index, super::readiness::failure_of(&error), &|| error.to_string());
                None
            }
        }
    }

    /// Decodes bytes that came on a connection; true if it is still open.
    #[inline]
    fn process(&mut self, index: u32, mut bytes: &[u8], ReadTimes { at, now }: ReadTimes) -> bool {
        let mut has_responded = false;
        while !bytes.is_empty() {
            let Some(slot) = self.connections.get(index) else { return false };
            let (early, written) = (slot.front_is_unsent(), slot.written());
            let Some(flight) = slot.flights.front_mut() else {
                self.unsolicited(index, has_responded, now);
                return false;
            };
            let is_bodyless = slot.exchange.is_bodyless(&self.shared.plan.requests, flight.request);
            // A timestamp may be older than the send by the clocks' difference; a response never precedes its request.
            let at = at.max(flight.sent.min(now));
            flight.first_byte.get_or_insert(at);
            if self.results.counters.counts().server.is_none() {
                self.results.counters.find_server(bytes);
            }
            let is_observed = self.observers.as_ref().is_some_and(|it| it.observes(&mut slot.exchange));
            let cache = self.flow.head_cache(&slot.exchange, &mut self.reading.cache);
            let decoded = match slot.exchange.kept() {
                _ if is_observed => self.decode_observed(index, bytes, is_bodyless, ReadTimes { at, now }),
                Some(kept) => slot.decoder.push_observed(bytes, is_bodyless, cache, kept),
                None => slot.decoder.push(bytes, is_bodyless, cache),
            };
            let mut step = match decoded {
                Ok(step) => step,
                Err(error) => {
                    self.fail(index, FailureKind::Protocol, &|| error.to_string());
                    return false;
                }
            };
            if step.response.is_none() && F::pass_events(self, index, None, ReadTimes { at, now }) {
                step.used = bytes.len();
                step.response = self.connections.get(index).and_then(|slot| slot.decoder.abandon());
            }
            bytes = &bytes[step.used..];
            let Some(answer) = step.response else { continue };
            let Some(flight) = self.connections.get(index).and_then(|slot| slot.flights.pop_front()) else {
                return false;
            };
            let is_reusable = answer.keep_alive && !early;
            let has_rest = !bytes.is_empty();
            let response = ArrivedResponse { flight, answer, written, at, now, is_reusable, has_rest };
            if !F::responded(self, index, &response) {
                return false;
            }
            has_responded = true;
        }
        if has_responded {
            F::continue_on(self, index, at, now);
        }
        true
    }

    /// Fails the requests that were sent together with one whose response has ended the connection.
    #[cold]
    pub(super) fn fail_pipelined(&mut self, index: u32) {
        self.fail(index, FailureKind::Closed, &|| "the service closed with requests in the pipeline".into());
    }

    /// Handles unsolicited bytes, which are not a failure of any request. But the connection is closed.
    /// `has_responded`: its user has just had a response, and continues on a new one.
    #[cold]
    fn unsolicited(&mut self, index: u32, has_responded: bool, now: Nanos) {
        self.results.counters.record_detail(FailureKind::Protocol, || WireError::Unsolicited.to_string());
        if has_responded {
            F::replace(self, index, now);
        } else {
            self.connections.close(index);
        }
    }

    /// Handles the peer's close, which ends a response without a length, and truncates any other.
    pub(super) fn closed_by_peer(&mut self, index: u32, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        if F::is_framed(slot) {
            return F::ended_by_peer(self, index);
        }
        if slot.streams.is_some() {
            return self.closed_before_response(index);
        }
        let written = slot.written();
        match (slot.flights.front().copied(), slot.decoder.close()) {
            // Idle: a service may close the connection.
            (None, _) => self.connections.close(index),
            (Some(flight), Ok(Some(answer))) => {
                slot.flights.pop_front();
                let (is_reusable, has_rest) = (false, false);
                let response = ArrivedResponse { flight, answer, written, at: now, now, is_reusable, has_rest };
                F::responded(self, index, &response);
            }
            (Some(_), Ok(None)) => self.closed_before_response(index),
            (Some(_), Err(error)) => self.fail(index, FailureKind::Closed, &|| error.to_string()),
        }
    }

    fn closed_before_response(&mut self, index: u32) {
        self.fail(index, FailureKind::Closed, &|| "the connection was closed before a response".into());
    }
}
