//! Conditions of a successful response: status, headers and body.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
#[cfg(feature = "schema")]
use jsonschema::Validator;
use serde::de::IgnoredAny;

use weir_base::failure::FailureKind;
use weir_retry::grpc::{Code, Codes, is_grpc};
use weir_retry::policy::AttemptFailure;

/// Conditions of a successful response.
#[derive(Clone, Debug)]
pub struct Success {
    /// Ranges of the statuses of success.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Headers that must be present, with these values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether the body must be JSON. Of a response to HEAD, and of a 304, only the head counts.
    pub json: bool,
    /// JSON Schema that the body must match.
    pub(crate) schema: Option<Arc<Validator>>,
    /// Maximum body that is checked, in bytes; a longer one is a failure.
    pub max_body_bytes: usize,
    /// Whether the body must be complete, whatever its content.
    pub require_complete: bool,
    /// Largest body with a known length, in bytes, that must be complete, whatever its content.
    pub complete_bytes: u64,
    /// Whether the first part of a body must have come, or its end, if the call may have further attempts: hedge stages
    /// then count to the first byte of a stream, whose head may come long before.
    pub require_start: bool,
    /// Codes with which a gRPC response is a failure, in its head or its trailers.
    pub grpc: Codes,
}

/// Error of an invalid JSON Schema.
#[derive(Debug)]
pub struct InvalidSchema(String);

impl std::error::Error for InvalidSchema {}

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "schema")]
fn validator(schema: &serde_json::Value) -> Result<Validator, InvalidSchema> {
    jsonschema::validator_for(schema).map_err(|error| InvalidSchema(format!("not a JSON Schema: {error}")))
}

/// Validator of a build without JSON Schemas: there is none.
#[cfg(not(feature = "schema"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum AbsentSchema {}

#[cfg(not(feature = "schema"))]
use AbsentSchema as Validator;

#[cfg(not(feature = "schema"))]
impl AbsentSchema {
    fn is_valid(self, _: &serde_json::Value) -> bool {
        match self {}
    }
}

#[cfg(not(feature = "schema"))]
fn validator(_: &serde_json::Value) -> Result<Validator, InvalidSchema> {
    Err(InvalidSchema(
        "a JSON Schema, which this build of weir cannot read; build it with the feature schema".to_owned(),
    ))
}

impl Default for Success {
    /// All statuses but 408, 429 and 5xx.
    fn default() -> Self {
        Self {
            statuses: vec![100..=407, 409..=428, 430..=499],
            headers: Vec::new(),
            json: false,
            schema: None,
            max_body_bytes: 1 << 20,
            require_complete: false,
            complete_bytes: 0,
            require_start: false,
            grpc: Codes::failures(),
        }
    }
}

impl Success {
    /// Requires bodies that match a JSON Schema.
    ///
    /// # Errors
    /// The schema is invalid, or this build has no feature `schema`.
    pub fn with_schema(mut self, schema: &serde_json::Value) -> Result<Self, InvalidSchema> {
        self.schema = Some(Arc::new(validator(schema)?));
        Ok(self)
    }

    /// Whether bodies are checked. They are checked as they are sent, so requests should not accept content codings
    /// (RFC 9110, 12.5.3).
    pub fn inspects_bodies(&self) -> bool {
        self.json || self.schema.is_some()
    }

    /// Whether success depends on the head alone, of a response that has come whole.
    pub(super) fn is_of_head(&self) -> bool {
        !self.inspects_bodies() && !self.require_complete && self.complete_bytes == 0
    }

    /// Whether success depends on the whole body, of this length if it is known.
    pub(super) fn needs_body(&self, length: Option<u64>) -> bool {
        self.require_complete || self.inspects_bodies() || length.is_some_and(|length| length <= self.complete_bytes)
    }

    /// Checks the head of a response.
    pub(super) fn check_head(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), AttemptFailure> {
        let status = status.as_u16();
        if !self.statuses.iter().any(|range| range.contains(&status)) {
            return Err(AttemptFailure::Status(status));
        }
        let has = |(name, value): &(HeaderName, HeaderValue)| headers.get_all(name).iter().any(|v| v == value);
        if !self.headers.iter().all(has) {
            return Err(AttemptFailure::Kind(FailureKind::Header));
        }
        grpc_failure(self.codes(headers), headers).map_or(Ok(()), Err)
    }

    /// Codes with which this response is a failure; empty unless it is gRPC.
    pub(super) fn codes(&self, headers: &HeaderMap) -> Codes {
        let is = headers.get(CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        if is { self.grpc } else { Codes::NONE }
    }

    /// Checks a complete body.
    ///
    /// # Errors
    /// It is not what the rule requires.
    pub fn check_body(&self, body: &Bytes) -> Result<(), AttemptFailure> {
        let fits = match &self.schema {
            Some(schema) => serde_json::from_slice(body).is_ok_and(|value| schema.is_valid(&value)),
            None => !self.json || serde_json::from_slice::<IgnoredAny>(body).is_ok(),
        };
        if fits { Ok(()) } else { Err(AttemptFailure::Kind(FailureKind::Body)) }
    }
}

/// Failure of the gRPC status in headers or trailers, if its code is in `failing`.
pub(super) fn grpc_failure(failing: Codes, headers: &HeaderMap) -> Option<AttemptFailure> {
    if failing == Codes::NONE {
        return None;
    }
    let code = Code::read(headers.get("grpc-status")?.as_bytes());
    failing.contains(code).then_some(AttemptFailure::Grpc(code))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn checked(success: &Success, status: u16) -> Result<(), AttemptFailure> {
        let headers = [(HeaderName::from_static("x-ok"), HeaderValue::from_static("yes"))].into_iter().collect();
        success.check_head(StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn default_failures_are_408_429_and_5xx() {
        let success = Success::default();
        for (status, good) in [(200, true), (304, true), (404, true), (408, false), (429, false), (500, false)] {
            assert_eq!(checked(&success, status), if good { Ok(()) } else { Err(AttemptFailure::Status(status)) });
        }
    }

    #[test]
    fn a_header_must_have_its_value() {
        let wanting = |value| Success {
            headers: vec![(HeaderName::from_static("x-ok"), HeaderValue::from_static(value))],
            ..Success::default()
        };
        assert_eq!(checked(&wanting("yes"), 200), Ok(()));
        assert_eq!(checked(&wanting("no"), 200), Err(AttemptFailure::Kind(FailureKind::Header)));
    }

    #[test]
    fn a_body_must_be_json_and_match_the_schema() {
        let json = Success { json: true, ..Success::default() };
        let schema = serde_json::json!({"required": ["time"], "properties": {"time": {"type": "integer"}}});
        let strict = json.clone().with_schema(&schema).unwrap();
        let wrong = Err(AttemptFailure::Kind(FailureKind::Body));
        for (body, is_json, follows) in [
            (r#"{"time": 3}"#, Ok(()), Ok(())),
            (r#"{"time": "3"}"#, Ok(()), wrong),
            ("Internal Server Error", wrong, wrong),
            ("", wrong, wrong),
            ("{} {}", wrong, wrong),
        ] {
            assert_eq!(json.check_body(&Bytes::from(body)), is_json, "{body}");
            assert_eq!(strict.check_body(&Bytes::from(body)), follows, "{body}");
        }
    }

    #[test]
    fn an_invalid_schema_is_an_error() {
        let error = Success::default().with_schema(&serde_json::json!({"type": "whatever"})).unwrap_err();
        assert!(error.to_string().starts_with("not a JSON Schema"), "{error}");
    }
}
