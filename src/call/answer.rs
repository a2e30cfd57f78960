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

use super::attempt::Whole;
use super::places::Place;
use super::story::Story;
use super::upstream::Occupied;
use crate::decide::admit::Refusal;
use crate::http::client::{Incoming, SendError, Upgraded};
use crate::machine::timer::Sleep;

/// A success, or the last answer of a call that had none.
#[derive(Debug)]
pub struct Answer {
    /// Status and headers, as the upstream sent them.
    pub head: Parts,
    /// What it carries.
    pub body: AnswerBody,
    /// What happened on the way.
    pub story: Story,
}

/// A call without a success.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub reason: Reason,
    /// The last answer that came, if any did and it was no success.
    pub last: Option<(Parts, AnswerBody)>,
    /// What happened on the way.
    pub story: Story,
}

/// Why a call has no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All attempts failed, and nothing was left to try.
    AllFailed,
    /// The deadline came first.
    Late,
    /// Nothing was sent: there is too much.
    Refused(Refusal),
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// It is there.
    Whole(Bytes),
    /// It still comes, or has trailers. It occupies its upstream until it has come, is dropped, or is cut.
    Coming(Box<Coming>),
}

/// See [`AnswerBody::Coming`].
#[derive(Debug)]
pub struct Coming {
    /// What has come and was not given out yet.
    whole: Whole,
    /// What is still to come, as long as there is more.
    source: Option<Rc<Source>>,
    /// Ends the source at the deadline.
    alarm: Option<Alarm>,
}

/// What comes, and what it occupies. At the deadline it is let go also if nobody asks for more of it.
#[derive(Debug)]
struct Source {
    rest: RefCell<Rest>,
    /// Who waits for more.
    reader: RefCell<Option<Waker>>,
}

#[derive(Debug)]
enum Rest {
    Comes(Box<(Incoming, Occupied)>),
    Late,
}

/// A task that ends with this.
#[derive(Debug)]
struct Alarm(AbortHandle);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why an answer's body ended early.
#[derive(Debug)]
pub enum Cut {
    /// The deadline has passed.
    Late,
    /// The upstream ended it.
    Upstream(SendError),
}

impl std::error::Error for Cut {}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late => f.write_str("the deadline has passed"),
            Self::Upstream(error) => error.fmt(f),
        }
    }
}

impl AnswerBody {
    pub(super) fn whole(whole: Whole) -> Self {
        match whole {
            Whole { bytes, trailers: None } => Self::Whole(bytes),
            whole => Self::Coming(Box::new(Coming { whole, source: None, alarm: None })),
        }
    }

    /// The body with its bytes changed, if they have all come; trailers stay. Else it is given back as it is.
    ///
    /// # Errors
    /// The body, if it still comes.
    pub fn with_whole(self, change: impl FnOnce(Bytes) -> Bytes) -> Result<Self, Self> {
        match self {
            Self::Whole(bytes) => Ok(Self::Whole(change(bytes))),
            Self::Coming(mut coming) if coming.source.is_none() => {
                coming.whole.bytes = change(std::mem::take(&mut coming.whole.bytes));
                Ok(Self::Coming(coming))
            }
            coming => Err(coming),
        }
    }

    /// The connection itself, after an answer of 101.
    pub fn upgraded(self) -> Option<Upgraded> {
        match self {
            Self::Whole(_) => None,
            Self::Coming(coming) => match Rc::into_inner(coming.source?)?.rest.into_inner() {
                Rest::Comes(mut both) => {
                    both.1.complete();
                    both.0.upgraded()
                }
                Rest::Late => None,
            },
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Coming(coming) => coming.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Coming(coming) => coming.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Coming(coming) => match &coming.source {
                Some(source) => source.size_hint(coming.whole.bytes.len() as u64),
                // With a length that is known in HTTP/1.1 there would be no place for trailers.
                None if coming.whole.trailers.is_some() => SizeHint::new(),
                None => SizeHint::with_exact(coming.whole.bytes.len() as u64),
            },
        }
    }
}

impl Coming {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.whole.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.whole.bytes)))));
        }
        if let Some(trailers) = self.whole.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
        }
        let Some(source) = &self.source else { return Poll::Ready(None) };
        let frame = ready!(source.poll(cx));
        // With its end it lets go of connection and place, however long it is kept.
        if source.has_ended() || !matches!(frame, Some(Ok(_))) {
            (self.source, self.alarm) = (None, None);
        }
        Poll::Ready(frame)
    }

    fn has_ended(&self) -> bool {
        let ended = self.source.as_ref().is_none_or(|source| source.has_ended());
        ended && self.whole.bytes.is_empty() && self.whole.trailers.is_none()
    }
}

impl Coming {
    /// An answer that goes on behind `first`.
    pub(super) fn new(first: Bytes, incoming: Incoming, mut occupied: Occupied) -> Self {
        occupied.given();
        let rest = RefCell::new(Rest::Comes(Box::new((incoming, occupied))));
        let source = Source { rest, reader: RefCell::default() };
        let whole = Whole { bytes: first, trailers: None };
        Self { whole, source: Some(Rc::new(source)), alarm: None }
    }

    /// Whether it occupies one of few connections.
    pub(super) fn is_limited(&self) -> bool {
        let limited = |rest: &Rest| matches!(rest, Rest::Comes(both) if both.1.origin().is_limited());
        self.source.as_ref().is_some_and(|source| limited(&source.rest.borrow()))
    }

    /// It keeps its route's place.
    pub(super) fn keeps(&mut self, place: Option<Place>) {
        if let Some(source) = &self.source
            && let Rest::Comes(both) = &mut *source.rest.borrow_mut()
        {
            both.1.route = place;
        }
    }

    /// It is cut when this has ended. A task waits for that: a caller that takes nothing more does not poll, and would
    /// hold its place at the upstream for as long as it likes.
    pub(super) fn ends_with(&mut self, deadline: Sleep) {
        let Some(source) = &self.source else { return };
        let source = Rc::downgrade(source);
        let alarm = tokio::task::spawn_local(async move {
            deadline.await;
            if let Some(source) = source.upgrade() {
                source.cut();
            }
        });
        self.alarm = Some(Alarm(alarm.abort_handle()));
    }
}

impl Source {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let mut rest = self.rest.borrow_mut();
        let Rest::Comes(both) = &mut *rest else { return Poll::Ready(Some(Err(Cut::Late))) };
        let (incoming, occupied) = &mut **both;
        occupied.wanted();
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
            occupied.ended_with(trailers);
        }
        if frame.is_none() || incoming.is_end_stream() {
            occupied.complete();
        } else {
            occupied.given();
        }
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                occupied.broke(error.kind.fault());
                Cut::Upstream(error)
            })
        }))
    }

    fn has_ended(&self) -> bool {
        matches!(&*self.rest.borrow(), Rest::Comes(both) if both.0.is_end_stream())
    }

    /// Of what is still to come, with so much before it.
    fn size_hint(&self, first: u64) -> SizeHint {
        let mut hint = match &*self.rest.borrow() {
            Rest::Comes(both) => both.0.size_hint(),
            Rest::Late => SizeHint::new(),
        };
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + first);
        }
        hint.set_lower(hint.lower() + first);
        hint
    }

    /// The deadline has come.
    fn cut(&self) {
        let rest = self.rest.replace(Rest::Late);
        drop(rest);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
