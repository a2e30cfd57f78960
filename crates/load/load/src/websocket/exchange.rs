//! One connection: its upgrade, its frames, and its messages in flight.

use std::collections::VecDeque;

use super::message_plan::MAX_MESSAGE_BYTES;
use super::upgrade_response::UpgradeResponse;
use crate::event_streams::StreamObserver;
use crate::exchange::FlowExchange;
use weir_base::Nanos;
use weir_measure::stream_timeline::StreamTimeline;
use weir_net::wire::WireRequest;
use weir_websocket::close_handshake::CloseHandshake;
use weir_websocket::frame::Endpoint;
use weir_websocket::handshake::HandshakeKey;
use weir_websocket::message_reader::WebSocketReader;

/// What a connection has besides the times of its messages, which are its flights.
#[derive(Debug)]
pub(crate) struct WebSocketExchange {
    /// What comes before its messages, until it is over.
    pub(crate) opening: Option<Box<ConnectionOpening>>,
    pub(crate) reader: WebSocketReader,
    /// Whether compression was agreed on.
    pub(crate) is_deflated: bool,
    pub(crate) close: CloseHandshake,
    /// Messages in flight that are framed, in the order of the flights.
    pub(crate) sent: VecDeque<SentMessage>,
    /// Number of these, from the back, of which no byte is written.
    pub(crate) unsent: usize,
    /// Bytes to write, ...
    pub(crate) out: Vec<u8>,
    /// ... the written part of them, ...
    pub(crate) offset: usize,
    /// ... and all that were written before them.
    pub(crate) written: u64,
    /// Arrival of the first byte of a message that is not whole.
    pub(crate) first_byte: Option<Nanos>,
    /// Whether it waits for messages of any user.
    pub(crate) is_ready: bool,
    /// Whether a message has had a reply.
    pub(crate) has_replied: bool,
    /// Time of the next ping, and the send of the last one that has no pong.
    pub(crate) next_ping: Nanos,
    pub(crate) pinged_at: Option<Nanos>,
    /// What it has received, if it only listens.
    pub(crate) heard: Option<Box<HeardMessages>>,
    /// Whether its socket accepts no more bytes.
    pub(crate) is_blocked: bool,
}

/// What a connection that only listens has received.
#[derive(Debug)]
pub(crate) struct HeardMessages {
    pub(crate) timeline: StreamTimeline,
    /// Bytes of the frames of its messages, ...
    pub(crate) wire: u64,
    /// ... and of their content.
    pub(crate) body: u64,
}

/// What comes before the messages of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionOpening {
    /// The upgrade, and its key; none once it is over.
    pub(crate) upgrade: Option<(UpgradeResponse, HandshakeKey)>,
    /// Number of first messages that were sent, and of the messages that are awaited after the last one.
    pub(crate) first_sent: usize,
    pub(crate) awaited: u64,
}

/// Message in flight, as it was framed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentMessage {
    /// Position of its first byte among all of the connection.
    pub(crate) start: u64,
    /// Key that its reply repeats; 0 if replies come in order.
    pub(crate) key: u64,
    /// Length of its frame, in bytes.
    pub(crate) bytes: u32,
}

/// Capacity of the bytes to write that a connection keeps, in bytes.
const MAX_KEPT_BYTES: usize = 4 * 1024;

/// Bytes that wait to be written above which no message is framed, and no pong.
const MAX_QUEUED_BYTES: usize = 64 * 1024;

impl Default for WebSocketExchange {
    fn default() -> Self {
        Self {
            opening: None,
            reader: WebSocketReader::new(Endpoint::Client, MAX_MESSAGE_BYTES),
            is_deflated: false,
            close: CloseHandshake::default(),
            sent: VecDeque::new(),
            unsent: 0,
            out: Vec::new(),
            offset: 0,
            written: 0,
            first_byte: None,
            is_ready: false,
            has_replied: false,
            next_ping: Nanos::NEVER,
            pinged_at: None,
            heard: None,
            is_blocked: false,
        }
    }
}

impl WebSocketExchange {
    /// Bytes that are not written yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.out[self.offset..]
    }

    /// Whether a further frame may be added: its length then is all that a connection holds above the limit, however many
    /// messages wait for a service that reads nothing.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.out.len() - self.offset < MAX_QUEUED_BYTES
    }

    /// Notes that some of these were written; returns the range of the flights whose first bytes are among them.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) -> std::ops::Range<usize> {
        self.offset += bytes;
        let written = self.written + self.offset as u64;
        if self.offset == self.out.len() {
            self.written = written;
            self.offset = 0;
            self.out.clear();
            self.out.shrink_to(MAX_KEPT_BYTES);
        } else if self.offset >= MAX_QUEUED_BYTES.max(self.out.len() / 2) {
            // A socket that is never quite drained would keep all that was ever written.
            self.written = written;
            self.out.drain(..std::mem::take(&mut self.offset));
        }
        let first = self.sent.len() - self.unsent;
        while self.unsent > 0 && self.sent[self.sent.len() - self.unsent].start < written {
            self.unsent -= 1;
        }
        first..self.sent.len() - self.unsent
    }

    /// Number of messages in flight that are written, in part at least.
    pub(crate) fn written_messages(&self) -> usize {
        self.sent.len() - self.unsent
    }
}

impl FlowExchange for WebSocketExchange {
    type Kept = ();

    const IS_ONE_PIECE: bool = true;

    fn bytes_from<'b>(&'b self, _: &'b [WireRequest], _: u32, _: usize) -> [&'b [u8]; 2] {
        [&[], &[]]
    }

    fn length_of(&self, _: &[WireRequest], _: u32) -> usize {
        0
    }

    fn is_bodyless(&self, _: &[WireRequest], _: u32) -> bool {
        false
    }

    fn kept(&mut self) -> Option<&mut ()> {
        None
    }

    fn looks_into_body(&self) -> bool {
        true
    }

    fn observer(&self) -> Option<&StreamObserver> {
        None
    }

    fn take_observer(&mut self) -> Option<Box<StreamObserver>> {
        None
    }

    fn put_observer(&mut self, _: Box<StreamObserver>) {}
}
