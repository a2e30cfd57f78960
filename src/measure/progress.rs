//! How far a run is, for whoever looks on while it goes.

use super::recorder::Interval;
use crate::decide::Nanos;

/// How far a run is.
#[derive(Debug)]
pub struct RunProgress<'a> {
    /// Since the start.
    pub elapsed: Nanos,
    /// Requests ended so far, up to the last whole second.
    pub ended: u64,
    /// The last whole second (or what else the plan has for a stretch) over all threads, when it has just come in.
    pub interval: Option<&'a Interval>,
}
