//! Events of a sender.

use std::fmt;
use std::io;

use super::job::{JobEntry, UnixMs};
use super::state::State;
use weir_base::Nanos;
use weir_delivery::dispatch::DispatchFailure;

/// Finished attempt.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// Number of the key among the sender's.
    pub key: usize,
    /// Wall-clock time of the decision to send.
    pub sent_at: UnixMs,
    /// Delay of its last byte beyond what the limits allowed; None if it was not sent.
    pub lateness: Option<Nanos>,
    /// Time from the decision to the end of the response, or to the failure.
    pub service_time: Nanos,
    /// Status of the response, or the failure in prose.
    pub outcome: Result<u16, String>,
    /// Check that the content of the response failed, in prose; None of other responses.
    pub failed_check: Option<String>,
    /// Value of the response's header `x-request-id` or `request-id`; None without one.
    pub request_id: Option<String>,
    /// Whether it delivered the job.
    pub succeeded: bool,
    /// Whether it was not the first attempt of its job.
    pub is_retry: bool,
    /// Body of a response that did not deliver the job; empty otherwise.
    pub failure_body: bytes::Bytes,
}

/// Event that a sender reports to its listener.
#[derive(Debug)]
pub enum SenderEvent {
    /// An attempt has ended.
    AttemptEnded(AttemptRecord),
    /// A job has ended.
    JobEnded(Box<FinishedJob>),
    /// A key, by its number, was disabled, for this reason.
    KeyUnusable(usize, String),
}

/// Job at its end.
#[derive(Debug)]
pub struct FinishedJob {
    /// Job as it was claimed.
    pub entry: JobEntry,
    /// Final state: done, dead-lettered or expired.
    pub state: State,
    /// Reason, in prose.
    pub reason: String,
    /// Failure that ended it; None of a delivered job, of one that the store has expired, and of a request that cannot be
    /// sent as it is.
    pub cause: Option<DispatchFailure>,
    /// Wall-clock time of the end.
    pub ended_at: UnixMs,
    /// Last attempt, if there was one.
    pub last_attempt: Option<AttemptRecord>,
    /// Body of the last response; empty without one.
    pub body: bytes::Bytes,
    /// Number of attempts.
    pub attempts: u32,
}

impl FinishedJob {
    /// Status of the last response; None without one.
    pub fn status(&self) -> Option<u16> {
        self.last_attempt.as_ref()?.outcome.as_ref().ok().copied()
    }

    /// Check that its last response failed, in prose; None if it failed by something else, or did not.
    pub fn failed_check(&self) -> Option<&str> {
        let last = self.last_attempt.as_ref().filter(|_| self.state == State::DeadLettered)?;
        last.failed_check.as_deref()
    }

    /// Reason why it was not delivered, in prose; None if it was.
    pub fn failure(&self) -> Option<&str> {
        match self.last_attempt.as_ref().map(|last| &last.outcome) {
            _ if self.state == State::Done => None,
            Some(Err(why)) if self.state == State::DeadLettered => Some(why),
            _ => Some(self.failed_check().unwrap_or(&self.reason)),
        }
    }
}

/// Receiver of the events of a sender.
pub trait Listener: Send {
    /// Receives events *before* they are recorded: those that were not recorded at a crash come again, unless
    /// [`Self::reported_state`] has them.
    ///
    /// # Errors
    /// The events cannot be written, and none of them is; the sender then stops. Without space (`StorageFull`,
    /// `QuotaExceeded`, `FileTooLarge`) it claims no more jobs, and repeats the events until there is space.
    fn on_events(&mut self, news: &[SenderEvent]) -> io::Result<()>;

    /// Whether earlier events were reported, so that claimed jobs may have a [`Self::reported_state`].
    fn has_reports(&self) -> bool {
        false
    }

    /// Final state of a claimed job, if it was reported before.
    fn reported_state(&mut self, entry: &JobEntry) -> Option<State> {
        let _ = entry;
        None
    }
}

/// Listener that ignores all events.
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
