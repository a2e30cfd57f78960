//! An answer's body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};

use super::error::SendError;
use super::http1::Receiving;
use super::http2::{self, Stream};
use super::upgraded::Upgraded;

/// The body of an answer. Dropped before its end it lets go of the connection (of the stream, in HTTP/2) at once;
/// or reads the rest first, if that is little.
#[derive(Debug)]
pub struct Incoming {
    /// What has come and was not given out yet.
    data: Bytes,
    trailers: Option<HeaderMap>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// All has come.
    Whole,
    Http1(Box<Receiving>),
    Http2(Box<(hyper::body::Incoming, Stream)>),
    Switched(Box<Upgraded>),
}

impl Incoming {
    pub(super) fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { data, trailers, source: Source::Whole }
    }

    pub(super) fn receiving(receiving: Receiving, data: Bytes) -> Self {
        Self { data, trailers: None, source: Source::Http1(Box::new(receiving)) }
    }

    pub(super) fn stream(body: hyper::body::Incoming, stream: Stream) -> Self {
        let source = if body.is_end_stream() { Source::Whole } else { Source::Http2(Box::new((body, stream))) };
        Self { data: Bytes::new(), trailers: None, source }
    }

    pub(super) fn switched(upgraded: Upgraded) -> Self {
        Self { data: Bytes::new(), trailers: None, source: Source::Switched(Box::new(upgraded)) }
    }

    /// The whole body, if it has come and nothing has been taken of it; trailers, if there are any, are left to be
    /// polled.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        matches!(self.source, Source::Whole).then(|| std::mem::take(&mut self.data))
    }

    /// After a 101: the connection.
    pub fn upgraded(self) -> Option<Upgraded> {
        match self.source {
            Source::Switched(upgraded) => Some(*upgraded),
            _ => None,
        }
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let this = self.get_mut();
        if let Source::Http2(stream) = &mut this.source {
            let Poll::Ready(frame) = Pin::new(&mut stream.0).poll_frame(cx) else {
                let Err(error) = stream.1.waits(cx.waker()) else { return Poll::Pending };
                this.source = Source::Whole;
                return Poll::Ready(Some(Err(error)));
            };
            stream.1.came();
            let frame = frame.map(|frame| frame.map_err(|error| stream.1.blamed(http2::failure(&error))));
            if frame.as_ref().is_none_or(Result::is_err) {
                this.source = Source::Whole;
            }
            return Poll::Ready(frame);
        }
        if this.data.is_empty()
            && let Source::Http1(receiving) = &mut this.source
        {
            match ready!(receiving.poll(cx)) {
                Ok(brought) => {
                    this.data = brought.data;
                    this.trailers = brought.trailers;
                    if receiving.left() == Some(0) {
                        this.source = Source::Whole;
                    }
                }
                Err(error) => {
                    this.source = Source::Whole;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if !this.data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.data)))));
        }
        Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Http1(_) => false,
            Source::Http2(stream) => stream.0.is_end_stream(),
            Source::Whole | Source::Switched(_) => self.data.is_empty() && self.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let come = self.data.len() as u64;
        match &self.source {
            Source::Whole | Source::Switched(_) => SizeHint::with_exact(come),
            Source::Http2(stream) => stream.0.size_hint(),
            Source::Http1(receiving) => match receiving.left() {
                Some(left) => SizeHint::with_exact(come.saturating_add(left)),
                None => SizeHint::default(),
            },
        }
    }
}
