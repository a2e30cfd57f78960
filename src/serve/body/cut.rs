//! `/close?at=middle`: a body that ends before its announced end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::server::BodyError;

/// Half of a body.
pub(super) struct Cut {
    half: Option<Bytes>,
    announced: u64,
    /// The half has been taken, and had its chance to be sent: what is not on its way when a body breaks is lost.
    is_sent: bool,
}

impl Cut {
    /// The first half of a page's first `bytes`.
    pub(super) fn new(page: &Bytes, bytes: u64) -> Self {
        let half = page.len().min((bytes / 2) as usize);
        Self { half: Some(page.slice(..half)), announced: bytes, is_sent: false }
    }
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(half) = self.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        if !std::mem::replace(&mut self.is_sent, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err("cut on purpose".into())))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}
