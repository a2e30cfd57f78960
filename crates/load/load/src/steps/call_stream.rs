//! A call of gRPC that is a stream, beside what every request has.

use std::sync::{Arc, Mutex};

use crate::grpc::{CallReader, OpenCallBody};

/// A call of gRPC that is a stream: its request, which its program writes, and the rest of a message of its response.
#[derive(Debug)]
pub(crate) struct CallStream {
    /// Request, which its user adds messages to wherever the call is.
    pub(crate) body: Arc<Mutex<OpenCallBody>>,
    pub(crate) reader: CallReader,
}

impl CallStream {
    /// Call with this request; nothing has come of its response.
    pub(crate) fn new(body: Arc<Mutex<OpenCallBody>>) -> Self {
        Self { body, reader: CallReader::default() }
    }
}
