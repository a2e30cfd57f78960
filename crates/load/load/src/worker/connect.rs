//! Connections: making them, and their failures.

use std::io;

use super::flow::FailedConnection;
use super::{Flow, MAX_SLEEP, Worker};
use crate::connection::ConnectionPhase;
use crate::exchange::FlowExchange;
use crate::origin_addresses::OriginAddresses;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

/// Delay of a user after a failed connection.
pub(super) const CONNECT_RETRY_DELAY: Nanos = Nanos::from_millis(100);
/// Longest time for making connections before the start.
const PRECONNECT_TIMEOUT: Nanos = Nanos::from_secs(5);

impl<F: Flow> Worker<'_, F> {
    /// Makes connections before the start, while the service is idle: a loaded one may accept connections so slowly
    /// that its queue overflows, and then some users would begin seconds later.
    pub(super) fn preconnect(&mut self) {
        let mut ready = Vec::with_capacity(256);
        // Once each: a service that closes silent connections must not be connected to again and again.
        let mut left_to_open = self.preconnect;
        let timeout = PRECONNECT_TIMEOUT.min(self.shared.plan.timeout);
        while !self.shared.control.is_stopped() {
            // A failure now is retried, and counted, in the run.
            while left_to_open > 0 && self.connections.can_open() && self.open_unused() {
                left_to_open -= 1;
            }
            let left = timeout - self.clock.now();
            if self.connections.connecting() == 0 || left == Nanos::ZERO {
                break;
            }
            self.poll(left.min(MAX_SLEEP), &mut ready);
            for event in ready.drain(..) {
                self.handle(event);
            }
            self.attempt_further_addresses(self.clock.now());
        }
        for index in self.connections.indices() {
            if self.connections.get(index).is_some_and(|slot| slot.phase != ConnectionPhase::Open) {
                self.connections.close(index);
            }
        }
    }

    /// Attempts the next addresses of origins whose attempts so far have no response.
    pub(super) fn attempt_further_addresses(&mut self, now: Nanos) {
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            if slot.attempts.as_ref().is_some_and(|attempts| attempts.is_due(now)) {
                self.connected(index);
            }
        }
    }

    /// Makes a connection that no request waits for; whether it could begin.
    fn open_unused(&mut self) -> bool {
        let opened = F::connect(self, 0, None);
        opened.is_ok_and(|index| {
            self.attach_streams(index, None);
            true
        })
    }

    /// Begins a connection to one of these addresses.
    pub(super) fn open(&mut self, addresses: &OriginAddresses, user: u32) -> io::Result<u32> {
        // Not the time of the caller, who may have closed and recorded another one meanwhile.
        let now = self.clock.now();
        let index = self.connections.open(addresses, self.reading.wall.is_some(), user, now)?;
        self.results.counters.counts().connections += 1;
        Ok(index)
    }

    pub(super) fn connected(&mut self, index: u32) {
        let now = self.clock.now();
        match self.connections.complete(index, now) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.fail(index, FailureKind::Connect, &|| error.to_string()),
        }
        let Some(slot) = self.connections.get(index) else { return };
        slot.set_up.connected = now;
        let Some(tls) = self.flow.tls(slot.origin, self.shared.tls.as_ref()) else {
            return if slot.streams.is_some() { self.begin_streams(index) } else { self.opened(index) };
        };
        if let Err(error) = slot.stream.start_tls(tls) {
            return self.fail(index, FailureKind::Tls, &|| error.to_string());
        }
        slot.phase = ConnectionPhase::Handshaking;
        self.handshake(index);
    }

    pub(super) fn handshake(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        match slot.stream.handshake() {
            Ok(true) => {
                slot.set_up.secured = self.clock.now();
                match (slot.streams.is_some(), slot.stream.is_http2()) {
                    (true, true) => self.begin_streams(index),
                    (false, false) => self.opened(index),
                    (true, false) => self.fall_back(index),
                    (false, true) => {
                        let why = "the service has chosen HTTP/2 for a connection, after HTTP/1.1 for others";
                        self.fail(index, FailureKind::Protocol, &|| why.into());
                    }
                }
            }
            Ok(false) => {}
            Err(error) => self.fail(index, FailureKind::Tls, &|| error.to_string()),
        }
    }

    /// Opens the connection, or begins its upgrade.
    pub(super) fn opened(&mut self, index: u32) {
        let is_framed = self.connections.get(index).is_some_and(|slot| F::is_framed(slot));
        if is_framed { F::upgrade(self, index) } else { self.set_opened(index) }
    }

    /// Opens the connection: its first request, which waited for it, is written.
    pub(super) fn set_opened(&mut self, index: u32) {
        let now = self.clock.now();
        self.connections.set_open(index);
        self.note_protocol(index);
        let Some(slot) = self.connections.get(index) else { return };
        if slot.flights.is_empty() {
            self.results.counters.preconnected(now - slot.opened);
            if F::is_framed(slot) {
                return F::opened_unused(self, index, now);
            }
            return self.connections.set_idle(index, now);
        }
        let set_up = slot.set_up.since(slot.opened);
        for flight in &mut slot.flights {
            flight.connect = now - slot.opened;
            flight.set_up = set_up;
            // A late start of connecting is weir's own delay, its duration is not.
            flight.ready += flight.connect;
        }
        F::opened(self, index, now);
    }

    /// Notes by which versions of TLS and HTTP a connection goes.
    pub(super) fn note_protocol(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        let counts = self.results.counters.counts();
        if counts.tls.is_none() {
            counts.tls = slot.stream.tls_description();
        }
        if counts.http.is_none() {
            let is_http2 = slot.streams.is_some();
            let name = if F::is_framed(slot) { "WebSocket" } else { ["HTTP/1.1", "HTTP/2"][usize::from(is_http2)] };
            counts.http = Some(name.to_owned());
        }
    }

    /// Fails the connection, and all requests on it.
    pub(super) fn fail(&mut self, index: u32, kind: FailureKind, detail: &dyn Fn() -> String) {
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        if slot.streams.is_some() {
            return self.fail_streams(index, kind, detail);
        }
        let (user, phase, written) = (slot.user, slot.phase, slot.written());
        let (mut exchange, flights) = (std::mem::take(&mut slot.exchange), std::mem::take(&mut slot.flights));
        let capped = self.connections.is_exhausted();
        self.connections.close(index);
        // The end of an idle connection is not a failure.
        let Some(oldest) = flights.front() else { return F::unused_failed(self, phase, kind, detail) };
        let mut observer = exchange.take_observer();
        let kind = self.fail_observed(observer.as_deref_mut(), kind, oldest.intended, now);
        observer.into_iter().for_each(|observer| exchange.put_observer(observer));
        self.results.counters.record_detail(kind, detail);
        F::failed(self, FailedConnection { user, phase, written, flights, exchange, capped }, kind, now);
    }
}
