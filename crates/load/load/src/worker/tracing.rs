//! Requests that are traced.

use super::Worker;
use crate::request_tracing::add_traceparent;
use crate::steps::{Send, StepExchange, UserTable};
use weir_measure::outcome::Outcome;

impl Worker<'_> {
    /// The request of the table with the header of a trace, if it is sampled.
    #[inline]
    pub(super) fn sampled(&mut self, send: Send) -> Send {
        let Some(sampler) = &mut self.sampler else { return send };
        let Some(context) = sampler.next() else { return send };
        // Several that a script sends together are as it has written them.
        let table = self.users.as_mut().filter(|users| UserTable::requests(users) == 1);
        let has_header = table.is_some_and(|users| add_traceparent(&mut users.request, context));
        Send { context: has_header.then_some(context), ..send }
    }

    /// Reports a request that was sampled and has ended.
    #[inline]
    pub(super) fn report_span(&self, outcome: &Outcome, step: u32, exchange: Option<&StepExchange>, message: &str) {
        if let (Some(sampler), Some(span)) = (&self.sampler, exchange.and_then(|exchange| exchange.span.as_deref())) {
            sampler.report(span, step, outcome, &self.clock.wall_offset(), message.to_owned());
        }
    }
}
