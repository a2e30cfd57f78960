//! Body that passes through the recorder, and is copied on its way.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};

use crate::body_capture::BodyCapture;
use crate::open_exchange::OpenExchange;

/// Reason why a body ended early.
pub(crate) type PassingError = Box<dyn std::error::Error + Send + Sync>;

/// Body that passes through: frames go on as they come, with their backpressure.
pub(crate) struct PassingBody {
    inner: Pin<Box<dyn Body<Data = Bytes, Error = PassingError>>>,
    capture: Option<BodyCapture>,
    /// Record that ends with the body of its response.
    exchange: Option<OpenExchange>,
    /// Failure that is returned next, once what came before is on its way.
    failure: Option<PassingError>,
}

impl PassingBody {
    /// Body of another message, copied.
    pub(crate) fn new<B>(body: B, capture: Option<BodyCapture>, exchange: Option<OpenExchange>) -> Self
    where
        B: Body<Data = Bytes> + 'static,
        B::Error: Into<PassingError>,
    {
        Self { inner: Box::pin(body.map_err(Into::into)), capture, exchange, failure: None }
    }

    /// The recorder's own text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::new(Full::new(text.into()).map_err(|never| match never {}), None, None)
    }
}

impl fmt::Debug for PassingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassingBody").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

impl Body for PassingBody {
    type Data = Bytes;
    type Error = PassingError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, PassingError>>> {
        let this = &mut *self;
        if let Some(failure) = this.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match ready!(this.inner.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let (Some(capture), Some(data)) = (&this.capture, frame.data_ref()) {
                    capture.push(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            // The server would drop data that it has not yet written.
            Some(Err(error)) => {
                if let Some(exchange) = &mut this.exchange {
                    exchange.set_broken(&error.to_string());
                }
                this.failure = Some(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                if let Some(exchange) = &mut this.exchange {
                    exchange.set_complete();
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
