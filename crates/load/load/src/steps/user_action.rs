//! Actions of users: requests, waits and ends of iterations.

use weir_base::Nanos;
use weir_net::traceparent::TraceContext;
use weir_pace::feed::DueRequest;
use weir_scenario::plan::{OriginId, RequestBytes};

use crate::program::{KeptParts, PipelinedRequest};

/// Wait of a user between two iterations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserRest {
    /// Until it tries to reach the service again.
    Retry,
    /// Until its next iteration begins.
    Paced(DueRequest),
}

/// Request that waits to be allowed to connect.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) send: Send,
    pub(crate) bytes: RequestBytes,
    /// Requests in it that are sent together; none if it is one.
    pub(crate) pipelined: Vec<PipelinedRequest>,
}

impl PendingRequest {
    /// Number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.pipelined.len().max(1) as u64
    }
}

/// Request of a user to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) user: u32,
    pub(crate) scenario: u32,
    /// Index of the step among all steps.
    pub(crate) step: u32,
    pub(crate) origin: OriginId,
    pub(crate) intended: Nanos,
    /// Time from which only weir itself could delay it.
    pub(crate) ready: Nanos,
    pub(crate) number: u64,
    pub(crate) timeout: Option<Nanos>,
    pub(crate) is_bodyless: bool,
    pub(crate) keeps: KeptParts,
    /// Number that a program has given it.
    pub(crate) key: u32,
    /// Trace that its header has, if it is sampled.
    pub(crate) context: Option<TraceContext>,
}

/// Next action of a user.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserAction {
    /// Sends the request of the table.
    Send(Send),
    /// Sends the request of the table, and does more.
    SendBeside(Send),
    /// Waits; the table wakes it.
    Wait,
    /// Ends the response that it reads as a stream.
    EndStream,
    /// Has ended an iteration.
    End(EndedIteration),
    /// Ends its thread.
    Stop,
}

/// Result of an iteration: its scenario, intended start and success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedIteration {
    pub(crate) scenario: u32,
    pub(crate) intended: Nanos,
    pub(crate) ok: bool,
    /// Whether it was cut off, and counts as neither.
    pub(crate) is_cut: bool,
    /// Whether a request was sent, and whether one has reached its service; if not, the user pauses.
    pub(crate) has_sent: bool,
    pub(crate) has_reached: bool,
}
