//! How a call ends.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;

use super::attempt::BufferedBody;
use super::places::CallPermit;
use super::story::CallTrace;
use super::upstream::HostPermit;
use crate::decide::admit::Rejection;
use crate::http::client::{IncomingBody, SendError, UpgradedConnection};
use crate::machine::timer::Sleep;

/// A success, or the last answer of a call that had none.
#[derive(Debug)]
pub struct CallResponse {
    /// Status and headers, as the upstream sent them.
    pub head: Parts,
    /// What it carries.
    pub body: CallBody,
    /// What happened on the way.
    pub call_trace: CallTrace,
}

/// A call without a success.
#[derive(Debug)]
pub struct CallFailure {
    /// Why.
    pub reason: CallFailureReason,
    /// The last answer that came, if any did and it was no success.
    pub last_response: Option<(Parts, CallBody)>,
    /// What happened on the way.
    pub call_trace: CallTrace,
}

/// Why a call has no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailureReason {
    /// All attempts failed, and nothing was left to try.
    AllFailed,
    /// The deadline came first.
    DeadlineExceeded,
    /// Nothing was sent: there is too much.
    Rejected(Rejection),
}

/// The body of an answer.
#[derive(Debug)]
pub enum CallBody {
    /// It is there.
    Buffered(Bytes),
    /// It still comes, or has trailers. It occupies its upstream until it has come, is dropped, or is cut.
    Streaming(Box<StreamingBody>),
}

/// See [`CallBody::Streaming`].
#[derive(Debug)]
pub struct StreamingBody {
    /// What has come and was not given out yet.
    buffered: BufferedBody,
    /// What is still to come, as long as there is more.
    source: Option<Rc<BodySource>>,
    /// Ends the source at the deadline.
    deadline_task: Option<DeadlineTask>,
}

/// What comes, and what it occupies. At the deadline it is let go also if nobody asks for more of it.
#[derive(Debug)]
struct BodySource {
    state: RefCell<BodySourceState>,
    /// Who waits for more.
    reader: RefCell<Option<Waker>>,
}

#[derive(Debug)]
enum BodySourceState {
    Open(Box<(IncomingBody, HostPermit)>),
    DeadlineExceeded,
}

/// A task that ends with this.
#[derive(Debug)]
struct DeadlineTask(AbortHandle);

impl Drop for DeadlineTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why an answer's body ended early.
#[derive(Debug)]
pub enum CallBodyError {
    /// The deadline has passed.
    DeadlineExceeded,
    /// The upstream ended it.
    Upstream(SendError),
}

impl std::error::Error for CallBodyError {}

impl fmt::Display for CallBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded => f.write_str("the deadline has passed"),
            Self::Upstream(error) => error.fmt(f),
        }
    }
}

impl CallBody {
    pub(super) fn buffered(whole: BufferedBody) -> Self {
        match whole {
            BufferedBody { bytes, trailers: None } => Self::Buffered(bytes),
            whole => Self::Streaming(Box::new(StreamingBody { buffered: whole, source: None, deadline_task: None })),
        }
    }

    /// The body with its bytes changed, if they have all come; trailers stay. Else it is given back as it is.
    ///
    /// # Errors
    /// The body, if it still comes.
    pub fn map_buffered(self, change: impl FnOnce(Bytes) -> Bytes) -> Result<Self, Self> {
        match self {
            Self::Buffered(bytes) => Ok(Self::Buffered(change(bytes))),
            Self::Streaming(mut coming) if coming.source.is_none() => {
                coming.buffered.bytes = change(std::mem::take(&mut coming.buffered.bytes));
                Ok(Self::Streaming(coming))
            }
            coming => Err(coming),
        }
    }

    /// The connection itself, after an answer of 101.
    pub fn into_upgraded(self) -> Option<UpgradedConnection> {
        match self {
            Self::Buffered(_) => None,
            Self::Streaming(coming) => match Rc::into_inner(coming.source?)?.state.into_inner() {
                BodySourceState::Open(mut both) => {
                    both.1.complete();
                    both.0.into_upgraded()
                }
                BodySourceState::DeadlineExceeded => None,
            },
        }
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = CallBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CallBodyError>>> {
        match &mut *self {
            Self::Buffered(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Buffered(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Streaming(coming) => coming.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Buffered(bytes) => bytes.is_empty(),
            Self::Streaming(coming) => coming.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Buffered(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streaming(coming) => match &coming.source {
                Some(source) => source.size_hint(coming.buffered.bytes.len() as u64),
                // With a length that is known in HTTP/1.1 there would be no place for trailers.
                None if coming.buffered.trailers.is_some() => SizeHint::new(),
                None => SizeHint::with_exact(coming.buffered.bytes.len() as u64),
            },
        }
    }
}

impl StreamingBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CallBodyError>>> {
        if !self.buffered.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.buffered.bytes)))));
        }
        if let Some(trailers) = self.buffered.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
        }
        let Some(source) = &self.source else { return Poll::Ready(None) };
        let frame = ready!(source.poll(cx));
        // With its end it lets go of connection and place, however long it is kept.
        if source.has_ended() || !matches!(frame, Some(Ok(_))) {
            (self.source, self.deadline_task) = (None, None);
        }
        Poll::Ready(frame)
    }

    fn has_ended(&self) -> bool {
        let ended = self.source.as_ref().is_none_or(|source| source.has_ended());
        ended && self.buffered.bytes.is_empty() && self.buffered.trailers.is_none()
    }
}

impl StreamingBody {
    /// An answer that goes on behind `first`.
    pub(super) fn new(first: Bytes, incoming: IncomingBody, mut occupied: HostPermit) -> Self {
        occupied.start_read_delay();
        let rest = RefCell::new(BodySourceState::Open(Box::new((incoming, occupied))));
        let source = BodySource { state: rest, reader: RefCell::default() };
        let buffered = BufferedBody { bytes: first, trailers: None };
        Self { buffered, source: Some(Rc::new(source)), deadline_task: None }
    }

    /// Whether it occupies one of few connections.
    pub(super) fn is_limited(&self) -> bool {
        let limited =
            |rest: &BodySourceState| matches!(rest, BodySourceState::Open(both) if both.1.origin().is_limited());
        self.source.as_ref().is_some_and(|source| limited(&source.state.borrow()))
    }

    /// It keeps its route's place.
    pub(super) fn set_route_permit(&mut self, place: Option<CallPermit>) {
        if let Some(source) = &self.source
            && let BodySourceState::Open(both) = &mut *source.state.borrow_mut()
        {
            both.1.route_permit = place;
        }
    }

    /// It is cut when this has ended. A task waits for that: a caller that takes nothing more does not poll, and would
    /// hold its place at the upstream for as long as it likes.
    pub(super) fn set_deadline(&mut self, deadline: Sleep) {
        let Some(source) = &self.source else { return };
        let source = Rc::downgrade(source);
        let alarm = tokio::task::spawn_local(async move {
            deadline.await;
            if let Some(source) = source.upgrade() {
                source.expire();
            }
        });
        self.deadline_task = Some(DeadlineTask(alarm.abort_handle()));
    }
}

impl BodySource {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CallBodyError>>> {
        let mut rest = self.state.borrow_mut();
        let BodySourceState::Open(both) = &mut *rest else {
            return Poll::Ready(Some(Err(CallBodyError::DeadlineExceeded)));
        };
        let (incoming, occupied) = &mut **both;
        occupied.end_read_delay();
        let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) else {
            let mut reader = self.reader.borrow_mut();
            if !reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
                *reader = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        if let Some(Ok(frame)) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            occupied.on_trailers(trailers);
        }
        if frame.is_none() || incoming.is_end_stream() {
            occupied.complete();
        } else {
            occupied.start_read_delay();
        }
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                occupied.body_failed(error.kind.side());
                CallBodyError::Upstream(error)
            })
        }))
    }

    fn has_ended(&self) -> bool {
        matches!(&*self.state.borrow(), BodySourceState::Open(both) if both.0.is_end_stream())
    }

    /// Of what is still to come, with so much before it.
    fn size_hint(&self, first: u64) -> SizeHint {
        let mut hint = match &*self.state.borrow() {
            BodySourceState::Open(both) => both.0.size_hint(),
            BodySourceState::DeadlineExceeded => SizeHint::new(),
        };
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + first);
        }
        hint.set_lower(hint.lower() + first);
        hint
    }

    /// The deadline has come.
    fn expire(&self) {
        let rest = self.state.replace(BodySourceState::DeadlineExceeded);
        drop(rest);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
