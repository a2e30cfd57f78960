//! The stages of one call: which is next, and when.

use crate::decide::Nanos;
use crate::decide::policy::{After, Stage};

/// Stages after so many are never launched.
pub const MOST_STAGES: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Stages {
    next: usize,
    due: Nanos,
    /// How long each waits; NEVER for one that only a failure launches.
    waits: [Nanos; MOST_STAGES],
}

impl Stages {
    /// The first one's time counts from now. The quantiles are asked for once, so that a call keeps to what it started
    /// with.
    pub(super) fn start(stages: &[Stage], now: Nanos, mut known: impl FnMut(f64) -> Option<Nanos>) -> Self {
        let mut waits = [Nanos::NEVER; MOST_STAGES];
        for (wait, stage) in waits.iter_mut().zip(stages) {
            *wait = match stage.after {
                After::Time(time) => time,
                After::Quantile(q) => known(q).unwrap_or(Nanos::NEVER),
                After::Failure => Nanos::NEVER,
            };
        }
        Self { next: 0, due: now + waits[0], waits }
    }

    /// None has a time; they wait for failures.
    pub(super) fn untimed() -> Self {
        Self { next: 0, due: Nanos::NEVER, waits: [Nanos::NEVER; MOST_STAGES] }
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
    pub(super) fn on_failure(&self, stages: &[Stage]) -> bool {
        let next = stages.get(self.next).filter(|_| self.next < MOST_STAGES);
        next.is_some_and(|stage| stage.on_failure || stage.after == After::Failure)
    }

    /// The next one is launched now: how many copies it has. The time of the one after it counts from now.
    pub(super) fn launch(&mut self, stages: &[Stage], now: Nanos) -> u32 {
        let copies = stages.get(self.next).map_or(0, |stage| stage.copies);
        self.next += 1;
        self.due = now + self.waits.get(self.next).copied().unwrap_or(Nanos::NEVER);
        copies
    }
}
