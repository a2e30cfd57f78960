//! A request as it is sent to its upstream.

use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use super::tracing::{TracedCall, Tracer};
use weir_base::Nanos;
use weir_machine::logger::Logger;
use weir_net::wire::PassedFields;

/// Who a call is reported to.
#[derive(Clone, Copy, Default)]
pub(super) struct Reports<'a> {
    /// Logger of attempt logs, as text.
    pub(super) call_logger: Option<&'a Logger>,
    pub(super) tracer: Option<&'a Tracer>,
}

/// Time of a call, and its order among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTerms {
    pub(super) deadline: Nanos,
    pub(super) spread: u8,
    /// Whether a header of the caller has a deadline.
    pub(super) has_deadline_header: bool,
}

/// A request's own part of its call.
pub(super) struct SentRequest<'r> {
    pub(super) parts: &'r Parts,
    pub(super) headers: HeaderMap,
    pub(super) passed: PassedFields,
    pub(super) terms: CallTerms,
    /// The protocol that its connection is to switch to.
    pub(super) upgrade: Option<&'r HeaderValue>,
    pub(super) traced: Option<TracedCall>,
}

impl<'r> SentRequest<'r> {
    /// A request that switches to no protocol, and has no trace.
    pub(super) fn plain(parts: &'r Parts, headers: HeaderMap, passed: PassedFields, terms: CallTerms) -> Self {
        Self { parts, headers, passed, terms, upgrade: None, traced: None }
    }
}
