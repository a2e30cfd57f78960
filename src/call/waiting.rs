//! A call's wait for a place.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::places::{PermitPool, PermitResult};
use crate::decide::Nanos;
use crate::decide::admit::{QueueTicket, Rejection, RejectionReason};
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

/// A call that waits for a place; dropped, it does not want it any more.
#[derive(Debug)]
pub(super) struct PermitWait {
    pool: Arc<PermitPool>,
    ticket: QueueTicket,
    result: oneshot::Receiver<PermitResult>,
    clock: Clock,
    since: Nanos,
    recheck_at: Nanos,
}

impl PermitWait {
    pub(super) fn new(
        pool: Arc<PermitPool>,
        ticket: QueueTicket,
        result: oneshot::Receiver<PermitResult>,
        clock: Clock,
        since: Nanos,
        recheck_at: Nanos,
    ) -> Self {
        Self { pool, ticket, result, clock, since, recheck_at }
    }

    /// Until there is a place, or it has waited for too long.
    pub(super) async fn permit(mut self, timer: &Timer) -> PermitResult {
        loop {
            let told = tokio::select! {
                biased;
                told = &mut self.result => told,
                () = timer.sleep_until(self.recheck_at), if self.recheck_at < Nanos::NEVER => match self.pool.check_overdue(timer.clock(), timer.now(), self.ticket) {
                    Some(Ok(look_at)) => {
                        self.recheck_at = look_at;
                        continue;
                    }
                    Some(Err(refusal)) => return Err(refusal),
                    // Another thread has decided, and is about to tell.
                    None => (&mut self.result).await,
                },
            };
            let mut told =
                told.unwrap_or(Err(Rejection { reason: RejectionReason::QueueTimeout, retry_after: Nanos::SECOND }));
            if let Ok(place) = &mut told {
                place.begin(timer.clock(), timer.now());
            }
            return told;
        }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        self.pool.withdraw(self.ticket, self.clock.now() - self.since);
    }
}
