//! Which calls are traced, and what a collector hears of them.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use http::HeaderMap;

use super::otlp::{CallSpanFacts, SpanSender, sampled, spans_of_call};
use crate::call::TraceContext;
use crate::call::story::CallTrace;
use crate::decide::dice::Dice;
use crate::machine::clock::Clock;

/// One event loop's end of the traces.
#[derive(Debug)]
pub(super) struct Tracer {
    sender: SpanSender,
    sample_fraction: f64,
    clock: Clock,
    ids: Cell<Dice>,
}

/// A call that is traced.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedCall {
    pub(super) context: TraceContext,
    pub(super) parent: Option<u64>,
}

impl Tracer {
    /// Tells `pen`; of the calls that no caller decided about, this share is traced.
    pub(super) fn new(sender: SpanSender, sample_fraction: f64, clock: Clock) -> Self {
        // Two gates must not have the same ids, whatever their seeds.
        let unlike_others = RandomState::new().hash_one("traces");
        Self { sender, sample_fraction, clock, ids: Cell::new(Dice::new(unlike_others, 0)) }
    }

    /// The trace of a call, if it has one: as the caller says, or as the dice fall.
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

    /// The call has ended.
    pub(super) fn record(&self, call: &CallSpanFacts<'_>, story: &CallTrace) {
        for span in spans_of_call(call, Some(story), &self.clock.wall_offset()) {
            self.sender.send(span);
        }
    }
}
