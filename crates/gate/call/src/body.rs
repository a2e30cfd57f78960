//! Body of a response: as an attempt receives it, and as the call passes it on.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;

use super::host_permit::HostPermit;
use super::permits::CallPermit;
use weir_base::Nanos;
use weir_machine::timer::Sleep;
use weir_net::client::buffered_body::BufferedBody;
use weir_net::client::{IncomingBody, SendError, UpgradedConnection};

/// Body of a response.
#[derive(Debug)]
pub enum CallBody {
    /// Complete, without trailers.
    Buffered(Bytes),
    /// Incomplete, or with trailers. An incomplete body holds the permit of its host, and that of the route once the
    /// call has passed it on, until it is complete, dropped, or cut off by the deadline.
    Streaming(Box<StreamingBody>),
}

/// A body that is incomplete or has trailers; see [`CallBody::Streaming`].
#[derive(Debug)]
pub struct StreamingBody {
    /// Part that was received and not polled yet.
    buffered: BufferedBody,
    /// Source of the rest; None at the end.
    source: Option<Rc<BodySource>>,
    /// Closes the source at the deadline.
    deadline_task: Option<DeadlineTask>,
}

/// An incoming body and its permits, which are released at the deadline even if the body is not polled.
#[derive(Debug)]
struct BodySource {
    state: RefCell<BodySourceState>,
    /// Waker of a pending poll.
    reader: RefCell<Option<Waker>>,
}

#[derive(Debug)]
enum BodySourceState {
    Open(Box<(IncomingBody, HostPermit)>),
    DeadlineExceeded,
}

/// A task that is aborted on drop.
#[derive(Debug)]
struct DeadlineTask(AbortHandle);

impl Drop for DeadlineTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Error of a body that ended early.
#[derive(Debug)]
pub enum CallBodyError {
    /// The deadline has passed.
    DeadlineExceeded,
    /// The upstream connection failed.
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
    /// A complete body.
    pub(super) fn complete(body: BufferedBody) -> Self {
        match body {
            BufferedBody { bytes, trailers: None } => Self::Buffered(bytes),
            body => Self::Streaming(Box::new(StreamingBody { buffered: body, source: None, deadline_task: None })),
        }
    }

    /// A body that begins with `first`, which is there `now`, and goes on with `incoming`.
    pub(super) fn incomplete(first: Bytes, incoming: IncomingBody, mut host_permit: HostPermit, now: Nanos) -> Self {
        host_permit.start_read_delay(now);
        let state = RefCell::new(BodySourceState::Open(Box::new((incoming, host_permit))));
        let source = BodySource { state, reader: RefCell::default() };
        let buffered = BufferedBody { bytes: first, trailers: None };
        Self::Streaming(Box::new(StreamingBody { buffered, source: Some(Rc::new(source)), deadline_task: None }))
    }

    /// Whether it holds a connection of a host with a maximum.
    pub(super) fn holds_limited_connection(&self) -> bool {
        matches!(self, Self::Streaming(body) if body.source.as_ref().is_some_and(|source| source.is_limited()))
    }

    /// Passes an incomplete body on to the caller: it takes over the route's permit, and is cut off at the deadline.
    pub(super) fn pass_on(&mut self, route_permit: &mut Option<CallPermit>, deadline: impl FnOnce() -> Option<Sleep>) {
        if let Self::Streaming(body) = self
            && let Some(source) = &body.source
        {
            source.set_route_permit(route_permit.take());
            body.deadline_task = deadline().map(|deadline| source.expire_at(deadline));
        }
    }

    /// Bytes of its request's rest that were sent while it came.
    pub fn sent_bytes(&self) -> u64 {
        match self {
            Self::Buffered(_) => 0,
            Self::Streaming(body) => body.source.as_ref().map_or(0, |source| source.sent_bytes()),
        }
    }

    /// Whether all of it has come, and the rest of its request is still to be sent.
    pub fn awaits_request(&self) -> bool {
        matches!(self, Self::Streaming(body) if body.source.as_ref().is_some_and(|source| source.awaits_request()))
    }

    /// Maps the bytes of a complete body; trailers stay.
    ///
    /// # Errors
    /// The body unchanged, if it is incomplete.
    pub fn map_buffered(self, change: impl FnOnce(Bytes) -> Bytes) -> Result<Self, Self> {
        match self {
            Self::Buffered(bytes) => Ok(Self::Buffered(change(bytes))),
            Self::Streaming(mut body) if body.source.is_none() => {
                body.buffered.bytes = change(std::mem::take(&mut body.buffered.bytes));
                Ok(Self::Streaming(body))
            }
            body => Err(body),
        }
    }

    /// The upgraded connection of a 101 response.
    pub fn into_upgraded(self) -> Option<UpgradedConnection> {
        match self {
            Self::Buffered(_) => None,
            Self::Streaming(body) => match Rc::into_inner(body.source?)?.state.into_inner() {
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
            Self::Streaming(body) => body.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Buffered(bytes) => bytes.is_empty(),
            Self::Streaming(body) => body.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Buffered(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streaming(body) => match &body.source {
                Some(source) => source.size_hint(body.buffered.bytes.len() as u64),
                // In HTTP/1.1 a body with Content-Length cannot have trailers.
                None if body.buffered.trailers.is_some() => SizeHint::new(),
                None => SizeHint::with_exact(body.buffered.bytes.len() as u64),
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
        // At its end the body releases connection and permits, even if it is kept.
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

impl BodySource {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CallBodyError>>> {
        let mut rest = self.state.borrow_mut();
        let BodySourceState::Open(both) = &mut *rest else {
            return Poll::Ready(Some(Err(CallBodyError::DeadlineExceeded)));
        };
        let (incoming, host_permit) = &mut **both;
        host_permit.end_read_delay();
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
            host_permit.on_trailers(trailers);
        }
        if frame.is_none() || incoming.is_end_stream() {
            host_permit.complete();
        } else {
            host_permit.start_read_delay(host_permit.now());
        }
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                host_permit.body_failed(error.kind.side());
                CallBodyError::Upstream(error)
            })
        }))
    }

    fn has_ended(&self) -> bool {
        matches!(&*self.state.borrow(), BodySourceState::Open(both) if both.0.is_end_stream())
    }

    fn sent_bytes(&self) -> u64 {
        match &*self.state.borrow() {
            BodySourceState::Open(both) => both.0.sent_bytes(),
            BodySourceState::DeadlineExceeded => 0,
        }
    }

    fn awaits_request(&self) -> bool {
        matches!(&*self.state.borrow(), BodySourceState::Open(both) if both.0.awaits_request())
    }

    fn is_limited(&self) -> bool {
        matches!(&*self.state.borrow(), BodySourceState::Open(both) if both.1.origin().is_limited())
    }

    fn set_route_permit(&self, permit: Option<CallPermit>) {
        if let BodySourceState::Open(both) = &mut *self.state.borrow_mut() {
            both.1.route_permit = permit;
        }
    }

    /// Closes the source at the deadline. A task waits for it, since a caller that does not poll would otherwise hold
    /// the permits beyond the deadline.
    fn expire_at(self: &Rc<Self>, deadline: Sleep) -> DeadlineTask {
        let source = Rc::downgrade(self);
        let task = tokio::task::spawn_local(async move {
            deadline.await;
            if let Some(source) = source.upgrade() {
                source.expire();
            }
        });
        DeadlineTask(task.abort_handle())
    }

    /// Size hint of the rest plus `first` bytes.
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

    /// Closes the source, since the deadline has passed.
    fn expire(&self) {
        let rest = self.state.replace(BodySourceState::DeadlineExceeded);
        drop(rest);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
