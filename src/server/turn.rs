//! What a service has at hand while it answers.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::value::RawValue;

use super::ledger::{Asked, Entry, Ledger};
use super::watch::{Fate, Watch};
use super::{BodyError, Reply};
use crate::decide::Nanos;
use crate::decide::patience::Patience;
use crate::machine::timer::{Sleep, Timer};

/// One request's turn.
#[derive(Debug)]
pub struct Turn {
    pub(super) ledger: Rc<Ledger>,
    pub(super) timer: Timer,
    pub(super) watch: Rc<Watch>,
    began: Nanos,
    asked: Option<Rc<Asked>>,
}

/// A request's body as far as it was wanted at once.
#[derive(Debug)]
pub enum Taken {
    /// All of it.
    Whole(Bytes),
    /// It is longer: the beginning is in it already.
    Longer(Upload),
}

/// A request's body that is passed on as it comes.
#[derive(Debug)]
pub struct Upload {
    first: Bytes,
    rest: Incoming,
    ledger: Rc<Ledger>,
    watch: Rc<Watch>,
}

/// Why a request's body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is longer than was allowed.
    TooLong,
    /// It ended early, or breaks the rules of HTTP.
    Broken,
}

impl Turn {
    pub(super) fn new(ledger: &Rc<Ledger>, timer: &Timer, watch: &Rc<Watch>, entry: &Entry) -> Self {
        Self {
            ledger: Rc::clone(ledger),
            timer: timer.clone(),
            watch: Rc::clone(watch),
            began: entry.began(),
            asked: entry.asked(),
        }
    }

    /// Whether anybody will read a story.
    pub fn is_logged(&self) -> bool {
        self.asked.is_some()
    }

    /// Adds a story to the request's line in the access log.
    pub fn tell(&self, story: Box<RawValue>) {
        if let Some(asked) = &self.asked {
            asked.has_story(story);
        }
    }

    /// Whether it is this end that gives up the connection: for its patience is over, or the server stops.
    pub fn is_given_up(&self) -> bool {
        self.watch.fate() == Fate::Die
    }

    /// Time since the server's start.
    pub fn now(&self) -> Nanos {
        self.ledger.clock.now()
    }

    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        self.watch.peer
    }

    /// Their address without port, as a header has it.
    pub fn client(&self) -> &HeaderValue {
        self.watch.client()
    }

    /// When the request's head was there, since the server's start.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// Ends `length` from now, exactly.
    pub fn sleep(&self, length: Nanos) -> Sleep {
        self.timer.sleep(length)
    }

    /// Ends at `until`, exactly.
    pub fn sleep_until(&self, until: Nanos) -> Sleep {
        self.timer.sleep_until(until)
    }

    /// Never ends: the request has no answer, and its connection stays open until the client or the server ends it.
    pub async fn never(&self) -> Reply {
        self.watch.lose_hope().await
    }

    /// Reads a request's body of at most `most` bytes.
    ///
    /// # Errors
    /// [`Unread`]. A peer that sends nothing for too long is let go, and this never ends.
    pub async fn read(&self, body: Incoming, most: usize) -> Result<Bytes, Unread> {
        if body.size_hint().lower() > most as u64 {
            return Err(Unread::TooLong);
        }
        match self.take(body, most).await? {
            Taken::Whole(bytes) => Ok(bytes),
            Taken::Longer(_) => Err(Unread::TooLong),
        }
    }

    /// Reads a request's body if it has at most `most` bytes; otherwise only its beginning.
    ///
    /// # Errors
    /// [`Unread::Broken`]. A peer that sends nothing for too long is let go, and this never ends.
    pub async fn take(&self, mut body: Incoming, most: usize) -> Result<Taken, Unread> {
        let upload = |first, rest| {
            let (ledger, watch) = (Rc::clone(&self.ledger), Rc::clone(&self.watch));
            Ok(Taken::Longer(Upload { first, rest, ledger, watch }))
        };
        if body.size_hint().lower() > most as u64 {
            return upload(Bytes::new(), body);
        }
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        self.watch.note(|patience| patience.wants_body(self.ledger.tick.now()));
        let read = loop {
            let Some(frame) = body.frame().await else { break Ok(true) };
            let Ok(frame) = frame else { break Err(Unread::Broken) };
            let Ok(data) = frame.into_data() else { continue };
            let length = first.len() + rest.len() + data.len();
            if first.is_empty() {
                first = data;
            } else {
                rest.extend_from_slice(&data);
            }
            if length > most {
                break Ok(false);
            }
        };
        self.watch.note(Patience::has_body);
        let whole = read?;
        // Only a body in several pieces is copied.
        let bytes = if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() };
        if !whole {
            return upload(bytes, body);
        }
        self.watch.has_unread_body(false);
        Ok(Taken::Whole(bytes))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        let Poll::Ready(frame) = Pin::new(&mut self.rest).poll_frame(cx) else {
            self.watch.note(|patience| patience.wants_body(self.ledger.tick.now()));
            return Poll::Pending;
        };
        self.watch.note(Patience::has_body);
        if frame.is_none() {
            self.watch.has_unread_body(false);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, first) = (self.rest.size_hint(), self.first.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}
