//! How many may be in flight, from how long things take.

use super::{Room, Sample};
use crate::decide::Nanos;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The first limit: nothing is known then, so it should only keep the worst away.
    pub initial: u32,
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial: 1000, min: 1, max: 100_000 }
    }
}

/// The limit that is found out.
#[derive(Clone, Debug)]
pub struct Adaptive {
    limit: u32,
}

impl Adaptive {
    /// Nothing is known yet.
    pub fn new(options: Options, _now: Nanos) -> Self {
        Self { limit: options.initial.clamp(options.min, options.max) }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1].
    pub fn gradient(&self) -> f64 {
        1.0
    }

    /// One has ended.
    pub fn ended(&mut self, _now: Nanos, _sample: &Sample, _room: &Room) {}
}
