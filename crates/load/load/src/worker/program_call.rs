//! Calls of a program that may not return: a worker leaves its results to others for the time of each call.
//!
//! A script in Python may wait in a function of C for ever, and no thread can be made to leave that. So the thread that
//! collects the reports takes the results over, and ends the run without the worker. This costs two locks for each call,
//! which nothing else holds, and no copy: the results change hands as a pointer.

use std::sync::Mutex;
use std::sync::mpsc::Sender;

use super::worker_results::WorkerResults;
use crate::steps::StepTrace;
use weir_base::Nanos;
use weir_machine::lock::lock;

/// Call of a program that has not returned.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// Number of the user on its thread.
    pub(crate) user: u32,
    pub(crate) since: Nanos,
    pub(crate) results: WorkerResults,
    /// Closed with the results.
    pub(in crate::worker) trace: Option<Sender<StepTrace>>,
}

/// Call that a worker is in.
#[derive(Debug, Default)]
pub(crate) struct ProgramCallSlot(Mutex<Option<OpenCall>>);

impl ProgramCallSlot {
    /// Lends the results for a call.
    pub(in crate::worker) fn lend(&self, call: OpenCall) {
        *lock(&self.0) = Some(call);
    }

    /// Takes them back; `None` if they were taken over.
    pub(in crate::worker) fn take(&self) -> Option<OpenCall> {
        lock(&self.0).take()
    }

    /// Takes over the results of a call that has lasted for `grace` at `now`, not counting the time before `from`. Its
    /// worker does nothing more, should the call return.
    pub(crate) fn take_blocked(&self, from: Nanos, grace: Nanos, now: Nanos) -> Option<OpenCall> {
        lock(&self.0).take_if(|call| now - call.since.max(from) >= grace)
    }
}
