//! JSON of scenarios to messages, and back.

use weir_scenario::plan::BodyCodec;

use super::call::GrpcCall;
use super::call_messages::CallMessages;
use crate::headers::with_headers;

/// JSON of scenarios to messages of a call, and back.
#[derive(Clone, Debug)]
pub(crate) struct JsonCodec(pub(crate) GrpcCall);

impl JsonCodec {
    /// Check of the messages of a response.
    pub(crate) fn messages(&self) -> CallMessages {
        CallMessages::new(self.0.method.kind().has_response_stream())
    }

    /// Messages of a response as JSON, one line each; `head` is its head.
    ///
    /// # Errors
    /// What is wrong with the body.
    pub(crate) fn response(&self, head: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
        with_headers(head, |fields| {
            let encoding = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("grpc-encoding"));
            self.0.method.decode(body, encoding.map_or(&[], |(_, value)| *value)).map(String::into_bytes)
        })
    }

    /// Request with its messages as JSON, to be shown.
    pub(crate) fn shown_request(&self, request: &[u8]) -> Vec<u8> {
        let head = memchr::memmem::find(request, b"\r\n\r\n").map_or(request.len(), |at| at + 4);
        let (head, body) = request.split_at(head);
        match self.0.method.decode_request(body) {
            Ok(json) => [head, json.as_bytes()].concat(),
            Err(_) => request.to_vec(),
        }
    }
}

impl BodyCodec for JsonCodec {
    fn encode(&self, body: &[u8]) -> Result<Vec<u8>, String> {
        self.0.encode(body)
    }
}
