//! A request's body that comes from its caller while it is sent: whose turn it is.
//!
//! An attempt that is given up while the caller owes more of the request says nothing of the upstream, however long it has
//! taken.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::http::client::{BodyStream, OutgoingBody};

/// Whether an upload waits for its caller.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadState(Rc<Cell<bool>>);

impl UploadState {
    /// Whether the caller is to send more before anything else can happen.
    pub(super) fn awaits_caller(&self) -> bool {
        self.0.get()
    }
}

/// A body that tells when it waits.
struct TrackedBody {
    body: BodyStream,
    upload: UploadState,
}

/// The body, and what tells of it.
pub(super) fn track_upload(body: BodyStream) -> (OutgoingBody, UploadState) {
    let owes = UploadState::default();
    (OutgoingBody::Stream(Box::pin(TrackedBody { body, upload: owes.clone() })), owes)
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
