//! How much of a stated limit is believed.

use super::Nanos;

/// A refusal halves what is believed. It grows back a quarter of what is missing at a time, and each refusal doubles
/// the time without one that this takes: a limit that was stated too high is run into a few times, and no more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    stated: u64,
    /// What the server has said it is.
    told: u64,
    now: u64,
    /// How long it must have been good before the next growth.
    patience: Nanos,
    since: Nanos,
}

impl Belief {
    /// `patience` is for the first time.
    pub(super) fn new(stated: u64, patience: Nanos) -> Self {
        Self { stated, told: u64::MAX, now: stated, patience, since: Nanos::ZERO }
    }

    /// In [1, stated].
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn refused(&mut self, now: Nanos) {
        self.now = (self.now / 2).max(1);
        self.since = now;
        self.patience = self.patience + self.patience;
    }

    /// The server says what its limit is; true if that changes what is believed.
    pub(super) fn told(&mut self, limit: u64) -> bool {
        self.told = limit.max(1);
        let before = std::mem::replace(&mut self.now, self.told.min(self.stated));
        before != self.now
    }

    /// Time has passed; true if more is believed now.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let most = self.stated.min(self.told);
        if self.now >= most || now - self.since < self.patience {
            return false;
        }
        self.now += (most - self.now).div_ceil(4);
        self.since = now;
        true
    }

    /// Takes up what another has learnt.
    pub(super) fn resume(&mut self, believed: u64, now: Nanos) {
        self.now = believed.clamp(1, self.stated);
        self.since = now;
    }
}
