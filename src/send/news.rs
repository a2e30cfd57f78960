//! What a sender tells while it works.

use std::fmt;
use std::io;

use super::job::{JobEntry, UnixMs};
use super::state::State;
use crate::decide::Nanos;

/// One request and what came of it.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// The key's number among the sender's.
    pub key: usize,
    /// When it was decided to send it, on the wall clock.
    pub sent_at: UnixMs,
    /// How much later than it might have been its last byte left; None: it never did.
    pub lateness: Option<Nanos>,
    /// From the decision to the end of the answer, or to its failure.
    pub service_time: Nanos,
    /// The answer's status, or in words why there is none.
    pub outcome: Result<u16, String>,
    /// It brought what was wanted.
    pub succeeded: bool,
    /// It was not the first of its job.
    pub is_retry: bool,
}

/// What happened.
#[derive(Debug)]
pub enum SenderEvent {
    /// A request has ended.
    AttemptEnded(AttemptRecord),
    /// A job has come to its end.
    JobEnded(Box<FinishedJob>),
    /// A key, by its number, is used no more: why.
    KeyUnusable(usize, String),
}

/// A job at its end.
#[derive(Debug)]
pub struct FinishedJob {
    /// The job, as it was claimed.
    pub entry: JobEntry,
    /// Where it went: done, graveyard or expired.
    pub state: State,
    /// Why, in a few words.
    pub reason: String,
    /// When.
    pub ended_at: UnixMs,
    /// The last request, if there was one.
    pub last_attempt: Option<AttemptRecord>,
    /// The last answer's body, if there was an answer.
    pub body: bytes::Bytes,
    /// How often it was sent.
    pub attempts: u32,
}

impl FinishedJob {
    /// The last answer's status; None: the last request had no answer, or there was none.
    pub fn status(&self) -> Option<u16> {
        self.last_attempt.as_ref()?.outcome.as_ref().ok().copied()
    }

    /// Why it was not delivered, in a few words; None: it was.
    pub fn failure(&self) -> Option<&str> {
        match self.last_attempt.as_ref().map(|last| &last.outcome) {
            _ if self.state == State::Done => None,
            Some(Err(why)) if self.state == State::DeadLettered => Some(why),
            _ => Some(&self.reason),
        }
    }
}

/// Whoever is told.
pub trait Listener: Send {
    /// These things happened. Told *before* they are recorded: what was told and not recorded when a process ended is
    /// told again, unless [`Self::reported_state`] knows it.
    ///
    /// # Errors
    /// When it cannot be kept, and nothing of it is; the sender then stops. If there is no room (`StorageFull`,
    /// `QuotaExceeded`, `FileTooLarge`) it claims no more jobs, and tells it again until there is.
    fn on_events(&mut self, news: &[SenderEvent]) -> io::Result<()>;

    /// The end that a job which may have been sent before a crash has come to, if it was told.
    fn reported_state(&mut self, entry: &JobEntry) -> Option<State> {
        let _ = entry;
        None
    }
}

/// Nobody.
impl Listener for () {
    fn on_events(&mut self, _: &[SenderEvent]) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for dyn Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
