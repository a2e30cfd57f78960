//! A limit on what is being answered at the moment.

/// So many at a time; time frees nothing, only an answer does.
#[derive(Clone, Debug, Default)]
pub(super) struct Concurrency {
    at_once: u64,
}

impl Concurrency {
    pub(super) fn used(&self) -> u64 {
        self.at_once
    }

    pub(super) fn take(&mut self, weight: u64) {
        self.at_once += weight;
    }

    pub(super) fn finished(&mut self, weight: u64) {
        self.at_once = self.at_once.saturating_sub(weight);
    }
}
