//! Hedging and retries: one call and its attempts, from the first launch to the verdict.
//!
//! A call starts with one attempt. More follow in two ways. Hedge *stages* are attempts beside it, launched after their
//! delay or at once when an attempt fails; each stage waits for the one before. *Retries* follow failures that launched
//! no stage, each after a backoff. The first success is the call's response, and all other attempts are cancelled.
//! After the deadline the only verdict is [`CallVerdict::DeadlineExceeded`].
//!
//! Three rules that are easy to get wrong:
//! - A failure that launches a stage is not retried as well; otherwise it would cost two extra attempts.
//! - When all attempts have failed, the call waits for a pending stage or retry only if that is before the deadline.
//! - An attempt without budget counts as one that failed silently: it causes no further attempt, and the delay of the
//!   next stage begins then. A retry is denied when its attempt fails if the budget is empty then; it is withdrawn
//!   when it is launched.
//!
//! Not decided here: the host of an attempt ([`crate::upstream::hosts`]), what a success is, and how bytes
//! move.

use crate::policy::Policy;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;
use weir_retry::grants::{RetryDenial, RetryGrants};
use weir_retry::policy::AttemptFailure;
use weir_retry::retry_after::is_waited_for;
use weir_retry::retry_budget::Budget;

mod action;
mod event;
mod policy_ref;
mod replay;
mod stages;

pub use self::action::{CallVerdict, HedgeAction, LaunchReason, NotRepeated};
pub use self::event::Event;
pub use self::policy_ref::PolicyRef;
pub use self::replay::ResendRule;
use self::stages::StageCursor;

/// State machine of one call: events and the time go in, actions come out.
///
/// Allocates nothing. Time may stand still between two events, but should not run backwards.
#[derive(Clone, Debug)]
pub struct HedgedCall<'p> {
    policy: PolicyRef<'p>,
    resend: ResendRule,
    deadline: Nanos,
    /// Pending [`HedgeAction::WakeAt`].
    timer: Nanos,
    finished: bool,
    launched: u32,
    last_failed: u32,
    /// Retries that were launched or had no budget.
    retries_launched: u32,
    /// Set of running attempts.
    running: u64,
    /// Set of failed attempts with a pending retry.
    retrying: u64,
    /// Whether retries wait for their turn.
    takes_turns: bool,
    /// Why the last failure has no retry.
    not_repeated: Option<NotRepeated>,
    /// Launch of a running attempt; time of the retry of a failed one, and NEVER of one that waits for its turn.
    attempt_times: [Nanos; Policy::MAX_ATTEMPTS as usize],
    stages: StageCursor,
    retry_grants: RetryGrants,
}

/// Next event by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerEvent {
    Timeout(u32),
    Stage,
    Retry(u32),
    Nothing,
}

impl<'p> HedgedCall<'p> {
    /// Starts a call: launches its first attempt, unless the deadline has passed already.
    ///
    /// `deadline` is a time: the earlier of the policy's and the caller's. `quantile` returns quantiles of recent first
    /// attempts, and is called once per stage that waits for one. `rng` is a stream of this call alone.
    pub fn start(
        policy: impl Into<PolicyRef<'p>>,
        now: Nanos,
        deadline: Nanos,
        replay: ResendRule,
        quantile: impl FnMut(f64) -> Option<Nanos>,
        rng: SeededRng,
        actions: &mut Vec<HedgeAction>,
    ) -> Self {
        let policy = policy.into();
        let stages = if replay == ResendRule::Always {
            StageCursor::start(&policy.stages, now, quantile)
        } else {
            StageCursor::untimed()
        };
        let retry_grants = RetryGrants::new(&policy.retry, rng);
        let mut hedge = Self {
            policy,
            resend: replay,
            deadline,
            timer: Nanos::NEVER,
            finished: false,
            launched: 0,
            last_failed: 0,
            retries_launched: 0,
            running: 0,
            retrying: 0,
            takes_turns: false,
            not_repeated: None,
            attempt_times: [Nanos::ZERO; Policy::MAX_ATTEMPTS as usize],
            stages,
            retry_grants,
        };
        if now >= deadline {
            hedge.finish(CallVerdict::DeadlineExceeded, actions);
        } else {
            hedge.launch(now, LaunchReason::First, actions);
            hedge.arm_timer(actions);
        }
        hedge
    }

    /// Handles an event. Of an event for an attempt that is not running, only the time counts.
    pub fn on(&mut self, now: Nanos, event: Event, budget: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        if self.finished {
            return;
        }
        match event {
            Event::ClientClosed => return self.finish(CallVerdict::ClientClosed, actions),
            Event::Succeeded(attempt) if self.end(attempt) && now <= self.deadline => {
                return self.finish(CallVerdict::Won(attempt), actions);
            }
            _ if now >= self.deadline => {
                if let Event::Failed { attempt, .. } = event {
                    self.end(attempt);
                    if now == self.deadline && self.running != 0 {
                        // Another attempt may succeed at the same time; the tick decides.
                        return;
                    }
                }
                return self.finish(CallVerdict::DeadlineExceeded, actions);
            }
            Event::Failed { attempt, failure, retry_after } if self.end(attempt) => {
                self.failed(now, attempt, failure, retry_after, budget, actions);
            }
            Event::Turn(attempt) if self.retrying & bit(attempt) != 0 => {
                self.launch_retry(now, attempt, budget, actions);
            }
            _ => {}
        }
        self.run_due(now, budget, actions);
        if self.running == 0 && self.retrying == 0 && self.stages.due() >= self.deadline {
            return self.finish(CallVerdict::Failed { last: self.last_failed }, actions);
        }
        if event == Event::Tick {
            // The timer has fired, even if too early.
            self.timer = Nanos::NEVER;
        }
        self.arm_timer(actions);
    }

    /// Has retries wait for an [`Event::Turn`] once they are due: where the rate of attempts is limited. Hedges do not
    /// wait, since the budget can deny them: another attempt runs.
    pub fn take_turns(&mut self) {
        self.takes_turns = true;
    }

    /// Reason why the last failure was not followed by another attempt; `None` if it was, or nothing has failed.
    pub fn not_repeated(&self) -> Option<NotRepeated> {
        self.not_repeated
    }

    /// Whether the call has its verdict.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Handles all events that are due, in the order of time.
    fn run_due(&mut self, now: Nanos, budget: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        loop {
            match self.next_due() {
                (at, _) if at > now => return,
                (_, TimerEvent::Timeout(attempt)) => {
                    self.end(attempt);
                    actions.push(HedgeAction::Cancel(attempt));
                    self.failed(now, attempt, AttemptFailure::Kind(FailureKind::Timeout), None, budget, actions);
                }
                (_, TimerEvent::Stage) => {
                    self.launch_stage(now, LaunchReason::Stage(self.stages.number()), budget, actions);
                }
                (_, TimerEvent::Retry(attempt)) if self.takes_turns => {
                    self.set_attempt_time(attempt, Nanos::NEVER);
                    actions.push(HedgeAction::AwaitTurn(attempt));
                }
                (_, TimerEvent::Retry(attempt)) => self.launch_retry(now, attempt, budget, actions),
                (_, TimerEvent::Nothing) => return,
            }
        }
    }

    /// Next event by time, except the deadline. At the same time timeouts go first: a timeout may launch the stage that
    /// would otherwise be launched in addition.
    fn next_due(&self) -> (Nanos, TimerEvent) {
        let mut next = (Nanos::NEVER, TimerEvent::Nothing);
        let mut sooner = |at: Nanos, due: TimerEvent| {
            if at < next.0 {
                next = (at, due);
            }
        };
        if self.running != 0 && self.policy.attempt_timeout != Nanos::NEVER {
            // All have the same timeout, so the first to be launched times out first.
            let oldest = self.running.trailing_zeros();
            sooner(self.attempt_time(oldest) + self.policy.attempt_timeout, TimerEvent::Timeout(oldest));
        }
        sooner(self.stages.due(), TimerEvent::Stage);
        for attempt in members(self.retrying) {
            sooner(self.attempt_time(attempt), TimerEvent::Retry(attempt));
        }
        next
    }

    /// Handles a failure: launches the next stage, or schedules a retry, if the policy allows it.
    fn failed(
        &mut self,
        now: Nanos,
        attempt: u32,
        failure: AttemptFailure,
        retry_after: Option<Nanos>,
        budget: &mut impl Budget,
        actions: &mut Vec<HedgeAction>,
    ) {
        self.last_failed = attempt;
        self.not_repeated = self.resend.forbids(failure);
        if self.not_repeated.is_some() {
            return;
        }
        if self.stages.launches_on_failure(&self.policy.stages) {
            return self.launch_stage(now, LaunchReason::Failure(self.stages.number()), budget, actions);
        }
        let deadline = self.deadline;
        if self.policy.retry.honor_retry_after && !is_waited_for(retry_after, deadline) {
            self.not_repeated = Some(NotRepeated::Deadline);
            return;
        }
        match self.retry_grants.grant(&self.policy.retry, now, deadline, failure, retry_after, budget) {
            Ok(at) => {
                self.retrying |= bit(attempt);
                self.set_attempt_time(attempt, at);
            }
            Err(RetryDenial::Budget) => {
                self.retries_launched += 1;
                actions.push(HedgeAction::BudgetExhausted { reason: LaunchReason::Retry(self.retries_launched) });
            }
            Err(RetryDenial::NotRetryable) if self.policy.retry.max_retries == 0 => {}
            Err(RetryDenial::NotRetryable) => self.not_repeated = Some(NotRepeated::Kind),
            Err(RetryDenial::NoneLeft) => self.not_repeated = Some(NotRepeated::NoneLeft),
            Err(RetryDenial::Deadline) => self.not_repeated = Some(NotRepeated::Deadline),
        }
    }

    /// Launches the retry of a failed attempt.
    fn launch_retry(&mut self, now: Nanos, attempt: u32, budget: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        self.retrying &= !bit(attempt);
        self.retries_launched += 1;
        self.launch_extra(now, LaunchReason::Retry(self.retries_launched), budget, actions);
    }

    /// Launches the next stage; the delay of the one after it begins.
    fn launch_stage(
        &mut self,
        now: Nanos,
        why: LaunchReason,
        budget: &mut impl Budget,
        actions: &mut Vec<HedgeAction>,
    ) {
        let attempts = self.stages.launch(&self.policy.stages, now);
        // A request that may be resent only if it was not sent is sent once.
        let attempts = if self.resend == ResendRule::Always { attempts } else { 1 };
        for _ in 0..attempts.min(Policy::MAX_ATTEMPTS) {
            self.launch_extra(now, why, budget, actions);
        }
    }

    fn launch_extra(
        &mut self,
        now: Nanos,
        why: LaunchReason,
        budget: &mut impl Budget,
        actions: &mut Vec<HedgeAction>,
    ) {
        if self.launched == Policy::MAX_ATTEMPTS {
            return;
        }
        if budget.withdraw(now) {
            self.launch(now, why, actions);
        } else {
            actions.push(HedgeAction::BudgetExhausted { reason: why });
        }
    }

    fn launch(&mut self, now: Nanos, why: LaunchReason, actions: &mut Vec<HedgeAction>) {
        let attempt = self.launched;
        self.launched += 1;
        self.running |= bit(attempt);
        self.set_attempt_time(attempt, now);
        actions.push(HedgeAction::Launch { attempt, reason: why });
    }

    /// Ends an attempt; false if it was not running.
    fn end(&mut self, attempt: u32) -> bool {
        let ran = self.running & bit(attempt) != 0;
        self.running &= !bit(attempt);
        ran
    }

    fn finish(&mut self, verdict: CallVerdict, actions: &mut Vec<HedgeAction>) {
        self.finished = true;
        actions.push(HedgeAction::Finish(verdict));
        actions.extend(members(self.running).map(HedgeAction::Cancel));
        self.running = 0;
    }

    fn arm_timer(&mut self, actions: &mut Vec<HedgeAction>) {
        let at = self.next_due().0.min(self.deadline);
        if at != self.timer && at != Nanos::NEVER {
            self.timer = at;
            actions.push(HedgeAction::WakeAt(at));
        }
    }

    fn attempt_time(&self, attempt: u32) -> Nanos {
        self.attempt_times[(attempt % Policy::MAX_ATTEMPTS) as usize]
    }

    fn set_attempt_time(&mut self, attempt: u32, at: Nanos) {
        self.attempt_times[(attempt % Policy::MAX_ATTEMPTS) as usize] = at;
    }
}

/// Set of one attempt; empty beyond the maximum.
fn bit(attempt: u32) -> u64 {
    1_u64.checked_shl(attempt).unwrap_or(0)
}

/// Attempts of a set, in ascending order.
fn members(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(first)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
