//! What a service has at hand while it answers.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Reply;
use super::ledger::Ledger;
use super::watch::Watch;
use crate::decide::Nanos;
use crate::decide::patience::Patience;
use crate::machine::timer::{Sleep, Timer};

/// One request's turn.
#[derive(Debug)]
pub struct Turn {
    pub(super) ledger: Rc<Ledger>,
    pub(super) timer: Timer,
    pub(super) watch: Rc<Watch>,
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
    /// Time since the server's start.
    pub fn now(&self) -> Nanos {
        self.ledger.clock.now()
    }

    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        self.watch.peer
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
    pub async fn read(&self, mut body: Incoming, most: usize) -> Result<Bytes, Unread> {
        use http_body::Body;
        if body.size_hint().lower() > most as u64 {
            return Err(Unread::TooLong);
        }
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        self.watch.note(|patience| patience.wants_body(self.ledger.tick.now()));
        let read = loop {
            let Some(frame) = body.frame().await else { break Ok(()) };
            let Ok(frame) = frame else { break Err(Unread::Broken) };
            let Ok(data) = frame.into_data() else { continue };
            if first.len() + rest.len() + data.len() > most {
                break Err(Unread::TooLong);
            }
            if first.is_empty() {
                first = data;
                continue;
            }
            rest.extend_from_slice(&data);
        };
        self.watch.note(Patience::has_body);
        read?;
        self.watch.has_unread_body(false);
        // Only a body in several pieces is copied.
        if rest.is_empty() { Ok(first) } else { Ok([&first[..], &rest[..]].concat().into()) }
    }
}
