//! Body of a request that comes in pieces while it is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::change_notice::ChangeNotice;
use super::streamed_call::StreamedCall;

/// Body of a request that takes its pieces from an call's queue.
pub(super) struct QueuedBody {
    pub(super) streamed: Arc<StreamedCall>,
    pub(super) notice: ChangeNotice,
}

impl Body for QueuedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut next = Poll::Pending;
        self.notice.change(&self.streamed, |state| next = state.upload.poll_next(cx));
        next.map(|next| next.map(|piece| piece.map(Frame::data).map_err(Into::into)))
    }
}
