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

/// Parts of the time that a request waited for its connection to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetUpTimes {
    /// Until the transport was there.
    pub(crate) transport: Nanos,
    /// Handshake of TLS; 0 without TLS.
    pub(crate) handshake: Nanos,
}

/// Times of a connection's set-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetUpMilestones {
    /// Time when the transport was there; 0 before.
    pub(crate) connected: Nanos,
    /// Time when the handshake of TLS had ended; 0 before, and without TLS.
    pub(crate) secured: Nanos,
}

impl SetUpMilestones {
    /// Parts of the set-up of which a request that came at `since` has waited.
    pub(crate) fn since(self, since: Nanos) -> SetUpTimes {
        SetUpTimes { transport: self.connected - since, handshake: self.secured - self.connected.max(since) }
    }
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
    /// Time when its last byte was handed to the kernel; `NEVER` before, and where its flow does not ask.
    pub(crate) written: Nanos,
    /// Time that it waited for its connection to be made, ...
    pub(crate) connect: Nanos,
    /// ... and the parts of it that are known.
    pub(crate) set_up: SetUpTimes,
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
            written: Nanos::NEVER,
            connect: Nanos::ZERO,
            set_up: SetUpTimes::default(),
            request: request as u32,
        }
    }

    /// Request of a scenario's step, which its connection has: the `request`th of those that are sent together.
    pub(crate) fn of_step(number: u64, intended: Nanos, ready: Nanos, request: u32) -> Self {
        let set_up = SetUpTimes::default();
        let (sent, written) = (Nanos::NEVER, Nanos::NEVER);
        Self { number, intended, ready, sent, first_byte: None, written, connect: Nanos::ZERO, set_up, request }
    }

    /// Time that its bytes took to be handed to the kernel, at most until the response began; 0 if it is not known.
    pub(crate) fn sending(&self) -> Nanos {
        let responded = self.first_byte.unwrap_or(Nanos::NEVER);
        if self.written == Nanos::NEVER { Nanos::ZERO } else { self.written.min(responded) - self.sent }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_what_is_left_of_a_set_up() {
        let parts = |connected: u64, secured: u64, since: u64| {
            let SetUpTimes { transport, handshake } =
                SetUpMilestones { connected: Nanos(connected), secured: Nanos(secured) }.since(Nanos(since));
            (transport.0, handshake.0)
        };
        assert_eq!(parts(30, 50, 10), (20, 20));
        assert_eq!(parts(30, 50, 40), (0, 10), "it came during the handshake");
        assert_eq!(parts(30, 50, 60), (0, 0));
        assert_eq!(parts(30, 0, 10), (20, 0), "without TLS");
        assert_eq!(parts(0, 0, 10), (0, 0), "not connected");
    }

    #[test]
    fn sending_lasts_until_the_last_byte_or_the_response() {
        let sending = |written: Nanos, first_byte: Option<u64>| {
            let flight = Flight { sent: Nanos(10), written, ..Flight::of_step(0, Nanos::ZERO, Nanos::ZERO, 0) };
            Flight { first_byte: first_byte.map(Nanos), ..flight }.sending().0
        };
        assert_eq!(sending(Nanos(15), Some(40)), 5);
        assert_eq!(sending(Nanos(15), None), 5);
        assert_eq!(sending(Nanos(45), Some(40)), 30, "the kernel has the time of the first byte");
        assert_eq!(sending(Nanos::NEVER, Some(40)), 0);
    }
}
