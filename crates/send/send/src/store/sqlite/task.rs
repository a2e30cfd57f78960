//! Tasks of the writer: applied in a transaction, completed when it is durable.

use crate::job::{JobEntry, UnixMs};
use crate::state::State;
use crate::store::ticket::{ReplySender, StoreFuture};
use crate::store::{JobFilter, StoreError};

use super::read::TableReader;
use super::rows::TableWriter;

/// Jobs per transaction of a purge or retry, so that others are not blocked.
const MAX_JOBS_PER_TRANSACTION: usize = 1000;

/// Task of the writer.
pub(super) trait WriteTask: Send {
    /// Executes the task, or a part of it. May be rolled back and executed again.
    fn apply(&mut self, rows: &mut TableWriter<'_>, reading: &TableReader<'_>) -> rusqlite::Result<()>;
    /// Completes the task after the commit. Returns itself if there is more to do.
    fn commit(self: Box<Self>) -> Option<Box<dyn WriteTask>>;
    /// Fails the task.
    fn fail(self: Box<Self>, error: StoreError);
}

struct SingleTask<A, F> {
    run: F,
    result: Option<A>,
    reply: ReplySender<A>,
}

/// Task of one step.
pub(super) fn single<A, F>(does: F) -> (Box<dyn WriteTask>, StoreFuture<A>)
where
    A: Send + 'static,
    F: FnMut(&mut TableWriter<'_>) -> rusqlite::Result<A> + Send + 'static,
{
    let (reply, ticket) = StoreFuture::new();
    (Box::new(SingleTask { run: does, result: None, reply }), ticket)
}

impl<A: Send, F: FnMut(&mut TableWriter<'_>) -> rusqlite::Result<A> + Send> WriteTask for SingleTask<A, F> {
    fn apply(&mut self, rows: &mut TableWriter<'_>, _: &TableReader<'_>) -> rusqlite::Result<()> {
        self.result = Some((self.run)(rows)?);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Option<Box<dyn WriteTask>> {
        self.reply.send(self.result.ok_or(StoreError::Closed));
        None
    }

    fn fail(self: Box<Self>, error: StoreError) {
        self.reply.send(Err(error));
    }
}

/// Task over all jobs of a filter, in parts.
pub(super) struct BulkTask {
    pub(super) filter: JobFilter,
    pub(super) action: BulkAction,
    pub(super) reply: ReplySender<u64>,
    pub(super) committed: BulkProgress,
    /// Progress after the commit.
    pub(super) pending: BulkProgress,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum BulkAction {
    Purge,
    Retry { expires: Option<UnixMs>, now: UnixMs },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BulkProgress {
    after: u64,
    changed: u64,
    is_finished: bool,
}

impl BulkAction {
    fn applies_to(self, entry: &JobEntry) -> bool {
        match self {
            Self::Purge => entry.status.state != State::Leased,
            Self::Retry { expires, now } => entry.may_retry(expires, now),
        }
    }
}

impl WriteTask for BulkTask {
    fn apply(&mut self, rows: &mut TableWriter<'_>, reading: &TableReader<'_>) -> rusqlite::Result<()> {
        let found = reading.page(&self.filter, self.committed.after, MAX_JOBS_PER_TRANSACTION)?;
        self.pending = BulkProgress { is_finished: found.len() < MAX_JOBS_PER_TRANSACTION, ..self.committed };
        for (entry, bytes) in &found {
            self.pending.after = entry.number;
            if !self.action.applies_to(entry) {
                continue;
            }
            self.pending.changed += 1;
            match self.action {
                BulkAction::Purge => rows.delete(entry, *bytes)?,
                BulkAction::Retry { expires, now } => rows.retry(entry, *bytes, expires, now)?,
            }
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Option<Box<dyn WriteTask>> {
        self.committed = self.pending;
        if !self.committed.is_finished {
            return Some(self);
        }
        self.reply.send(Ok(self.committed.changed));
        None
    }

    fn fail(self: Box<Self>, error: StoreError) {
        self.reply.send(Err(error));
    }
}
