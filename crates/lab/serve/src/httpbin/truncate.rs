//! `/close?at=middle`: a body that ends before its announced end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use weir_server::BodyError;

/// First half of a body.
pub(super) struct TruncatedBody {
    half: Option<Bytes>,
    content_length: u64,
}

impl TruncatedBody {
    /// First half of the first `bytes` of a page.
    pub(super) fn new(page: &Bytes, bytes: u64) -> Self {
        let half = page.len().min((bytes / 2) as usize);
        Self { half: Some(page.slice(..half)), content_length: bytes }
    }
}

impl http_body::Body for TruncatedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let half = self.half.take().map(Frame::data);
        Poll::Ready(Some(half.ok_or_else(|| "cut on purpose".into())))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content_length)
    }
}
