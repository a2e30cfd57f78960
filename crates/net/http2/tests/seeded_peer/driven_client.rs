//! A client that is driven by bytes, and what holds for it at any time: at most one end for each request and no event
//! behind it, all bytes are used, memory within its bound, and an error stays.

use weir_http2::connection::{ClientConnection, ClientSettings, ConnectionError, Event, StreamId, StreamRequest};
use weir_http2::error_code::ErrorCode;

use super::allocation::live_bytes;

/// Maximum memory of a connection, in bytes: pending output, a field block, tables.
pub(crate) const MAX_CONNECTION_BYTES: i64 = 3 << 20;

/// Content of all bodies; longer ones are sent in parts.
static BODY_BYTES: [u8; 100_000] = [0; 100_000];

#[derive(Debug)]
struct DrivenRequest {
    stream: StreamId,
    is_over: bool,
}

/// A connection and its requests, whose keys count from 0. Stream of key k is 2 k + 1.
#[derive(Debug)]
pub(crate) struct DrivenClient {
    connection: ClientConnection,
    requests: Vec<DrivenRequest>,
    held_bytes: i64,
}

impl DrivenClient {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        let before = live_bytes();
        let connection = ClientConnection::new(settings);
        Self { connection, requests: Vec::new(), held_bytes: live_bytes() - before }
    }

    /// Calls the connection, and counts what it keeps.
    fn measured<T>(&mut self, call: impl FnOnce(&mut ClientConnection) -> T) -> T {
        let before = live_bytes();
        let result = call(&mut self.connection);
        self.held_bytes += live_bytes() - before;
        assert!(self.held_bytes <= MAX_CONNECTION_BYTES, "{} bytes held", self.held_bytes);
        result
    }

    pub(crate) fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    /// Memory that the connection holds, in bytes.
    pub(crate) fn held_bytes(&self) -> i64 {
        self.held_bytes
    }

    /// Number of requests so far.
    pub(crate) fn request_count(&self) -> u32 {
        self.requests.len() as u32
    }

    /// Whether a request has ended or was cancelled.
    pub(crate) fn is_over(&self, key: u32) -> bool {
        self.requests[key as usize].is_over
    }

    /// Opens a stream, if that is possible now, and returns its key.
    pub(crate) fn open(&mut self, head: &[u8], body_length: u64, wants_head: bool) -> Option<u32> {
        let key = self.request_count();
        let request = StreamRequest { head, body_length, key, template: key % 4, wants_head };
        let can_open = self.connection.can_open();
        let stream = self.measured(|connection| connection.open(&request)).ok();
        assert_eq!(stream.is_some(), can_open, "opened");
        let stream = stream?;
        assert_eq!(stream.number(), 2 * key + 1);
        self.requests.push(DrivenRequest { stream, is_over: false });
        Some(key)
    }

    /// Ends a request; true if it was open.
    pub(crate) fn cancel(&mut self, key: u32) -> bool {
        let request = &mut self.requests[key as usize];
        let was_open = !std::mem::replace(&mut request.is_over, true);
        let stream = request.stream;
        let totals = self.measured(|connection| connection.cancel(stream, ErrorCode::CANCEL));
        assert!(totals.is_none() || was_open, "a stream is open behind its end");
        was_open
    }

    pub(crate) fn ping(&mut self) {
        self.measured(|connection| connection.ping(*b"whatever"));
    }

    pub(crate) fn renew_budget(&mut self) {
        self.connection.renew_budget();
    }

    /// Sends as much of the bodies as windows and output permit.
    pub(crate) fn send_bodies(&mut self) {
        while let Some(body) = self.connection.next_body() {
            assert!(!self.is_over(body.key), "a body behind the end of its request");
            let sent = self.measured(|connection| connection.send_body(body.stream, &BODY_BYTES));
            assert!(sent > 0, "a body that cannot be sent");
        }
    }

    /// Appends the output to a buffer, as a socket that takes all.
    pub(crate) fn take_output(&mut self, taken: &mut Vec<u8>) {
        taken.extend_from_slice(self.connection.output());
        let length = self.connection.output().len();
        self.measured(|connection| connection.advance(length));
    }

    /// Passes bytes to the connection until they are used; `each` gets the events, and the text of the last head.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event<'_>, &[u8]),
    ) -> Result<(), ConnectionError> {
        let mut rest = bytes;
        loop {
            let step = match self.measured(|connection| connection.receive(rest)) {
                Ok(step) => step,
                Err(error) => {
                    assert_eq!(self.connection.receive(b""), Err(error), "the error of a connection stays");
                    assert_eq!(self.connection.failure(), Some(error));
                    assert!(!self.connection.can_open() && self.connection.is_spent());
                    return Err(error);
                }
            };
            rest = &rest[step.used..];
            let Some(event) = step.event else {
                assert!(rest.is_empty(), "bytes left without an event");
                return Ok(());
            };
            let key = match event {
                Event::Head { key, .. } | Event::Data { key, .. } => Some((key, false)),
                Event::Ended { key, .. } | Event::Reset { key, .. } => Some((key, true)),
                Event::Settings | Event::PingAck { .. } | Event::GoAway { .. } => None,
            };
            if let Some((key, is_end)) = key {
                let was_over = std::mem::replace(&mut self.requests[key as usize].is_over, is_end);
                assert!(!was_over, "{event:?} behind the end");
            }
            each(event, self.connection.head_text());
        }
    }
}
