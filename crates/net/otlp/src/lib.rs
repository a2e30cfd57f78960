//! OpenTelemetry traces: spans, and their export to a collector.
//!
//! The protocol is OTLP/HTTP in JSON (OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"), which every
//! collector supports without a schema compiler. Names of attributes are those of OpenTelemetry's semantic conventions
//! for HTTP; weir's own begin with `weir.`.
//!
//! Traces never slow what they are about: a [`SpanSender`] puts spans into a bounded queue without waiting, and drops and
//! counts those that do not fit. Everything else happens on a thread of its own.
//!
//! - [`TraceSpan`]: PURE: a span, with `attributes`
//! - [`Exporter`]: the thread; [`SpanSender`]: one event loop's sender, in `span_queue`
//! - `encoding`: PURE: spans as JSON; `collector`: one request; `delivery`: batches and retries, on the thread

mod attributes;
mod collector;
mod delivery;
mod encoding;
mod exporter;
mod span;
mod span_queue;

pub use self::attributes::{MAX_TEXT_BYTES, push_server_address, span_name, truncate};
pub use self::exporter::{Exporter, ExporterCloseHandle, ExporterError};
pub use self::span::{AttributeValue, SpanKind, TraceSpan};
pub use self::span_queue::{SpanCounts, SpanSender};
