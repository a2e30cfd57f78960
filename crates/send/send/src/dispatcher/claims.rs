//! Owner of claims: calls the store for jobs when the owner of attempts wants some, and learns when jobs are due.

use std::rc::Rc;

use tokio::sync::mpsc::UnboundedReceiver;

use super::channels::{AttemptEvent, ClaimEvent, post};
use super::context::SenderContext;
use crate::sender_error::SenderError;
use crate::store::{ClaimReply, ClaimRequest, LaneClaim, StoreError};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;

/// Size of a claim, in bytes.
const MAX_CLAIM_BYTES: u64 = 64 << 20;
const DAY_MS: u64 = 24 * 3600 * 1000;
/// Interval of claims where other senders share the store, in case news is lost.
const POLL_INTERVAL_MS: u64 = 1000;

/// Owner of claims.
pub(super) struct ClaimLoop {
    context: Rc<SenderContext>,
    inbox: UnboundedReceiver<ClaimEvent>,
    /// Next time at which a job of the store is due or expires, or at which a failed claim is repeated.
    due: Nanos,
    /// Whether the last claim failed; arrivals are ignored until `due`.
    is_paused: bool,
}

impl ClaimLoop {
    pub(super) fn new(context: Rc<SenderContext>, inbox: UnboundedReceiver<ClaimEvent>) -> Self {
        Self { context, inbox, due: Nanos::NEVER, is_paused: false }
    }

    /// Claims jobs on demand, as long as the sender runs.
    pub(super) async fn run(mut self) {
        let context = Rc::clone(&self.context);
        let mut arrivals = context.store.arrivals();
        loop {
            tokio::select! {
                // A claim covers what has arrived before it.
                biased;
                event = self.inbox.recv() => match event {
                    Some(ClaimEvent::Wanted(lanes)) => {
                        arrivals.mark_unchanged();
                        let claimed = match self.claim(lanes).await {
                            Ok(claimed) => claimed,
                            Err(error) => {
                                post(&context.channels.attempts, AttemptEvent::Failed(SenderError::Store(error)));
                                post(&context.channels.attempts, AttemptEvent::Claimed(None));
                                return;
                            }
                        };
                        post(&context.channels.attempts, AttemptEvent::Claimed(claimed));
                        continue;
                    }
                    Some(ClaimEvent::RetryRecorded) => {}
                    None => return,
                },
                _ = arrivals.changed(), if !self.is_paused => {}
                () = context.timer.sleep_until(self.due), if self.due < Nanos::NEVER => {
                    (self.due, self.is_paused) = (Nanos::NEVER, false);
                }
            }
            if !self.is_paused {
                post(&context.channels.attempts, AttemptEvent::JobsDue);
            }
        }
    }

    /// Claims jobs of these lanes; None if the store cannot for the moment.
    async fn claim(&mut self, lanes: Vec<LaneClaim>) -> Result<Option<ClaimReply>, StoreError> {
        let request = ClaimRequest {
            now: wall_ms(),
            // Leases without an end: they end with this process.
            lease_duration: Nanos::NEVER,
            lanes,
            max_bytes: MAX_CLAIM_BYTES,
            // Each job is marked when it is sent.
            marks_sent: false,
        };
        let claimed = self.context.store.claim(request).await;
        let now = self.context.timer.now();
        match claimed {
            Ok(claimed) => {
                let wait_ms =
                    claimed.next_due.map(|at| u64::try_from(at.0.saturating_sub(wall_ms().0)).unwrap_or(0).max(1));
                let poll_ms = self.context.shares_keys().then_some(POLL_INTERVAL_MS);
                let wait_ms = wait_ms.into_iter().chain(poll_ms).min();
                self.due = wait_ms.map_or(Nanos::NEVER, |ms| now + Nanos::from_millis(ms.min(DAY_MS)));
                Ok(Some(claimed))
            }
            Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Unreachable(..)) => {
                (self.due, self.is_paused) = (now + Nanos::SECOND, true);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
