//! A streamed request body, and whether it waits for its caller.
//!
//! An attempt that is cancelled while the caller has not sent the rest of its request is no evidence about the
//! upstream.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use weir_net::client::{BodyStream, OutgoingBody};

/// State of an upload: whether it waits for its caller.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadState(Rc<Cell<bool>>);

impl UploadState {
    /// Whether the next part of the body has to come from the caller.
    pub(super) fn awaits_caller(&self) -> bool {
        self.0.get()
    }
}

/// A body that records whether it waits for its caller.
struct TrackedBody {
    body: BodyStream,
    upload: UploadState,
}

/// Wraps a body; returns it with its state.
pub(super) fn track_upload(body: BodyStream) -> (OutgoingBody, UploadState) {
    let upload = UploadState::default();
    (OutgoingBody::Stream(Box::pin(TrackedBody { body, upload: upload.clone() })), upload)
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = self.body.as_mut().poll_frame(cx);
        self.upload.0.set(frame.is_pending());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
