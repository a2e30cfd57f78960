//! One call: its metadata, its deadline, and its response.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use prost::Message;
use weir_base::Nanos;
use weir_base::grpc_status::GRPC_OK;
use weir_grpc::messages::push_message;
use weir_server::{BodyError, ResponseBody, Timer};

use super::SharedCalls;
use super::call_error::{CallError, DEADLINE_EXCEEDED, GRPC_STATUS};
use super::counts::CountedCall;
use super::options::Options;
use super::wire::{EchoReply, EchoRequest, ReplyFault, WireDuration};
use crate::written_body::BodyWriter;

/// Prefix of fields that come back in the head of the response.
const ECHO_PREFIX: &str = "x-echo-";
/// Prefix of fields that come back in the trailers.
const TRAILER_PREFIX: &str = "x-trailer-";

/// End of a response: its trailers, or why it breaks off.
pub(super) type ReplyEnd = Result<Option<HeaderMap>, BodyError>;

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) shared: Arc<SharedCalls>,
    pub(super) timer: Timer,
    /// Number of the call, over all event loops; indexes the random draws.
    pub(super) number: u64,
    pub(super) began: Nanos,
    pub(super) counted: CountedCall,
    deadline: Nanos,
    metadata: BTreeMap<String, String>,
    head: HeaderMap,
    trailers: HeaderMap,
    pub(super) accepts_gzip: bool,
}

impl Call {
    /// Call with these fields of its request.
    pub(super) fn new(
        shared: &Arc<SharedCalls>,
        timer: &Timer,
        (number, began): (u64, Nanos),
        fields: &HeaderMap,
    ) -> Self {
        let text = |name: &str| fields.get(name).and_then(|value| value.to_str().ok());
        let timeout = text("grpc-timeout").and_then(read_timeout);
        let (mut head, mut trailers) = (HeaderMap::new(), HeaderMap::new());
        let mut metadata = BTreeMap::new();
        for (name, value) in fields {
            if name.as_str().starts_with(ECHO_PREFIX) {
                head.append(name, value.clone());
            } else if name.as_str().starts_with(TRAILER_PREFIX) {
                trailers.append(name, value.clone());
            }
            metadata.insert(name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
        Self {
            shared: Arc::clone(shared),
            timer: timer.clone(),
            number,
            began,
            counted: CountedCall::begin(&shared.counts),
            deadline: timeout.map_or(Nanos::NEVER, |timeout| began + timeout),
            metadata,
            head,
            trailers,
            accepts_gzip: text("grpc-accept-encoding").is_some_and(|all| all.split(',').any(|it| it.trim() == "gzip")),
        }
    }

    /// Waits until a time, or the deadline of the call.
    pub(super) async fn wait_until(&self, until: Nanos) -> Result<(), CallError> {
        self.timer.sleep_until(until.min(self.deadline)).await;
        if until > self.deadline {
            return Err(CallError::new(DEADLINE_EXCEEDED, "the deadline of the call is over"));
        }
        Ok(())
    }

    /// Waits before the first message: what the options and the request ask for.
    pub(super) async fn wait_first(&self, request: &EchoRequest) -> Result<(), CallError> {
        let asked = request.delay.map_or(Nanos::ZERO, WireDuration::time);
        let own = self.shared.options.delay.at(&self.shared.delays, self.number);
        self.wait_until(self.began + own + asked).await
    }

    /// Reply to a message of a request.
    pub(super) fn reply(&self, request: &EchoRequest, number: u64) -> EchoReply {
        let payload = match request.reply_bytes {
            0 => request.payload.clone(),
            length => vec![0; length.min(Options::MAX_REPLY_BYTES) as usize],
        };
        let metadata = if request.metadata { self.metadata.clone() } else { BTreeMap::new() };
        EchoReply { text: request.text.clone(), payload, number, metadata }
    }

    /// Message with its flag and length.
    pub(super) fn framed(&mut self, message: &[u8], compresses: bool) -> Result<Bytes, BodyError> {
        let mut out = Vec::with_capacity(message.len() + 5);
        push_message(message, compresses && self.accepts_gzip, &mut out)?;
        self.counted.sent();
        Ok(out.into())
    }

    /// Writes the last message of a response and ends it, with its fault if it has one.
    pub(super) async fn finish(mut self, writer: &BodyWriter, reply: &EchoReply, request: &EchoRequest) -> ReplyEnd {
        let message = reply.encode_to_vec();
        let fault = request.fault();
        let plain = self.framed(&message, request.compressed)?;
        let changed = |at: usize, bytes: &[u8]| {
            let mut frame = plain.to_vec();
            frame[at..at + bytes.len()].copy_from_slice(bytes);
            Bytes::from(frame)
        };
        writer.write(match fault {
            ReplyFault::NoMessage => Bytes::new(),
            ReplyFault::LengthTooLong => changed(1, &(message.len() as u32 + 10).to_be_bytes()),
            ReplyFault::LengthOf4Gib => changed(1, &u32::MAX.to_be_bytes()),
            ReplyFault::CompressedWithoutEncoding => changed(0, &[1]),
            ReplyFault::InvalidFlag => changed(0, &[7]),
            // A text of five bytes of which there is one.
            ReplyFault::InvalidMessage => Bytes::from_static(&[0, 0, 0, 0, 3, 0x0a, 5, b'a']),
            ReplyFault::TwoMessages => [&plain[..], &plain[..]].concat().into(),
            _ => plain.clone(),
        });
        writer.taken().await;
        match fault {
            ReplyFault::ResetAfterMessage => Err("reset on purpose".into()),
            ReplyFault::NoTrailers => Ok(None),
            ReplyFault::NoStatus => {
                self.trailers.insert(HeaderName::from_static("x-note"), HeaderValue::from_static("no status"));
                Ok(Some(std::mem::take(&mut self.trailers)))
            }
            _ => self.end(request.status.as_ref().and_then(CallError::of).as_ref()),
        }
    }

    /// Ends a response by its trailers.
    pub(super) fn end(mut self, error: Option<&CallError>) -> ReplyEnd {
        Ok(Some(self.status_fields(error)))
    }

    fn status_fields(&mut self, error: Option<&CallError>) -> HeaderMap {
        let mut fields = std::mem::take(&mut self.trailers);
        match error {
            Some(error) => error.push(&mut fields),
            None => drop(fields.insert(GRPC_STATUS, HeaderValue::from(GRPC_OK))),
        }
        self.counted.end(error.map_or(GRPC_OK, |error| error.code));
        fields
    }

    /// Head of a response; `has_encoding`: whether its messages may be compressed.
    pub(super) fn head(&mut self, has_encoding: bool) -> Response<()> {
        let mut response = Response::new(());
        let fields = response.headers_mut();
        *fields = std::mem::take(&mut self.head);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(weir_grpc::metadata::CONTENT_TYPE));
        if has_encoding && self.accepts_gzip {
            fields.insert(HeaderName::from_static("grpc-encoding"), HeaderValue::from_static("gzip"));
        }
        response
    }

    /// Response that has its status in its head, and no message.
    pub(super) fn trailers_only(mut self, error: Option<&CallError>) -> Response<ResponseBody> {
        let mut response = self.head(false).map(|()| ResponseBody::empty());
        let fields = self.status_fields(error);
        response.headers_mut().extend(fields);
        response
    }

    /// Response of another kind than gRPC, as proxies send it.
    pub(super) fn page(status: StatusCode) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::from("<html><body>not gRPC</body></html>\n"));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        response
    }
}

/// Time of a `grpc-timeout`: at most eight digits and a unit.
fn read_timeout(text: &str) -> Option<Nanos> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit: u64 = match unit {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "S" => 1_000_000_000,
        "M" => 60_000_000_000,
        "H" => 3_600_000_000_000,
        _ => return None,
    };
    let number = Some(digits).filter(|digits| (1..=8).contains(&digits.len()))?.parse::<u64>().ok()?;
    Some(Nanos(number.saturating_mul(unit)))
}
