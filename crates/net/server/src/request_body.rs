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
use weir_net::wire::PassedFields;

/// Body of a request, read as the service asks for it.
#[derive(Debug, Default)]
pub struct RequestBody {
    source: Source,
    /// Fields of the head beside its map.
    passed: PassedFields,
}

#[derive(Debug, Default)]
enum Source {
    #[default]
    Empty,
    /// All of it.
    Whole(Bytes),
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
    /// The body of a request over HTTP/1, None if it has none, and fields of its head that are not in the map.
    pub(super) fn http1(body: Option<Http1Body>, passed: PassedFields) -> Self {
        Self { source: body.map_or(Source::Empty, Source::Http1), passed }
    }

    /// The body of a request over HTTP/1 that came with its head.
    pub(super) fn whole(body: Bytes, passed: PassedFields) -> Self {
        Self { source: Source::Whole(body), passed }
    }

    /// Whether nothing of it is still to come.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.source, Source::Empty | Source::Whole(_))
    }

    /// Takes a body of which nothing is still to come.
    pub(super) fn take_whole(&mut self) -> Option<Bytes> {
        match std::mem::take(&mut self.source) {
            Source::Empty => Some(Bytes::new()),
            Source::Whole(body) => Some(body),
            other => {
                self.source = other;
                None
            }
        }
    }

    /// Fields of the request's head beside its headers, of the names that the service has passed on unread.
    pub fn take_passed_fields(&mut self) -> PassedFields {
        std::mem::take(&mut self.passed)
    }

    pub(super) fn http2(incoming: Incoming, stream: Rc<StreamProgress>) -> Self {
        Self { source: Source::Http2(Http2Body { incoming, stream }), passed: PassedFields::default() }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Empty => Poll::Ready(None),
            Source::Whole(body) if body.is_empty() => Poll::Ready(None),
            Source::Whole(body) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(body))))),
            Source::Http1(body) => body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Source::Http2(body) => body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Empty => true,
            Source::Whole(body) => body.is_empty(),
            Source::Http1(body) => body.is_ended(),
            Source::Http2(body) => body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Empty => SizeHint::with_exact(0),
            Source::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Source::Http1(body) => body.remaining().map_or_else(SizeHint::default, SizeHint::with_exact),
            Source::Http2(body) => body.incoming.size_hint(),
        }
    }
}
