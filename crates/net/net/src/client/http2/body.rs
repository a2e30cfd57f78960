//! The body of a request over HTTP/2.

use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HeaderName;
use http_body::{Frame, SizeHint};

use super::super::request::{BodyStream, is_allowed_trailer};
use super::super::step_timer::ExchangeStep;
use super::stream_state::Http2StreamState;

/// A request's body that is being sent.
pub(super) struct OutgoingFrames {
    pub(super) body: FrameSource,
    pub(super) stream: Option<Rc<Http2StreamState>>,
}

pub(super) enum FrameSource {
    Bytes(Bytes),
    /// A stream and its remaining bytes, if the length was declared.
    Stream(BodyStream, Option<u64>),
}

/// Size of the pieces of a complete body, in bytes; each shows that the one before was taken.
const WRITE_CHUNK_BYTES: usize = 64 * 1024;

impl FrameSource {
    /// The step of an exchange whose request's body is this.
    pub(super) fn step(&self) -> ExchangeStep {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => ExchangeStep::Read,
            Self::Bytes(_) | Self::Stream(..) => ExchangeStep::Write,
        }
    }
}

impl From<Bytes> for OutgoingFrames {
    fn from(bytes: Bytes) -> Self {
        Self { body: FrameSource::Bytes(bytes), stream: None }
    }
}

impl http_body::Body for OutgoingFrames {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let state = this.stream.as_ref();
        if state.is_some_and(|state| state.is_over.get()) {
            return Poll::Ready(Some(Err("the response has ended".into())));
        }
        let frame = match &mut this.body {
            FrameSource::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            FrameSource::Bytes(bytes) => {
                Poll::Ready(Some(Ok(Frame::data(bytes.split_to(WRITE_CHUNK_BYTES.min(bytes.len()))))))
            }
            FrameSource::Stream(stream, remaining) => {
                stream.as_mut().poll_frame(cx).map(|frame| check_length(frame, remaining))
            }
        };
        if let Some(state) = state {
            if let Poll::Ready(Some(Err(error))) = &frame {
                state.body_error.replace(Some(format!("the request's body broke off: {error}")));
            }
            match &frame {
                Poll::Pending => state.set_step(None),
                Poll::Ready(None) => state.set_step(Some(ExchangeStep::Read)),
                Poll::Ready(Some(_)) => {
                    state.taken_pieces.set(state.taken_pieces.get() + 1);
                    state.set_step(Some(this.body.step()));
                }
            }
            if frame.is_ready() {
                state.progress.on_sent();
            } else {
                state.progress.set_starved(true);
                state.sender_waker.replace(Some(cx.waker().clone()));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            FrameSource::Bytes(bytes) => bytes.is_empty(),
            FrameSource::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            FrameSource::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            FrameSource::Stream(stream, _) => stream.size_hint(),
        }
    }
}

/// The frame to send, if the body has its declared length so far.
fn check_length<E>(
    frame: Option<Result<Frame<Bytes>, E>>,
    remaining: &mut Option<u64>,
) -> Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    const LENGTH_MISMATCH: &str = "it is not as long as it said";
    let Some(frame) = frame else {
        return remaining.filter(|remaining| *remaining > 0).map(|_| Err(LENGTH_MISMATCH.into()));
    };
    if let (Ok(frame), Some(remaining)) = (&frame, remaining) {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match remaining.checked_sub(length) {
            Some(rest) => *remaining = rest,
            None => return Some(Err(LENGTH_MISMATCH.into())),
        }
    }
    filter_trailers(frame.map_err(Into::into))
}

/// The frame without forbidden trailers; None if nothing else is left, since trailers come last.
fn filter_trailers<E>(frame: Result<Frame<Bytes>, E>) -> Option<Result<Frame<Bytes>, E>> {
    let frame = match frame.map(Frame::into_trailers) {
        Ok(Ok(mut trailers)) => {
            let unwanted: Vec<HeaderName> = trailers.keys().filter(|name| !is_allowed_trailer(name)).cloned().collect();
            for name in unwanted {
                trailers.remove(name);
            }
            return (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)));
        }
        Ok(Err(frame)) => Ok(frame),
        Err(error) => Err(error),
    };
    Some(frame)
}
