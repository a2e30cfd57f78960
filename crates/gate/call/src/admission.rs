//! Admission of a call: the permits that it needs before anything is sent.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use super::attempt_log::CallTrace;
use super::attempt_rate::{AttemptRate, SlotResult};
use super::call_slots::CallSlots;
use super::call_start::CallStart;
use super::counts::{CallCounts, CallOutcome};
use super::permits::{AcquireResult, CallPermit, PermitPool, PermitResult};
use super::pulse;
use super::request::CallRequest;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;
use weir_resilience::admission::{CallArrival, Rejection, RejectionReason};
use weir_resilience::upstream::circuit_breaker::BreakerPermit;
use weir_retry::retry_budget::Budget;

/// Permits of an admitted call.
#[derive(Debug)]
pub(super) struct CallAdmission {
    /// Slot of the route, until the end of the response.
    pub(super) route_permit: Option<CallPermit>,
    /// Slot of the first attempt at the upstream.
    pub(super) upstream_permit: Option<CallPermit>,
    /// Slot of the first attempt, where the rate of attempts is limited.
    pub(super) rate_slot: Option<SlotResult>,
    /// Permit of the circuit breaker.
    pub(super) breaker_permit: Option<BreakerPermit>,
    /// Whether the call was queued.
    pub(super) waited: bool,
}

impl CallAdmission {
    /// Acquires all permits, and waits for them if necessary.
    ///
    /// The decision on every call. [`CallEngine::shed_early`](super::CallEngine::shed_early) only precedes it, for
    /// calls whose body is still to be read, to reject them without an upload; permits are acquired here and not there,
    /// since a slow upload would hold them while nothing is sent to the upstream.
    pub(super) async fn acquire(
        request: &CallRequest<'_>,
        timer: &Timer,
        start: CallStart,
        random: impl FnOnce() -> f64,
        on_cancel: &dyn Fn(CallTrace),
    ) -> Result<Self, Rejection> {
        let CallStart { began: now, deadline, .. } = start;
        let cancel_context = (&*request.plan.counts, on_cancel, now);
        let CallRequest { priority, spread, connection, .. } = *request;
        let arrival = CallArrival { deadline, priority, spread, connection };
        let mut admission =
            Self { route_permit: None, upstream_permit: None, rate_slot: None, breaker_permit: None, waited: false };
        if request.plan.permits.is_some() || request.plan.upstream.permits().is_some() {
            pulse::keep_running(timer, now);
        }
        if let Some(pool) = &request.plan.permits {
            admission.route_permit = Some(admission.acquire_permit(cancel_context, pool, timer, now, &arrival).await?);
        }
        if let Some(pool) = request.plan.upstream.permits() {
            let now = if admission.waited { timer.now() } else { now };
            admission.upstream_permit =
                Some(admission.acquire_permit(cancel_context, pool, timer, now, &arrival).await?);
        }
        if let Some(rate) = request.rate {
            // After the permits: a slot that waits is used up all the same.
            admission.rate_slot = Some(admission.acquire_slot(cancel_context, rate, timer, deadline).await?);
        }
        // Last, since it is only for calls that are sent.
        let now = if admission.waited { timer.now() } else { now };
        admission.breaker_permit = request.plan.upstream.guard.allows(now, random)?;
        Ok(admission)
    }

    /// Acquires all permits if none has to be waited for, and nothing else is to be decided. None is no rejection:
    /// [`Self::acquire`] decides.
    pub(super) fn try_acquire(request: &CallRequest<'_>, timer: &Timer, start: CallStart) -> Option<Self> {
        let CallStart { began: now, deadline, .. } = start;
        let CallRequest { plan, priority, spread, connection, .. } = *request;
        // With two pools one could have a slot and the other none: a slot that is given back is a call that has failed.
        if request.rate.is_some() || (plan.permits.is_some() && plan.upstream.permits().is_some()) {
            return None;
        }
        let breaker_permit = plan.upstream.guard.allows_any(now)?;
        let pools = [plan.permits.as_ref(), plan.upstream.permits()];
        if pools.iter().any(Option::is_some) {
            pulse::keep_running(timer, now);
        }
        let arrival = CallArrival { deadline, priority, spread, connection };
        let acquire = |pool: Option<&Arc<PermitPool>>| match pool {
            Some(pool) => pool.try_acquire(timer.clock(), now, &arrival).map(Some),
            None => Some(None),
        };
        let route_permit = acquire(pools[0])?;
        let upstream_permit = acquire(pools[1])?;
        Some(Self { route_permit, upstream_permit, rate_slot: None, breaker_permit, waited: false })
    }

    /// Waits in line for the slot of the first attempt.
    async fn acquire_slot(
        &mut self,
        cancel_context: CancelContext<'_>,
        rate: &dyn AttemptRate,
        timer: &Timer,
        deadline: Nanos,
    ) -> Result<SlotResult, Rejection> {
        self.waited = true;
        let guard = CancelGuard(Some(cancel_context));
        let mut slot = rate.slot();
        let mut late = (deadline < Nanos::NEVER).then(|| Box::pin(timer.sleep_until(deadline)));
        let result = poll_fn(|cx| match (slot.as_mut().poll(cx), &mut late) {
            (Poll::Ready(slot), _) => Poll::Ready(Ok(slot)),
            (Poll::Pending, Some(late)) => late.as_mut().poll(cx).map(|()| {
                let reason = RejectionReason::DeadlineExceeded;
                Err(Rejection { reason, retry_after: Nanos::ZERO })
            }),
            (Poll::Pending, None) => Poll::Pending,
        });
        let result = result.await;
        guard.disarm();
        result
    }

    async fn acquire_permit(
        &mut self,
        cancel_context: CancelContext<'_>,
        pool: &Arc<PermitPool>,
        timer: &Timer,
        now: Nanos,
        arrival: &CallArrival,
    ) -> PermitResult {
        if let Some(permit) = pool.try_acquire(timer.clock(), now, arrival) {
            return Ok(permit);
        }
        match pool.acquire(timer.clock(), now, arrival) {
            AcquireResult::Granted(permit) => Ok(permit),
            AcquireResult::Rejected(rejection) => Err(rejection),
            AcquireResult::Queued(wait) => {
                self.waited = true;
                let guard = CancelGuard(Some(cancel_context));
                // Boxed, since few calls wait, and the future of every call would be larger by it.
                let result = Box::pin(wait.permit(timer)).await;
                guard.disarm();
                result
            }
        }
    }
}

/// State for a report when a caller disconnects: counters, hook, and start of the call.
type CancelContext<'a> = (&'a CallCounts, &'a dyn Fn(CallTrace), Nanos);

/// Reports a caller that disconnects while its call is queued.
struct CancelGuard<'a>(Option<CancelContext<'a>>);

impl CancelGuard<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some((counts, on_cancel, began)) = self.0 {
            counts.ended(CallOutcome::ClientClosed);
            on_cancel(CallTrace { began, ..CallTrace::default() });
        }
    }
}

/// A budget whose withdrawals also need a free slot at the upstream.
#[derive(Debug)]
pub(super) struct BudgetWithPermits<'a, 'c, P> {
    pub(super) budget: &'a mut P,
    pub(super) request: &'a CallRequest<'a>,
    pub(super) clock: Clock,
    /// Permits of granted withdrawals.
    pub(super) permits: &'a mut Vec<CallPermit>,
    /// Slots, where the rate of attempts is limited.
    pub(super) slots: &'a mut CallSlots<'c>,
    /// Number of withdrawals that no slot was free for.
    pub(super) without_slot: &'a mut u32,
}

impl<P: Budget> Budget for BudgetWithPermits<'_, '_, P> {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        self.budget.can_withdraw(now)
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        let mut permit = None;
        if let Some(pool) = self.request.plan.upstream.permits() {
            let CallRequest { priority, spread, connection, .. } = *self.request;
            let arrival = CallArrival { deadline: Nanos::NEVER, priority, spread, connection };
            permit = pool.try_acquire(self.clock, now, &arrival);
            if permit.is_none() {
                *self.without_slot += 1;
                return false;
            }
        }
        let granted = self.slots.allows_extra() && self.budget.withdraw(now);
        self.permits.extend(permit.filter(|_| granted));
        granted
    }
}
