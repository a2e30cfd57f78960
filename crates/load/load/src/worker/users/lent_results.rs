//! Results of a worker that are lent for the time of a call of its program, which may not return.

use std::thread;

use super::super::Worker;
use super::super::program_call::OpenCall;
use super::super::worker_results::WorkerResults;
use super::UserRequests;

impl Worker<'_, UserRequests<'_>> {
    /// Leaves the results to others, before a call for this user.
    #[inline]
    pub(super) fn lend_results(&mut self, user: u32) {
        let Some(slot) = self.shared.control.calls.get(self.index as usize) else { return };
        let Some(spare) = self.flow.spare_counters.take() else { return };
        self.results.counters.take_offers(&mut self.feed);
        let counters = std::mem::replace(&mut self.results.counters, spare);
        let results = WorkerResults { counters, interval: self.results.interval, log: self.results.log.take() };
        let trace = self.flow.trace.take();
        slot.lend(OpenCall { user, since: self.clock.now(), results, trace });
    }

    /// Takes the results back, after a call. Without them the run has ended without this thread.
    #[inline]
    pub(super) fn take_results(&mut self) {
        let Some(slot) = self.shared.control.calls.get(self.index as usize) else { return };
        if self.flow.spare_counters.is_some() {
            return;
        }
        let Some(OpenCall { results, trace, .. }) = slot.take() else {
            loop {
                thread::park();
            }
        };
        self.flow.spare_counters = Some(std::mem::replace(&mut self.results.counters, results.counters));
        (self.results.log, self.flow.trace) = (results.log, trace);
    }
}
