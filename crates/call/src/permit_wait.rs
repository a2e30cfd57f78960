//! A call's wait for a permit.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::permits::{PermitPool, PermitResult};
use weir_decide::Nanos;
use weir_decide::admission::{QueueTicket, Rejection, RejectionReason};
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;

/// A queued call; dropping it leaves the queue.
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

    /// Waits for a permit, or a rejection after the maximum wait.
    pub(super) async fn permit(mut self, timer: &Timer) -> PermitResult {
        loop {
            let result = tokio::select! {
                biased;
                result = &mut self.result => result,
                () = timer.sleep_until(self.recheck_at), if self.recheck_at < Nanos::NEVER => match self.pool.check_overdue(timer.clock(), timer.now(), self.ticket) {
                    Some(Ok(recheck_at)) => {
                        self.recheck_at = recheck_at;
                        continue;
                    }
                    Some(Err(rejection)) => return Err(rejection),
                    // Another thread has decided and is about to send the result.
                    None => (&mut self.result).await,
                },
            };
            let mut result =
                result.unwrap_or(Err(Rejection { reason: RejectionReason::QueueTimeout, retry_after: Nanos::SECOND }));
            if let Ok(permit) = &mut result {
                permit.begin(timer.clock(), timer.now());
            }
            return result;
        }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        self.pool.withdraw(self.ticket, self.clock.now() - self.since);
    }
}
