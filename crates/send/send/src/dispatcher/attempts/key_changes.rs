//! Changes of keys as the owner of attempts sees them: leases that begin and end, keys that the service rejects, and
//! jobs that are released since no key or host can take them.

use super::super::channels::{AttemptEvent, KeyAcquisition, KeyLeaseEvent, KeyLeaseUpdate, ReportEvent, post};
use super::AttemptLoop;
use super::leased_job::{LeasedJob, SentMark};
use crate::sender_error::SenderError;
use crate::store::JobStep;
use weir_delivery::dispatch::{DispatchAction, Event, HostId, JobId};

impl AttemptLoop {
    pub(super) fn on_key_leases(&mut self, update: KeyLeaseUpdate) {
        let now = self.now();
        let mut actions = std::mem::take(&mut self.actions);
        self.expire_leases(&mut actions);
        match update {
            KeyLeaseUpdate::Current(leases, held_count) => {
                for key in self.held_keys.update(now, &leases, held_count) {
                    self.dispatch.set_leased(key_number(key), true);
                }
                if self.held_keys.has_none() {
                    self.release_jobs(&mut actions, "other senders have all keys", |_| true);
                }
            }
            KeyLeaseUpdate::Acquired(acquired) => self.take_over(*acquired),
            KeyLeaseUpdate::Resumed(key) => {
                let is_leased = self.held_keys.begin_use(now, key);
                self.dispatch.set_leased(key_number(key), is_leased);
            }
            KeyLeaseUpdate::Releasing(key) => {
                self.held_keys.begin_release(key);
                self.dispatch.set_leased(key_number(key), false);
                let is_pinned = |leased: &LeasedJob| leased.key == Some(key_number(key));
                self.release_jobs(&mut actions, "another sender has its key", is_pinned);
            }
            KeyLeaseUpdate::Expired(key) => {
                self.held_keys.end_use(key);
                self.withdraw_unsent(&[key], &mut actions);
            }
            KeyLeaseUpdate::StatesWanted(keys) => {
                let states = keys.into_iter().map(|key| (key, self.released_state(key))).collect();
                post(&self.context.channels.key_leases, KeyLeaseEvent::States(states));
            }
        }
        self.actions = actions;
        self.handle_event(now, Event::Tick);
        self.claim.want();
    }

    /// Resumes a key from the state that its last owner left.
    fn take_over(&mut self, acquired: KeyAcquisition) {
        let KeyAcquisition { key, high_water, history, state, at } = acquired;
        let number = key_number(key);
        self.dispatch.take_over(number, high_water);
        self.hosts.resume_key(&mut self.dispatch, number, (history, at), state.as_ref());
        self.marks.take_over(number, high_water, &self.outcomes);
        let is_leased = self.held_keys.begin_use(self.now(), key);
        self.dispatch.set_leased(number, is_leased);
    }

    /// State of a key for its next owner.
    pub(super) fn released_state(&mut self, key: usize) -> String {
        let number = key_number(key);
        let nonce = self.dispatch.last_nonce(number);
        self.hosts.final_key_state(&mut self.dispatch, number, nonce)
    }

    /// Before each decision: stops keys whose leases have expired.
    pub(super) fn expire_leases(&mut self, actions: &mut Vec<DispatchAction>) {
        let expired = self.held_keys.take_expired(self.now());
        if !expired.is_empty() {
            self.withdraw_unsent(&expired, actions);
        }
    }

    /// Withdraws what has not left under expired leases.
    fn withdraw_unsent(&mut self, keys: &[usize], actions: &mut Vec<DispatchAction>) {
        keys.iter().for_each(|key| self.dispatch.set_leased(key_number(*key), false));
        self.take_departures(actions);
        let in_flight = self.jobs.iter().filter_map(|(job, leased)| Some((*job, leased.in_flight.as_ref()?)));
        let unsent = in_flight.filter(|(_, attempt)| keys.contains(&attempt.key) && attempt.last_byte_at.is_none());
        let unsent: Vec<(JobId, u32)> = unsent.map(|(job, attempt)| (job, attempt.attempt)).collect();
        for (job, attempt) in unsent {
            self.cancel(job, "the lease of its key expired");
            self.uncount_attempt(job);
            self.dispatch.on(self.now(), Event::Recalled(job, attempt), actions);
        }
        for queued in self.marks.take_awaiting(|queued| keys.contains(&queued.key)) {
            self.dispatch.on(self.now(), Event::Recalled(queued.job, queued.attempt), actions);
        }
    }

    /// Takes back the count of an attempt of which nothing was sent, and its mark, if the store can.
    pub(super) fn uncount_attempt(&mut self, job: JobId) {
        let Some(leased) = self.jobs.get_mut(&job) else { return };
        leased.uncount_attempt();
        if leased.attempts_since_claim == 0 && self.context.store.unmark_sent(leased.lease) {
            leased.mark = SentMark::Unset;
        }
    }

    /// Takes departures out of the inbox ahead of their turn: a request that has left must not count as unsent.
    fn take_departures(&mut self, actions: &mut Vec<DispatchAction>) {
        while let Ok(event) = self.inbox.try_recv() {
            self.backlog.push_back(event);
        }
        let mut events = std::mem::take(&mut self.backlog);
        events.retain(|event| {
            let AttemptEvent::Departed(job, serial, at) = *event else { return true };
            if let Some(attempt) = self.jobs.get_mut(&job).and_then(|leased| leased.in_flight(serial)) {
                attempt.last_byte_at = Some(at);
                let number = attempt.attempt;
                self.dispatch.on(self.now(), Event::Departed(job, number), actions);
            }
            false
        });
        self.backlog = events;
    }

    /// Reports keys to release that are idle to the owner of key leases.
    pub(super) fn release_drained_keys(&mut self) {
        for (key, token) in self.held_keys.releasing() {
            if !self.is_in_flight(key) && !self.marks.awaits(key) {
                self.held_keys.end_use(key);
                post(&self.context.channels.key_leases, KeyLeaseEvent::Drained(key, token));
            }
        }
    }

    /// Whether a request with this key is in flight.
    pub(super) fn is_in_flight(&self, key: usize) -> bool {
        self.jobs.values().any(|leased| leased.in_flight.as_ref().is_some_and(|attempt| attempt.key == key))
    }

    /// Stops using a key that the service rejects.
    pub(super) fn disable_key(&mut self, number: u32, why: String) {
        let key = number as usize;
        self.unusable_keys.push(number);
        if self.held_keys.is_used(key) {
            self.held_keys.begin_release(key);
        }
        post(&self.context.channels.key_leases, KeyLeaseEvent::Rejected(key));
        if self.dispatch.usable_keys() == 0 {
            self.end.fail(SenderError::NoKeys(why.clone()));
        }
        self.outcomes.report(ReportEvent::KeyUnusable(key, why));
    }

    /// Releases leased jobs of disabled keys: they stay in the store, and the run does not wait for them.
    pub(super) fn release_unsendable(&mut self, actions: &mut Vec<DispatchAction>) {
        let is_queued = |key: &u32| self.hosts.names().any(|(host, _)| self.dispatch.queued(host, Some(*key)) > 0);
        let lost: Vec<u32> = self.unusable_keys.iter().copied().filter(is_queued).collect();
        if !lost.is_empty() {
            self.ready.forget_keys(&lost);
            let is_pinned = |leased: &LeasedJob| leased.key.is_some_and(|key| lost.contains(&key));
            self.release_jobs(actions, "its key is unusable", is_pinned);
        }
    }

    /// Releases jobs of a down host that were never sent, so that a crash leaves no doubt about them.
    pub(super) fn release_unsent(&mut self, host: HostId, actions: &mut Vec<DispatchAction>) {
        if self.context.options.rules.give_up_after.is_none() {
            let waiting: Vec<JobId> = self.dispatch.queued_jobs(host).collect();
            let is_unsent =
                |leased: &LeasedJob| leased.attempts_since_claim == 0 && waiting.contains(&leased.entry.number);
            self.release_jobs(actions, "the host is down", is_unsent);
        }
    }

    /// Releases jobs that are not in flight.
    pub(super) fn release_jobs(
        &mut self,
        actions: &mut Vec<DispatchAction>,
        why: &str,
        is_meant: impl Fn(&LeasedJob) -> bool,
    ) {
        let meant = self.jobs.iter().filter(|(_, leased)| leased.in_flight.is_none() && is_meant(leased));
        let jobs: Vec<JobId> = meant.map(|(job, _)| *job).collect();
        for job in jobs {
            if let Some(leased) = self.jobs.get_mut(&job) {
                // An unusable key costs the job no attempt.
                leased.last_attempt = None;
            }
            self.dispatch.on(self.now(), Event::Withdrawn(job), actions);
            self.marks.take_awaiting(|queued| queued.job == job);
            self.end_job(job, JobStep::Released, (why.into(), None));
        }
    }
}

fn key_number(key: usize) -> u32 {
    u32::try_from(key).unwrap_or(u32::MAX)
}
