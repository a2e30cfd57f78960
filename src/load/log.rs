//! Where every single outcome may go, beside being counted.

use std::fmt::Debug;

use crate::measure::Outcome;

/// One worker's log of outcomes. Called between two requests: it must be quick, and never block for long.
pub trait Log: Debug + Send {
    /// Takes an outcome; `connections` is how many this worker has.
    fn outcome(&mut self, outcome: &Outcome, thread: u64, user: u32, connections: usize);

    /// The worker is done.
    fn finish(self: Box<Self>);
}
