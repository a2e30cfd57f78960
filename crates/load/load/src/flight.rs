//! A request in flight: its times, and its outcome.

use std::cmp::Ordering;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_net::wire::DecodedResponse;
use weir_pace::feed::DueRequest;

/// Size of a response or message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedBytes {
    /// Bytes as they came, with head and framing.
    pub(crate) wire: u64,
    /// Bytes of the body or the message itself.
    pub(crate) body: u64,
}

/// Times of bytes that were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTimes {
    /// Arrival of the last one: the kernel's timestamp, or the time of the read without one.
    pub(crate) at: Nanos,
    /// The time now.
    pub(crate) now: Nanos,
}

/// Bounds of the start of a timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutStarts {
    pub(crate) earliest: Nanos,
    pub(crate) latest: Nanos,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) intended: Nanos,
    /// Time from which only weir itself could delay it.
    pub(crate) ready: Nanos,
    pub(crate) sent: Nanos,
    pub(crate) first_byte: Option<Nanos>,
    /// Time that it waited for its connection to be made.
    pub(crate) connect: Nanos,
    /// Index of the plan's request, or of a step's request among those of the same send.
    pub(crate) request: u32,
}

impl Flight {
    pub(crate) fn new(start: &DueRequest, ready: Nanos, request: usize) -> Self {
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
    pub(crate) fn of_step(number: u64, intended: Nanos, ready: Nanos, request: u32) -> Self {
        Self { number, intended, ready, sent: Nanos::NEVER, first_byte: None, connect: Nanos::ZERO, request }
    }

    /// Start of its timeout, given when its connection was opened.
    pub(crate) fn timeout_start(&self, opened: Nanos) -> Nanos {
        if self.sent == Nanos::NEVER { opened } else { self.sent }
    }

    /// Outcome of the oldest request with a response.
    pub(crate) fn completed(
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
        self.outcome(end, done, ReceivedBytes { wire: response.wire, body: response.body }, bytes_out)
    }

    /// Outcome of the oldest request with a failure.
    pub(crate) fn failed(&self, kind: FailureKind, done: Nanos, bytes_out: usize) -> Outcome {
        self.outcome(RequestEnd::Failed(kind), done, ReceivedBytes::default(), bytes_out)
    }

    fn outcome(&self, end: RequestEnd, done: Nanos, received: ReceivedBytes, bytes_out: usize) -> Outcome {
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
            bytes_in: received.wire,
            body_in: received.body,
            bytes_out: bytes_out as u64,
            counted_in: 0,
        }
    }
}

/// Written part of the requests on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteProgress {
    /// Number of completely written requests, from the oldest on, ...
    pub(crate) complete: usize,
    /// ... and bytes written of the next one.
    pub(crate) offset: usize,
}

impl WriteProgress {
    /// Bytes written of request `nth` (0: the oldest), which has this length.
    #[inline]
    pub(crate) fn bytes_of(self, nth: usize, length: usize) -> usize {
        match nth.cmp(&self.complete) {
            Ordering::Less => length,
            Ordering::Equal => self.offset,
            Ordering::Greater => 0,
        }
    }
}
