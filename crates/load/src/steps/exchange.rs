//! Request of a step on a connection, and what is kept of its response.

use std::borrow::Cow;

use weir_decide::Nanos;
use weir_http::wire::ResponseObserver;
use weir_scenario::plan::OriginId;

use super::kept_head::KeptHead;
use super::kept_response::KeptResponse;

/// Request of a step on a connection of its user, and what is kept of its response.
#[derive(Debug)]
pub(crate) struct StepExchange {
    /// Bytes of the request.
    pub(crate) request: Vec<u8>,
    /// Whether the response has no body in any case: to a HEAD.
    pub(crate) is_bodyless: bool,
    /// Timeout of the step, if it has one of its own.
    pub(crate) timeout: Option<Nanos>,
    /// Scenario and origin that the connection belongs to.
    pub(crate) scenario: u32,
    pub(crate) origin: OriginId,
    pub(super) kept: KeptResponse,
}

impl StepExchange {
    /// Exchange on a new connection to an origin.
    pub(crate) fn new(scenario: u32, origin: OriginId) -> Self {
        Self { request: Vec::new(), is_bodyless: false, timeout: None, scenario, origin, kept: KeptResponse::default() }
    }

    /// Prepares it for the next request.
    pub(crate) fn prepare(&mut self, is_bodyless: bool, keeps_body: bool, timeout: Option<Nanos>) {
        (self.is_bodyless, self.timeout) = (is_bodyless, timeout);
        self.kept.clear(keeps_body);
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
    pub(crate) fn decoded_body(&self) -> Result<Cow<'_, [u8]>, String> {
        self.kept.decoded_body(KeptHead::parse(self.head()).content_encoding())
    }
}

impl ResponseObserver for StepExchange {
    fn head(&mut self, head: &[u8]) {
        ResponseObserver::head(&mut self.kept, head);
    }

    fn body(&mut self, bytes: &[u8]) {
        ResponseObserver::body(&mut self.kept, bytes);
    }
}
