//! Connections of WebSocket that users of a program hold: what comes on them, and how they end.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use super::super::Worker;
use super::UserRequests;
use super::socket_records::UPGRADED;
use super::sockets::{CLOSE_TIMEOUT, socket_in};
use crate::connection::ConnectionPhase;
use crate::flight::{Flight, ReadTimes, ReceivedBytes};
use crate::program::{SocketEnd, SocketEvent};
use crate::steps::StepExchange;
use crate::websocket::UserSocket;
use crate::worker::readiness::failure_of;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_net::wire::{HeadNotes, ResponseObserver};
use weir_websocket::close_code::CloseCode;
use weir_websocket::close_handshake::CloseStep;
use weir_websocket::frame::Opcode;
use weir_websocket::handshake::HandshakeError;
use weir_websocket::message_reader::Received;
use weir_websocket::violation::Violation;

/// Consequence of a piece of received bytes, without its content.
enum Followed {
    /// More bytes are needed.
    Nothing,
    /// The same connection goes on.
    Again,
    /// A close frame: its code, and why.
    Close(Option<CloseCode>, String),
    Violation(Violation),
}

impl Worker<'_, UserRequests<'_>> {
    /// Writes what a connection has to write, as far as its socket accepts it.
    pub(super) fn write_socket(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        let Some(socket) = slot.exchange.as_mut().and_then(|step| step.socket.as_deref_mut()) else { return };
        let written = loop {
            if socket.framed.pending().is_empty() {
                break slot.stream.flush();
            }
            match slot.stream.write(&[IoSlice::new(socket.framed.pending())]) {
                Ok(bytes) => {
                    socket.framed.advance(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break slot.stream.flush(),
                Err(error) => break Err(error),
            }
        };
        // A peer that has closed may still have sent why: reading shows it.
        if let Err(error) = written
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, failure_of(&error), &|| error.to_string());
        }
    }

    /// Takes bytes of a connection, or of the response to its upgrade; true if it still exists.
    pub(super) fn socket_received(&mut self, index: u32, bytes: &[u8], times: ReadTimes) -> bool {
        let key = self.connections.key(index);
        let mut rest = bytes;
        loop {
            // What the program does next needs the others.
            let Some(slot) = self.connections.get(index) else { return false };
            let (user, phase) = (slot.user, slot.phase);
            let Some(mut step) = slot.exchange.take() else { return false };
            let Some(mut socket) = step.socket.take() else { return false };
            if phase != ConnectionPhase::Open {
                step.socket = Some(socket);
                slot.exchange = Some(step);
                match self.take_socket_upgrade(index, &mut rest, times) {
                    true => continue,
                    false => return self.connections.get(index).is_some(),
                }
            }
            let followed = self.take_socket_message(user, &mut socket, &mut rest, times);
            // A program whose call has ended the connection has ended this socket as well.
            if self.connections.key(index) != key {
                return false;
            }
            let Some(slot) = self.connections.get(index) else { return false };
            step.socket = Some(socket);
            slot.exchange = Some(step);
            match followed {
                Followed::Nothing => {
                    self.write_socket(index);
                    return self.connections.get(index).is_some();
                }
                Followed::Again => {
                    let action = self.flow.sockets.next.take();
                    self.act(user, action, times.now);
                    if self.connections.key(index) != key {
                        return false;
                    }
                }
                Followed::Close(code, reason) => {
                    self.socket_close_received(index, code, &reason);
                    return false;
                }
                Followed::Violation(violation) => {
                    self.socket_violated(index, &violation);
                    return false;
                }
            }
        }
    }

    /// Takes the next message; what its user does next is in `next`.
    fn take_socket_message(
        &mut self,
        user: u32,
        socket: &mut UserSocket,
        rest: &mut &[u8],
        ReadTimes { at, now }: ReadTimes,
    ) -> Followed {
        let UserSocket { id, framed, awaited, closing_since, .. } = socket;
        let has_room = framed.has_room() && !framed.close.has_begun();
        let received = match framed.reader.next_message(rest) {
            Ok(None) => return Followed::Nothing,
            Ok(Some(received)) => received,
            Err(violation) => return Followed::Violation(violation),
        };
        let event = match received {
            Received::Message(message) => {
                self.socket_counts().messages_received += 1;
                if let Some(reply) = awaited.take() {
                    let bytes = ReceivedBytes { wire: message.wire_bytes, body: message.data.len() as u64 };
                    self.record_reply(user, &reply, Ok(bytes), message.data, ReadTimes { at, now });
                } else {
                    let counts = self.results.counters.counts();
                    (counts.bytes_in, counts.body_in) =
                        (counts.bytes_in + message.wire_bytes, counts.body_in + message.data.len() as u64);
                    self.results.counters.record_arrived(message.wire_bytes);
                }
                SocketEvent::Message { socket: *id, is_text: message.is_text, data: message.data }
            }
            Received::Ping(payload) => {
                // A peer that pings and reads nothing gets none.
                if has_room {
                    self.flow.sockets.writer.write(Opcode::Pong, payload, &mut framed.out);
                }
                self.socket_counts().pings += 1;
                SocketEvent::Ping { socket: *id }
            }
            Received::Pong(data) => SocketEvent::Pong { socket: *id, data },
            Received::Close(code, reason) => return Followed::Close(code, reason.to_owned()),
        };
        // A user that closes gets nothing more but the end.
        if closing_since.is_none() && !self.has_cut_users(now) {
            let action = self.ask(user, |users, unix_s| users.socket_event(user, &event, at, unix_s));
            self.flow.sockets.next = Some(action);
        }
        Followed::Again
    }

    /// Tells a user of something that has happened to its socket, and does what it does next.
    pub(super) fn tell_of_socket(&mut self, user: u32, event: &SocketEvent<'_>, at: Nanos, now: Nanos) {
        if self.has_cut_users(now) {
            return;
        }
        let action = self.ask(user, |users, unix_s| users.socket_event(user, event, at, unix_s));
        self.act(user, Some(action), now);
    }

    /// Takes bytes of the response to an upgrade; whether the connection is open.
    fn take_socket_upgrade(&mut self, index: u32, rest: &mut &[u8], times: ReadTimes) -> bool {
        let ReadTimes { at, now } = times;
        let Some(slot) = self.connections.get(index) else { return false };
        let user = slot.user;
        let Some(socket) = socket_in(slot) else { return false };
        let id = socket.id;
        let Some((response, key)) = &mut socket.upgrade else { return false };
        let result = match response.take(rest, &socket.offer, key) {
            Ok(None) => return false,
            Ok(Some(result)) => result,
            Err(why) => {
                self.fail(index, FailureKind::Protocol, &|| why.clone());
                return false;
            }
        };
        let head = response.head().to_vec();
        socket.upgrade = None;
        if let Some(step) = slot.exchange.as_mut().filter(|step| step.is_kept) {
            ResponseObserver::head(step.as_mut(), &head, HeadNotes::default());
        }
        self.results.counters.counts().server.get_or_insert(result.server);
        match result.agreement {
            Ok(agreement) => {
                self.socket_counts().upgraded += 1;
                self.flow.sockets.newly_upgraded += 1;
                self.flow.sockets.held += 1;
                self.set_opened(index);
                self.record_upgrade(index, UPGRADED, result.head_bytes as u64, times);
                self.cut_opening(user, now);
                let subprotocol = agreement.subprotocol.as_deref();
                self.tell_of_socket(user, &SocketEvent::Opened { socket: id, subprotocol, head: &head }, at, now);
                self.connections.get(index).is_some()
            }
            Err(HandshakeError::Status(status)) => {
                self.socket_counts().rejected.record(status);
                self.record_upgrade(index, status, result.head_bytes as u64, times);
                self.cut_opening(user, now);
                self.flow.sockets.forget(user, id, false);
                self.connections.close(index);
                let end = SocketEnd::Rejected { status };
                self.tell_of_socket(user, &SocketEvent::Ended { socket: id, end }, at, now);
                false
            }
            Err(error) => {
                self.fail(index, FailureKind::Protocol, &|| error.to_string());
                false
            }
        }
    }

    /// Takes a close frame of the service, and replies to it.
    fn socket_close_received(&mut self, index: u32, code: Option<CloseCode>, reason: &str) {
        let now = self.clock.now();
        let Self { flow, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return };
        let user = slot.user;
        let Some(socket) = socket_in(slot) else { return };
        let step = socket.framed.close.receive(code);
        if let CloseStep::Reply(reply) = step {
            flow.sockets.writer.write_close(reply, "", &mut socket.framed.out);
        }
        let (id, code, awaited) = (socket.id, socket.framed.close.peer_code().0, socket.awaited.take());
        if matches!(step, CloseStep::Reply(_)) {
            self.write_socket(index);
            self.socket_counts().closes.record(code);
        }
        self.flow.sockets.forget(user, id, true);
        self.connections.close(index);
        if let Some(awaited) = awaited {
            let why = || format!("the service closed the connection: {code}");
            self.results.counters.record_detail(FailureKind::Closed, why);
            self.record_reply(user, &awaited, Err(FailureKind::Closed), &[], ReadTimes { at: now, now });
        }
        self.tell_of_socket(
            user,
            &SocketEvent::Ended { socket: id, end: SocketEnd::Closed { code, reason } },
            now,
            now,
        );
    }

    /// Takes the end of a connection by the service.
    pub(super) fn socket_ended(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        let is_open = slot.phase == ConnectionPhase::Open;
        let Some(socket) = socket_in(slot) else { return };
        if is_open && !socket.framed.close.has_begun() {
            self.socket_counts().closes.record(CloseCode::ABNORMAL.0);
        }
        self.fail(index, FailureKind::Closed, &|| match is_open {
            true => "the connection ended without a close frame".into(),
            false => "the connection was closed before it was open".into(),
        });
    }

    /// Fails a connection whose peer has broken the protocol.
    fn socket_violated(&mut self, index: u32, violation: &Violation) {
        self.socket_counts().violations += 1;
        let Self { flow, connections, .. } = self;
        if let Some(socket) = connections.get(index).and_then(socket_in) {
            let reason = violation.to_string();
            flow.sockets.writer.write_close(Some(violation.close_code()), &reason, &mut socket.framed.out);
            self.write_socket(index);
        }
        self.fail(index, FailureKind::Protocol, &|| violation.to_string());
    }

    /// Takes a connection that has failed.
    pub(super) fn socket_failed(
        &mut self,
        user: u32,
        phase: ConnectionPhase,
        flights: &VecDeque<Flight>,
        mut step: Box<StepExchange>,
        kind: FailureKind,
        now: Nanos,
    ) {
        let Some(socket) = step.socket.take() else { return };
        let is_open = phase == ConnectionPhase::Open;
        self.flow.sockets.forget(user, socket.id, is_open);
        if is_open {
            if let Some(awaited) = &socket.awaited {
                self.record_reply(user, awaited, Err(kind), &[], ReadTimes { at: now, now });
            }
        } else if let Some(flight) = flights.front() {
            self.socket_counts().failed += 1;
            self.record_socket_step(user, step.step, &flight.failed(kind, now, 0), Some(&step));
            self.cut_opening(user, now);
        }
        self.flow.table.exchanges.put(step);
        let end = match socket.closing_since {
            // Its user has closed it.
            Some(_) => SocketEnd::Closed { code: CloseCode::ABNORMAL.0, reason: "" },
            None => SocketEnd::Failed { kind },
        };
        self.tell_of_socket(user, &SocketEvent::Ended { socket: socket.id, end }, now, now);
    }

    /// Ends a connection whose service leaves a close frame without a reply. Whether its timeout is its own: what its
    /// user waits for has one.
    pub(super) fn expire_socket(&mut self, index: u32, now: Nanos) -> bool {
        let Some(slot) = self.connections.get(index) else { return true };
        if slot.phase != ConnectionPhase::Open {
            return false;
        }
        let Some(socket) = socket_in(slot) else { return true };
        if socket.closing_since.is_some_and(|since| now - since > CLOSE_TIMEOUT) {
            self.fail(index, FailureKind::Timeout, &|| "no reply to a close frame".into());
        }
        true
    }
}
