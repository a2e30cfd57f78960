//! JSON of scenarios to messages, and back.

use std::borrow::Cow;

use weir_grpc::metadata::CONTENT_TYPE;
use weir_scenario::plan::BodyCodec;

use super::call::GrpcCall;
use super::call_end::HTTP_OK;
use super::call_messages::CallMessages;
use crate::event_streams::status_of;
use crate::headers::with_headers;
use crate::steps::decoded_body;

/// JSON of scenarios to messages of a call, and back.
#[derive(Clone, Debug)]
pub(crate) struct JsonCodec(pub(crate) GrpcCall);

impl JsonCodec {
    /// Check of the messages of a response.
    pub(crate) fn messages(&self) -> CallMessages {
        CallMessages::new(self.0.method.kind().has_response_stream())
    }

    /// Messages of a response as JSON, one line each; `head` is its head. What a proxy has sent in their place is as it is.
    ///
    /// # Errors
    /// What is wrong with the body.
    pub(crate) fn response(&self, head: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
        with_headers(head, |fields| {
            let value =
                |of: &str| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(of)).map(|(_, value)| *value);
            let has_other_type = value("content-type").is_some_and(|value| !value.starts_with(CONTENT_TYPE.as_bytes()));
            if has_other_type || status_of(head).is_some_and(|status| status != HTTP_OK) {
                return decoded_body(body, value("content-encoding")).map(Cow::into_owned);
            }
            let encoding = value("grpc-encoding").unwrap_or_default();
            self.0.method.decode(body, encoding).map(String::into_bytes)
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
