//! Shutdown: condition of the end, and an orderly release.

use tokio::task::JoinHandle;

use super::super::channels::{AttemptEvent, KeyLeaseEvent, RecordEvent, post};
use super::AttemptLoop;
use crate::sender_error::SenderError;
use crate::stop_mode::StopMode;
use crate::store::StoredKeyState;

impl AttemptLoop {
    /// Checks the condition of the end, if it may hold.
    pub(super) fn check_end(&mut self) {
        if !self.end.take_due() {
            return;
        }
        self.claim.want();
        if self.is_at_end() {
            self.end.reach();
        }
    }

    fn is_at_end(&mut self) -> bool {
        match self.end.mode() {
            StopMode::Now => true,
            StopMode::WhenDrained(grace) => {
                let now = self.now();
                if self.end.begin_drain(now + grace) {
                    self.release_all_jobs();
                    post(&self.context.channels.key_leases, KeyLeaseEvent::StopUsing);
                }
                self.dispatch.sizes().leased == 0 || self.end.wake_at() <= now
            }
            // A claim may have found jobs expired that are to be renewed.
            StopMode::WhenEmpty
                if self.jobs.is_empty() && self.outcomes.unrecorded() == 0 && !self.claim.is_in_progress() =>
            {
                // Errors of the store are reported by its writes.
                let open = self.context.store.counts().map_or(1, |counts| counts.open_jobs());
                let failure = self.unsendable_failure(open);
                let is_at_end = open == 0 || failure.is_some();
                failure.into_iter().for_each(|error| self.end.fail(error));
                is_at_end
            }
            StopMode::WhenEmpty | StopMode::KeepRunning => false,
        }
    }

    /// Error if the store has only jobs for unusable keys left.
    fn unsendable_failure(&self, open: u64) -> Option<SenderError> {
        // Errors of the store are reported by its writes.
        let hints = if self.ready.has_unsendable { self.context.store.queued_by_key().ok()? } else { return None };
        let is_usable = |key: &u32| !self.unusable_keys.contains(key);
        let is_of_use = |hint: &String| self.context.key_numbers.get(hint).is_some_and(is_usable);
        let of_no_use = hints.into_iter().filter_map(|(hint, jobs)| Some((hint?, jobs)));
        let (keys, jobs): (Vec<String>, Vec<u64>) = of_no_use.filter(|(hint, _)| !is_of_use(hint)).unzip();
        let jobs = jobs.iter().sum();
        (jobs == open && jobs > 0).then_some(SenderError::Unsendable { jobs, keys })
    }

    /// Releases unsent jobs.
    fn release_all_jobs(&mut self) {
        self.release_jobs(&mut Vec::new(), "the sender ended", |_| true);
    }

    /// Last step: requests in flight are abandoned, other jobs released, and the states of keys recorded.
    pub(in super::super) async fn shut_down(
        mut self,
        mut records: JoinHandle<()>,
        key_leases: Option<JoinHandle<()>>,
    ) -> Result<(), SenderError> {
        self.release_all_jobs();
        // Responses that have arrived count.
        while let Some(event) = self.backlog.pop_front().or_else(|| self.inbox.try_recv().ok()) {
            self.take(event);
        }
        self.jobs.values().filter_map(|leased| leased.in_flight.as_ref()).for_each(|attempt| attempt.task.abort());
        self.release_all_jobs();
        let states = if key_leases.is_some() { Vec::new() } else { self.final_key_states() };
        self.outcomes.record(RecordEvent::Finish(states));
        loop {
            tokio::select! {
                Some(event) = self.inbox.recv() => self.take_last(event),
                _ = &mut records => break,
            }
        }
        while let Ok(event) = self.inbox.try_recv() {
            self.take_last(event);
        }
        if let Some(key_leases) = key_leases {
            let keys = 0..self.context.options.keys.len();
            let idle: Vec<usize> = keys.filter(|key| !self.is_in_flight(*key)).collect();
            let states = idle.into_iter().map(|key| (key, self.released_state(key))).collect();
            post(&self.context.channels.key_leases, KeyLeaseEvent::Leave(states));
            let _ = key_leases.await;
        }
        self.end.outcome()
    }

    /// States of keys that only this sender uses.
    fn final_key_states(&mut self) -> Vec<StoredKeyState> {
        let keys = (0..).zip(&self.context.options.keys);
        keys.map(|(number, key)| {
            let high_water = self.marks.high_water(number as usize);
            let state = self.hosts.final_key_state(&mut self.dispatch, number, high_water);
            StoredKeyState { key: key.name().to_owned(), state }
        })
        .collect()
    }

    /// Takes an event after the last decision.
    fn take_last(&mut self, event: AttemptEvent) {
        if let AttemptEvent::Failed(error) = event {
            self.end.fail(error);
        }
    }
}
