//! How a call ends.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};

use super::story::Story;
use super::upstream::Occupied;
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
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// It is there.
    Whole(Bytes),
    /// It still comes, and occupies its upstream until it has come, is dropped or the deadline is there.
    Coming(Box<Coming>),
}

/// See [`AnswerBody::Coming`].
#[derive(Debug)]
pub struct Coming {
    pub(super) incoming: Incoming,
    pub(super) deadline: Option<Sleep>,
    pub(super) _occupied: Occupied,
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
    /// The connection itself, after an answer of 101.
    pub fn upgraded(self) -> Option<Upgraded> {
        match self {
            Self::Whole(_) => None,
            Self::Coming(coming) => coming.incoming.upgraded(),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let coming = match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Self::Whole(bytes) => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Coming(coming) => coming,
        };
        if let Poll::Ready(frame) = Pin::new(&mut coming.incoming).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Cut::Upstream)));
        }
        match &mut coming.deadline {
            Some(deadline) => Pin::new(deadline).poll(cx).map(|()| Some(Err(Cut::Late))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Coming(coming) => coming.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Coming(coming) => coming.incoming.size_hint(),
        }
    }
}
