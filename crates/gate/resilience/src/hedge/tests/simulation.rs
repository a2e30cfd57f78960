//! Random calls with random attempts and events, simulated in virtual time.

use crate::hedge::{Event, HedgeAction, HedgedCall, ResendRule};
use crate::policy::{HedgeStage, Policy, StageTrigger};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::{SeededRng, TestRng};
use weir_retry::backoff::Backoff;
use weir_retry::grpc::Code;
use weir_retry::policy::{AttemptFailure, BudgetRule, RetryPolicy, Retryable};
use weir_retry::retry_budget::{Budget, RetryBudget};

/// Outcome of an attempt, and its time after the launch; NEVER: it hangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptScript {
    pub(crate) after: Nanos,
    pub(crate) ok: bool,
    pub(crate) failure: AttemptFailure,
    pub(crate) retry_after: Option<Nanos>,
}

/// A call with its policy, and all that happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) policy: Policy,
    pub(crate) resend: ResendRule,
    pub(crate) start: Nanos,
    pub(crate) deadline: Nanos,
    pub(crate) quantile: Option<Nanos>,
    /// By attempt.
    pub(crate) scripts: Vec<AttemptScript>,
    /// Unsolicited ticks.
    pub(crate) spurious: Vec<Nanos>,
    /// Lateness of each tick.
    pub(crate) lateness: Nanos,
    pub(crate) client_closes: Nanos,
    /// Wait of retries for their turn; `None` if they have none.
    pub(crate) turn_wait: Option<Nanos>,
    rng: SeededRng,
}

/// Events in order, each with its actions; the first entry is the start.
pub(crate) type HedgeTrace = Vec<(Nanos, Option<Event>, Vec<HedgeAction>)>;

/// Random values of calls.
pub(crate) trait RandomCase {
    /// Any failure.
    fn failure(&mut self) -> AttemptFailure;
    /// Random call that starts then; its times are up to about `range` long.
    fn case(&mut self, start: Nanos, range: u64) -> Case;
}

impl RandomCase for TestRng {
    fn failure(&mut self) -> AttemptFailure {
        match self.below(2 * FailureKind::ALL.len() as u64) as usize {
            n if n < FailureKind::ALL.len() => AttemptFailure::Kind(FailureKind::ALL[n]),
            n if n % 5 == 4 => AttemptFailure::Grpc(Code::FAILURES[n % 4]),
            n => AttemptFailure::Status([500, 503, 429, 404][n % 4]),
        }
    }

    fn case(&mut self, start: Nanos, range: u64) -> Case {
        let stages = (0..self.below(4)).map(|_| HedgeStage {
            after: match self.below(4) {
                0 => StageTrigger::Failure,
                1 => StageTrigger::Quantile(0.95),
                _ => StageTrigger::Time(Nanos(self.below(range / 2))),
            },
            on_failure: self.one_in(2),
            attempts: 1 + self.below(3) as u32,
        });
        let stages: Vec<HedgeStage> = stages.collect();
        let retry = RetryPolicy {
            max_retries: if self.one_in(2) { 0 } else { self.below(5) as u32 },
            on: Retryable::default(),
            backoff: Backoff { min: Nanos(self.below(range / 8)), max: Nanos(self.below(range / 2)) },
            honor_retry_after: !self.one_in(4),
        };
        let attempt_timeout = if self.one_in(3) { Nanos(1 + self.below(range)) } else { Nanos::NEVER };
        let deadline = if self.one_in(16) { Nanos::NEVER } else { start + Nanos(self.below(2 * range)) };
        let hedges: u32 = stages.iter().map(|stage| stage.attempts).sum();
        let scripts = (0..1 + hedges + retry.max_retries).map(|_| AttemptScript {
            after: if self.one_in(8) { Nanos::NEVER } else { Nanos(1 + self.below(range)) },
            ok: self.one_in(3),
            failure: self.failure(),
            retry_after: self.one_in(4).then(|| Nanos(self.below(range))),
        });
        let scripts = scripts.collect();
        Case {
            policy: Policy { attempt_timeout, stages, retry, ..Policy::default() },
            resend: [
                ResendRule::Always,
                ResendRule::Always,
                ResendRule::Always,
                ResendRule::IfUnsent,
                ResendRule::Never,
            ][self.below(5) as usize],
            start,
            deadline,
            quantile: (!self.one_in(3)).then(|| Nanos(self.below(range / 2))),
            scripts,
            spurious: (0..self.below(4)).map(|_| start + Nanos(self.below(2 * range))).collect(),
            lateness: if self.one_in(2) { Nanos::ZERO } else { Nanos(self.below(range / 8)) },
            client_closes: if self.one_in(4) { start + Nanos(self.below(2 * range)) } else { Nanos::NEVER },
            turn_wait: self.one_in(4).then(|| Nanos(self.below(range / 4))),
            rng: SeededRng::new(self.0.bits(), 1),
        }
    }
}

impl Case {
    /// The same with exact ticks alone, and a caller that stays.
    pub(crate) fn on_time(mut self) -> Self {
        self.spurious.clear();
        (self.lateness, self.client_closes, self.turn_wait) = (Nanos::ZERO, Nanos::NEVER, None);
        self
    }

    /// Runs until no events are left, also after the verdict. At the same time attempts end first, then the caller
    /// disconnects, then ticks come.
    pub(crate) fn run(&self, budget: &mut impl Budget) -> HedgeTrace {
        let mut actions = Vec::new();
        let known = |_| self.quantile;
        let Self { policy, resend: replay, start, deadline, .. } = self;
        let mut hedge = HedgedCall::start(policy, *start, *deadline, *replay, known, self.rng, &mut actions);
        if self.turn_wait.is_some() {
            hedge.take_turns();
        }
        let mut trace = vec![(*start, None, actions.clone())];
        let mut spurious = self.spurious.clone();
        spurious.sort_unstable();
        spurious.reverse();
        // Future events: time and attempt.
        let mut ends: Vec<(Nanos, u32)> = Vec::new();
        let mut turns: Vec<(Nanos, u32)> = Vec::new();
        let mut client_closes = self.client_closes;
        let mut wake = Nanos::NEVER;
        let mut now = *start;
        loop {
            for action in actions.drain(..) {
                match action {
                    HedgeAction::Launch { attempt, .. } => {
                        ends.push((now + self.scripts[attempt as usize].after, attempt));
                    }
                    HedgeAction::WakeAt(at) => {
                        assert!(at != Nanos::NEVER && at >= now, "a wake-up that never comes: {self:?}");
                        wake = at + self.lateness;
                    }
                    HedgeAction::AwaitTurn(attempt) => turns.push((now + self.turn_wait.unwrap_or_default(), attempt)),
                    _ => {}
                }
            }
            let runs = !ends.is_empty() || !turns.is_empty();
            assert!(hedge.is_finished() || wake != Nanos::NEVER || runs, "stuck: {self:?}\n{trace:?}");
            let end = ends.iter().copied().min().unwrap_or((Nanos::NEVER, 0));
            let tick = wake.min(spurious.last().copied().unwrap_or(Nanos::NEVER));
            let turn = turns.iter().copied().min().unwrap_or((Nanos::NEVER, 0));
            let next = end.0.min(client_closes).min(turn.0).min(tick);
            if next == Nanos::NEVER {
                return trace;
            }
            now = next.max(now);
            let event = if end.0 == next {
                ends.retain(|one| *one != end);
                let (attempt, script) = (end.1, self.scripts[end.1 as usize]);
                match script.ok {
                    true => Event::Succeeded(attempt),
                    false => Event::Failed { attempt, failure: script.failure, retry_after: script.retry_after },
                }
            } else if client_closes == next {
                client_closes = Nanos::NEVER;
                Event::ClientClosed
            } else if turn.0 == next {
                turns.retain(|one| *one != turn);
                Event::Turn(turn.1)
            } else {
                if wake == next {
                    wake = Nanos::NEVER;
                } else {
                    spurious.pop();
                }
                Event::Tick
            };
            hedge.on(now, event, budget, &mut actions);
            trace.push((now, Some(event), actions.clone()));
        }
    }
}

/// Budget without extra attempts.
pub(crate) struct EmptyBudget;

impl Budget for EmptyBudget {
    fn can_withdraw(&mut self, _: Nanos) -> bool {
        false
    }

    fn withdraw(&mut self, _: Nanos) -> bool {
        false
    }
}

/// Budget with all its times, so that each window can be recounted.
pub(crate) struct AuditedBudget {
    budget: BudgetRule,
    retry_budget: RetryBudget,
    calls: Vec<Nanos>,
    withdrawals: Vec<Nanos>,
}

impl AuditedBudget {
    pub(crate) fn new(budget: BudgetRule) -> Self {
        Self { budget, retry_budget: RetryBudget::new(budget), calls: Vec::new(), withdrawals: Vec::new() }
    }

    pub(crate) fn call(&mut self, now: Nanos) {
        self.retry_budget.deposit(now);
        self.calls.push(now);
    }
}

impl Budget for AuditedBudget {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        self.retry_budget.can_withdraw(now)
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        let granted = self.retry_budget.withdraw(now);
        if granted {
            self.withdrawals.push(now);
            let inside = |at: &&Nanos| at.0 + self.budget.window.0 > now.0;
            let calls = self.calls.iter().rev().take_while(inside).count();
            let withdrawals = self.withdrawals.iter().rev().take_while(inside).count();
            let allowed = f64::from(self.budget.min_per_window) + (self.budget.fraction * calls as f64).floor();
            assert!(withdrawals as f64 <= allowed, "{withdrawals} of {allowed} by {now:?} of {:?}", self.budget);
        }
        granted
    }
}
