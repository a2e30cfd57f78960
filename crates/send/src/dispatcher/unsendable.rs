//! Jobs for unusable keys: they stay in the store, and the run does not wait for them.

use super::super::sender::SenderError;
use super::super::store::JobStep;
use super::{DispatchAction, Event, JobId, SenderRuntime, SenderState};

impl SenderRuntime {
    /// Releases leased jobs of disabled keys.
    pub(super) fn release_unsendable(&self, hand: &mut SenderState, actions: &mut Vec<DispatchAction>) {
        let lost: Vec<u32> = hand.unusable_keys.iter().copied().filter(|key| self.is_queued(hand, *key)).collect();
        if lost.is_empty() {
            return;
        }
        hand.lanes.retain(|key| key.is_none_or(|key| !lost.contains(&key)));
        hand.has_unsendable = true;
        let is_stranded = |held: &super::LeasedJob| held.key.is_some_and(|key| lost.contains(&key));
        self.release_jobs(hand, actions, "its key is unusable", is_stranded);
    }

    /// Whether jobs of this key are leased and queued.
    fn is_queued(&self, hand: &SenderState, key: u32) -> bool {
        hand.hosts.names().any(|(host, _)| hand.dispatch.queued(host, Some(key)) > 0)
    }

    /// Releases jobs that are not in flight.
    pub(super) fn release_jobs(
        &self,
        hand: &mut SenderState,
        actions: &mut Vec<DispatchAction>,
        why: &str,
        is_meant: impl Fn(&super::LeasedJob) -> bool,
    ) {
        let meant = hand.jobs.iter().filter(|(_, held)| held.in_flight.is_none() && is_meant(held));
        let jobs: Vec<JobId> = meant.map(|(job, _)| *job).collect();
        for job in jobs {
            if let Some(held) = hand.jobs.get_mut(&job) {
                // An unusable key costs the job no attempt.
                held.last_attempt = None;
            }
            hand.dispatch.on(self.timer.now(), Event::Withdrawn(job), actions);
            hand.awaiting_mark.retain(|sending| sending.job != job);
            self.end_job(hand, job, JobStep::Released, why.into());
        }
    }

    /// Error if the store has only such jobs left.
    pub(super) fn unsendable_failure(&self, open: u64) -> Option<SenderError> {
        let (has_stranded, lost) = {
            let hand = self.state.borrow();
            (hand.has_unsendable, hand.unusable_keys.clone())
        };
        // Errors of the store are reported by its writes.
        let hints = if has_stranded { self.store.queued_by_key().ok()? } else { return None };
        let is_of_use = |hint: &String| self.key_numbers.get(hint).is_some_and(|key| !lost.contains(key));
        let of_no_use = hints.into_iter().filter_map(|(hint, jobs)| Some((hint?, jobs)));
        let (keys, jobs): (Vec<String>, Vec<u64>) = of_no_use.filter(|(hint, _)| !is_of_use(hint)).unzip();
        let jobs = jobs.iter().sum();
        (jobs == open && jobs > 0).then_some(SenderError::Unsendable { jobs, keys })
    }
}
