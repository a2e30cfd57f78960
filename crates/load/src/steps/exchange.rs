//! Request of a step on a connection, and what is kept of its response.

use std::borrow::Cow;

use weir_decide::Nanos;
use weir_http::wire::{HeadNotes, ResponseObserver};
use weir_scenario::plan::{OriginId, RequestBytes};

use super::headers::with_headers;
use super::kept_response::KeptResponse;

/// Maximum size of the buffers that a thread keeps for the next exchange, in bytes each.
const MAX_SPARE_BYTES: usize = 64 << 10;

/// Request of a step on a connection of its user, and what is kept of its response. A connection has one only while it
/// waits for the response: idle users hold no buffers.
#[derive(Debug, Default)]
pub(crate) struct StepExchange {
    /// Bytes of the request.
    pub(crate) request: RequestBytes,
    /// Whether the response has no body in any case: to a HEAD.
    pub(crate) is_bodyless: bool,
    /// Timeout of the step, if it has one of its own.
    pub(crate) timeout: Option<Nanos>,
    /// Index of the step among all steps.
    pub(crate) step: u32,
    pub(crate) origin: OriginId,
    /// What the head of the response has.
    pub(super) notes: HeadNotes,
    pub(super) kept: KeptResponse,
}

impl StepExchange {
    /// Prepares it for the next request.
    pub(crate) fn prepare(
        &mut self,
        (step, origin): (u32, OriginId),
        is_bodyless: bool,
        keeps_body: bool,
        timeout: Option<Nanos>,
    ) {
        (self.step, self.origin, self.is_bodyless, self.timeout) = (step, origin, is_bodyless, timeout);
        self.notes = HeadNotes::default();
        self.kept.clear(keeps_body);
    }

    /// Drops what one large request or response has needed.
    pub(super) fn shrink(&mut self) {
        self.request.clear();
        self.request.written.shrink_to(MAX_SPARE_BYTES);
        self.kept.shrink_to(MAX_SPARE_BYTES);
    }

    /// Head of the response, as it came.
    pub(crate) fn head(&self) -> &[u8] {
        self.kept.head()
    }

    /// Body of the response as it came, without framing.
    pub(crate) fn body(&self) -> &[u8] {
        self.kept.raw_body()
    }

    /// Body of the response, decompressed.
    ///
    /// # Errors
    /// Reason why the body cannot be looked into.
    pub(crate) fn decoded_body(&self) -> Result<Vec<u8>, String> {
        with_headers(self.head(), |headers| {
            let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
            self.kept.decoded_body(encoding.map(|(_, value)| *value)).map(Cow::into_owned)
        })
    }
}

impl ResponseObserver for StepExchange {
    fn head(&mut self, head: &[u8], notes: HeadNotes) {
        self.notes = notes;
        self.kept.set_head(head);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.kept.push_body(bytes);
    }
}
