//! One connection of a worker, and the requests on it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use super::exchange::FlowExchange;
use super::flight::{Flight, SetUpMilestones, WriteProgress};
use super::http2::ConnectionStreams;
use super::origin_addresses::ConnectAttempts;
use super::program::ConnectionFacts;
use weir_base::Nanos;
use weir_net::stream::Stream;
use weir_net::wire::{Decoder, WireRequest};
use weir_scenario::plan::OriginId;

/// Phase of a connection's set-up; requests are sent once it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    Connecting,
    Handshaking,
    /// The settings of HTTP/2 are to come.
    AwaitingSettings,
    /// The response to an upgrade is to come.
    AwaitingUpgrade,
    Open,
}

impl ConnectionPhase {
    /// Whether bytes of the service are to come before it is open.
    pub(super) fn is_awaiting(self) -> bool {
        matches!(self, Self::AwaitingSettings | Self::AwaitingUpgrade)
    }
}

/// Connection to the service, with its unanswered requests and the decoder of responses.
#[derive(Debug)]
pub(super) struct LoadConnection<X> {
    pub(super) stream: Stream,
    pub(super) phase: ConnectionPhase,
    pub(super) decoder: Decoder,
    /// Requests without a response, the oldest first.
    pub(super) flights: VecDeque<Flight>,
    /// User of this connection.
    pub(super) user: u32,
    /// Attempts to connect to an origin with several addresses, until one has connected.
    pub(super) attempts: Option<Box<ConnectAttempts>>,
    /// Start of connecting.
    pub(super) opened: Nanos,
    pub(super) set_up: SetUpMilestones,
    /// Time since when the connection is idle, if it is.
    pub(super) idle_since: Option<Nanos>,
    /// Scenario and origin that a user's connection belongs to; `None` for requests of the plan.
    pub(super) origin: Option<(u32, OriginId)>,
    /// Requests in flight with HTTP/1.1, as their flow has them.
    pub(super) exchange: X,
    /// Requests of a connection with HTTP/2; `None` with HTTP/1.1.
    pub(super) streams: Option<Box<ConnectionStreams<X>>>,
    /// Facts that programs get, once they have asked for them.
    facts: Option<Arc<ConnectionFacts>>,
    /// Number of requests, from the back, that are not completely written, ...
    unsent: usize,
    /// ... and number of bytes written of the first of these.
    offset: usize,
}

impl<X: FlowExchange> LoadConnection<X> {
    pub(super) fn new((stream, attempts): (Stream, Option<Box<ConnectAttempts>>), user: u32, opened: Nanos) -> Self {
        Self {
            stream,
            phase: ConnectionPhase::Connecting,
            decoder: Decoder::default(),
            flights: VecDeque::with_capacity(1),
            user,
            attempts,
            opened,
            set_up: SetUpMilestones::default(),
            idle_since: None,
            origin: None,
            exchange: X::default(),
            streams: None,
            facts: None,
            unsent: 0,
            offset: 0,
        }
    }

    /// Facts that programs get; the connection is open.
    pub(super) fn facts(&mut self) -> Arc<ConnectionFacts> {
        Arc::clone(self.facts.get_or_insert_with(|| Arc::new(ConnectionFacts::of(&self.stream))))
    }

    /// Whether it carries no requests.
    pub(super) fn is_unused(&self) -> bool {
        self.flights.is_empty() && self.streams.as_ref().is_none_or(|streams| streams.is_empty())
    }

    /// Whether its service has sent something, or has ended it, while it was idle. It is not looked at within the first
    /// 10 ms, in which a service hardly ends one.
    pub(super) fn is_disturbed(&self, now: Nanos) -> bool {
        const MIN_IDLE_BEFORE_CHECK: Nanos = Nanos::from_millis(10);
        let has_rested = self.idle_since.is_some_and(|since| now - since > MIN_IDLE_BEFORE_CHECK);
        has_rested && !self.stream.is_quiet()
    }

    /// Appends a request to be written.
    #[inline]
    pub(super) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
        self.unsent += 1;
    }

    /// Whether requests wait to be written.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// Whether the oldest request is not completely written: its response came early.
    pub(super) fn front_is_unsent(&self) -> bool {
        self.unsent == self.flights.len() && self.unsent > 0
    }

    /// Written part of its requests.
    #[inline]
    pub(super) fn written(&self) -> WriteProgress {
        WriteProgress { complete: self.flights.len() - self.unsent, offset: self.offset }
    }

    /// Notes that all that is written has been handed to the kernel `now`, unless TLS still has a part of it.
    pub(super) fn note_written(&mut self, now: Nanos) {
        if self.stream.has_pending_tls() {
            return;
        }
        let complete = self.flights.len() - self.unsent;
        let written = self.flights.range_mut(..complete).rev();
        written.take_while(|flight| flight.written == Nanos::NEVER).for_each(|flight| flight.written = now);
    }

    /// Number of bytes of a request on this connection.
    #[inline]
    pub(super) fn request_length(&self, requests: &[WireRequest], flight: &Flight) -> usize {
        self.exchange.length_of(requests, flight.request)
    }

    /// Earliest start of a timeout of this connection's requests.
    pub(super) fn waiting_since(&self) -> Option<Nanos> {
        self.flights.front().map(|flight| flight.timeout_start(self.opened))
    }

    /// Writes pending requests, as far as the socket accepts them; `now` is the start of that.
    ///
    /// # Errors
    /// The connection's error.
    #[inline]
    pub(super) fn write(&mut self, requests: &[WireRequest], now: Nanos) -> io::Result<()> {
        while self.unsent > 0 {
            let first = self.flights.len() - self.unsent;
            let written = if self.unsent == 1 {
                let flight = &mut self.flights[first];
                if self.offset == 0 {
                    flight.sent = now;
                }
                match self.exchange.bytes_from(requests, flight.request, self.offset) {
                    [bytes, []] | [[], bytes] => self.stream.write(&[IoSlice::new(bytes)]),
                    [head, body] => self.stream.write(&[IoSlice::new(head), IoSlice::new(body)]),
                }
            } else if X::IS_ONE_PIECE {
                self.write_pipelined(requests, first, now)
            } else {
                self.write_several(requests, first, now)
            };
            match written {
                Ok(bytes) => self.advance(requests, bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        // With HTTP/1.1 nothing is sent again.
        self.exchange.release_written();
        Ok(())
    }

    /// Writes what is left of requests whose bytes are in one piece.
    fn write_pipelined(&mut self, requests: &[WireRequest], first: usize, now: Nanos) -> io::Result<usize> {
        let skip = usize::from(self.offset > 0);
        self.flights.range_mut(first + skip..).for_each(|flight| flight.sent = now);
        let Some(flight) = self.flights.get(first) else { return Ok(0) };
        let [head, body] = self.exchange.bytes_from(requests, flight.request, self.offset);
        self.stream.write(&[IoSlice::new(head), IoSlice::new(body)])
    }

    fn write_several(&mut self, requests: &[WireRequest], first: usize, now: Nanos) -> io::Result<usize> {
        const MAX_IO_SLICES: usize = 64;
        let mut pieces = [IoSlice::new(&[]); MAX_IO_SLICES];
        let mut count = 0;
        for (piece, flight) in pieces.iter_mut().zip(self.flights.range_mut(first..)) {
            let skip = if count == 0 { self.offset } else { 0 };
            if skip == 0 {
                flight.sent = now;
            }
            *piece = IoSlice::new(self.exchange.bytes_from(requests, flight.request, skip)[0]);
            count += 1;
        }
        self.stream.write(&pieces[..count])
    }

    fn advance(&mut self, requests: &[WireRequest], mut bytes: usize) {
        while self.unsent > 0 {
            let flight = &self.flights[self.flights.len() - self.unsent];
            let left = self.exchange.length_of(requests, flight.request) - self.offset;
            if bytes < left {
                self.offset += bytes;
                return;
            }
            bytes -= left;
            self.offset = 0;
            self.unsent -= 1;
        }
    }
}
