//! How long those take that are in, usually.

use crate::decide::Nanos;

/// The length of a period; what is known is of the last one to two.
const PERIOD: Nanos = Nanos::from_secs(2);
/// As many are needed to know something.
const LEAST: u64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    count: u64,
    sum: u64,
    fastest: u64,
}

impl Period {
    fn with(self, other: Self) -> Self {
        let fastest = match (self.count, other.count) {
            (_, 0) => self.fastest,
            (0, _) => other.fastest,
            _ => self.fastest.min(other.fastest),
        };
        Self { count: self.count + other.count, sum: self.sum.saturating_add(other.sum), fastest }
    }
}

/// The mean and the least of the times of the last one to two periods.
#[derive(Clone, Debug)]
pub(super) struct Usual {
    since: Nanos,
    current: Period,
    before: Period,
}

/// What is known of an upstream when somebody comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// The usual time of one that is in; zero while nothing is known.
    pub(super) service: Nanos,
    /// The least of late; zero while nothing is known.
    pub(super) fastest: Nanos,
    /// How many may be in.
    pub(super) places: u32,
}

impl Flow {
    /// The usual time from one free place to the next when all are taken.
    pub(super) fn pace(&self) -> Nanos {
        Nanos(self.service.0 / u64::from(self.places.max(1)))
    }
}

impl Usual {
    pub(super) fn new(now: Nanos) -> Self {
        Self { since: now, current: Period::default(), before: Period::default() }
    }

    pub(super) fn took(&mut self, now: Nanos, took: Nanos) {
        if now - self.since >= PERIOD && self.current.count >= LEAST {
            self.before = std::mem::take(&mut self.current);
            self.since = now;
        }
        self.current = self.current.with(Period { count: 1, sum: took.0, fastest: took.0 });
    }

    fn both(&self) -> Period {
        self.current.with(self.before)
    }

    pub(super) fn mean(&self, _: Nanos) -> Nanos {
        let both = self.both();
        if both.count < LEAST { Nanos::ZERO } else { Nanos(both.sum / both.count) }
    }

    pub(super) fn fastest(&self, _: Nanos) -> Nanos {
        let both = self.both();
        if both.count < LEAST { Nanos::ZERO } else { Nanos(both.fastest) }
    }
}
