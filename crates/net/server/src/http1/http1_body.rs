//! The body of a request, as the service has it.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use weir_net::wire::DecodedBody;

use super::body_error::Http1BodyError;
use super::request_stream::RequestStream;

/// The body of the current request.
#[derive(Debug)]
pub(crate) struct Http1Body {
    stream: Rc<RefCell<RequestStream>>,
    /// Whether it has come in chunks, with trailers perhaps, and goes on in chunks.
    is_chunked: bool,
    /// Whether all of it was read.
    is_read: bool,
    trailers: Option<Box<HeaderMap>>,
}

impl Http1Body {
    pub(super) fn new(stream: Rc<RefCell<RequestStream>>) -> Self {
        let is_chunked = stream.borrow().remaining_body().is_none();
        Self { stream, is_chunked, is_read: false, trailers: None }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Http1BodyError>>> {
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
        }
        if self.is_read {
            return Poll::Ready(None);
        }
        let mut stream = self.stream.borrow_mut();
        let part = ready!(stream.poll_body(cx));
        self.is_read = !stream.has_body();
        drop(stream);
        match part {
            Some(Ok(DecodedBody { data, trailers, .. })) if !data.is_empty() => {
                self.trailers = trailers;
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Ok(DecodedBody { trailers, .. })) => {
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(*trailers))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Ready(None),
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_read && self.trailers.is_none()
    }

    /// Remaining bytes, if the length was announced.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match (self.is_chunked, self.is_read) {
            (true, _) => None,
            (false, true) => Some(0),
            (false, false) => self.stream.borrow().remaining_body(),
        }
    }
}

impl Drop for Http1Body {
    fn drop(&mut self) {
        if !self.is_read {
            self.stream.borrow_mut().end_reader();
        }
    }
}
