//! One request's record.

use crate::decide::Nanos;

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TransportFailure {
    /// No connection: refused, unreachable, no port left.
    Connect,
    /// The TLS handshake or a TLS record failed.
    Tls,
    /// No whole answer within the timeout.
    Timeout,
    /// The service closed the connection before the whole answer.
    Closed,
    /// The connection was reset.
    Reset,
    /// What came is not HTTP/1.1, or its head is too large.
    Protocol,
}

impl TransportFailure {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Connect, Self::Tls, Self::Timeout, Self::Closed, Self::Reset, Self::Protocol];

    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// A whole answer, with this status (100..=999).
    Response(u16),
    /// No whole answer.
    Failed(TransportFailure),
}

/// One request's record. All times count from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Its number in the plan.
    pub number: u64,
    /// When it was meant to start.
    pub intended: Nanos,
    /// From when on only the generator itself could delay it: `intended`, or when a connection was free for it,
    /// whichever is later.
    pub ready: Nanos,
    /// When its first byte was handed to the kernel.
    pub sent: Nanos,
    /// When the first byte of the answer was there; meaningless without an answer.
    pub first_byte: Nanos,
    /// When the last byte of the answer was there, or when it failed.
    pub done: Nanos,
    /// How long connecting took (TLS handshake included) if this request waited for it, else 0.
    pub connect: Nanos,
    /// How it ended.
    pub end: RequestEnd,
    /// Bytes read for it: head and body as on the wire (below TLS: plain text).
    pub bytes_in: u64,
    /// Bytes of its body alone, without chunk framing.
    pub body_in: u64,
    /// Bytes written for it.
    pub bytes_out: u64,
}

impl Outcome {
    /// What a user waits: from the intended start to the end.
    pub fn response(&self) -> Nanos {
        self.done - self.intended
    }

    /// What the service takes: from the send to the end.
    pub fn service(&self) -> Nanos {
        self.done - self.sent
    }

    /// How much the generator itself delayed the send.
    pub fn lateness(&self) -> Nanos {
        self.sent - self.ready
    }

    /// A whole answer with a status below 400.
    pub fn is_ok(&self) -> bool {
        matches!(self.end, RequestEnd::Response(status) if status < 400)
    }
}
