//! Jobs for keys that cannot be used: they stay in the store, and nobody waits for them.

use super::super::sender::SendFailed;
use super::super::store::Step;
use super::{Action, Edge, Event, Hand, JobId};

impl Edge {
    /// Gives back the jobs in hand whose key is used no more.
    pub(super) fn give_back_stranded(&self, hand: &mut Hand, actions: &mut Vec<Action>) {
        let lost: Vec<u32> = hand.lost.iter().copied().filter(|key| self.is_queued(hand, *key)).collect();
        if lost.is_empty() {
            return;
        }
        hand.lanes.retain(|key| key.is_none_or(|key| !lost.contains(&key)));
        hand.has_stranded = true;
        let is_stranded = |held: &super::Held| held.key.is_some_and(|key| lost.contains(&key));
        self.give_back(hand, actions, "its key cannot be used", is_stranded);
    }

    /// Whether there are jobs in hand that only this key may send.
    fn is_queued(&self, hand: &Hand, key: u32) -> bool {
        hand.hosts.names().any(|(host, _)| hand.dispatch.queued(host, Some(key)) > 0)
    }

    /// Gives back jobs that are not out.
    pub(super) fn give_back(
        &self,
        hand: &mut Hand,
        actions: &mut Vec<Action>,
        why: &str,
        is_meant: impl Fn(&super::Held) -> bool,
    ) {
        let meant = hand.jobs.iter().filter(|(_, held)| held.flying.is_none() && is_meant(held));
        let jobs: Vec<JobId> = meant.map(|(job, _)| *job).collect();
        for job in jobs {
            if let Some(held) = hand.jobs.get_mut(&job) {
                // That the key is of no use costs the job no try.
                held.last = None;
            }
            hand.dispatch.on(self.timer.now(), Event::Withdrawn(job), actions);
            hand.unmarked.retain(|sending| sending.job != job);
            self.end_job(hand, job, Step::Released, why.into());
        }
    }

    /// If nothing is left in the store but such jobs, why they are not sent.
    pub(super) fn stranded(&self, open: u64) -> Option<SendFailed> {
        let (has_stranded, lost) = {
            let hand = self.hand.borrow();
            (hand.has_stranded, hand.lost.clone())
        };
        // Whoever writes tells what cannot be read.
        let hints = if has_stranded { self.store.hints().ok()? } else { return None };
        let is_of_use = |hint: &String| self.names.get(hint).is_some_and(|key| !lost.contains(key));
        let of_no_use = hints.into_iter().filter_map(|(hint, jobs)| Some((hint?, jobs)));
        let (keys, jobs): (Vec<String>, Vec<u64>) = of_no_use.filter(|(hint, _)| !is_of_use(hint)).unzip();
        let jobs = jobs.iter().sum();
        (jobs == open && jobs > 0).then_some(SendFailed::Stranded { jobs, keys })
    }
}
