//! Stream of events to a page.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::Receiver;
use weir_server::BodyError;

/// Body of a response whose parts come from a task; it ends with the task.
#[derive(Debug)]
pub(crate) struct EventBody(pub(crate) Receiver<Bytes>);

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Server-sent event; JSON has no line breaks.
pub(crate) fn event(name: &str, data: &serde_json::Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
