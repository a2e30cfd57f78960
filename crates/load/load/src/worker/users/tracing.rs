//! Requests that are traced.

use super::super::Worker;
use super::UserRequests;
use crate::request_tracing::add_traceparent;
use crate::steps::{Send, StepExchange};
use weir_measure::outcome::Outcome;

impl Worker<'_, UserRequests<'_>> {
    /// The request of the table with the header of a trace, if it is sampled.
    #[inline]
    pub(super) fn sampled(&mut self, send: Send) -> Send {
        let Some(sampler) = &mut self.flow.sampler else { return send };
        let Some(context) = sampler.next() else { return send };
        // Several that a script sends together are as it has written them.
        let table = &mut self.flow.table;
        let has_header = table.requests() == 1 && add_traceparent(&mut table.request, context);
        Send { context: has_header.then_some(context), ..send }
    }

    /// Reports a request that was sampled and has ended.
    #[inline]
    pub(super) fn report_span(&self, outcome: &Outcome, step: u32, exchange: Option<&StepExchange>, message: &str) {
        if let (Some(sampler), Some(span)) =
            (&self.flow.sampler, exchange.and_then(|exchange| exchange.span.as_deref()))
        {
            sampler.report(span, step, outcome, &self.clock.wall_offset(), message.to_owned());
        }
    }
}
