//! The method that all requests call.

use weir_base::Nanos;
use weir_grpc::GrpcMethod;

use crate::plan::PlanError;

/// The method that all requests call.
#[derive(Clone, Debug)]
pub struct GrpcCall {
    pub(crate) method: GrpcMethod,
    /// Whether messages are compressed.
    pub(crate) compresses: bool,
}

/// What all calls of a load have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcCalls {
    /// Whether responses to requests of the plan may have any number of messages.
    pub(crate) are_streams: bool,
    /// Time between the messages of a request; `None` if they are sent together.
    pub(crate) message_interval: Option<Nanos>,
}

impl GrpcCalls {
    /// Calls of a method; of scenarios without one, which have methods of their own.
    pub(crate) fn of(call: Option<&GrpcCall>, message_interval: Option<Nanos>) -> Self {
        let are_streams = call.is_some_and(|call| call.method.kind().has_response_stream());
        Self { are_streams, message_interval }
    }
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
