//! Options of a request's exchange that most requests have no need of.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderName;
use weir_base::Nanos;

use crate::wire::PassedFields;

/// Options of one exchange; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireOptions<'a> {
    /// Header lines as they are written over HTTP/1.1, in the caller's order and spelling, each with its end: those of
    /// the request's headers but for Connection and framing headers.
    pub header_lines: Option<&'a [u8]>,
    /// Timeouts of the exchange's steps.
    pub timeouts: StepTimeouts,
    /// Whether the response has its head as received, as an extension: [`ReceivedHead`].
    pub keeps_head: bool,
    /// Further fields of the request, as lines.
    pub passed: Option<&'a PassedFields>,
    /// Whether fields of the response that its reader has no use for may be passed on unread, by
    /// [`IncomingBody::take_passed_fields`](super::IncomingBody::take_passed_fields): not those of these names, nor those
    /// that decide about a call. Over HTTP/1.1; hop-by-hop fields may be left out then.
    pub passes_all_but: Option<&'a Arc<[HeaderName]>>,
}

/// Timeouts of the steps of an exchange; [`Nanos::NEVER`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimeouts {
    /// Longest time for name resolution, connecting and TLS together; that of the origin holds besides.
    pub connect: Nanos,
    /// Longest time in which the other end takes nothing of the request.
    pub write: Nanos,
    /// Longest time from the end of the request, or from the bytes before, to the next bytes of the response.
    pub read: Nanos,
}

impl Default for StepTimeouts {
    fn default() -> Self {
        Self { connect: Nanos::NEVER, write: Nanos::NEVER, read: Nanos::NEVER }
    }
}

/// Head of a response over HTTP/1.1 as received: status line, header lines, and the empty line.
#[derive(Clone, Debug)]
pub struct ReceivedHead(pub Bytes);
