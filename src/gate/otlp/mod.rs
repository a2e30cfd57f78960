//! Traces for OpenTelemetry: a span for a call, one for each of its attempts, sent to a collector.
//!
//! What goes over the wire is OTLP/HTTP in JSON (the OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"):
//! every collector takes it, and it needs neither a schema compiler nor a library that changes with each release.
//! Names of attributes are those of OpenTelemetry's semantic conventions for HTTP; weir's own begin with `weir.`.
//!
//! A trace must never slow a call. A [`SpanSender`] therefore hands a span to a queue that is bounded and does not wait: what
//! does not fit is lost, and counted. All the rest is a thread of its own.
//!
//! - [`spans_of_call`]: from a call's story to its [`TraceSpan`]s; [`sampled`]: whether to tell of a call at all
//! - [`Exporter`]: the thread; [`SpanSender`]: one event loop's end of it
//! - `encoding`: spans as JSON; `collector`: who takes them; `delivery`: batches, on that thread

mod collector;
mod delivery;
mod encoding;
mod exporter;
mod of_call;
mod sampling;
mod span;

pub use self::exporter::{Exporter, ExporterCloseHandle, ExporterError, SpanCounts, SpanSender};
pub use self::of_call::{CallSpanFacts, attempt_span_id, spans_of_call};
pub use self::sampling::sampled;
pub use self::span::{AttributeValue, SpanKind, TraceSpan};
