//! Results of a worker, which may change hands as a whole.

use crate::counters::WorkerCounters;
use crate::request_log::ThreadLog;

/// Results of a worker.
#[derive(Debug)]
pub(crate) struct WorkerResults {
    pub(crate) counters: Box<WorkerCounters>,
    /// Number of the interval that is not reported yet.
    pub(crate) interval: u64,
    pub(crate) log: Option<ThreadLog>,
}
