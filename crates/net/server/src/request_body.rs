//! Bodies of requests.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::BodyError;
use super::http1::http1_body::Http1Body;
use super::stream_progress::StreamProgress;

/// Body of a request, read as the service asks for it.
#[derive(Debug)]
pub struct RequestBody(Source);

#[derive(Debug)]
enum Source {
    Empty,
    Http1(Http1Body),
    Http2(Http2Body),
}

/// Body of a stream, which waits for it while the service does.
#[derive(Debug)]
struct Http2Body {
    incoming: Incoming,
    stream: Rc<StreamProgress>,
}

impl Drop for Http2Body {
    fn drop(&mut self) {
        self.stream.has_body();
    }
}

impl Http2Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            self.stream.wants_body();
            return Poll::Pending;
        };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
        self.stream.received(data.map_or(0, Bytes::len));
        Poll::Ready(frame)
    }
}

impl RequestBody {
    /// The body of a request that has none.
    pub(super) fn empty() -> Self {
        Self(Source::Empty)
    }

    pub(super) fn http1(body: Http1Body) -> Self {
        Self(Source::Http1(body))
    }

    pub(super) fn http2(incoming: Incoming, stream: Rc<StreamProgress>) -> Self {
        Self(Source::Http2(Http2Body { incoming, stream }))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Source::Empty => Poll::Ready(None),
            Source::Http1(body) => body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Source::Http2(body) => body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Empty => true,
            Source::Http1(body) => body.is_ended(),
            Source::Http2(body) => body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Empty => SizeHint::with_exact(0),
            Source::Http1(body) => body.remaining().map_or_else(SizeHint::default, SizeHint::with_exact),
            Source::Http2(body) => body.incoming.size_hint(),
        }
    }
}
