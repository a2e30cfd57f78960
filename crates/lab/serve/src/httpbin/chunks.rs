//! `/chunked`: a body of unknown length.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use weir_base::Nanos;
use weir_machine::timer::{Sleep, Timer};
use weir_server::BodyError;

/// Body of equal chunks at equal intervals.
pub(super) struct ChunkedBody {
    timer: Timer,
    chunk: Bytes,
    remaining_chunks: u64,
    /// Due time of the last chunk; the next is due one interval later, however late the last one was.
    due: Nanos,
    interval: Nanos,
    wait: Option<Sleep>,
}

impl ChunkedBody {
    /// Body of `count` chunks, the first one at `begin`.
    pub(super) fn new(timer: &Timer, chunk: Bytes, count: u64, begin: Nanos, interval: Nanos) -> Self {
        Self { timer: timer.clone(), chunk, remaining_chunks: count, due: begin, interval, wait: None }
    }
}

impl http_body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(wait) = &mut this.wait {
            ready!(Pin::new(wait).poll(cx));
            this.wait = None;
        }
        if this.remaining_chunks == 0 {
            return Poll::Ready(None);
        }
        this.remaining_chunks -= 1;
        if this.remaining_chunks > 0 && this.interval > Nanos::ZERO {
            this.due += this.interval;
            this.wait = Some(this.timer.sleep_until(this.due));
        }
        Poll::Ready(Some(Ok(Frame::data(this.chunk.clone()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
