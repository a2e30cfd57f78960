//! Messages of OTLP (OpenTelemetry Protocol), by their numbers in `opentelemetry-proto` 1.x; fields that are not written
//! are left out.
//!
//! Requests are written in protobuf or in JSON, which every collector takes over HTTP. Two rules of that JSON differ from
//! protobuf's own (OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"): IDs are hexadecimal instead of base64,
//! and enums are numbers. As in protobuf's, 64-bit numbers are strings.
//!
//! - `resource`: whose telemetry it is; attributes
//! - [`spans`]: requests of traces; [`metrics`]: requests of metrics
//! - [`ExportRejection`]: what a collector has rejected of a request that it has accepted

pub mod metrics;
mod rejection;
mod resource;
pub mod spans;

pub use self::rejection::ExportRejection;
pub use self::resource::{AttributeScalar, OtlpAttribute, OtlpResource, OtlpScope, OtlpValue};

/// Whether a request with this status may be sent again: by the protocol exactly four are.
pub fn is_retryable(status: u16) -> bool {
    matches!(status, 429 | 502..=504)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_statuses_of_the_protocol_are_retryable() {
        let named: Vec<u16> = (100..600).filter(|status| super::is_retryable(*status)).collect();
        assert_eq!(named, [429, 502, 503, 504]);
    }
}
