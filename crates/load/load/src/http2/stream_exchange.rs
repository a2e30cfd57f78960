//! A request on a stream, or one that waits for a stream.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::connection::{StreamId, StreamRequest};
use weir_net::wire::WireRequest;

use super::message_pace::MessagePace;
use crate::exchange::FlowExchange;
use crate::flight::{Flight, TimeoutStarts};

/// A request on a stream of a connection, or one that waits for a stream.
#[derive(Debug)]
pub(crate) struct StreamExchange<X> {
    pub(crate) flight: Flight,
    /// User that waits for the response.
    pub(crate) user: u32,
    /// The request as its flow has it.
    pub(crate) inner: X,
    /// Time when it was given to its connection.
    pub(crate) joined: Nanos,
    /// Stream; `None` while the request waits for one.
    pub(crate) stream: Option<StreamId>,
    /// Bytes of frames that it has caused.
    pub(crate) bytes_out: u64,
    /// How often a service did not process the request, and its connection ended.
    pub(crate) resends: u8,
    /// Messages that may be sent, of a call whose messages are sent one after the other.
    pub(super) pace: MessagePace,
    /// Length of its head.
    head_length: usize,
}

impl<X: FlowExchange> StreamExchange<X> {
    /// Request that is given to a connection at `joined`.
    pub(crate) fn new(flight: Flight, user: u32, inner: X, requests: &[WireRequest], joined: Nanos) -> Self {
        let mut exchange = Self {
            flight,
            user,
            inner,
            joined,
            stream: None,
            bytes_out: 0,
            resends: 0,
            pace: MessagePace::default(),
            head_length: 0,
        };
        exchange.head_length = head_length(exchange.parts(requests, 0)[0]);
        exchange
    }

    /// Kind of failure, if this one ends the response.
    pub(crate) fn failure_kind(&self, kind: FailureKind) -> FailureKind {
        self.inner.observer().map_or(kind, |observer| observer.failure_kind(kind))
    }

    /// Head of the request, as HTTP/1.1.
    pub(crate) fn head<'a>(&'a self, requests: &'a [WireRequest]) -> &'a [u8] {
        self.parts(requests, 0)[0].get(..self.head_length).unwrap_or_default()
    }

    /// Length of the body in bytes.
    pub(crate) fn body_length(&self, requests: &[WireRequest]) -> u64 {
        if self.inner.is_call_stream() {
            return StreamRequest::OPEN_ENDED;
        }
        (self.inner.length_of(requests, self.flight.request) - self.head_length) as u64
    }

    /// Body from an offset on: a part of it that is in one piece, not empty before its end.
    pub(crate) fn body_from<'a>(&'a self, requests: &'a [WireRequest], sent: u64) -> &'a [u8] {
        let [first, second] = self.parts(requests, self.head_length + sent as usize);
        if first.is_empty() { second } else { first }
    }

    /// Number of what the head was rendered from.
    pub(crate) fn template(&self) -> u32 {
        self.inner.step().unwrap_or(self.flight.request)
    }

    /// Whether its timeout is over: its step's, or this one; `earliest` and `latest` bound the start of a timeout.
    pub(crate) fn is_over(
        &self,
        timeout: Nanos,
        TimeoutStarts { earliest, latest }: TimeoutStarts,
        now: Nanos,
    ) -> bool {
        let own = self.inner.timeout().unwrap_or(timeout);
        now - self.flight.timeout_start(earliest.max(self.flight.ready)).min(latest) > own
    }

    /// Whether it can be sent from its beginning on another connection.
    pub(crate) fn may_restart(&self) -> bool {
        self.inner.with_call_body(|body| body.is_whole()).unwrap_or(true)
    }

    /// Notes that its connection has ended without carrying a request.
    pub(crate) fn note_refusal(&mut self) {
        self.resends = self.resends.saturating_add(1);
    }

    /// Prepares it to be sent again, since it was not processed.
    pub(crate) fn reset(&mut self, now: Nanos) {
        self.stream = None;
        self.resends = self.resends.saturating_add(1);
        (self.flight.sent, self.flight.written) = (Nanos::NEVER, Nanos::NEVER);
        self.flight.first_byte = None;
        // From now on only weir itself could delay it; until now the service has.
        self.flight.ready = now;
        self.inner.prepare_again();
    }

    fn parts<'a>(&'a self, requests: &'a [WireRequest], offset: usize) -> [&'a [u8]; 2] {
        self.inner.bytes_from(requests, self.flight.request, offset)
    }
}

/// Length of the head that a request begins with; all of it if no empty line ends it.
fn head_length(bytes: &[u8]) -> usize {
    memchr::memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4)
}
