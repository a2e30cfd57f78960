//! A response on its way to the client.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, Version};
use http_body::{Body as _, Frame};

use super::buffers::Http1Buffers;
use super::request_stream::RequestStream;
use super::response_head::{BodyLength, FramingRules, SentFraming, write_field};
use super::write_queue::WriteQueue;
use crate::body::{BodyError, ResponseBody};
use crate::direct::WholeResponse;
use crate::request_log::RequestRecord;
use weir_net::wire::PassedFields;

/// The response was not written to its end: its connection is not to be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incomplete;

/// Writes a response; returns whether it is the last one of the connection.
///
/// # Errors
/// [`Incomplete`] if its body breaks off, or the client closes the connection.
pub(super) async fn write(
    stream: &Rc<RefCell<RequestStream>>,
    buffers: &Http1Buffers,
    rules: &FramingRules,
    response: Response<ResponseBody>,
) -> Result<bool, Incomplete> {
    let (mut parts, mut body) = response.into_parts();
    let mut is_unsupported = false;
    if parts.status.is_informational() && parts.status != StatusCode::SWITCHING_PROTOCOLS {
        // A service cannot give the final response after an interim one.
        (parts.status, body, is_unsupported) = (StatusCode::INTERNAL_SERVER_ERROR, ResponseBody::empty(), true);
        parts.headers.clear();
    }
    let mut rules = rules.clone();
    rules.keep_alive &= !is_unsupported;
    if parts.version == Version::HTTP_10 {
        rules.version = Version::HTTP_10;
    }
    let length = match body.size_hint().exact() {
        _ if body.is_end_stream() => BodyLength::Empty,
        Some(bytes) => BodyLength::Known(bytes),
        None => BodyLength::Unknown,
    };
    let fields = (parts.headers, body.take_passed_fields());
    let (mut queue, coding, is_last) = begin(stream, buffers, &rules, parts.status, fields, length);
    let body = (coding != SentFraming::None).then_some(body);
    let mut writer = ResponseWriter { coding, body, is_broken: false };
    let written = poll_fn(|cx| writer.poll(cx, stream, &mut queue)).await;
    buffers.recycle_buffer(queue.into_buffer());
    written.map(|()| is_last)
}

/// Writes a response whose body is there; returns whether it is the last one of the connection.
///
/// # Errors
/// [`Incomplete`] if the client closes the connection.
pub(super) async fn write_whole(
    stream: &Rc<RefCell<RequestStream>>,
    buffers: &Http1Buffers,
    rules: &FramingRules,
    response: WholeResponse,
    mut record: RequestRecord,
) -> Result<bool, Incomplete> {
    let WholeResponse { status, headers, passed, body } = response;
    let length = if body.is_empty() { BodyLength::Empty } else { BodyLength::Known(body.len() as u64) };
    let (mut queue, coding, is_last) = begin(stream, buffers, rules, status, (headers, passed), length);
    let mut writer = ResponseWriter { coding, body: None, is_broken: false };
    if writer.coding != SentFraming::None {
        record.add_sent(body.len());
        writer.push_data(body, &mut queue);
        writer.end(None, &mut queue);
    }
    // As that of a body in parts, which ends before its last part is written.
    drop(record);
    let written = poll_fn(|cx| writer.poll(cx, stream, &mut queue)).await;
    buffers.recycle_buffer(queue.into_buffer());
    written.map(|()| is_last)
}

/// Writes the head of a response to a queue; returns that, the coding of the body, and whether the response is the
/// connection's last one.
fn begin(
    stream: &Rc<RefCell<RequestStream>>,
    buffers: &Http1Buffers,
    rules: &FramingRules,
    status: StatusCode,
    (headers, passed): (HeaderMap, PassedFields),
    length: BodyLength,
) -> (WriteQueue, SentFraming, bool) {
    let mut queue = WriteQueue::with_buffer(buffers.buffer());
    stream.borrow_mut().begin_response(&mut queue);
    let (coding, is_last) =
        buffers.with_date(|date| rules.write_head(queue.flat(), status, (&headers, &passed), length, date));
    buffers.recycle(headers);
    buffers.recycle_passed(passed);
    (queue, coding, is_last)
}

/// Writer of a response's remaining body.
struct ResponseWriter {
    coding: SentFraming,
    /// None at its end.
    body: Option<ResponseBody>,
    is_broken: bool,
}

impl ResponseWriter {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &Rc<RefCell<RequestStream>>,
        queue: &mut WriteQueue,
    ) -> Poll<Result<(), Incomplete>> {
        loop {
            // The body may be that of the request, which reads from the same stream.
            let waits = self.fill(cx, queue);
            let mut stream = stream.borrow_mut();
            match stream.poll_write(cx, queue) {
                Poll::Ready(Ok(())) if self.is_broken => {
                    if self.coding == SentFraming::UntilClose {
                        // A close would be its end.
                        stream.set_reset();
                    }
                    return Poll::Ready(Err(Incomplete));
                }
                Poll::Ready(Ok(())) if self.body.is_none() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) if !waits => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Incomplete)),
                Poll::Ready(Ok(())) | Poll::Pending => {
                    return if stream.is_client_gone(cx) { Poll::Ready(Err(Incomplete)) } else { Poll::Pending };
                }
            }
        }
    }

    /// Takes parts of the body into the queue; returns whether the body has to be waited for.
    fn fill(&mut self, cx: &mut Context<'_>, queue: &mut WriteQueue) -> bool {
        while !queue.is_full()
            && let Some(body) = &mut self.body
        {
            let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else { return true };
            let is_end = body.is_end_stream();
            if self.push(frame, is_end, queue) {
                // Its record ends with it.
                self.body = None;
            }
        }
        false
    }

    /// Appends a part of the body; returns whether the body has ended.
    fn push(&mut self, frame: Option<Result<Frame<Bytes>, BodyError>>, is_end: bool, queue: &mut WriteQueue) -> bool {
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => {
                self.is_broken = true;
                return true;
            }
            None => {
                self.end(None, queue);
                return true;
            }
        };
        match frame.into_data() {
            Ok(data) => self.push_data(data, queue),
            Err(frame) => {
                self.end(frame.trailers_ref(), queue);
                return true;
            }
        }
        if self.coding == SentFraming::Length(0) {
            return true;
        }
        if is_end {
            self.end(None, queue);
        }
        is_end
    }

    fn push_data(&mut self, mut data: Bytes, queue: &mut WriteQueue) {
        match &mut self.coding {
            SentFraming::None => {}
            SentFraming::Length(left) => {
                // What is more than announced would be taken for the next response.
                data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= data.len() as u64;
                queue.push(data);
            }
            SentFraming::Chunked { .. } if data.is_empty() => {}
            SentFraming::Chunked { .. } => {
                queue.push_copy(format!("{:x}\r\n", data.len()).as_bytes());
                queue.push(data);
                queue.push_copy(b"\r\n");
            }
            SentFraming::UntilClose => queue.push(data),
        }
    }

    fn end(&mut self, trailers: Option<&HeaderMap>, queue: &mut WriteQueue) {
        match &self.coding {
            SentFraming::Length(left) => self.is_broken = *left > 0,
            SentFraming::Chunked { trailers: allowed } => {
                let mut end = b"0\r\n".to_vec();
                for (name, value) in trailers.into_iter().flatten().filter(|(name, _)| allowed.contains(name)) {
                    write_field(&mut end, name, value.as_bytes());
                }
                end.extend_from_slice(b"\r\n");
                queue.push_copy(&end);
            }
            SentFraming::None | SentFraming::UntilClose => {}
        }
    }
}
