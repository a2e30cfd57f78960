//! Telemetry on its way to receivers: messages of OpenTelemetry, their delivery by HTTP, and the export of spans.
//!
//! Telemetry never slows what it is about: it goes into bounded queues without waiting, and what does not fit is dropped
//! and counted. Everything else happens on threads of its own.
//!
//! - [`otlp`]: PURE: messages of OTLP for spans and metrics, in protobuf and in JSON
//! - [`TraceSpan`]: PURE: a span, with `attributes`
//! - [`Exporter`]: the thread that exports spans; [`SpanSender`]: one event loop's sender, in `span_queue`;
//!   `span_delivery`: batches and retries, on the thread
//! - [`HttpReceiver`]: one request to a receiver at an [`HttpAddress`], or a [`DeliveryFailure`]
//! - [`delivery_loop`]: the event loop of a thread that delivers
//!
//! Names of attributes are those of OpenTelemetry's semantic conventions for HTTP; weir's own begin with `weir.`.

mod attributes;
mod delivery_failure;
pub mod delivery_loop;
mod exporter;
mod http_address;
mod http_receiver;
pub mod otlp;
mod span;
mod span_delivery;
mod span_queue;

pub use self::attributes::{MAX_TEXT_BYTES, push_server_address, span_name, truncate};
pub use self::delivery_failure::{DeliveryFailure, system_message};
pub use self::exporter::{Exporter, ExporterCloseHandle, ExporterError};
pub use self::http_address::{AddressError, HttpAddress, HttpRules};
pub use self::http_receiver::HttpReceiver;
pub use self::span::{AttributeValue, SpanKind, TraceSpan};
pub use self::span_queue::{SpanCounts, SpanSender};
