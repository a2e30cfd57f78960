//! When a call began, and until when it may last.

use super::engine_state::EngineState;
use super::plan::CallPlan;
use super::request::CallRequest;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_resilience::hedge::{HedgeAction, HedgedCall, PolicyRef, ResendRule};

/// Number of a call within its engine, and its times on the engine's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallStart {
    /// Number, which seeds the call's random values.
    pub(super) number: u64,
    /// Arrival of the call, before it is admitted.
    pub(super) began: Nanos,
    /// Deadline: the earlier one of policy and caller.
    pub(super) deadline: Nanos,
}

impl CallStart {
    /// Start of the engine's next call, now; the call takes its number with [`EngineState::next_number`].
    pub(super) fn next(engine: &EngineState, request: &CallRequest<'_>) -> Self {
        let (number, began) = (engine.call_count.get(), engine.timer.now());
        Self { number, began, deadline: (began + request.plan.policy.deadline).min(request.deadline) }
    }

    /// Remaining time at `now`; [`Nanos::NEVER`] without a deadline.
    pub(super) fn remaining(&self, now: Nanos) -> Nanos {
        if self.deadline == Nanos::NEVER { Nanos::NEVER } else { self.deadline - now }
    }

    /// Counts a call that is admitted `now`, and begins the decisions about its attempts.
    pub(super) fn begin<'p>(
        &self,
        engine: &EngineState,
        (plan, policy): (&CallPlan, impl Into<PolicyRef<'p>>),
        now: Nanos,
        resend: ResendRule,
        actions: &mut Vec<HedgeAction>,
    ) -> HedgedCall<'p> {
        plan.count_call(now);
        let latency = |quantile| plan.upstream.latency_quantile(now, quantile);
        let random = SeededRng::new(engine.seed, self.number);
        HedgedCall::start(policy, now, self.deadline, resend, latency, random, actions)
    }
}
