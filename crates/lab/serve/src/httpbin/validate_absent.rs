//! `/validate` of a build without JSON Schemas.

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::responses::{CONTENT_TYPE_JSON, response};
use weir_server::ResponseBody;

/// Validator of order bodies: there is none.
#[derive(Debug)]
pub(super) struct AbsentValidator;

impl AbsentValidator {
    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self)
    }

    /// Response 501 with what is missing.
    pub(super) fn validate(&self, _: &[u8]) -> Response<ResponseBody> {
        let missing = Bytes::from_static(
            br#"{"error":"this build of weir has no JSON Schemas; build it with the feature schema"}"#,
        );
        response(StatusCode::NOT_IMPLEMENTED, CONTENT_TYPE_JSON, missing)
    }
}
