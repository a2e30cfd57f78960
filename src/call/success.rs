//! What a success is: the right status, the right headers, the right body.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use jsonschema::Validator;
use serde::de::IgnoredAny;

use crate::decide::grpc::{Code, Codes, is_grpc};
use crate::decide::policy::{AttemptFailure, FailureKind};

/// When an attempt's answer is a success.
#[derive(Clone, Debug)]
pub struct Success {
    /// The statuses that are, as inclusive ranges.
    pub statuses: Vec<(u16, u16)>,
    /// Headers that it must have, with these values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether its body must be JSON. Of an answer to HEAD, and of a 304, the head alone counts.
    pub json: bool,
    /// The JSON Schema that its body must follow.
    pub(crate) schema: Option<Arc<Validator>>,
    /// The longest body that is looked at, in bytes.
    pub max_body_bytes: usize,
    /// Whether it must have come whole, whatever it holds.
    pub require_complete: bool,
    /// The codes with which a gRPC answer is no success, in its head or in its trailers.
    pub grpc: Codes,
}

/// A schema that is none.
#[derive(Debug)]
pub struct InvalidSchema(String);

impl std::error::Error for InvalidSchema {}

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a JSON Schema: {}", self.0)
    }
}

impl Default for Success {
    /// Any answer but those that ask for patience (408, 429) and those of a server in trouble (5xx).
    fn default() -> Self {
        Self {
            statuses: vec![(100, 407), (409, 428), (430, 499)],
            headers: Vec::new(),
            json: false,
            schema: None,
            max_body_bytes: 1 << 20,
            require_complete: false,
            grpc: Codes::failures(),
        }
    }
}

impl Success {
    /// Asks for bodies that follow `schema`.
    ///
    /// # Errors
    /// When it is no schema.
    pub fn with_schema(mut self, schema: &serde_json::Value) -> Result<Self, InvalidSchema> {
        self.schema =
            Some(Arc::new(jsonschema::validator_for(schema).map_err(|error| InvalidSchema(error.to_string()))?));
        Ok(self)
    }

    /// Whether bodies are looked into. They are taken as they are sent: who asks so should not accept any content
    /// coding (RFC 9110, 12.5.3).
    pub fn inspects_bodies(&self) -> bool {
        self.json || self.schema.is_some()
    }

    /// Whether the head alone does not tell.
    pub(super) fn needs_body(&self) -> bool {
        self.require_complete || self.inspects_bodies()
    }

    /// What is wrong with an answer's head.
    pub(super) fn check_head(&self, head: &Parts) -> Result<(), AttemptFailure> {
        let status = head.status.as_u16();
        if !self.statuses.iter().any(|(from, to)| (*from..=*to).contains(&status)) {
            return Err(AttemptFailure::Status(status));
        }
        let has = |(name, value): &(HeaderName, HeaderValue)| head.headers.get_all(name).iter().any(|v| v == value);
        if !self.headers.iter().all(has) {
            return Err(AttemptFailure::Kind(FailureKind::Header));
        }
        grpc_failure(self.codes(head), &head.headers).map_or(Ok(()), Err)
    }

    /// The codes with which this answer has failed: none if it is not one of gRPC.
    pub(super) fn codes(&self, head: &Parts) -> Codes {
        let is = head.headers.get(CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        if is { self.grpc } else { Codes::NONE }
    }

    /// What is wrong with an answer's body.
    pub(super) fn check_body(&self, body: &Bytes) -> Result<(), AttemptFailure> {
        let fits = match &self.schema {
            Some(schema) => serde_json::from_slice(body).is_ok_and(|value| schema.is_valid(&value)),
            None => !self.json || serde_json::from_slice::<IgnoredAny>(body).is_ok(),
        };
        if fits { Ok(()) } else { Err(AttemptFailure::Kind(FailureKind::Body)) }
    }
}

/// What is wrong by the gRPC status in these headers or trailers, if these codes are.
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

    fn head(status: u16) -> Parts {
        http::Response::builder().status(status).header("x-ok", "yes").body(()).unwrap().into_parts().0
    }

    #[test]
    fn by_default_only_trouble_is_no_success() {
        let success = Success::default();
        for (status, good) in [(200, true), (304, true), (404, true), (408, false), (429, false), (500, false)] {
            let judged = success.check_head(&head(status));
            assert_eq!(judged, if good { Ok(()) } else { Err(AttemptFailure::Status(status)) });
        }
    }

    #[test]
    fn a_header_has_to_be_there_with_its_value() {
        let wanting = |value| Success {
            headers: vec![(HeaderName::from_static("x-ok"), HeaderValue::from_static(value))],
            ..Success::default()
        };
        assert_eq!(wanting("yes").check_head(&head(200)), Ok(()));
        assert_eq!(wanting("no").check_head(&head(200)), Err(AttemptFailure::Kind(FailureKind::Header)));
    }

    #[test]
    fn a_body_has_to_be_json_and_to_follow_the_schema() {
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
    fn a_schema_that_is_none_is_said() {
        let error = Success::default().with_schema(&serde_json::json!({"type": "whatever"})).unwrap_err();
        assert!(error.to_string().starts_with("not a JSON Schema"), "{error}");
    }
}
