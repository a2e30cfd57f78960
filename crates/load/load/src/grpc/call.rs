//! The method that all requests call.

use weir_grpc::GrpcMethod;

use crate::plan::PlanError;

/// The method that all requests call.
#[derive(Clone, Debug)]
pub struct GrpcCall {
    pub(crate) method: GrpcMethod,
    /// Whether messages are compressed.
    pub(crate) compresses: bool,
}

impl GrpcCall {
    /// Body of a request, from JSON.
    pub(crate) fn message(&self, json: &[u8]) -> Result<Vec<u8>, PlanError> {
        self.encode(json).map_err(|why| PlanError::Value("body", why))
    }

    /// Body of a request, from JSON.
    ///
    /// # Errors
    /// One line: why the JSON is not a message of the method.
    pub(crate) fn encode(&self, json: &[u8]) -> Result<Vec<u8>, String> {
        let text = std::str::from_utf8(json).map_err(|_| "the message is not text; write it as JSON".to_owned())?;
        self.method.encode(text, self.compresses)
    }
}
