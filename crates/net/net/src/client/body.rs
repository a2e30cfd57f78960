//! The body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};

use super::body_reader::BodyReader;
use super::error::SendError;
use super::http2::connection::Http2Stream;
use super::http2::error::failure;
use super::upgraded::UpgradedConnection;
use crate::wire::{DecodedBody, PassedFields};

/// Body of a response. Dropped before its end it closes the connection (in HTTP/2 the stream), or reads the rest first
/// if that is short.
#[derive(Debug)]
pub struct IncomingBody {
    /// Received data that was not returned yet.
    data: Bytes,
    trailers: Option<Box<HeaderMap>>,
    source: IncomingSource,
    /// Fields of the head that nothing reads.
    passed: PassedFields,
}

#[derive(Debug)]
enum IncomingSource {
    /// The body is complete.
    Complete,
    Http1(Box<BodyReader>),
    Http2(Box<(hyper::body::Incoming, Http2Stream)>),
    Upgraded(Box<UpgradedConnection>),
}

impl IncomingBody {
    pub(super) fn complete(data: Bytes, trailers: Option<Box<HeaderMap>>) -> Self {
        Self { data, trailers, source: IncomingSource::Complete, passed: PassedFields::default() }
    }

    /// A body that begins with what was decoded.
    pub(super) fn http1(receiving: BodyReader, begin: DecodedBody) -> Self {
        let source = IncomingSource::Http1(Box::new(receiving));
        Self { data: begin.data, trailers: begin.trailers, source, passed: PassedFields::default() }
    }

    pub(super) fn http2(body: hyper::body::Incoming, stream: Http2Stream) -> Self {
        let source = if body.is_end_stream() {
            IncomingSource::Complete
        } else {
            IncomingSource::Http2(Box::new((body, stream)))
        };
        Self { data: Bytes::new(), trailers: None, source, passed: PassedFields::default() }
    }

    pub(super) fn from_upgrade(upgraded: UpgradedConnection) -> Self {
        let source = IncomingSource::Upgraded(Box::new(upgraded));
        Self { data: Bytes::new(), trailers: None, source, passed: PassedFields::default() }
    }

    pub(super) fn set_passed_fields(&mut self, passed: PassedFields) {
        self.passed = passed;
    }

    /// Fields of the head that are passed on unread, and are not among its headers; see
    /// [`WireOptions::passes_all_but`](super::WireOptions).
    pub fn take_passed_fields(&mut self) -> PassedFields {
        std::mem::take(&mut self.passed)
    }

    /// The whole body, if it is complete and nothing of it was taken; trailers are left to be polled.
    pub fn take_complete(&mut self) -> Option<Bytes> {
        matches!(self.source, IncomingSource::Complete).then(|| std::mem::take(&mut self.data))
    }

    /// Bytes of a request's rest that were sent while its response came.
    pub fn sent_bytes(&self) -> u64 {
        match &self.source {
            IncomingSource::Http1(receiving) => receiving.upload.sent_bytes(),
            _ => 0,
        }
    }

    /// Whether all of it has come, and the rest of its request is still to be sent.
    pub fn awaits_request(&self) -> bool {
        matches!(&self.source, IncomingSource::Http1(receiving) if receiving.body.is_ended())
    }

    /// The raw connection, after a 101.
    pub fn into_upgraded(self) -> Option<UpgradedConnection> {
        match self.source {
            IncomingSource::Upgraded(upgraded) => Some(*upgraded),
            _ => None,
        }
    }
}

impl http_body::Body for IncomingBody {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let this = self.get_mut();
        if let IncomingSource::Http2(stream) = &mut this.source {
            let Poll::Ready(frame) = Pin::new(&mut stream.0).poll_frame(cx) else {
                let Err(error) = stream.1.check_timeout(cx.waker()) else { return Poll::Pending };
                this.source = IncomingSource::Complete;
                return Poll::Ready(Some(Err(error)));
            };
            stream.1.on_received();
            let frame = frame.map(|frame| frame.map_err(|error| stream.1.attribute_error(failure(&error))));
            if frame.as_ref().is_none_or(Result::is_err) {
                this.source = IncomingSource::Complete;
            }
            return Poll::Ready(frame);
        }
        while this.data.is_empty()
            && let IncomingSource::Http1(receiving) = &mut this.source
        {
            match ready!(receiving.poll(cx)) {
                Ok(decoded) => {
                    this.data = decoded.data;
                    this.trailers = this.trailers.take().or(decoded.trailers);
                    if receiving.is_finished() {
                        this.source = IncomingSource::Complete;
                    }
                }
                Err(error) => {
                    this.source = IncomingSource::Complete;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if !this.data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.data)))));
        }
        Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            IncomingSource::Http1(_) => false,
            IncomingSource::Http2(stream) => stream.0.is_end_stream(),
            IncomingSource::Complete | IncomingSource::Upgraded(_) => self.data.is_empty() && self.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let come = self.data.len() as u64;
        match &self.source {
            IncomingSource::Complete | IncomingSource::Upgraded(_) => SizeHint::with_exact(come),
            IncomingSource::Http2(stream) => stream.0.size_hint(),
            IncomingSource::Http1(receiving) => match receiving.remaining() {
                Some(left) => SizeHint::with_exact(come.saturating_add(left)),
                None => SizeHint::default(),
            },
        }
    }
}
