//! Receiving: bytes to responses, and what the connection does next.

use std::io;

use super::Worker;
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

impl Worker<'_> {
    /// Reads a connection until it is drained.
    #[inline]
    pub(super) fn read(&mut self, event: ReadinessEvent, index: u32) {
        if self.connections.get(index).is_some_and(|slot| slot.streams.is_some()) {
            return self.read_streams(event, index);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reads = 0;
        while let Some((received, taken)) = self.receive(index, &mut buffer) {
            let now = self.clock.now();
            if received.bytes == 0 {
                self.closed_by_peer(index, now);
                break;
            }
            let at = self.arrival(&received, now);
            let open = self.process(index, &buffer[..taken], at, now);
            if !open || (received.drained && !event.hung_up) {
                break;
            }
            reads += 1;
            if reads == MAX_READS {
                // The poller reports only new events, and this is not one.
                self.unread.push(event);
                break;
            }
        }
        self.buffer = buffer;
    }

    /// Time when the last byte of a read has arrived.
    #[inline]
    pub(super) fn arrival(&mut self, received: &StreamRead, now: Nanos) -> Nanos {
        if let Some(observers) = &mut self.observers {
            observers.note_read(self.wall.is_some() && received.received_at.is_some());
        }
        match (self.wall, received.received_at) {
            (Some(wall), Some(stamp)) => wall.at(stamp).min(now),
            _ => now,
        }
    }

    /// Reads a connection at once, whether or not it has an event.
    pub(super) fn read_now(&mut self, index: u32) {
        let event =
            ReadinessEvent { key: self.connections.key(index), readable: true, writable: false, hung_up: false };
        // Within the handling of another read the buffer is in use.
        let is_nested = self.buffer.is_empty();
        if is_nested {
            self.buffer = vec![0; READ_BUFFER_BYTES].into_boxed_slice();
        }
        self.read(event, index);
        if is_nested {
            self.buffer = Box::default();
        }
    }

    /// The next bytes, and their number in the buffer; `None` when there are none for now, or the connection has ended.
    #[inline]
    pub(super) fn receive(&mut self, index: u32, buffer: &mut [u8]) -> Option<(StreamRead, usize)> {
        let slot = self.connections.get(index)?;
        let left = slot.decoder.remaining_body();
        let received = if left > MIN_SKIP_BYTES && slot.stream.can_skip() && !slot.looks_into_body() {
            if self.scratch.is_empty() {
                // Zeroed by the system and never written to: address space without memory.
                self.scratch = vec![0; MIN_SKIP_BYTES as usize];
            }
            // The last part is read, for its arrival time.
            slot.stream.skip(left - READ_BUFFER_BYTES as u64, &mut self.scratch).map(|received| {
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
                self.fail(index, super::readiness::failure_of(&error), || error.to_string());
                None
            }
        }
    }

    /// Decodes bytes that came at `at` on a connection; true if it is still open.
    #[inline]
    fn process(&mut self, index: u32, mut bytes: &[u8], at: Nanos, now: Nanos) -> bool {
        let plan = self.shared.plan;
        let mut has_responded = false;
        while !bytes.is_empty() {
            let Some(slot) = self.connections.get(index) else { return false };
            let early = slot.front_is_unsent();
            let written = slot.written();
            let Some(flight) = slot.flights.front_mut() else {
                self.unsolicited(index, has_responded, now);
                return false;
            };
            let is_bodyless = match &slot.step {
                Some(step) => step.is_bodyless(flight.request),
                None => plan.requests[flight.request as usize].bodyless,
            };
            // A timestamp may be older than the send by the clocks' difference; a response never precedes its request.
            let at = at.max(flight.sent.min(now));
            flight.first_byte.get_or_insert(at);
            if self.counters.counts().server.is_none() {
                self.counters.find_server(bytes);
            }
            let is_observed = self.observers.as_ref().is_some_and(|it| it.observes(slot.step.as_deref()));
            let passes_events = slot.step.as_ref().is_some_and(|step| step.passes_events);
            let decoded = match (&mut slot.step, &mut self.users) {
                _ if is_observed => self.decode_observed(index, bytes, is_bodyless, (at, now)),
                (Some(step), Some(users)) if step.is_kept => {
                    let cache = users.exchanges.head_cache(step.step);
                    slot.decoder.push_observed(bytes, is_bodyless, cache, step.as_mut())
                }
                _ => slot.decoder.push(bytes, is_bodyless, &mut self.cache),
            };
            let mut step = match decoded {
                Ok(step) => step,
                Err(error) => {
                    self.fail(index, FailureKind::Protocol, || error.to_string());
                    return false;
                }
            };
            if passes_events && step.response.is_none() && self.pass_events(index, None, (at, now)) {
                step.used = bytes.len();
                step.response = self.connections.get(index).and_then(|slot| slot.decoder.abandon());
            }
            bytes = &bytes[step.used..];
            let Some(answer) = step.response else { continue };
            let Some(slot) = self.connections.get(index) else { return false };
            let Some(flight) = slot.flights.front().copied() else { return false };
            slot.flights.pop_front();
            if slot.step.is_some() {
                if !slot.flights.is_empty() {
                    self.step_response(index, &flight, &answer, (at, now), true);
                    if answer.keep_alive && !early {
                        continue;
                    }
                    self.fail_pipelined(index);
                    return false;
                }
                let closes = slot.step.as_ref().is_some_and(|step| step.closes);
                let is_reusable = answer.keep_alive && plan.keep_alive && !closes && !early && bytes.is_empty();
                if !bytes.is_empty() {
                    self.counters.record_detail(FailureKind::Protocol, || WireError::Unsolicited.to_string());
                }
                self.step_response(index, &flight, &answer, (at, now), is_reusable);
                return is_reusable;
            }
            let length = slot.request_length(&plan.requests, &flight);
            let mut outcome = flight.completed(&answer, at, written.bytes_of(0, length), plan.timeout);
            let user = slot.user;
            if self.observers.is_some() {
                self.end_observed_on(index, &mut outcome);
            }
            self.end(&outcome, user);
            if !answer.keep_alive || !plan.keep_alive || early {
                self.reconnect(index, now);
                return false;
            }
            has_responded = true;
        }
        if has_responded {
            self.fill_pipeline(index, at, now);
        }
        true
    }

    /// Fails the requests that were sent together with one whose response has ended the connection.
    #[cold]
    fn fail_pipelined(&mut self, index: u32) {
        self.fail(index, FailureKind::Closed, || "the service closed with requests in the pipeline".into());
    }

    /// Handles unsolicited bytes, which are not a failure of any request. But the connection is closed.
    /// `has_responded`: its user has just had a response, and continues on a new one.
    #[cold]
    fn unsolicited(&mut self, index: u32, has_responded: bool, now: Nanos) {
        self.counters.record_detail(FailureKind::Protocol, || WireError::Unsolicited.to_string());
        if has_responded {
            self.reconnect(index, now);
        } else {
            self.connections.close(index);
        }
    }

    /// Handles the peer's close, which ends a response without a length, and truncates any other.
    pub(super) fn closed_by_peer(&mut self, index: u32, now: Nanos) {
        let plan = self.shared.plan;
        let Some(slot) = self.connections.get(index) else { return };
        if slot.streams.is_some() {
            let why = || "the connection was closed before a response".into();
            return self.fail(index, FailureKind::Closed, why);
        }
        let written = slot.written();
        match (slot.flights.front(), slot.decoder.close()) {
            // Idle: a service may close the connection.
            (None, _) => self.connections.close(index),
            (Some(flight), Ok(Some(answer))) => {
                let flight = *flight;
                let length = slot.request_length(&plan.requests, &flight);
                slot.flights.pop_front();
                if slot.step.is_some() {
                    let has_others = !slot.flights.is_empty();
                    self.step_response(index, &flight, &answer, (now, now), false);
                    if has_others {
                        self.fail_pipelined(index);
                    }
                    return;
                }
                let mut outcome = flight.completed(&answer, now, written.bytes_of(0, length), plan.timeout);
                let user = slot.user;
                self.end_observed_on(index, &mut outcome);
                self.end(&outcome, user);
                self.reconnect(index, now);
            }
            (Some(_), Ok(None)) => {
                self.fail(index, FailureKind::Closed, || "the connection was closed before a response".into());
            }
            (Some(_), Err(error)) => self.fail(index, FailureKind::Closed, || error.to_string()),
        }
    }
}
