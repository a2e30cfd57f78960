//! Record of one request.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::is_success_status;

/// How a request ended: with a whole response, or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// Whole response with this status: of HTTP (100..=999), or of gRPC (0..=16).
    Response(u16),
    /// Whole response to a step of a scenario: its status, and whether it is what the step expects.
    Checked {
        /// Status, as in [`Self::Response`].
        status: u16,
        /// Whether all checks and captures hold.
        passed: bool,
    },
    /// No whole response.
    Failed(FailureKind),
}

impl RequestEnd {
    /// Status of the whole response, if there is one.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Response(status) | Self::Checked { status, .. } => Some(status),
            Self::Failed(_) => None,
        }
    }
}

/// Record of one request. All times count from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Number of the request in the plan.
    pub number: u64,
    /// Intended start.
    pub intended: Nanos,
    /// Time from which only the generator itself could delay the send: the later of `intended` and when a connection
    /// was free.
    pub ready: Nanos,
    /// Time when the first byte was handed to the kernel.
    pub sent: Nanos,
    /// Arrival of the first byte of the response; undefined without a response.
    pub first_byte: Nanos,
    /// Arrival of the last byte of the response, or time of the failure.
    pub done: Nanos,
    /// Time to connect (TLS handshake included) if this request waited for it, else 0.
    pub connect: Nanos,
    /// End of the request.
    pub end: RequestEnd,
    /// Bytes read: head and body as on the wire, before TLS encryption.
    pub bytes_in: u64,
    /// Bytes of the response body, without chunk framing.
    pub body_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes of the body that were counted when they came: those of a stream.
    pub counted_in: u64,
}

impl Outcome {
    /// Outcome of a request that was sent when it was intended, over a connection that was there, without its number and
    /// its bytes.
    pub fn new(end: RequestEnd, intended: Nanos, done: Nanos) -> Self {
        Self {
            number: 0,
            intended,
            ready: intended,
            sent: intended,
            first_byte: done,
            done,
            connect: Nanos::ZERO,
            end,
            bytes_in: 0,
            body_in: 0,
            bytes_out: 0,
            counted_in: 0,
        }
    }

    /// Response time: from the intended start to the end.
    pub fn response(&self) -> Nanos {
        self.done - self.intended
    }

    /// Service time: from the send to the end.
    pub fn service(&self) -> Nanos {
        self.done - self.sent
    }

    /// Lateness: delay of the send by the generator itself.
    pub fn lateness(&self) -> Nanos {
        self.sent - self.ready
    }

    /// Whether it is a whole response with a status below 400, or OK of gRPC, or one that its step expects.
    pub fn is_ok(&self) -> bool {
        match self.end {
            RequestEnd::Response(status) => is_success_status(status),
            RequestEnd::Checked { passed, .. } => passed,
            RequestEnd::Failed(_) => false,
        }
    }
}
