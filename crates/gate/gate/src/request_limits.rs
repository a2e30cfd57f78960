//! Limits of a route of the size of requests.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::config::RequestLimits;
use super::local_responses;
use weir_net::client::BodyStream;
use weir_net::wire::PassedFields;
use weir_server::ResponseBody;

impl RequestLimits {
    /// 431 if the head is too large. Its size is that of the request line and the fields over HTTP/1.1.
    pub(super) fn check_head(
        &self,
        parts: &Parts,
        headers: &HeaderMap,
        passed: &PassedFields,
    ) -> Option<Response<ResponseBody>> {
        let too_large = |line: &str| local_responses::text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, line);
        if let Some(max) = self.max_headers.filter(|max| headers.len() + passed.count() > *max) {
            return Some(too_large(&format!("more than {max} header fields")));
        }
        let max = self.max_head_bytes?;
        // "name: value\r\n", and "METHOD TARGET HTTP/1.1\r\n".
        let fields: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        let fields = fields + passed.lines().len();
        let target = parts.uri.path_and_query().map_or(1, |target| target.as_str().len());
        let is_too_large = fields + parts.method.as_str().len() + target + 12 > max;
        is_too_large.then(|| too_large(&format!("a head of more than {max} bytes")))
    }

    /// 413 if a body of at least this length is too large.
    pub(super) fn check_body(&self, length: u64) -> Option<Response<ResponseBody>> {
        self.max_body_bytes.filter(|max| length > *max as u64).map(body_too_large)
    }

    /// A body that fails above the limit, and whether it has; None without a limit.
    pub(super) fn limit_body(&self, body: BodyStream) -> (BodyStream, Option<Rc<Cell<bool>>>) {
        let Some(max) = self.max_body_bytes else { return (body, None) };
        let is_exceeded = Rc::new(Cell::new(false));
        let limited = LimitedBody { body, left: max as u64, is_exceeded: Rc::clone(&is_exceeded) };
        (Box::pin(limited), Some(is_exceeded))
    }
}

/// 413.
pub(super) fn body_too_large(max_bytes: usize) -> Response<ResponseBody> {
    local_responses::text(StatusCode::PAYLOAD_TOO_LARGE, &format!("a body of more than {max_bytes} bytes"))
}

/// A streamed body with a limit.
struct LimitedBody {
    body: BodyStream,
    /// Bytes that may still come.
    left: u64,
    is_exceeded: Rc<Cell<bool>>,
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.body.as_mut().poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            match self.left.checked_sub(data.len() as u64) {
                Some(left) => self.left = left,
                None => {
                    self.is_exceeded.set(true);
                    return Poll::Ready(Some(Err("the body is longer than the route allows".into())));
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
