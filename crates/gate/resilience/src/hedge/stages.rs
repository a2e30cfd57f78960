//! Hedge stages of one call: the next one, and its time.

use crate::policy::{HedgeStage, Policy, StageTrigger};
use weir_base::Nanos;

#[derive(Clone, Debug)]
pub(super) struct StageCursor {
    next: usize,
    due: Nanos,
    /// Delay of each stage; NEVER for a stage that only a failure launches.
    delays: [Nanos; Policy::MAX_STAGES],
}

impl StageCursor {
    /// The first stage, whose delay begins now. Quantiles are evaluated once, at the start of the call.
    pub(super) fn start(stages: &[HedgeStage], now: Nanos, mut quantile: impl FnMut(f64) -> Option<Nanos>) -> Self {
        let mut delays = [Nanos::NEVER; Policy::MAX_STAGES];
        for (wait, stage) in delays.iter_mut().zip(stages) {
            *wait = match stage.after {
                StageTrigger::Time(time) => time,
                StageTrigger::Quantile(q) => quantile(q).unwrap_or(Nanos::NEVER),
                StageTrigger::Failure => Nanos::NEVER,
            };
        }
        Self { next: 0, due: now + delays[0], delays }
    }

    /// Stages without delays, launched by failures alone.
    pub(super) fn untimed() -> Self {
        Self { next: 0, due: Nanos::NEVER, delays: [Nanos::NEVER; Policy::MAX_STAGES] }
    }

    /// Number of the next stage.
    pub(super) fn number(&self) -> u32 {
        self.next as u32
    }

    /// Time of the next stage without a failure before; NEVER if there is none, or it waits for a failure.
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// Whether a failure launches the next stage at once.
    pub(super) fn launches_on_failure(&self, stages: &[HedgeStage]) -> bool {
        let next = stages.get(self.next).filter(|_| self.next < Policy::MAX_STAGES);
        next.is_some_and(|stage| stage.on_failure || stage.after == StageTrigger::Failure)
    }

    /// Takes the next stage: its number of attempts. The delay of the one after it begins now.
    pub(super) fn launch(&mut self, stages: &[HedgeStage], now: Nanos) -> u32 {
        let attempts = stages.get(self.next).map_or(0, |stage| stage.attempts);
        self.next += 1;
        self.due = now + self.delays.get(self.next).copied().unwrap_or(Nanos::NEVER);
        attempts
    }
}
