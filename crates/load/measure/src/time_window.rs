//! Window of a run: what is measured, without the warm-up.

use weir_base::Nanos;

/// Times from the end of the warm-up to the end of the run, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// End of the warm-up.
    pub from: Nanos,
    /// End of the run; what is in flight then may end later.
    pub until: Nanos,
}

impl TimeWindow {
    /// Window without a warm-up and without an end.
    pub const ALL: Self = Self { from: Nanos::ZERO, until: Nanos::NEVER };

    /// Whether `at` is within it.
    #[inline]
    pub fn contains(&self, at: Nanos) -> bool {
        self.from <= at && at <= self.until
    }

    /// Length in seconds; > 0.
    pub fn length_s(&self) -> f64 {
        (self.until - self.from).as_secs_f64().max(1e-9)
    }
}
