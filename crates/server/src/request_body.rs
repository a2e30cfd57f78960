//! Bodies of requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::BodyError;
use super::http1::http1_body::Http1Body;

/// Body of a request, read as the service asks for it.
#[derive(Debug)]
pub struct RequestBody(Source);

#[derive(Debug)]
enum Source {
    Empty,
    Http1(Http1Body),
    Http2(Incoming),
}

impl RequestBody {
    /// The body of a request that has none.
    pub(super) fn empty() -> Self {
        Self(Source::Empty)
    }

    pub(super) fn http1(body: Http1Body) -> Self {
        Self(Source::Http1(body))
    }
}

impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        Self(Source::Http2(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Source::Empty => Poll::Ready(None),
            Source::Http1(body) => body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Source::Http2(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Empty => true,
            Source::Http1(body) => body.is_ended(),
            Source::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Empty => SizeHint::with_exact(0),
            Source::Http1(body) => body.remaining().map_or_else(SizeHint::default, SizeHint::with_exact),
            Source::Http2(body) => body.size_hint(),
        }
    }
}
