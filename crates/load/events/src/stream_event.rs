//! One event of a streamed body.

/// Event of a streamed body. It is complete as of the piece that returned it, so its time is that piece's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// Type of a server-sent event, from its field `event`; empty without one, which means `message`.
    pub name: &'a [u8],
    /// Content, without framing. Lines of a server-sent event are joined by LF. Invalid UTF-8 stays as it is.
    pub data: &'a [u8],
    /// Last `id` of server-sent events so far; empty without one.
    pub id: &'a [u8],
    /// Last `retry` of server-sent events so far: delay before a new connection, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Offset of its first byte within the body, framing included.
    pub start: u64,
    /// Offset behind its last byte within the body, framing included. A CRLF at the end of a server-sent event counts as
    /// far as the CR, which completes the event.
    pub end: u64,
    /// Whether `data` is cut at the maximum of the reader.
    pub is_truncated: bool,
}
