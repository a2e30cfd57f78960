//! Random calls in a random world, driven in virtual time.

use super::{Action, Event, Hedge, Replay};
use crate::decide::Nanos;
use crate::decide::budget::{Ledger, Purse};
use crate::decide::dice::{Dice, Lots};
use crate::decide::grpc::Code;
use crate::decide::policy::{After, Backoff, Budget, Failure, Kind, Policy, Retry, Retryable, Stage};

/// What would become of an attempt, so long after its launch; NEVER: it hangs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) after: Nanos,
    pub(super) ok: bool,
    pub(super) failure: Failure,
    pub(super) retry_after: Option<Nanos>,
}

/// A call and its world.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) policy: Policy,
    pub(super) replay: Replay,
    pub(super) start: Nanos,
    pub(super) deadline: Nanos,
    pub(super) known: Option<Nanos>,
    /// By attempt.
    pub(super) fates: Vec<Fate>,
    /// Ticks that nobody asked for.
    pub(super) spurious: Vec<Nanos>,
    /// How late a tick comes.
    pub(super) lateness: Nanos,
    pub(super) leaves: Nanos,
    dice: Dice,
}

/// What happened, in order: each event, and what was done about it. The first has no event.
pub(super) type Trace = Vec<(Nanos, Option<Event>, Vec<Action>)>;

impl Lots {
    fn failure(&mut self) -> Failure {
        match self.below(2 * Kind::ALL.len() as u64) as usize {
            n if n < Kind::ALL.len() => Failure::Kind(Kind::ALL[n]),
            n if n % 5 == 4 => Failure::Grpc(Code::FAILURES[n % 4]),
            n => Failure::Status([500, 503, 429, 404][n % 4]),
        }
    }

    /// A call that starts then; its times are about `range` long.
    pub(super) fn case(&mut self, start: Nanos, range: u64) -> Case {
        let stages = (0..self.below(4)).map(|_| Stage {
            after: match self.below(4) {
                0 => After::Failure,
                1 => After::Quantile(0.95),
                _ => After::Time(Nanos(self.below(range / 2))),
            },
            on_failure: self.one_in(2),
            copies: 1 + self.below(3) as u32,
        });
        let stages: Vec<Stage> = stages.collect();
        let retry = Retry {
            times: if self.one_in(2) { 0 } else { self.below(5) as u32 },
            on: Retryable::default(),
            backoff: Backoff { first: Nanos(self.below(range / 8)), most: Nanos(self.below(range / 2)) },
            obey_retry_after: !self.one_in(4),
        };
        let attempt_timeout = if self.one_in(3) { Nanos(1 + self.below(range)) } else { Nanos::NEVER };
        let deadline = if self.one_in(16) { Nanos::NEVER } else { start + Nanos(self.below(2 * range)) };
        let copies: u32 = stages.iter().map(|stage| stage.copies).sum();
        let fates = (0..1 + copies + retry.times).map(|_| Fate {
            after: if self.one_in(8) { Nanos::NEVER } else { Nanos(1 + self.below(range)) },
            ok: self.one_in(3),
            failure: self.failure(),
            retry_after: self.one_in(4).then(|| Nanos(self.below(range))),
        });
        let fates = fates.collect();
        Case {
            policy: Policy { attempt_timeout, stages, retry, ..Policy::default() },
            replay: [Replay::Freely, Replay::Freely, Replay::Freely, Replay::Unsent, Replay::Never]
                [self.below(5) as usize],
            start,
            deadline,
            known: (!self.one_in(3)).then(|| Nanos(self.below(range / 2))),
            fates,
            spurious: (0..self.below(4)).map(|_| start + Nanos(self.below(2 * range))).collect(),
            lateness: if self.one_in(2) { Nanos::ZERO } else { Nanos(self.below(range / 8)) },
            leaves: if self.one_in(4) { start + Nanos(self.below(2 * range)) } else { Nanos::NEVER },
            dice: Dice::new(self.0.bits(), 1),
        }
    }
}

impl Case {
    /// As the machine is promised: ticks come when they were asked for.
    pub(super) fn on_time(mut self) -> Self {
        self.spurious.clear();
        (self.lateness, self.leaves) = (Nanos::ZERO, Nanos::NEVER);
        self
    }

    /// Runs until nothing is to come any more, also after the answer. At the same instant, attempts end before the
    /// caller leaves, and ticks come last.
    pub(super) fn run(&self, purse: &mut impl Purse) -> Trace {
        let mut actions = Vec::new();
        let known = |_| self.known;
        let Self { policy, replay, start, deadline, .. } = self;
        let mut hedge = Hedge::start(policy, *start, *deadline, *replay, known, self.dice, &mut actions);
        let mut trace = vec![(*start, None, actions.clone())];
        let mut spurious = self.spurious.clone();
        spurious.sort_unstable();
        spurious.reverse();
        // All that is to come: when, in which order, and the event.
        let mut ends: Vec<(Nanos, u32)> = Vec::new();
        let mut leaves = self.leaves;
        let mut wake = Nanos::NEVER;
        let mut now = *start;
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Launch { attempt, .. } => ends.push((now + self.fates[attempt as usize].after, attempt)),
                    Action::WakeAt(at) => {
                        assert!(at != Nanos::NEVER && at >= now, "an instant that does not come: {self:?}");
                        wake = at + self.lateness;
                    }
                    _ => {}
                }
            }
            let runs = !ends.is_empty();
            assert!(hedge.is_over() || wake != Nanos::NEVER || runs, "stuck: {self:?}\n{trace:?}");
            let end = ends.iter().copied().min().unwrap_or((Nanos::NEVER, 0));
            let tick = wake.min(spurious.last().copied().unwrap_or(Nanos::NEVER));
            let next = end.0.min(leaves).min(tick);
            if next == Nanos::NEVER {
                return trace;
            }
            now = next.max(now);
            let event = if end.0 == next {
                ends.retain(|one| *one != end);
                let (attempt, fate) = (end.1, self.fates[end.1 as usize]);
                match fate.ok {
                    true => Event::Succeeded(attempt),
                    false => Event::Failed { attempt, failure: fate.failure, retry_after: fate.retry_after },
                }
            } else if leaves == next {
                leaves = Nanos::NEVER;
                Event::Gone
            } else {
                if wake == next {
                    wake = Nanos::NEVER;
                } else {
                    spurious.pop();
                }
                Event::Tick
            };
            hedge.on(now, event, purse, &mut actions);
            trace.push((now, Some(event), actions.clone()));
        }
    }
}

/// Pays for nothing.
pub(super) struct Empty;

impl Purse for Empty {
    fn may(&mut self, _: Nanos) -> bool {
        false
    }

    fn spend(&mut self, _: Nanos) -> bool {
        false
    }
}

/// A ledger, and every instant, so that each window can be counted again.
pub(super) struct Watched {
    budget: Budget,
    ledger: Ledger,
    calls: Vec<Nanos>,
    spends: Vec<Nanos>,
}

impl Watched {
    pub(super) fn new(budget: Budget) -> Self {
        Self { budget, ledger: Ledger::new(budget), calls: Vec::new(), spends: Vec::new() }
    }

    pub(super) fn call(&mut self, now: Nanos) {
        self.ledger.call(now);
        self.calls.push(now);
    }
}

impl Purse for Watched {
    fn may(&mut self, now: Nanos) -> bool {
        self.ledger.may(now)
    }

    fn spend(&mut self, now: Nanos) -> bool {
        let granted = self.ledger.spend(now);
        if granted {
            self.spends.push(now);
            let inside = |at: &&Nanos| at.0 + self.budget.window.0 > now.0;
            let calls = self.calls.iter().rev().take_while(inside).count();
            let spends = self.spends.iter().rev().take_while(inside).count();
            let most = f64::from(self.budget.floor) + (self.budget.share * calls as f64).floor();
            assert!(spends as f64 <= most, "{spends} of {most} by {now:?} of {:?}", self.budget);
        }
        granted
    }
}
