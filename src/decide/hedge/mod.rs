//! One call and its attempts: what to launch, what to cancel, when to answer, and when to look again.
//!
//! A call starts with one attempt. More follow in two ways. *Stages* are copies that are launched beside it, when their
//! time has come or at once when an attempt fails; each stage waits for the one before it. *Retries* follow failures
//! that no stage made up for, each after a wait. The first success is the call's answer, and all other attempts are
//! cancelled. There is no answer after the deadline but that it is late.
//!
//! Three things are easy to get wrong, and are therefore said here:
//! - A failure that launches a stage is not also retried; else one failure would cost two extra attempts.
//! - When every attempt has failed, a stage or a retry that has yet to come is waited for, but only if it comes before
//!   the deadline; else the caller would wait for nothing.
//! - A copy that the budget refuses is gone as if it had failed in silence: it launches nothing in its turn, and the
//!   time of the next stage counts from its refusal. A retry is refused when its attempt fails if nothing is left then,
//!   and is paid when it is launched.
//!
//! What it does not know: which host an attempt goes to, what a success is, and how the bytes move.

use super::Nanos;
use super::backoff::BackoffDelays;
use super::budget::Budget;
use super::dice::Dice;
use super::policy::{AttemptFailure, FailureKind, Policy};

#[cfg(test)]
mod examples;
#[cfg(test)]
mod oracle;
mod replay;
#[cfg(test)]
mod rules;
mod stages;
#[cfg(test)]
mod world;
#[cfg(test)]
mod worth;

pub use self::replay::ResendRule;
pub use self::stages::MAX_STAGES;
use self::stages::StageCursor;

/// A call never has more attempts than this, whatever its policy says.
pub const MAX_ATTEMPTS: u32 = u64::BITS;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This attempt brought what counts as a success.
    Succeeded(u32),
    /// It did not.
    Failed {
        /// Which attempt.
        attempt: u32,
        /// Why.
        failure: AttemptFailure,
        /// What the answer says about when to come again, counted from now.
        retry_after: Option<Nanos>,
    },
    /// Time has passed. Harmless when early, late or for nothing.
    Tick,
    /// The caller left.
    ClientClosed,
}

/// Why an attempt is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchReason {
    /// A call has at least one.
    First,
    /// The time of this stage (from 0) had come.
    Stage(u32),
    /// An attempt failed, so that this stage came early.
    Failure(u32),
    /// In place of one that failed; the call's first retry is 1.
    Retry(u32),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerdict {
    /// This attempt's success is the answer.
    Won(u32),
    /// Nothing is left to try.
    Failed {
        /// The attempt that failed last.
        last: u32,
    },
    /// The deadline came first.
    DeadlineExceeded,
    /// The caller left.
    ClientClosed,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeAction {
    /// Send a copy. Attempts are numbered from 0 in the order of their launches.
    Launch {
        /// Its number.
        attempt: u32,
        /// Its reason.
        reason: LaunchReason,
    },
    /// Send none, for the budget is spent; said once per copy.
    BudgetExhausted {
        /// What it would have been sent for.
        reason: LaunchReason,
    },
    /// Drop this attempt; whatever still comes of it is ignored.
    Cancel(u32),
    /// Tell the caller; said once, and nothing is launched after it.
    Finish(CallVerdict),
    /// Send a [`Event::Tick`] then, and not at the instant that was named before. It may be now, but is never
    /// [`Nanos::NEVER`].
    WakeAt(Nanos),
}

/// One call: events and the time go in, actions come out.
///
/// It allocates nothing. Time may stand still between two events, but should not run backwards.
#[derive(Clone, Debug)]
pub struct HedgedCall<'p> {
    policy: &'p Policy,
    resend: ResendRule,
    deadline: Nanos,
    /// The last [`HedgeAction::WakeAt`] that is still to come.
    timer: Nanos,
    finished: bool,
    launched: u32,
    last_failed: u32,
    /// Retries that were granted, and those of them that were launched (or suppressed).
    retries_granted: u32,
    retries_launched: u32,
    /// The attempts that run.
    running: u64,
    /// The attempts that failed and whose retry is yet to come.
    retrying: u64,
    /// Of an attempt that runs: its launch. Of one whose retry is to come: when.
    attempt_times: [Nanos; MAX_ATTEMPTS as usize],
    stages: StageCursor,
    backoff_delays: BackoffDelays,
}

/// The next thing that time brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerEvent {
    Timeout(u32),
    Stage,
    Retry(u32),
    Nothing,
}

impl<'p> HedgedCall<'p> {
    /// A call starts: its first attempt is launched, unless the deadline has passed already.
    ///
    /// `deadline` is an instant: the least of the policy's and the caller's. `known` is asked for the quantiles of
    /// recent first attempts that the stages wait for, once each. The `dice` are for this call alone.
    pub fn start(
        policy: &'p Policy,
        now: Nanos,
        deadline: Nanos,
        replay: ResendRule,
        known: impl FnMut(f64) -> Option<Nanos>,
        dice: Dice,
        actions: &mut Vec<HedgeAction>,
    ) -> Self {
        let stages = if replay == ResendRule::Always {
            StageCursor::start(&policy.stages, now, known)
        } else {
            StageCursor::untimed()
        };
        let mut hedge = Self {
            policy,
            resend: replay,
            deadline,
            timer: Nanos::NEVER,
            finished: false,
            launched: 0,
            last_failed: 0,
            retries_granted: 0,
            retries_launched: 0,
            running: 0,
            retrying: 0,
            attempt_times: [Nanos::ZERO; MAX_ATTEMPTS as usize],
            stages,
            backoff_delays: BackoffDelays::new(policy.retry.backoff, dice),
        };
        if now >= deadline {
            hedge.finish(CallVerdict::DeadlineExceeded, actions);
        } else {
            hedge.launch(now, LaunchReason::First, actions);
            hedge.arm_timer(actions);
        }
        hedge
    }

    /// Something happened, or time has passed.
    ///
    /// Of an event for an attempt that does not run (any more), only the time counts.
    pub fn on(&mut self, now: Nanos, event: Event, purse: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
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
                        // Another's success may come at this very instant; the tick will tell.
                        return;
                    }
                }
                return self.finish(CallVerdict::DeadlineExceeded, actions);
            }
            Event::Failed { attempt, failure, retry_after } if self.end(attempt) => {
                self.failed(now, attempt, failure, retry_after, purse, actions);
            }
            _ => {}
        }
        self.run_due(now, purse, actions);
        if self.running == 0 && self.retrying == 0 && self.stages.due() >= self.deadline {
            return self.finish(CallVerdict::Failed { last: self.last_failed }, actions);
        }
        if event == Event::Tick {
            // The timer is used up, even if it rang too early.
            self.timer = Nanos::NEVER;
        }
        self.arm_timer(actions);
    }

    /// Whether the answer was given.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// What has become due by now, in the order of time.
    fn run_due(&mut self, now: Nanos, purse: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        loop {
            match self.next_due() {
                (at, _) if at > now => return,
                (_, TimerEvent::Timeout(attempt)) => {
                    self.end(attempt);
                    actions.push(HedgeAction::Cancel(attempt));
                    self.failed(now, attempt, AttemptFailure::Kind(FailureKind::Timeout), None, purse, actions);
                }
                (_, TimerEvent::Stage) => {
                    self.launch_stage(now, LaunchReason::Stage(self.stages.number()), purse, actions);
                }
                (_, TimerEvent::Retry(attempt)) => {
                    self.retrying &= !bit(attempt);
                    self.retries_launched += 1;
                    self.launch_extra(now, LaunchReason::Retry(self.retries_launched), purse, actions);
                }
                (_, TimerEvent::Nothing) => return,
            }
        }
    }

    /// The next thing that time brings, the deadline aside. At the same instant, timeouts go first: one may launch the
    /// stage that would else be launched beside what it launches.
    fn next_due(&self) -> (Nanos, TimerEvent) {
        let mut next = (Nanos::NEVER, TimerEvent::Nothing);
        let mut sooner = |at: Nanos, due: TimerEvent| {
            if at < next.0 {
                next = (at, due);
            }
        };
        if self.running != 0 && self.policy.attempt_timeout != Nanos::NEVER {
            // All have the same time, so the first to be launched is the first to run out of it.
            let eldest = self.running.trailing_zeros();
            sooner(self.attempt_time(eldest) + self.policy.attempt_timeout, TimerEvent::Timeout(eldest));
        }
        sooner(self.stages.due(), TimerEvent::Stage);
        for attempt in members(self.retrying) {
            sooner(self.attempt_time(attempt), TimerEvent::Retry(attempt));
        }
        next
    }

    fn failed(
        &mut self,
        now: Nanos,
        attempt: u32,
        failure: AttemptFailure,
        retry_after: Option<Nanos>,
        purse: &mut impl Budget,
        actions: &mut Vec<HedgeAction>,
    ) {
        self.last_failed = attempt;
        if !self.resend.allows(failure) {
            return;
        }
        if self.stages.launches_on_failure(&self.policy.stages) {
            return self.launch_stage(now, LaunchReason::Failure(self.stages.number()), purse, actions);
        }
        let retry = &self.policy.retry;
        if self.retries_granted == retry.max_retries || !retry.on.covers(failure) {
            return;
        }
        let heeded = retry_after.filter(|_| retry.honor_retry_after).unwrap_or_default();
        let at = now + self.backoff_delays.next_delay(retry.backoff).max(heeded);
        if at < self.deadline {
            self.retries_granted += 1;
            if !purse.can_withdraw(now) {
                // To be told so after the wait would be no better answer, only a later one.
                self.retries_launched += 1;
                actions.push(HedgeAction::BudgetExhausted { reason: LaunchReason::Retry(self.retries_launched) });
                return;
            }
            self.retrying |= bit(attempt);
            self.set_attempt_time(attempt, at);
        }
    }

    /// Launches the stage that is next, and lets the one after it wait from now.
    fn launch_stage(&mut self, now: Nanos, why: LaunchReason, purse: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        let copies = self.stages.launch(&self.policy.stages, now);
        // What is sent again only because it was not sent is sent once.
        let copies = if self.resend == ResendRule::Always { copies } else { 1 };
        for _ in 0..copies.min(MAX_ATTEMPTS) {
            self.launch_extra(now, why, purse, actions);
        }
    }

    fn launch_extra(&mut self, now: Nanos, why: LaunchReason, purse: &mut impl Budget, actions: &mut Vec<HedgeAction>) {
        if self.launched == MAX_ATTEMPTS {
            return;
        }
        if purse.withdraw(now) {
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

    /// Whether this attempt was running; it does no more.
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
        self.attempt_times[(attempt % MAX_ATTEMPTS) as usize]
    }

    fn set_attempt_time(&mut self, attempt: u32, at: Nanos) {
        self.attempt_times[(attempt % MAX_ATTEMPTS) as usize] = at;
    }
}

/// The set of this attempt alone; empty for a number that no attempt has.
fn bit(attempt: u32) -> u64 {
    1_u64.checked_shl(attempt).unwrap_or(0)
}

/// The attempts of a set, in ascending order.
fn members(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(first)
    })
}
