//! WebSockets of a user: what is to be done with them, and what its script has not taken.

use std::collections::VecDeque;

use weir_base::Nanos;
use weir_load::program::{SocketCommand, SocketEnd, SocketEvent, SocketId, SocketMessage};

use super::exchange::HttpRequest;

/// Maximum number of open sockets of a user.
pub(crate) const MAX_SOCKETS: usize = 32;
/// Maximum size of the messages that a script has not taken, in bytes; a single one may be larger.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// Size of a message without its content, in bytes.
const MESSAGE_BYTES: usize = 64;
/// Close code of one for messages that the script does not take.
const POLICY: u16 = 1008;

/// What is done with a socket once the script waits.
#[derive(Debug)]
pub(crate) enum SocketOrder {
    /// It is opened by this request, with these subprotocols.
    Open(SocketId, Box<HttpRequest>, Vec<String>),
    /// Something is sent on it, or it is closed.
    Command(SocketCommand),
}

/// What a script takes of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketReport {
    /// It is open: its subprotocol, and the head of the response.
    Opened(String, Vec<u8>),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A ping.
    Ping,
    /// A pong.
    Pong,
    /// Its end.
    Ended(SocketFate),
}

/// How a socket has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketFate {
    /// Close code.
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// Status of the upgrade; 0 without one.
    pub(crate) status: u16,
    /// Failure; empty after a close.
    pub(crate) error: String,
}

impl SocketReport {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => MESSAGE_BYTES + text.len(),
            Self::Bytes(bytes) => MESSAGE_BYTES + bytes.len(),
            _ => MESSAGE_BYTES,
        }
    }
}

/// A socket that has not ended.
#[derive(Debug)]
pub(crate) struct ScriptSocket {
    pub(crate) id: SocketId,
    /// Tags of its samples: names and values in turn.
    pub(crate) tags: Vec<(String, String)>,
    /// Time of the order to open it.
    pub(crate) begun: Nanos,
    /// Time since when it is open.
    pub(crate) opened: Option<Nanos>,
    /// Times of pings without a pong.
    pub(crate) pings: VecDeque<Nanos>,
}

/// WebSockets of a user.
#[derive(Debug, Default)]
pub(crate) struct ScriptSockets {
    last_id: u32,
    pub(crate) outbox: VecDeque<SocketOrder>,
    sockets: Vec<ScriptSocket>,
    reports: VecDeque<(SocketId, SocketReport)>,
    waiting_bytes: usize,
    has_news: bool,
}

impl ScriptSockets {
    /// Adds a socket that is opened by a request; `None` if there are too many.
    pub(crate) fn open(
        &mut self,
        request: HttpRequest,
        subprotocols: Vec<String>,
        tags: Vec<(String, String)>,
        now: Nanos,
    ) -> Option<SocketId> {
        if self.sockets.len() >= MAX_SOCKETS {
            return None;
        }
        self.last_id = self.last_id.wrapping_add(1);
        let id = SocketId(self.last_id);
        self.sockets.push(ScriptSocket { id, tags, begun: now, opened: None, pings: VecDeque::new() });
        self.outbox.push_back(SocketOrder::Open(id, Box::new(request), subprotocols));
        Some(id)
    }

    /// A socket that is open.
    pub(crate) fn opened(&mut self, id: SocketId) -> Option<&mut ScriptSocket> {
        self.sockets.iter_mut().find(|socket| socket.id == id && socket.opened.is_some())
    }

    /// A socket that has not ended.
    pub(crate) fn socket(&mut self, id: SocketId) -> Option<&mut ScriptSocket> {
        self.sockets.iter_mut().find(|socket| socket.id == id)
    }

    /// Adds something that has happened to a socket of the user; false if its messages wait for the script in vain.
    pub(crate) fn add(&mut self, id: SocketId, event: &SocketEvent<'_>, now: Nanos) -> bool {
        let report = report_of(event);
        match &report {
            SocketReport::Opened(..) => {
                if let Some(socket) = self.socket(id) {
                    socket.opened = Some(now);
                }
            }
            SocketReport::Ended(_) => self.remove(id),
            SocketReport::Text(_) | SocketReport::Bytes(_) | SocketReport::Ping | SocketReport::Pong
                if self.waiting_bytes > MAX_WAITING_BYTES =>
            {
                return false;
            }
            _ => {}
        }
        self.push(id, report);
        true
    }

    /// Closes a socket whose messages the script does not take.
    pub(crate) fn fail(&mut self, id: SocketId) {
        self.remove(id);
        self.outbox.push_back(close(id, POLICY));
        let error = "more than 16 MiB of messages that the script does not take".to_owned();
        self.push(id, SocketReport::Ended(SocketFate { code: POLICY, error, ..SocketFate::default() }));
    }

    /// Ends a socket that was not opened, or is not to be.
    pub(crate) fn end(&mut self, id: SocketId, error: String) {
        self.remove(id);
        self.push(id, SocketReport::Ended(SocketFate { code: 1006, error, ..SocketFate::default() }));
    }

    fn push(&mut self, id: SocketId, report: SocketReport) {
        self.waiting_bytes += report.bytes();
        self.reports.push_back((id, report));
        self.has_news = true;
    }

    fn remove(&mut self, id: SocketId) {
        self.sockets.retain(|socket| socket.id != id);
    }

    /// Takes what has happened to a socket, or to any.
    pub(crate) fn take(&mut self, of: Option<SocketId>) -> Option<(SocketId, SocketReport)> {
        let at = self.reports.iter().position(|(id, _)| of.is_none_or(|of| of == *id))?;
        let taken = self.reports.remove(at)?;
        self.waiting_bytes -= taken.1.bytes();
        Some(taken)
    }

    /// Sends a message; false if the socket is not open.
    pub(crate) fn send(&mut self, id: SocketId, is_text: bool, data: Vec<u8>, now: Nanos) -> bool {
        let is_open = self.opened(id).is_some();
        if is_open {
            let message = SocketMessage { socket: id, is_text, data, intended: now, step: None };
            self.outbox.push_back(SocketOrder::Command(SocketCommand::Send(message)));
        }
        is_open
    }

    /// Sends a ping; false if the socket is not open.
    pub(crate) fn ping(&mut self, id: SocketId, now: Nanos) -> bool {
        let Some(socket) = self.opened(id) else { return false };
        socket.pings.push_back(now);
        let command = SocketCommand::Ping { socket: id, data: Vec::new() };
        self.outbox.push_back(SocketOrder::Command(command));
        true
    }

    /// Closes a socket, whose end follows.
    pub(crate) fn close(&mut self, id: SocketId, code: u16, reason: String) {
        if self.socket(id).is_some() {
            self.outbox.push_back(SocketOrder::Command(SocketCommand::Close { socket: id, code, reason }));
        }
    }

    /// Forgets a socket, with what has happened to it.
    pub(crate) fn forget(&mut self, id: SocketId) {
        self.remove(id);
        while self.take(Some(id)).is_some() {}
    }

    /// Bytes of messages that are not given to the connection yet.
    pub(crate) fn buffered(&self, id: SocketId) -> usize {
        let sizes = self.outbox.iter().map(|order| match order {
            SocketOrder::Command(SocketCommand::Send(message)) if message.socket == id => message.data.len(),
            _ => 0,
        });
        sizes.sum()
    }

    /// Whether a socket has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Sockets that have not ended.
    pub(crate) fn ids(&self) -> Vec<SocketId> {
        self.sockets.iter().map(|socket| socket.id).collect()
    }

    /// Whether something has happened that the script has not taken.
    pub(crate) fn has_event(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Whether something has happened since the script's last wait [has ended](Self::end_wait).
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Ends a wait: the script looks at what has happened.
    pub(crate) fn end_wait(&mut self) {
        self.has_news = false;
    }

    /// Forgets the sockets of an iteration; numbers go on.
    pub(crate) fn clear(&mut self) {
        *self = Self { last_id: self.last_id, ..Self::default() };
    }
}

/// Order to close a socket.
pub(crate) fn close(socket: SocketId, code: u16) -> SocketOrder {
    SocketOrder::Command(SocketCommand::Close { socket, code, reason: String::new() })
}

fn report_of(event: &SocketEvent<'_>) -> SocketReport {
    match event {
        SocketEvent::Opened { subprotocol, head, .. } => {
            SocketReport::Opened(subprotocol.unwrap_or_default().to_owned(), head.to_vec())
        }
        SocketEvent::Message { is_text: true, data, .. } => {
            SocketReport::Text(String::from_utf8_lossy(data).into_owned())
        }
        SocketEvent::Message { data, .. } => SocketReport::Bytes(data.to_vec()),
        SocketEvent::Ping { .. } => SocketReport::Ping,
        SocketEvent::Pong { .. } => SocketReport::Pong,
        SocketEvent::Ended { end, .. } => SocketReport::Ended(match end {
            SocketEnd::Closed { code, reason } => {
                SocketFate { code: *code, reason: (*reason).to_owned(), status: 101, error: String::new() }
            }
            SocketEnd::Rejected { status } => SocketFate {
                code: 1006,
                reason: String::new(),
                status: *status,
                error: format!("the WebSocket was rejected: status {status} in place of 101"),
            },
            SocketEnd::Failed { kind } => {
                SocketFate { code: 1006, error: kind.name().to_owned(), ..SocketFate::default() }
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_the_script_does_not_take_are_bounded() {
        let mut sockets = ScriptSockets::default();
        let (id, data) = (SocketId(1), vec![b'x'; 1 << 20]);
        let message = SocketEvent::Message { socket: id, is_text: false, data: &data };
        let taken = (0..100).take_while(|_| sockets.add(id, &message, Nanos::ZERO)).count();
        assert_eq!(taken, 16);
        sockets.fail(id);
        assert!(matches!(sockets.outbox.pop_front(), Some(SocketOrder::Command(SocketCommand::Close { .. }))));
        let mut last = None;
        while let Some((_, report)) = sockets.take(Some(id)) {
            last = Some(report);
        }
        assert!(matches!(last, Some(SocketReport::Ended(fate)) if fate.error.contains("16 MiB")));
        assert!(sockets.add(id, &message, Nanos::ZERO), "there is room again");
    }
}
