//! The stages of one call: which is next, and when.

use crate::decide::Nanos;
use crate::decide::policy::{HedgeStage, StageTrigger};

/// Stages after so many are never launched.
pub const MAX_STAGES: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct StageCursor {
    next: usize,
    due: Nanos,
    /// How long each waits; NEVER for one that only a failure launches.
    delays: [Nanos; MAX_STAGES],
}

impl StageCursor {
    /// The first one's time counts from now. The quantiles are asked for once, so that a call keeps to what it started
    /// with.
    pub(super) fn start(stages: &[HedgeStage], now: Nanos, mut known: impl FnMut(f64) -> Option<Nanos>) -> Self {
        let mut delays = [Nanos::NEVER; MAX_STAGES];
        for (wait, stage) in delays.iter_mut().zip(stages) {
            *wait = match stage.after {
                StageTrigger::Time(time) => time,
                StageTrigger::Quantile(q) => known(q).unwrap_or(Nanos::NEVER),
                StageTrigger::Failure => Nanos::NEVER,
            };
        }
        Self { next: 0, due: now + delays[0], delays }
    }

    /// None has a time; they wait for failures.
    pub(super) fn untimed() -> Self {
        Self { next: 0, due: Nanos::NEVER, delays: [Nanos::NEVER; MAX_STAGES] }
    }

    /// The number of the next one.
    pub(super) fn number(&self) -> u32 {
        self.next as u32
    }

    /// When the next one is launched if nothing else happens; NEVER if there is none, or only for a failure.
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// Whether a failure launches the next one at once.
    pub(super) fn launches_on_failure(&self, stages: &[HedgeStage]) -> bool {
        let next = stages.get(self.next).filter(|_| self.next < MAX_STAGES);
        next.is_some_and(|stage| stage.on_failure || stage.after == StageTrigger::Failure)
    }

    /// The next one is launched now: how many copies it has. The time of the one after it counts from now.
    pub(super) fn launch(&mut self, stages: &[HedgeStage], now: Nanos) -> u32 {
        let copies = stages.get(self.next).map_or(0, |stage| stage.attempts);
        self.next += 1;
        self.due = now + self.delays.get(self.next).copied().unwrap_or(Nanos::NEVER);
        copies
    }
}
