//! One connection of a worker, and the requests on it.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

use super::event_streams::StreamObserver;
use super::http2::ConnectionStreams;
use super::origin_addresses::ConnectAttempts;
use super::steps::StepExchange;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_net::stream::Stream;
use weir_net::wire::{DecodedResponse, Decoder, WireRequest};
use weir_pace::feed::DueRequest;
use weir_scenario::plan::OriginId;

/// Phase of a connection's set-up; requests are sent once it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    Connecting,
    Handshaking,
    /// The settings of HTTP/2 are to come.
    AwaitingSettings,
    Open,
}

/// Connection to the service, with its unanswered requests and the decoder of responses.
#[derive(Debug)]
pub(super) struct LoadConnection {
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
    /// Time since when the connection is idle, if it is.
    pub(super) idle_since: Option<Nanos>,
    /// Scenario and origin that a user's connection belongs to; `None` for requests of the plan.
    pub(super) origin: Option<(u32, OriginId)>,
    /// Request of a scenario's step while it is in flight; `None` for requests of the plan.
    pub(super) step: Option<Box<StepExchange>>,
    /// Observer of responses to requests of the plan; `None` if they are not observed, or none has come.
    pub(super) observer: Option<Box<StreamObserver>>,
    /// Requests of a connection with HTTP/2; `None` with HTTP/1.1.
    pub(super) streams: Option<Box<ConnectionStreams>>,
    /// Number of requests, from the back, that are not completely written, ...
    unsent: usize,
    /// ... and number of bytes written of the first of these.
    offset: usize,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) intended: Nanos,
    /// Time from which only weir itself could delay it.
    pub(super) ready: Nanos,
    pub(super) sent: Nanos,
    pub(super) first_byte: Option<Nanos>,
    /// Time that it waited for its connection to be made.
    pub(super) connect: Nanos,
    /// Index of the plan's request, or of a step's request among those of the same send.
    pub(super) request: u32,
}

impl Flight {
    pub(super) fn new(start: &DueRequest, ready: Nanos, request: usize) -> Self {
        Self {
            number: start.arrival.number,
            intended: start.arrival.intended,
            ready,
            sent: Nanos::NEVER,
            first_byte: None,
            connect: Nanos::ZERO,
            request: request as u32,
        }
    }

    /// Request of a scenario's step, which its connection has: the `request`th of those that are sent together.
    pub(super) fn of_step(number: u64, intended: Nanos, ready: Nanos, request: u32) -> Self {
        Self { number, intended, ready, sent: Nanos::NEVER, first_byte: None, connect: Nanos::ZERO, request }
    }

    /// Start of its timeout, given when its connection was opened.
    pub(super) fn timeout_start(&self, opened: Nanos) -> Nanos {
        if self.sent == Nanos::NEVER { opened } else { self.sent }
    }

    /// Outcome of the oldest request with a response.
    pub(super) fn completed(
        &self,
        response: &DecodedResponse,
        done: Nanos,
        bytes_out: usize,
        timeout: Nanos,
    ) -> Outcome {
        // A response after the timeout, before the scan for timeouts.
        let in_time = done - self.sent <= timeout;
        let end =
            if in_time { RequestEnd::Response(response.status) } else { RequestEnd::Failed(FailureKind::Timeout) };
        self.outcome(end, done, (response.wire, response.body), bytes_out)
    }

    /// Outcome of the oldest request with a failure.
    pub(super) fn failed(&self, kind: FailureKind, done: Nanos, bytes_out: usize) -> Outcome {
        self.outcome(RequestEnd::Failed(kind), done, (0, 0), bytes_out)
    }

    fn outcome(&self, end: RequestEnd, done: Nanos, (bytes_in, body_in): (u64, u64), bytes_out: usize) -> Outcome {
        let sent = self.sent.min(done);
        Outcome {
            number: self.number,
            intended: self.intended,
            ready: self.ready,
            sent,
            first_byte: self.first_byte.unwrap_or(done),
            done,
            connect: self.connect,
            end,
            bytes_in,
            body_in,
            bytes_out: bytes_out as u64,
        }
    }
}

/// Written part of the requests on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteProgress {
    /// Number of completely written requests, from the oldest on, ...
    complete: usize,
    /// ... and bytes written of the next one.
    offset: usize,
}

impl WriteProgress {
    /// Bytes written of request `nth` (0: the oldest), which has this length.
    #[inline]
    pub(super) fn bytes_of(self, nth: usize, length: usize) -> usize {
        match nth.cmp(&self.complete) {
            Ordering::Less => length,
            Ordering::Equal => self.offset,
            Ordering::Greater => 0,
        }
    }
}

impl LoadConnection {
    pub(super) fn new((stream, attempts): (Stream, Option<Box<ConnectAttempts>>), user: u32, opened: Nanos) -> Self {
        Self {
            stream,
            phase: ConnectionPhase::Connecting,
            decoder: Decoder::default(),
            flights: VecDeque::with_capacity(1),
            user,
            attempts,
            opened,
            idle_since: None,
            origin: None,
            step: None,
            observer: None,
            streams: None,
            unsent: 0,
            offset: 0,
        }
    }

    /// Whether it carries no requests.
    pub(super) fn is_unused(&self) -> bool {
        self.flights.is_empty() && self.streams.as_ref().is_none_or(|streams| streams.is_empty())
    }

    /// Place of the observer of the response that comes on it.
    pub(super) fn observer(&mut self) -> &mut Option<Box<StreamObserver>> {
        match &mut self.step {
            Some(step) => &mut step.observer,
            None => &mut self.observer,
        }
    }

    /// Whether the body is observed or kept, and not only counted.
    pub(super) fn looks_into_body(&self) -> bool {
        let is_observed = self.observer.as_ref().is_some_and(|observer| observer.is_reading());
        is_observed || self.step.as_ref().is_some_and(|step| step.looks_into_body())
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

    /// Number of bytes of a request on this connection.
    #[inline]
    pub(super) fn request_length(&self, requests: &[WireRequest], flight: &Flight) -> usize {
        request_length(self.step.as_deref(), requests, flight)
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
                let parts = match &self.step {
                    Some(step) => step.request.parts_from(step.start_of(flight.request) + self.offset),
                    None => [&requests[flight.request as usize].bytes[self.offset..], &[]],
                };
                match parts {
                    [bytes, []] | [[], bytes] => self.stream.write(&[IoSlice::new(bytes)]),
                    [head, body] => self.stream.write(&[IoSlice::new(head), IoSlice::new(body)]),
                }
            } else if self.step.is_some() {
                self.write_pipelined(first, now)
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
        if let Some(step) = &mut self.step {
            step.release_written();
        }
        Ok(())
    }

    /// Writes what is left of a step's requests that are sent together.
    fn write_pipelined(&mut self, first: usize, now: Nanos) -> io::Result<usize> {
        let Some(step) = &self.step else { return Ok(0) };
        let skip = usize::from(self.offset > 0);
        self.flights.range_mut(first + skip..).for_each(|flight| flight.sent = now);
        let start = self.flights.get(first).map_or(0, |flight| step.start_of(flight.request));
        let [head, body] = step.request.parts_from(start + self.offset);
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
            *piece = IoSlice::new(&requests[flight.request as usize].bytes[skip..]);
            count += 1;
        }
        self.stream.write(&pieces[..count])
    }

    fn advance(&mut self, requests: &[WireRequest], mut bytes: usize) {
        while self.unsent > 0 {
            let flight = &self.flights[self.flights.len() - self.unsent];
            let left = request_length(self.step.as_deref(), requests, flight) - self.offset;
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

/// Number of bytes of a request: of its step, or of the plan.
#[inline]
fn request_length(step: Option<&StepExchange>, requests: &[WireRequest], flight: &Flight) -> usize {
    match step {
        Some(step) => step.length_of(flight.request),
        None => requests[flight.request as usize].bytes.len(),
    }
}
