//! Messages of a request, as they come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;

use http_body::Body;
use prost::Message;
use weir_events::{EventReader, StreamFormat};
use weir_grpc::messages::message_of;
use weir_server::RequestBody;

use super::call_error::{CallError, RESOURCE_EXHAUSTED};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Messages of a request, read as they come.
#[derive(Debug)]
pub(super) struct RequestMessages {
    body: RequestBody,
    reader: EventReader,
    encoding: Vec<u8>,
    waiting: VecDeque<Vec<u8>>,
}

impl RequestMessages {
    /// Messages of a body with this `grpc-encoding`.
    pub(super) fn new(body: RequestBody, encoding: &[u8]) -> Self {
        let reader = EventReader::with_max_data(StreamFormat::Grpc, MAX_MESSAGE_BYTES);
        Self { body, reader, encoding: encoding.to_vec(), waiting: VecDeque::new() }
    }

    /// The next message; `None` behind the last one.
    pub(super) async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Some(message));
            }
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame else {
                if self.reader.is_within_event() {
                    return Err(CallError::invalid("the request ends within a message"));
                }
                return Ok(None);
            };
            let frame = frame.map_err(|error| CallError::invalid(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            let mut rest = &data[..];
            while let Some(event) = self.reader.next_event(&mut rest) {
                if event.is_truncated {
                    let why = format!("a message is longer than {} MiB", MAX_MESSAGE_BYTES >> 20);
                    return Err(CallError::new(RESOURCE_EXHAUSTED, why));
                }
                let message = message_of(&event, &self.encoding).map_err(CallError::invalid)?;
                self.waiting.push_back(message.into_owned());
            }
        }
    }

    /// The next message, decoded.
    pub(super) async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, CallError> {
        let Some(bytes) = self.next_bytes().await? else { return Ok(None) };
        M::decode(bytes.as_slice()).map(Some).map_err(|error| CallError::invalid(error.to_string()))
    }

    /// The one message of a request.
    pub(super) async fn only_bytes(&mut self) -> Result<Vec<u8>, CallError> {
        let message = self.next_bytes().await?.ok_or_else(|| CallError::invalid("the request has no message"))?;
        match self.next_bytes().await? {
            None => Ok(message),
            Some(_) => Err(CallError::invalid("the request has two messages")),
        }
    }

    /// The one message of a request, decoded.
    pub(super) async fn only<M: Message + Default>(&mut self) -> Result<M, CallError> {
        let bytes = self.only_bytes().await?;
        M::decode(bytes.as_slice()).map_err(|error| CallError::invalid(error.to_string()))
    }
}
