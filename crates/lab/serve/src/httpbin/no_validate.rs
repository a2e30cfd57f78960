//! `/validate` of a build without the feature `schema`.

use http::{Response, StatusCode};

use crate::responses::{CONTENT_TYPE_JSON, response};
use weir_server::ResponseBody;

/// Stand-in for the validator of orders.
#[derive(Debug)]
pub(super) struct NoOrderValidator;

pub(super) use NoOrderValidator as OrderValidator;

impl NoOrderValidator {
    /// The stand-in.
    ///
    /// # Errors
    /// Never.
    #[expect(clippy::unnecessary_wraps, reason = "the validator itself can fail")]
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self)
    }

    /// Response: 501.
    pub(super) fn validate(&self, _: &[u8]) -> Response<ResponseBody> {
        let body = r#"{"error":"this build of weir has no JSON Schema; build it with the feature schema"}"#;
        response(StatusCode::NOT_IMPLEMENTED, CONTENT_TYPE_JSON, body)
    }
}
