//! What the writer is asked to do: applied in a transaction, answered when that is durable.

use crate::send::job::{Entry, UnixMs};
use crate::send::state::State;
use crate::send::store::ticket::{Reply, Ticket};
use crate::send::store::{Filter, StoreError};

use super::read::Reading;
use super::rows::Rows;

/// A purge or a retry by hand changes so many jobs in one transaction: others want their turn.
const PORTION: usize = 1000;

/// One thing to do.
pub(super) trait Task: Send {
    /// Does it, or a portion of it. It may be rolled back after that, and be done again.
    fn apply(&mut self, rows: &mut Rows<'_>, reading: &Reading<'_>) -> rusqlite::Result<()>;
    /// What was done is durable. Gives itself back if there is more to do.
    fn commit(self: Box<Self>) -> Option<Box<dyn Task>>;
    /// It can't be done.
    fn fail(self: Box<Self>, error: StoreError);
}

struct Once<A, F> {
    does: F,
    answer: Option<A>,
    reply: Reply<A>,
}

/// What is done in one go.
pub(super) fn once<A, F>(does: F) -> (Box<dyn Task>, Ticket<A>)
where
    A: Send + 'static,
    F: FnMut(&mut Rows<'_>) -> rusqlite::Result<A> + Send + 'static,
{
    let (reply, ticket) = Ticket::new();
    (Box::new(Once { does, answer: None, reply }), ticket)
}

impl<A: Send, F: FnMut(&mut Rows<'_>) -> rusqlite::Result<A> + Send> Task for Once<A, F> {
    fn apply(&mut self, rows: &mut Rows<'_>, _: &Reading<'_>) -> rusqlite::Result<()> {
        self.answer = Some((self.does)(rows)?);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Option<Box<dyn Task>> {
        self.reply.give(self.answer.ok_or(StoreError::Closed));
        None
    }

    fn fail(self: Box<Self>, error: StoreError) {
        self.reply.give(Err(error));
    }
}

/// What is done to all jobs of a filter, in portions.
pub(super) struct Sweep {
    pub(super) filter: Filter,
    pub(super) what: Broom,
    pub(super) reply: Reply<u64>,
    pub(super) done: Progress,
    /// As it will be when the transaction is durable.
    pub(super) then: Progress,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Broom {
    Purge,
    Retry { expires: Option<UnixMs>, now: UnixMs },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    after: u64,
    changed: u64,
    over: bool,
}

impl Broom {
    fn may(self, entry: &Entry) -> bool {
        match self {
            Self::Purge => entry.status.state != State::Leased,
            Self::Retry { expires, now } => entry.may_retry(expires, now),
        }
    }
}

impl Task for Sweep {
    fn apply(&mut self, rows: &mut Rows<'_>, reading: &Reading<'_>) -> rusqlite::Result<()> {
        let found = reading.page(&self.filter, self.done.after, PORTION)?;
        self.then = Progress { over: found.len() < PORTION, ..self.done };
        for (entry, bytes) in &found {
            self.then.after = entry.number;
            if !self.what.may(entry) {
                continue;
            }
            self.then.changed += 1;
            match self.what {
                Broom::Purge => rows.forget(entry, *bytes)?,
                Broom::Retry { expires, now } => rows.retry(entry, *bytes, expires, now)?,
            }
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Option<Box<dyn Task>> {
        self.done = self.then;
        if !self.done.over {
            return Some(self);
        }
        self.reply.give(Ok(self.done.changed));
        None
    }

    fn fail(self: Box<Self>, error: StoreError) {
        self.reply.give(Err(error));
    }
}
