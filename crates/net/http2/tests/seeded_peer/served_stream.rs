//! A request as a server sees it, and what its client has to make of the response.

/// A stream that the server has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedStream {
    pub(crate) key: u32,
    pub(crate) is_head: bool,
    /// Bytes of the request's body that have not come.
    pub(crate) body_left: u64,
    /// Status of the final head; 0 before it.
    pub(crate) status: u16,
    /// Content that the head has announced and that is left.
    pub(crate) content_left: Option<u64>,
    /// Bytes that the server may send, below zero after a setting.
    pub(crate) window: i64,
    /// Bytes that the client may send.
    pub(crate) client_window: i64,
}

impl ServedStream {
    pub(crate) fn number(&self) -> u32 {
        2 * self.key + 1
    }
}

/// How a request has to end for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedEnd {
    Whole,
    /// RST_STREAM with this code.
    Reset(u32),
    /// GOAWAY with a lower last stream.
    Unprocessed,
}

/// What the server has sent in response to a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentResponse {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) body: u64,
    pub(crate) wire: u64,
    pub(crate) end: Option<ExpectedEnd>,
}
