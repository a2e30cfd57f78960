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
use super::backoff::Waits;
use super::budget::Purse;
use super::dice::Dice;
use super::policy::{Failure, Kind, Policy};

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

pub use self::replay::Replay;
pub use self::stages::MOST_STAGES;
use self::stages::Stages;

/// A call never has more attempts than this, whatever its policy says.
pub const MOST_ATTEMPTS: u32 = u64::BITS;

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
        failure: Failure,
        /// What the answer says about when to come again, counted from now.
        retry_after: Option<Nanos>,
    },
    /// Time has passed. Harmless when early, late or for nothing.
    Tick,
    /// The caller left.
    Gone,
}

/// Why an attempt is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
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
pub enum Verdict {
    /// This attempt's success is the answer.
    Won(u32),
    /// Nothing is left to try.
    Failed {
        /// The attempt that failed last.
        last: u32,
    },
    /// The deadline came first.
    Late,
    /// The caller left.
    Gone,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a copy. Attempts are numbered from 0 in the order of their launches.
    Launch {
        /// Its number.
        attempt: u32,
        /// Its reason.
        why: Why,
    },
    /// Send none, for the budget is spent; said once per copy.
    Suppressed {
        /// What it would have been sent for.
        why: Why,
    },
    /// Drop this attempt; whatever still comes of it is ignored.
    Cancel(u32),
    /// Tell the caller; said once, and nothing is launched after it.
    Answer(Verdict),
    /// Send a [`Event::Tick`] then, and not at the instant that was named before. It may be now, but is never
    /// [`Nanos::NEVER`].
    WakeAt(Nanos),
}

/// One call: events and the time go in, actions come out.
///
/// It allocates nothing. Time may stand still between two events, but should not run backwards.
#[derive(Clone, Debug)]
pub struct Hedge<'p> {
    policy: &'p Policy,
    replay: Replay,
    deadline: Nanos,
    /// The last [`Action::WakeAt`] that is still to come.
    armed: Nanos,
    over: bool,
    launched: u32,
    last_failed: u32,
    /// Retries that were granted, and those of them that were launched (or suppressed).
    retries: u32,
    retried: u32,
    /// The attempts that run.
    running: u64,
    /// The attempts that failed and whose retry is yet to come.
    retrying: u64,
    /// Of an attempt that runs: its launch. Of one whose retry is to come: when.
    at: [Nanos; MOST_ATTEMPTS as usize],
    stages: Stages,
    waits: Waits,
}

/// The next thing that time brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Timeout(u32),
    Stage,
    Retry(u32),
    Nothing,
}

impl<'p> Hedge<'p> {
    /// A call starts: its first attempt is launched, unless the deadline has passed already.
    ///
    /// `deadline` is an instant: the least of the policy's and the caller's. `known` is asked for the quantiles of
    /// recent first attempts that the stages wait for, once each. The `dice` are for this call alone.
    pub fn start(
        policy: &'p Policy,
        now: Nanos,
        deadline: Nanos,
        replay: Replay,
        known: impl FnMut(f64) -> Option<Nanos>,
        dice: Dice,
        actions: &mut Vec<Action>,
    ) -> Self {
        let stages =
            if replay == Replay::Freely { Stages::start(&policy.stages, now, known) } else { Stages::untimed() };
        let mut hedge = Self {
            policy,
            replay,
            deadline,
            armed: Nanos::NEVER,
            over: false,
            launched: 0,
            last_failed: 0,
            retries: 0,
            retried: 0,
            running: 0,
            retrying: 0,
            at: [Nanos::ZERO; MOST_ATTEMPTS as usize],
            stages,
            waits: Waits::new(policy.retry.backoff, dice),
        };
        if now >= deadline {
            hedge.answer(Verdict::Late, actions);
        } else {
            hedge.launch(now, Why::First, actions);
            hedge.arm(actions);
        }
        hedge
    }

    /// Something happened, or time has passed.
    ///
    /// Of an event for an attempt that does not run (any more), only the time counts.
    pub fn on(&mut self, now: Nanos, event: Event, purse: &mut impl Purse, actions: &mut Vec<Action>) {
        if self.over {
            return;
        }
        match event {
            Event::Gone => return self.answer(Verdict::Gone, actions),
            Event::Succeeded(attempt) if self.end(attempt) && now <= self.deadline => {
                return self.answer(Verdict::Won(attempt), actions);
            }
            _ if now >= self.deadline => {
                if let Event::Failed { attempt, .. } = event {
                    self.end(attempt);
                    if now == self.deadline && self.running != 0 {
                        // Another's success may come at this very instant; the tick will tell.
                        return;
                    }
                }
                return self.answer(Verdict::Late, actions);
            }
            Event::Failed { attempt, failure, retry_after } if self.end(attempt) => {
                self.failed(now, attempt, failure, retry_after, purse, actions);
            }
            _ => {}
        }
        self.pass(now, purse, actions);
        if self.running == 0 && self.retrying == 0 && self.stages.due() >= self.deadline {
            return self.answer(Verdict::Failed { last: self.last_failed }, actions);
        }
        if event == Event::Tick {
            // The timer is used up, even if it rang too early.
            self.armed = Nanos::NEVER;
        }
        self.arm(actions);
    }

    /// Whether the answer was given.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What has become due by now, in the order of time.
    fn pass(&mut self, now: Nanos, purse: &mut impl Purse, actions: &mut Vec<Action>) {
        loop {
            match self.next() {
                (at, _) if at > now => return,
                (_, Due::Timeout(attempt)) => {
                    self.end(attempt);
                    actions.push(Action::Cancel(attempt));
                    self.failed(now, attempt, Failure::Kind(Kind::Timeout), None, purse, actions);
                }
                (_, Due::Stage) => self.stage(now, Why::Stage(self.stages.number()), purse, actions),
                (_, Due::Retry(attempt)) => {
                    self.retrying &= !bit(attempt);
                    self.retried += 1;
                    self.extra(now, Why::Retry(self.retried), purse, actions);
                }
                (_, Due::Nothing) => return,
            }
        }
    }

    /// The next thing that time brings, the deadline aside. At the same instant, timeouts go first: one may launch the
    /// stage that would else be launched beside what it launches.
    fn next(&self) -> (Nanos, Due) {
        let mut next = (Nanos::NEVER, Due::Nothing);
        let mut sooner = |at: Nanos, due: Due| {
            if at < next.0 {
                next = (at, due);
            }
        };
        if self.running != 0 && self.policy.attempt_timeout != Nanos::NEVER {
            // All have the same time, so the first to be launched is the first to run out of it.
            let eldest = self.running.trailing_zeros();
            sooner(self.at(eldest) + self.policy.attempt_timeout, Due::Timeout(eldest));
        }
        sooner(self.stages.due(), Due::Stage);
        for attempt in members(self.retrying) {
            sooner(self.at(attempt), Due::Retry(attempt));
        }
        next
    }

    fn failed(
        &mut self,
        now: Nanos,
        attempt: u32,
        failure: Failure,
        retry_after: Option<Nanos>,
        purse: &mut impl Purse,
        actions: &mut Vec<Action>,
    ) {
        self.last_failed = attempt;
        if !self.replay.allows(failure) {
            return;
        }
        if self.stages.on_failure(&self.policy.stages) {
            return self.stage(now, Why::Failure(self.stages.number()), purse, actions);
        }
        let retry = &self.policy.retry;
        if self.retries == retry.times || !retry.on.covers(failure) {
            return;
        }
        let heeded = retry_after.filter(|_| retry.obey_retry_after).unwrap_or_default();
        let at = now + self.waits.draw(retry.backoff).max(heeded);
        if at < self.deadline {
            self.retries += 1;
            if !purse.may(now) {
                // To be told so after the wait would be no better answer, only a later one.
                self.retried += 1;
                actions.push(Action::Suppressed { why: Why::Retry(self.retried) });
                return;
            }
            self.retrying |= bit(attempt);
            self.set(attempt, at);
        }
    }

    /// Launches the stage that is next, and lets the one after it wait from now.
    fn stage(&mut self, now: Nanos, why: Why, purse: &mut impl Purse, actions: &mut Vec<Action>) {
        let copies = self.stages.launch(&self.policy.stages, now);
        // What is sent again only because it was not sent is sent once.
        let copies = if self.replay == Replay::Freely { copies } else { 1 };
        for _ in 0..copies.min(MOST_ATTEMPTS) {
            self.extra(now, why, purse, actions);
        }
    }

    fn extra(&mut self, now: Nanos, why: Why, purse: &mut impl Purse, actions: &mut Vec<Action>) {
        if self.launched == MOST_ATTEMPTS {
            return;
        }
        if purse.spend(now) {
            self.launch(now, why, actions);
        } else {
            actions.push(Action::Suppressed { why });
        }
    }

    fn launch(&mut self, now: Nanos, why: Why, actions: &mut Vec<Action>) {
        let attempt = self.launched;
        self.launched += 1;
        self.running |= bit(attempt);
        self.set(attempt, now);
        actions.push(Action::Launch { attempt, why });
    }

    /// Whether this attempt was running; it does no more.
    fn end(&mut self, attempt: u32) -> bool {
        let ran = self.running & bit(attempt) != 0;
        self.running &= !bit(attempt);
        ran
    }

    fn answer(&mut self, verdict: Verdict, actions: &mut Vec<Action>) {
        self.over = true;
        actions.push(Action::Answer(verdict));
        actions.extend(members(self.running).map(Action::Cancel));
        self.running = 0;
    }

    fn arm(&mut self, actions: &mut Vec<Action>) {
        let at = self.next().0.min(self.deadline);
        if at != self.armed && at != Nanos::NEVER {
            self.armed = at;
            actions.push(Action::WakeAt(at));
        }
    }

    fn at(&self, attempt: u32) -> Nanos {
        self.at[(attempt % MOST_ATTEMPTS) as usize]
    }

    fn set(&mut self, attempt: u32, at: Nanos) {
        self.at[(attempt % MOST_ATTEMPTS) as usize] = at;
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
