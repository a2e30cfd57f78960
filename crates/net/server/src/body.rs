//! Bodies of responses.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::request_body::RequestBody;
use super::request_log::RequestRecord;
use super::static_body::StaticBody;
use weir_net::wire::PassedFields;

/// Reason why a body ended early.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Maximum part of a whole body that is handed to HTTP/2 at once: it keeps all of a part for a stream whose window has
/// room for one byte, also after the end of the request.
const MAX_HTTP2_PART_BYTES: usize = 64 * 1024;

/// Response body: bytes or a stream. Dropping it ends the record of its request.
#[derive(Debug)]
pub struct ResponseBody {
    kind: Kind,
    /// Record of the request; ends when the body is dropped.
    record: Option<RequestRecord>,
    /// Fields of the head beside its map.
    passed: PassedFields,
}

enum Kind {
    Full(Bytes),
    Repeated {
        bytes: Bytes,
        remaining: u64,
    },
    Request(RequestBody),
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError>>>),
    /// The body has ended early; earlier data is flushed first, since it would be lost otherwise.
    Broken(Option<BodyError>),
}

impl ResponseBody {
    /// An empty body.
    pub fn empty() -> Self {
        Bytes::new().into()
    }

    /// `length` bytes: the page's, repeated. They are not copied on the way to the kernel.
    pub fn repeated(page: &StaticBody, length: u64) -> Self {
        Kind::Repeated { bytes: page.bytes().clone(), remaining: length }.into_body()
    }

    /// A body as a stream.
    pub fn from_stream(body: impl http_body::Body<Data = Bytes, Error = BodyError> + 'static) -> Self {
        Kind::Stream(Box::pin(body)).into_body()
    }

    /// The whole body, if it is not a stream.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Full(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Adds fields to the response's head, over HTTP/1.1: those of another server that were not read. None of them is of
    /// the framing or the connection.
    #[must_use]
    pub fn with_passed_fields(self, passed: PassedFields) -> Self {
        Self { passed, ..self }
    }

    pub(super) fn take_passed_fields(&mut self) -> PassedFields {
        std::mem::take(&mut self.passed)
    }

    pub(super) fn with_record(self, entry: RequestRecord) -> Self {
        Self { record: Some(entry), ..self }
    }
}

impl Kind {
    fn into_body(self) -> ResponseBody {
        ResponseBody { kind: self, record: None, passed: PassedFields::default() }
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Kind::Full(bytes.into()).into_body()
    }
}

/// A request's body, echoed as a stream.
impl From<RequestBody> for ResponseBody {
    fn from(body: RequestBody) -> Self {
        Kind::Request(body).into_body()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(bytes) => write!(f, "Full({})", bytes.len()),
            Self::Repeated { remaining: left, .. } => write!(f, "Repeated({left})"),
            Self::Request(_) => f.write_str("Request"),
            Self::Stream(_) => f.write_str("Made"),
            Self::Broken(_) => f.write_str("Broken"),
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let stream = this.record.as_ref().and_then(RequestRecord::stream);
        if let Some(stream) = stream {
            // It is asked for once the part before has room in the peer's window.
            stream.sent();
        }
        let is_http2 = stream.is_some();
        let frame = match &mut this.kind {
            Kind::Full(bytes) if bytes.is_empty() => None,
            Kind::Full(bytes) if is_http2 && bytes.len() > MAX_HTTP2_PART_BYTES => {
                Some(Ok(Frame::data(bytes.split_to(MAX_HTTP2_PART_BYTES))))
            }
            Kind::Full(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Kind::Repeated { remaining: 0, .. } => None,
            Kind::Repeated { bytes: page, remaining: left } => {
                let part = (page.len() as u64).min(*left);
                *left -= part;
                Some(Ok(Frame::data(page.slice(..part as usize))))
            }
            Kind::Request(body) => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(frame) => {
                    let end = frame.is_none();
                    this.record.iter().for_each(|entry| entry.has_body(end));
                    frame
                }
                Poll::Pending => {
                    this.record.iter().for_each(RequestRecord::wants_body);
                    return Poll::Pending;
                }
            },
            Kind::Stream(body) => match ready!(body.as_mut().poll_frame(cx)) {
                Some(Err(error)) => {
                    this.kind = Kind::Broken(Some(error));
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                frame => frame,
            },
            Kind::Broken(error) => error.take().map(Err),
        };
        if let (Some(entry), Some(Ok(frame))) = (&mut this.record, &frame) {
            entry.add_sent(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Repeated { remaining: left, .. } => *left == 0,
            Kind::Request(body) => body.is_end_stream(),
            Kind::Stream(body) => body.is_end_stream(),
            Kind::Broken(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Repeated { remaining: left, .. } => SizeHint::with_exact(*left),
            Kind::Request(body) => body.size_hint(),
            Kind::Stream(body) => body.size_hint(),
            Kind::Broken(_) => SizeHint::new(),
        }
    }
}
