//! Sampling of calls, and the export of their spans.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use http::HeaderMap;

use super::call_spans::{CallSpanFacts, spans_of_call};
use weir_base::rng::SeededRng;
use weir_call::attempt_log::CallTrace;
use weir_machine::clock::Clock;
use weir_net::trace_sampling::sampled;
use weir_net::traceparent::TraceContext;
use weir_telemetry::SpanSender;

/// Tracer of one event loop.
#[derive(Debug)]
pub(super) struct Tracer {
    sender: SpanSender,
    sample_fraction: f64,
    clock: Clock,
    ids: Cell<SeededRng>,
}

/// A sampled call.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedCall {
    pub(super) context: TraceContext,
    pub(super) parent: Option<u64>,
}

impl Tracer {
    /// A tracer that sends spans to `sender`. Of calls whose caller has not decided, `sample_fraction` are traced.
    pub(super) fn new(sender: SpanSender, sample_fraction: f64, clock: Clock) -> Self {
        // Gateways with the same seed must have different IDs.
        let random = RandomState::new().hash_one("traces");
        Self { sender, sample_fraction, clock, ids: Cell::new(SeededRng::new(random, 0)) }
    }

    /// Trace of a call, if it is sampled: by the caller's `traceparent`, or at random.
    pub(super) fn begin(&self, headers: &HeaderMap) -> Option<TracedCall> {
        let given = headers.get("traceparent").and_then(|value| TraceContext::parse(value.as_bytes()));
        let mut ids = self.ids.get();
        let span_id = ids.bits().max(1);
        let begun = match given {
            Some(given) if given.flags & 1 == 0 => None,
            Some(given) => Some(TracedCall { context: TraceContext { span_id, ..given }, parent: Some(given.span_id) }),
            None => {
                let trace_id = (u128::from(ids.bits()) << 64 | u128::from(ids.bits())).max(1);
                let context = TraceContext { trace_id, span_id, flags: 1 };
                sampled(trace_id, self.sample_fraction).then_some(TracedCall { context, parent: None })
            }
        };
        self.ids.set(ids);
        begun
    }

    /// Exports the spans of an ended call.
    pub(super) fn record(&self, call: &CallSpanFacts<'_>, trace: &CallTrace) {
        for span in spans_of_call(call, Some(trace), &self.clock.wall_offset()) {
            self.sender.send(span);
        }
    }
}
