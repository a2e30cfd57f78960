//! Connections of WebSocket that users of a program hold: what the program does with them.

use std::collections::{HashMap, VecDeque};

use super::super::{MAX_STARTS, Worker};
use super::UserRequests;
use crate::connection::{ConnectionPhase, LoadConnection};
use crate::flight::{Flight, ReadTimes};
use crate::program::{KeptParts, SocketCommand, SocketEnd, SocketEvent, SocketId, SocketMessage, SocketOpening};
use crate::steps::{UserAction, UserExchange};
use crate::websocket::{AwaitedReply, UserSocket};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;
use weir_machine::readiness_event::ReadinessEvent;
use weir_measure::websocket_counts::WebSocketCounts;
use weir_measure::websocket_series::WebSocketPoint;
use weir_websocket::close_code::CloseCode;
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::handshake::HandshakeKey;

/// Time that services have for their close frames.
pub(super) const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(1);

/// Connections of WebSocket of a thread.
#[derive(Debug)]
pub(super) struct UserSockets {
    /// Keys of the connections, by user and socket.
    places: HashMap<(u32, SocketId), u64>,
    /// Those that wait to be allowed to connect.
    opening: VecDeque<(u32, Box<SocketOpening>)>,
    pub(super) writer: FrameWriter,
    seed: u64,
    /// Number of upgrades so far, from a salt of the thread on.
    upgrades: u64,
    /// Connections that are open, and those that were opened since the last interval.
    pub(super) held: u64,
    pub(super) newly_upgraded: u64,
    /// Next action of the user to whom the last message came.
    pub(super) next: Option<UserAction>,
    is_used: bool,
}

impl UserSockets {
    /// Those of thread number `index`.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        let upgrades = index << 40;
        Self {
            places: HashMap::new(),
            opening: VecDeque::new(),
            writer: FrameWriter::new(Endpoint::Client, seed ^ upgrades.rotate_left(20)),
            seed,
            upgrades,
            held: 0,
            newly_upgraded: 0,
            next: None,
            is_used: false,
        }
    }

    /// Whether connections wait to be made.
    pub(super) fn is_opening(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Gives up connections that are not begun.
    pub(super) fn cut(&mut self) {
        self.opening.clear();
    }

    /// Forgets a connection that has ended.
    pub(super) fn forget(&mut self, user: u32, socket: SocketId, was_open: bool) {
        self.places.remove(&(user, socket));
        self.held = self.held.saturating_sub(u64::from(was_open));
    }

    /// Connections in the interval that ends; none if there was never one.
    pub(super) fn take_point(&mut self) -> Option<WebSocketPoint> {
        let upgraded = std::mem::take(&mut self.newly_upgraded);
        self.is_used.then_some(WebSocketPoint { held: self.held, upgraded })
    }

    /// Key of the next upgrade.
    fn next_key(&mut self) -> HandshakeKey {
        let mut random = SeededRng::new(self.seed, (72 << 48) ^ self.upgrades);
        self.upgrades += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&random.bits().to_le_bytes());
        HandshakeKey::of(bytes)
    }
}

impl Worker<'_, UserRequests<'_>> {
    pub(super) fn socket_counts(&mut self) -> &mut WebSocketCounts {
        self.results.counters.counts().websocket.get_or_insert_default()
    }

    /// Executes the commands that calls of the program have given.
    #[inline]
    pub(super) fn run_socket_commands(&mut self, now: Nanos) {
        for (user, command) in self.flow.table.flow.take_socket_commands() {
            self.run_socket_command(user, command, now);
        }
    }

    fn run_socket_command(&mut self, user: u32, command: SocketCommand, now: Nanos) {
        match command {
            // Not at once: what follows from a failure may be the same command.
            SocketCommand::Open(opening) => self.flow.sockets.opening.push_back((user, opening)),
            SocketCommand::Send(message) => self.send_on_socket(user, &message, now),
            SocketCommand::Ping { socket, data } => {
                let Some((index, _)) = self.socket_of(user, socket) else { return };
                self.socket_counts().pings_sent += 1;
                self.write_on_socket(index, Opcode::Ping, &data);
            }
            SocketCommand::FailReply { socket, kind } => {
                if let Some((_, socket)) = self.socket_of(user, socket)
                    && let Some(awaited) = socket.awaited.take()
                {
                    self.record_reply(user, &awaited, Err(kind), &[], ReadTimes { at: now, now });
                }
            }
            SocketCommand::Close { socket, code, reason } => self.close_socket(user, socket, (code, &reason), now),
            SocketCommand::Call(command) => self.run_call_command(user, &command, now),
        }
    }

    /// Makes connections that wait to be made; a limited number at a time.
    pub(super) fn open_sockets(&mut self, now: Nanos) {
        for _ in 0..MAX_STARTS {
            if !self.flow.sockets.is_opening() || !self.connections.can_open() {
                return;
            }
            let Some((user, opening)) = self.flow.sockets.opening.pop_front() else { return };
            self.open_socket(user, *opening, now);
        }
    }

    fn open_socket(&mut self, user: u32, opening: SocketOpening, now: Nanos) {
        let (send, id) = (opening.send, opening.socket);
        let origin = (self.flow.table.scenario_of(user), send.origin);
        self.flow.sockets.is_used = true;
        self.results.counters.begin(send.intended, now);
        let flight = Flight::of_step(self.flow.table.iteration_of(user), send.intended, send.intended, 0);
        let mut step = self.flow.table.exchanges.take();
        step.request.written.extend_from_slice(&opening.request);
        let keeps = if self.flow.trace.is_some() { KeptParts::Head } else { KeptParts::Nothing };
        step.prepare((send.step, send.origin), false, keeps, send.timeout);
        let index = match self.connect_origin(user, Some(origin)) {
            Ok(index) => index,
            Err(reason) => {
                self.results.counters.record_detail(FailureKind::Connect, || reason);
                self.socket_counts().failed += 1;
                let failed = flight.failed(FailureKind::Connect, now, 0);
                self.record_socket_step(user, send.step, &failed, Some(&step));
                let end = SocketEnd::Failed { kind: FailureKind::Connect };
                return self.tell_of_socket(user, &SocketEvent::Ended { socket: id, end }, now, now);
            }
        };
        step.socket = Some(Box::new(UserSocket::new(opening)));
        let key = self.connections.key(index);
        let Some(slot) = self.connections.get(index) else { return };
        slot.exchange = Some(step);
        // It stays as long as the connection, whose failure is then one of its own.
        slot.flights.push_back(flight);
        self.flow.sockets.places.insert((user, id), key);
    }

    /// Sends the request of the upgrade on a connection that has just been made.
    pub(super) fn upgrade_socket(&mut self, index: u32) {
        let key = self.flow.sockets.next_key();
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        slot.phase = ConnectionPhase::AwaitingUpgrade;
        if let Some(flight) = slot.flights.front_mut() {
            flight.sent = now;
        }
        if let Some(socket) = socket_in(slot) {
            socket.begin_upgrade(key);
        }
        self.write_socket(index);
    }

    /// A socket of a user, with the index of its connection, if it has not ended.
    fn socket_of(&mut self, user: u32, socket: SocketId) -> Option<(u32, &mut UserSocket)> {
        let key = *self.flow.sockets.places.get(&(user, socket))?;
        let event = ReadinessEvent { key, readable: false, writable: false, hung_up: false };
        let index = self.connections.owner(&event)?;
        Some((index, socket_in(self.connections.get(index)?)?))
    }

    fn send_on_socket(&mut self, user: u32, message: &SocketMessage, now: Nanos) {
        let Some((index, socket)) = self.socket_of(user, message.socket).filter(|(_, socket)| socket.is_open()) else {
            return;
        };
        if socket.is_overfull() {
            return self
                .fail(index, FailureKind::Reset, &|| "the service reads nothing: 16 MiB wait to be written".into());
        }
        let opcode = if message.is_text { Opcode::Text } else { Opcode::Binary };
        self.socket_counts().messages_sent += 1;
        self.write_on_socket(index, opcode, &message.data);
        let is_shown = self.flow.trace.is_some();
        let Some((_, socket)) = self.socket_of(user, message.socket) else { return };
        let bytes = frame_bytes(message.data.len());
        if let Some(step) = message.step {
            let shown = if is_shown { message.data.clone() } else { Vec::new() };
            socket.awaited = Some(AwaitedReply { step, intended: message.intended, sent: now, bytes, shown });
        }
    }

    /// Writes a whole frame on a connection.
    pub(super) fn write_on_socket(&mut self, index: u32, opcode: Opcode, data: &[u8]) {
        let Self { flow, connections, .. } = self;
        let Some(socket) = connections.get(index).and_then(socket_in).filter(|socket| socket.is_open()) else { return };
        flow.sockets.writer.write(opcode, data, &mut socket.framed.out);
        self.write_socket(index);
    }

    fn close_socket(&mut self, user: u32, id: SocketId, (code, reason): (u16, &str), now: Nanos) {
        self.flow.sockets.opening.retain(|(of, opening)| (*of, opening.socket) != (user, id));
        let Some((index, _)) = self.socket_of(user, id) else { return };
        let Self { flow, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return };
        if slot.phase != ConnectionPhase::Open {
            // Nothing is agreed on that could be closed.
            flow.sockets.forget(user, id, false);
            connections.close(index);
            return self.results.counters.give_up(1, now);
        }
        let Some(socket) = socket_in(slot) else { return };
        socket.awaited = None;
        if !socket.framed.close.may_send() {
            return;
        }
        let code = Some(CloseCode(code)).filter(|code| *code != CloseCode::ABSENT);
        socket.framed.close.sent(code);
        socket.closing_since = Some(now);
        flow.sockets.writer.write_close(code, reason, &mut socket.framed.out);
        self.write_socket(index);
    }

    /// Closes all connections at the end of the load, and waits for the services' close frames for a short time.
    pub(super) fn close_sockets(&mut self, ready: &mut Vec<ReadinessEvent>) {
        self.flow.sockets.cut();
        if self.flow.sockets.places.is_empty() {
            return;
        }
        self.flow.is_stopping = true;
        let begun = self.clock.now();
        let all: Vec<(u32, SocketId)> = self.flow.sockets.places.keys().copied().collect();
        for (user, socket) in all {
            self.close_socket(user, socket, (CloseCode::NORMAL.0, ""), begun);
        }
        let is_due =
            |worker: &Self| !worker.flow.sockets.places.is_empty() && worker.clock.now() - begun < CLOSE_TIMEOUT;
        while is_due(self) && !self.flow.is_stopped && !self.shared.control.is_stopped() {
            self.turn(ready);
        }
    }
}

/// Length of the frame of a message of this length, in bytes.
fn frame_bytes(length: usize) -> u64 {
    let head = match length {
        0..=125 => 6,
        126..=65535 => 8,
        _ => 14,
    };
    length as u64 + head
}

/// Socket of a connection that is one.
pub(super) fn socket_in(connection: &mut LoadConnection<UserExchange>) -> Option<&mut UserSocket> {
    connection.exchange.as_mut()?.socket.as_deref_mut()
}
