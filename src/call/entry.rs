//! A call's way in: the places that it has before anything is sent.

use std::sync::Arc;

use super::ask::CallRequest;
use super::counts::{CallCounts, CallOutcome};
use super::places::{AcquireResult, CallPermit, PermitPool, PermitResult};
use super::pulse;
use super::story::CallTrace;
use crate::decide::Nanos;
use crate::decide::admit::{CallArrival, Rejection};
use crate::decide::breaker::BreakerPermit;
use crate::decide::budget::Budget;
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

/// What a call has that is in.
#[derive(Debug)]
pub(super) struct CallAdmission {
    /// Its route's, to the end of its answer.
    pub(super) route_permit: Option<CallPermit>,
    /// Its first attempt's.
    pub(super) upstream_permit: Option<CallPermit>,
    /// Its upstream's leave.
    pub(super) breaker_permit: Option<BreakerPermit>,
    /// Whether it had to wait.
    pub(super) waited: bool,
}

impl CallAdmission {
    /// Takes what there is at once, or waits for it.
    pub(super) async fn acquire(
        ask: &CallRequest<'_>,
        timer: &Timer,
        (now, deadline): (Nanos, Nanos),
        roll: impl FnOnce() -> f64,
        gone: &dyn Fn(CallTrace),
    ) -> Result<Self, Rejection> {
        let told = (&*ask.plan.counts, gone, now);
        let arrival = CallArrival { deadline, priority: ask.priority, spread: ask.spread };
        let mut entry = Self { route_permit: None, upstream_permit: None, breaker_permit: None, waited: false };
        if ask.plan.permits.is_some() || ask.plan.upstream.permits().is_some() {
            pulse::keep_running(timer, now);
        }
        if let Some(places) = &ask.plan.permits {
            entry.route_permit = Some(entry.acquire_permit(told, places, timer, now, &arrival).await?);
        }
        if let Some(places) = ask.plan.upstream.permits() {
            let now = if entry.waited { timer.now() } else { now };
            entry.upstream_permit = Some(entry.acquire_permit(told, places, timer, now, &arrival).await?);
        }
        // Last, since it is for a call that is sent.
        let now = if entry.waited { timer.now() } else { now };
        entry.breaker_permit = ask.plan.upstream.guard.allows(now, roll)?;
        Ok(entry)
    }

    async fn acquire_permit(
        &mut self,
        told: CancelContext<'_>,
        places: &Arc<PermitPool>,
        timer: &Timer,
        now: Nanos,
        arrival: &CallArrival,
    ) -> PermitResult {
        if let Some(place) = places.try_acquire(timer.clock(), now, arrival.rank()) {
            return Ok(place);
        }
        match places.acquire(timer.clock(), now, arrival) {
            AcquireResult::Granted(place) => Ok(place),
            AcquireResult::Rejected(refusal) => Err(refusal),
            AcquireResult::Queued(waiting) => {
                self.waited = true;
                let leaves = CancelGuard(Some(told));
                // In a box: few wait, and all would have to carry it.
                let told = Box::pin(waiting.permit(timer)).await;
                leaves.disarm();
                told
            }
        }
    }
}

/// What is to be told of a caller that leaves: to whom, and when it came.
type CancelContext<'a> = (&'a CallCounts, &'a dyn Fn(CallTrace), Nanos);

/// A caller that may leave while it waits.
struct CancelGuard<'a>(Option<CancelContext<'a>>);

impl CancelGuard<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some((counts, gone, began)) = self.0 {
            counts.ended(CallOutcome::ClientClosed);
            gone(CallTrace { began, ..CallTrace::default() });
        }
    }
}

/// Pays for extra attempts: each needs the budget's leave, and a place that is free at once.
#[derive(Debug)]
pub(super) struct BudgetWithPermits<'a, P> {
    pub(super) budget: &'a mut P,
    pub(super) request: &'a CallRequest<'a>,
    pub(super) clock: Clock,
    /// The places of those that were paid for.
    pub(super) permits: &'a mut Vec<CallPermit>,
}

impl<P: Budget> Budget for BudgetWithPermits<'_, P> {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        self.budget.can_withdraw(now)
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        let Some(places) = self.request.plan.upstream.permits() else { return self.budget.withdraw(now) };
        let arrival =
            CallArrival { deadline: Nanos::NEVER, priority: self.request.priority, spread: self.request.spread };
        let Some(place) = places.try_acquire(self.clock, now, arrival.rank()) else { return false };
        let granted = self.budget.withdraw(now);
        self.permits.extend(Some(place).filter(|_| granted));
        granted
    }
}
