//! Request of a step on a connection, and what is kept of its response.

use std::borrow::Cow;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::grpc_status::GRPC_OK;
use weir_http2::error_code::ErrorCode;
use weir_net::wire::{HeadNotes, ResponseObserver};
use weir_request::request_framing::closes_connection;
use weir_scenario::plan::{OriginId, RequestBytes};

use super::call_stream::CallStream;
use super::kept_response::{KeptBody, KeptResponse};
use crate::event_streams::{ArrivedEvents, StreamObserver, status_of};
use crate::grpc::{CallMessages, JsonCodec};
use crate::headers::with_headers;
use crate::program::{ConnectionFacts, KeptParts, PipelinedRequest};
use crate::request_tracing::RequestSpan;
use crate::websocket::UserSocket;

/// Maximum size of the buffers that a thread keeps for the next exchange, in bytes each.
const MAX_SPARE_BYTES: usize = 64 << 10;
/// Size from which a buffer is not worth its memory while its user waits for the response, in bytes.
const MIN_RELEASED_BYTES: usize = 16 << 10;

/// Request of a step on a connection of its user, and what is kept of its response. A connection has one only while it
/// waits for the response: idle users hold no buffers.
#[derive(Debug, Default)]
pub(crate) struct StepExchange {
    /// Bytes of the request.
    pub(crate) request: RequestBytes,
    /// Number of bytes that were dropped once they were written.
    released: usize,
    /// Whether the request's bytes are kept after the write, to be shown.
    pub(crate) is_shown: bool,
    /// Requests in it that are sent together; none if it is one.
    pub(crate) pipelined: Vec<PipelinedRequest>,
    /// Whether its connection takes no further request: a head of it has `Connection: close`.
    pub(crate) closes: bool,
    /// Whether the response has no body in any case: to a HEAD.
    is_bodyless: bool,
    /// Whether anything is kept of the response.
    pub(crate) is_kept: bool,
    /// Timeout of the step, if it has one of its own.
    pub(crate) timeout: Option<Nanos>,
    /// Index of the step among all steps.
    pub(crate) step: u32,
    pub(crate) origin: OriginId,
    /// Number that a program has given it.
    pub(crate) key: u32,
    /// Fields of the response's head that change what follows.
    pub(super) notes: HeadNotes,
    pub(super) kept: KeptResponse,
    /// Observer of the response as a stream; `None` if responses are not observed, or none has come.
    pub(crate) observer: Option<Box<StreamObserver>>,
    /// Whether events of the response are passed on to the user as they arrive.
    pub(crate) passes_events: bool,
    /// Whether the head of the response was passed on.
    pub(crate) has_passed_head: bool,
    /// Events that are to be passed on.
    pub(crate) arrived: ArrivedEvents,
    /// Trace of the request, if it is sampled.
    pub(crate) span: Option<Box<RequestSpan>>,
    /// Check of the messages, of a call of gRPC.
    pub(crate) messages: Option<CallMessages>,
    /// Coding of these messages.
    pub(crate) codec: Option<Arc<JsonCodec>>,
    /// Code with which its stream ended without a whole response (HTTP/2).
    pub(crate) reset_code: Option<ErrorCode>,
    /// Reason why the response is a failure, of a call of gRPC.
    pub(crate) fault: Option<String>,
    /// Its connection as WebSocket, if it is one.
    pub(crate) socket: Option<Box<UserSocket>>,
    /// Connection of its response, if its user is told of it.
    pub(crate) connection: Option<Arc<ConnectionFacts>>,
    /// Further state of a call of gRPC that is a stream.
    pub(crate) call: Option<Box<CallStream>>,
}

impl StepExchange {
    /// Prepares it for the next request.
    pub(crate) fn prepare(
        &mut self,
        (step, origin): (u32, OriginId),
        is_bodyless: bool,
        keeps: KeptParts,
        timeout: Option<Nanos>,
    ) {
        (self.step, self.origin, self.is_bodyless, self.timeout) = (step, origin, is_bodyless, timeout);
        (self.key, self.call, self.connection) = (0, None, None);
        self.is_kept = keeps != KeptParts::Nothing;
        (self.reset_code, self.span, self.messages, self.codec, self.fault) = (None, None, None, None, None);
        (self.released, self.is_shown) = (0, false);
        self.closes =
            (0..self.requests() as u32).any(|nth| closes_connection(self.request.parts_from(self.start_of(nth))[0]));
        self.passes_events = false;
        self.arrived.clear(MAX_SPARE_BYTES);
        self.notes = HeadNotes::default();
        self.kept.clear(match keeps {
            KeptParts::HeadAndBody => KeptBody::Whole,
            KeptParts::HeadAndErrorBody | KeptParts::Events => KeptBody::OfErrors,
            KeptParts::Nothing | KeptParts::Head | KeptParts::Messages => KeptBody::Nothing,
        });
        if let Some(observer) = &mut self.observer {
            observer.abandon();
        }
    }

    /// Makes its request a call of gRPC.
    pub(crate) fn begin_call(&mut self, codec: &Arc<JsonCodec>) {
        (self.messages, self.codec) = (Some(codec.messages()), Some(Arc::clone(codec)));
    }

    /// Request as a person reads it: messages of gRPC as JSON.
    pub(crate) fn shown_request(&self) -> Vec<u8> {
        let bytes = self.request.to_vec();
        match &self.codec {
            Some(codec) => codec.shown_request(&bytes),
            None => bytes,
        }
    }

    /// Prepares it for the response to the next request of the same send.
    pub(crate) fn prepare_next(&mut self) {
        self.messages = self.messages.map(CallMessages::restarted);
        self.notes = HeadNotes::default();
        self.kept.clear_same();
    }

    /// Whether the body is observed or kept, and not only counted.
    pub(crate) fn looks_into_body(&self) -> bool {
        self.kept.keeps_body() || self.observer.as_ref().is_some_and(|observer| observer.is_reading())
    }

    /// Lets events of the response be passed on to the user as they arrive.
    pub(crate) fn pass_events(&mut self) {
        (self.passes_events, self.has_passed_head) = (true, false);
    }

    /// Status of the response, if it has a part that is to be passed on.
    pub(crate) fn part_to_pass(&self) -> Option<u16> {
        let has_part = self.passes_events && (!self.has_passed_head || !self.arrived.is_empty());
        if has_part { status_of(self.head()) } else { None }
    }

    /// Forgets what was passed on.
    pub(crate) fn set_passed(&mut self) {
        self.has_passed_head = true;
        self.arrived.clear(MAX_SPARE_BYTES);
    }

    /// Number of requests in it.
    pub(crate) fn requests(&self) -> usize {
        self.pipelined.len().max(1)
    }

    /// Offset of the first byte of a request.
    #[inline]
    pub(crate) fn start_of(&self, nth: u32) -> usize {
        match nth {
            0 => 0,
            _ => self.pipelined.get(nth as usize - 1).map_or(0, |request| request.end),
        }
    }

    /// Number of bytes of a request.
    #[inline]
    pub(crate) fn length_of(&self, nth: u32) -> usize {
        match self.pipelined.get(nth as usize) {
            Some(request) => request.end - self.start_of(nth),
            None => self.request.len() + self.released,
        }
    }

    /// Drops the bytes of a large request that is written and is not sent again; its length stays. A thousand users
    /// that wait for a model's answer would otherwise keep a thousand prompts.
    pub(crate) fn release_written(&mut self) {
        if self.request.written.capacity() >= MIN_RELEASED_BYTES && self.pipelined.is_empty() && !self.is_shown {
            self.released += self.request.len();
            self.request = RequestBytes::default();
        }
    }

    /// Whether the response to a request has no body in any case: to a HEAD.
    #[inline]
    pub(crate) fn is_bodyless(&self, nth: u32) -> bool {
        self.pipelined.get(nth as usize).map_or(self.is_bodyless, |request| request.is_bodyless)
    }

    /// Prepares another exchange, which is new, for one of the requests that are sent together.
    pub(crate) fn split_into(&self, nth: u32, part: &mut Self) {
        let start = self.start_of(nth);
        let [written, shared] = self.request.parts_from(start);
        part.request.written.extend(written.iter().chain(shared).take(self.length_of(nth)));
        part.prepare((self.step, self.origin), self.is_bodyless(nth), KeptParts::Nothing, self.timeout);
        part.is_kept = self.is_kept;
        part.kept.clear_as(&self.kept);
    }

    /// Drops what one large request or response has needed.
    pub(super) fn shrink(&mut self) {
        (self.socket, self.call) = (None, None);
        self.request.clear();
        self.request.written.shrink_to(MAX_SPARE_BYTES);
        self.pipelined.clear();
        self.kept.shrink_to(MAX_SPARE_BYTES);
    }

    /// Head of the response, as it came.
    pub(crate) fn head(&self) -> &[u8] {
        self.kept.head()
    }

    /// Reason why the body of a response with a status is of no use: it was not kept, although it is looked into, or a
    /// person is shown messages that are invalid.
    pub(crate) fn body_fault(&self, status: u16) -> Option<String> {
        let is_decoded = self.is_shown && self.codec.is_some() && status == GRPC_OK;
        let decode_fault = || is_decoded.then(|| self.decoded_body().err()).flatten();
        self.kept.cut_reason().map(str::to_owned).or_else(decode_fault)
    }

    /// Body of the response as it came, without framing.
    pub(crate) fn body(&self) -> &[u8] {
        self.kept.raw_body()
    }

    /// Body of the response, decompressed; of a call of gRPC as JSON.
    ///
    /// # Errors
    /// Reason why the body cannot be looked into.
    pub(crate) fn decoded_body(&self) -> Result<Vec<u8>, String> {
        if let Some(codec) = &self.codec {
            return codec.response(self.head(), self.body());
        }
        with_headers(self.head(), |headers| {
            let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
            self.kept.decoded_body(encoding.map(|(_, value)| *value)).map(Cow::into_owned)
        })
    }
}

impl ResponseObserver for StepExchange {
    fn head(&mut self, head: &[u8], notes: HeadNotes) {
        self.notes = notes;
        self.kept.set_head(head);
        if let Some(messages) = &mut self.messages {
            messages.head(head, notes);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if let Some(messages) = &mut self.messages {
            messages.body(bytes);
        }
        self.kept.push_body(bytes);
    }

    fn trailers(&mut self, text: &[u8]) {
        self.kept.push_trailers(text);
    }
}
