//! Calls of a program that may not return: a worker leaves its results to others for the time of each call.
//!
//! A script in Python may wait in a function of C for ever, and no thread can be made to leave that. So the thread that
//! collects the reports takes the results over, and ends the run without the worker. This costs two locks for each call,
//! which nothing else holds, and no copy: the results change hands as a pointer.

use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::thread;

use super::Worker;
use crate::counters::WorkerCounters;
use crate::request_log::ThreadLog;
use crate::steps::StepTrace;
use weir_base::Nanos;
use weir_machine::lock::lock;

/// Results that a worker leaves to others while it is in a call of its program.
#[derive(Debug)]
pub(crate) struct WorkerResults {
    pub(crate) counters: Box<WorkerCounters>,
    /// Number of the interval that is not reported yet.
    pub(crate) interval: u64,
    /// They are closed with the results.
    log: Option<ThreadLog>,
    trace: Option<Sender<StepTrace>>,
}

/// Call of a program that has not returned.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// Number of the user on its thread.
    pub(crate) user: u32,
    pub(crate) since: Nanos,
    pub(crate) results: WorkerResults,
}

/// Call that a worker is in.
#[derive(Debug, Default)]
pub(crate) struct ProgramCallSlot(Mutex<Option<OpenCall>>);

impl ProgramCallSlot {
    /// Takes over the results of a call that has lasted for `grace` at `now`, not counting the time before `from`. Its
    /// worker does nothing more, should the call return.
    pub(crate) fn take_blocked(&self, from: Nanos, grace: Nanos, now: Nanos) -> Option<OpenCall> {
        lock(&self.0).take_if(|call| now - call.since.max(from) >= grace)
    }
}

impl Worker<'_> {
    /// Leaves the results to others, before a call for this user.
    #[inline]
    pub(super) fn lend_results(&mut self, user: u32) {
        let Some(slot) = self.shared.control.calls.get(self.index as usize) else { return };
        let Some(spare) = self.spare_counters.take() else { return };
        let mut counters = std::mem::replace(&mut self.counters, spare);
        counters.take_offers(&mut self.feed);
        let (log, trace) = (self.log.take(), self.trace.take());
        let results = WorkerResults { counters, interval: self.interval, log, trace };
        *lock(&slot.0) = Some(OpenCall { user, since: self.clock.now(), results });
    }

    /// Takes the results back, after a call. Without them the run has ended without this thread.
    #[inline]
    pub(super) fn take_results(&mut self) {
        let Some(slot) = self.shared.control.calls.get(self.index as usize) else { return };
        if self.spare_counters.is_some() {
            return;
        }
        let Some(OpenCall { results, .. }) = lock(&slot.0).take() else {
            loop {
                thread::park();
            }
        };
        self.spare_counters = Some(std::mem::replace(&mut self.counters, results.counters));
        (self.log, self.trace) = (results.log, results.trace);
    }
}
