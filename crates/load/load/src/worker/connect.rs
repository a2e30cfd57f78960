//! Connections: making them, and the users of ended ones.

use std::io;

use super::{MAX_SLEEP, Worker};
use crate::connection::{ConnectionPhase, Flight};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_pace::feed::DueRequest;

/// Delay of a user after a failed connection.
pub(super) const CONNECT_RETRY_DELAY: Nanos = Nanos::from_millis(100);
/// Longest time for making connections before the start.
const PRECONNECT_TIMEOUT: Nanos = Nanos::from_secs(5);

impl Worker<'_> {
    /// Makes connections before the start, while the service is idle: a loaded one may accept connections so slowly
    /// that its queue overflows, and then some users would begin seconds later.
    pub(super) fn preconnect(&mut self) {
        let mut ready = Vec::with_capacity(256);
        // Once each: a service that closes silent connections must not be connected to again and again.
        let mut left_to_open = self.preconnect;
        let timeout = PRECONNECT_TIMEOUT.min(self.shared.plan.timeout);
        while !self.shared.control.is_stopped() {
            // A failure now is retried, and counted, in the run.
            while left_to_open > 0 && self.connections.can_open() && self.open(0).is_ok() {
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

    pub(super) fn open(&mut self, user: u32) -> io::Result<u32> {
        let index = self.connections.open(&self.shared.plan.addresses, self.wall.is_some(), user, self.clock.now())?;
        self.counters.counts().connections += 1;
        self.attach_streams(index, None);
        Ok(index)
    }

    /// Makes a connection for a request, which could have been sent at `ready` with an existing one.
    pub(super) fn connect(&mut self, start: &DueRequest, ready: Nanos, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.counters.begin(start.arrival.intended, now);
        let flight = Flight::new(start, ready, request);
        match self.open(start.user) {
            Ok(index) => {
                if let Some(slot) = self.connections.get(index) {
                    slot.push(flight);
                }
            }
            Err(error) => {
                self.end(&flight.failed(FailureKind::Connect, now, 0), start.user);
                self.counters.record_detail(FailureKind::Connect, || error.to_string());
                self.feed.pause_user(start.user, now + CONNECT_RETRY_DELAY);
            }
        }
    }

    pub(super) fn connected(&mut self, index: u32) {
        match self.connections.complete(index, self.clock.now()) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.fail(index, FailureKind::Connect, || error.to_string()),
        }
        let Some(slot) = self.connections.get(index) else { return };
        let tls = match (slot.origin, &self.users) {
            (Some((scenario, origin)), Some(users)) => users.tls(scenario, origin),
            _ => self.shared.tls.as_ref(),
        };
        let Some(tls) = tls else {
            return if slot.streams.is_some() { self.begin_streams(index) } else { self.opened(index) };
        };
        if let Err(error) = slot.stream.start_tls(tls) {
            return self.fail(index, FailureKind::Tls, || error.to_string());
        }
        slot.phase = ConnectionPhase::Handshaking;
        self.handshake(index);
    }

    pub(super) fn handshake(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        match slot.stream.handshake() {
            Ok(true) => match (slot.streams.is_some(), slot.stream.is_http2()) {
                (true, true) => self.begin_streams(index),
                (false, false) => self.opened(index),
                (true, false) => self.fall_back(index),
                (false, true) => {
                    let why = "the service has chosen HTTP/2 for a connection, after HTTP/1.1 for others";
                    self.fail(index, FailureKind::Protocol, || why.into());
                }
            },
            Ok(false) => {}
            Err(error) => self.fail(index, FailureKind::Tls, || error.to_string()),
        }
    }

    /// Opens the connection: its first request, which waited for it, is written.
    pub(super) fn opened(&mut self, index: u32) {
        let now = self.clock.now();
        self.connections.set_open(index);
        self.note_protocol(index);
        let Some(slot) = self.connections.get(index) else { return };
        if slot.flights.is_empty() {
            self.counters.preconnected(now - slot.opened);
            return self.connections.set_idle(index, now);
        }
        for flight in &mut slot.flights {
            flight.connect = now - slot.opened;
            // A late start of connecting is weir's own delay, its duration is not.
            flight.ready += flight.connect;
        }
        if slot.step.is_some() {
            return self.write(index, now);
        }
        self.fill_pipeline(index, now, now);
    }

    /// Notes by which versions of TLS and HTTP a connection goes.
    pub(super) fn note_protocol(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        let counts = self.counters.counts();
        if counts.tls.is_none() {
            counts.tls = slot.stream.tls_description();
        }
        if counts.http.is_none() {
            counts.http = Some(if slot.streams.is_some() { "HTTP/2" } else { "HTTP/1.1" }.to_owned());
        }
    }

    /// Closes the connection; its user continues on a new one. Requests on it have failed.
    pub(super) fn reconnect(&mut self, index: u32, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        if !slot.flights.is_empty() {
            return self.fail(index, FailureKind::Closed, || "the service closed with requests in the pipeline".into());
        }
        let user = slot.user;
        let capped = self.connections.is_exhausted();
        self.connections.close(index);
        self.refill_permits();
        if let Some(start) = self.feed.next_on(user, now) {
            let ready = self.counters.ready(start.arrival.intended, capped, now);
            self.connect(&start, ready, now);
        }
    }

    /// Fails the connection, and all requests on it.
    pub(super) fn fail(&mut self, index: u32, kind: FailureKind, detail: impl FnOnce() -> String) {
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        if slot.streams.is_some() {
            return self.fail_streams(index, kind, detail);
        }
        let (user, phase, written) = (slot.user, slot.phase, slot.written());
        let (mut step, observer) = (slot.step.take(), slot.observer.take());
        let flights = std::mem::take(&mut slot.flights);
        let capped = self.connections.is_exhausted();
        self.connections.close(index);
        // The end of an idle connection is not a failure.
        if flights.is_empty() {
            return;
        }
        let kind = self.fail_observed_on((observer, step.as_deref_mut()), kind, flights.front(), now);
        self.counters.record_detail(kind, detail);
        if let Some(step) = step {
            self.step_failed_on(user, &flights, kind, &step, (written, now));
            if let Some(users) = &mut self.users {
                users.exchanges.put(step);
            }
            return;
        }
        for (nth, flight) in flights.iter().enumerate() {
            let length = self.shared.plan.requests[flight.request as usize].bytes.len();
            self.end(&flight.failed(kind, now, written.bytes_of(nth, length)), user);
        }
        if phase == ConnectionPhase::Open {
            self.refill_permits();
            if let Some(start) = self.feed.next_on(user, now) {
                let ready = self.counters.ready(start.arrival.intended, capped, now);
                self.connect(&start, ready, now);
            }
        } else {
            self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
        }
    }
}
