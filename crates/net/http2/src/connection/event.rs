//! Events that received bytes cause.

use crate::error_code::ErrorCode;

/// Result of receiving some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveStep<'a> {
    /// Number of used bytes.
    pub used: usize,
    /// Event completed by these bytes. Without one all bytes are used, and more are needed.
    pub event: Option<Event<'a>>,
}

/// Something that happened; `key` is the caller's of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The peer's settings, new ones or for the first time.
    Settings,
    /// Head of the final response; interim ones are skipped.
    Head {
        /// Request.
        key: u32,
        /// Status, and what follows from the fields.
        head: ResponseNotes,
    },
    /// Content of the response, without framing.
    Data {
        /// Request.
        key: u32,
        /// Part of the received bytes.
        bytes: &'a [u8],
    },
    /// The response is complete; the stream is closed.
    Ended {
        /// Request.
        key: u32,
        /// Sizes of it.
        totals: ResponseTotals,
    },
    /// The stream ended without a complete response.
    Reset {
        /// Request.
        key: u32,
        /// How.
        reset: StreamReset,
    },
    /// The peer has acknowledged a PING.
    PingAck {
        /// Payload of the PING.
        payload: [u8; 8],
    },
    /// The peer ends the connection. An [`Event::Reset`] follows for each stream that it does not process.
    GoAway {
        /// Last stream that it processes.
        last_stream: u32,
        /// Reason.
        code: ErrorCode,
        /// Number of open streams that it does not process.
        unprocessed: usize,
    },
}

/// Notes on the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseNotes {
    /// The final status, 200..=999.
    pub status: u16,
    /// Length of the content, if announced.
    pub content_length: Option<u64>,
    /// Whether it sets a cookie.
    pub sets_cookie: bool,
    /// Whether the content, or the messages of gRPC in it, have a coding.
    pub is_encoded: bool,
}

/// Sizes of a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseTotals {
    /// The final status.
    pub status: u16,
    /// Code of gRPC that the last fields have, 0 to 16; one without a name is 2, UNKNOWN.
    pub grpc_status: Option<u16>,
    /// Content in bytes, without framing.
    pub body: u64,
    /// All frames of the stream in bytes: heads (also interim ones), content, padding, trailers.
    pub wire: u64,
    /// Bytes of the request's body that had been sent, less than all if the response came early.
    pub body_sent: u64,
}

/// How a stream ended without a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReset {
    /// Error code.
    pub code: ErrorCode,
    /// Side that ended it.
    pub side: ResetSide,
    /// Whether the peer has certainly not processed the request, so that it may be sent again elsewhere.
    pub is_unprocessed: bool,
    /// Violation in words, if the client ended it.
    pub reason: Option<&'static str>,
}

/// Side that ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetSide {
    /// The client, because of a violation.
    Client,
    /// The peer.
    Peer,
}
