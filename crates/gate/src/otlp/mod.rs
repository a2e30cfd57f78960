//! OpenTelemetry traces: a server span for each call and a client span for each attempt, sent to a collector.
//!
//! The protocol is OTLP/HTTP in JSON (OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"), which every
//! collector supports without a schema compiler. Names of attributes are those of OpenTelemetry's semantic conventions
//! for HTTP; weir's own begin with `weir.`.
//!
//! Traces never slow a call: a [`SpanSender`] puts spans into a bounded queue without waiting, and drops and counts
//! those that do not fit. Everything else happens on a thread of its own.
//!
//! - [`spans_of_call`]: the [`TraceSpan`]s of a call; [`sampled`]: sampling
//! - [`Exporter`]: the thread; [`SpanSender`]: one event loop's sender, in `span_queue`
//! - `encoding`: spans as JSON; `collector`: one request; `delivery`: batches and retries, on the thread

mod attributes;
mod call_spans;
mod collector;
mod delivery;
mod encoding;
mod exporter;
mod sampling;
mod span;
mod span_queue;

pub use self::call_spans::{CallSpanFacts, attempt_span_id, spans_of_call};
pub use self::exporter::{Exporter, ExporterCloseHandle, ExporterError};
pub use self::sampling::sampled;
pub use self::span::{AttributeValue, SpanKind, TraceSpan};
pub use self::span_queue::{SpanCounts, SpanSender};
