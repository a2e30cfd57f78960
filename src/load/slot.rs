//! One connection of a worker, and the requests on it.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

use crate::decide::Nanos;
use crate::decide::feed::DueRequest;
use crate::http::stream::Stream;
use crate::http::wire::{DecodedResponse, Decoder, WireRequest};
use crate::measure::outcome::{Outcome, RequestEnd, TransportFailure};

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    Connecting,
    Handshaking,
    Open,
}

/// A connection.
#[derive(Debug)]
pub(super) struct LoadConnection {
    pub(super) stream: Stream,
    pub(super) phase: ConnectionPhase,
    pub(super) decoder: Decoder,
    /// Requests without an answer, the oldest first.
    pub(super) flights: VecDeque<Flight>,
    /// Who asks on this connection.
    pub(super) user: u32,
    /// When connecting began.
    pub(super) opened: Nanos,
    /// Since when it is on the list of idle connections, if it is.
    pub(super) idle_since: Option<Nanos>,
    /// How many of the flights, from the back, are not written to their end, ...
    unsent: usize,
    /// ... and how much of the first of these is.
    offset: usize,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) intended: Nanos,
    /// When only weir itself could still delay it.
    pub(super) ready: Nanos,
    pub(super) sent: Nanos,
    pub(super) first_byte: Option<Nanos>,
    /// How long it waited for its connection to be made.
    pub(super) connect: Nanos,
    /// Which of the plan's requests it is.
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

    /// Since when its timeout runs, given when its connection was opened.
    fn timeout_start(&self, opened: Nanos) -> Nanos {
        if self.sent == Nanos::NEVER { opened } else { self.sent }
    }

    /// Its record, when it ended with an answer.
    pub(super) fn completed(&self, answer: &DecodedResponse, done: Nanos, bytes_out: usize, timeout: Nanos) -> Outcome {
        // Answered, but later than anybody waits: the scan for timeouts just had not come by.
        let in_time = done - self.sent <= timeout;
        let end =
            if in_time { RequestEnd::Response(answer.status) } else { RequestEnd::Failed(TransportFailure::Timeout) };
        self.outcome(end, done, (answer.wire, answer.body), bytes_out)
    }

    /// Its record, when it failed.
    pub(super) fn failed(&self, kind: TransportFailure, done: Nanos, bytes_out: usize) -> Outcome {
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

/// How much has been written of the requests on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteProgress {
    /// So many, from the oldest on, are written to their end, ...
    complete: usize,
    /// ... and so many bytes of the one behind them.
    offset: usize,
}

impl WriteProgress {
    /// The bytes written of request `nth` (0: the oldest), which has this length.
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
    pub(super) fn new(stream: Stream, user: u32, opened: Nanos) -> Self {
        Self {
            stream,
            phase: ConnectionPhase::Connecting,
            decoder: Decoder::default(),
            flights: VecDeque::with_capacity(1),
            user,
            opened,
            idle_since: None,
            unsent: 0,
            offset: 0,
        }
    }

    /// Puts a request at the end of what is to be written.
    #[inline]
    pub(super) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
        self.unsent += 1;
    }

    /// Whether requests wait to be written.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// Whether the oldest request is not even written to its end: an answer to it came early.
    pub(super) fn front_is_unsent(&self) -> bool {
        self.unsent == self.flights.len() && self.unsent > 0
    }

    /// How much has been written of the requests on it.
    #[inline]
    pub(super) fn written(&self) -> WriteProgress {
        WriteProgress { complete: self.flights.len() - self.unsent, offset: self.offset }
    }

    /// The earliest moment from which a timeout of this connection's requests runs.
    pub(super) fn waiting_since(&self) -> Option<Nanos> {
        self.flights.front().map(|flight| flight.timeout_start(self.opened))
    }

    /// Writes what waits, as far as the socket takes it; `now` is when that begins.
    ///
    /// # Errors
    /// What broke the connection.
    #[inline]
    pub(super) fn write(&mut self, requests: &[WireRequest], now: Nanos) -> io::Result<()> {
        while self.unsent > 0 {
            let first = self.flights.len() - self.unsent;
            let written = if self.unsent == 1 {
                let flight = &mut self.flights[first];
                if self.offset == 0 {
                    flight.sent = now;
                }
                let bytes = &requests[flight.request as usize].bytes[self.offset..];
                self.stream.write(&[IoSlice::new(bytes)])
            } else {
                self.write_several(requests, first, now)
            };
            match written {
                Ok(bytes) => self.advance(requests, bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
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
            let left = requests[flight.request as usize].bytes.len() - self.offset;
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
