//! Registry of the groups that wait for jobs; the sender's listener delivers results to them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use weir::send::store::{Receipt, StoreError};
use weir::send::{Listener, SenderEvent, State};

use super::group::{AcceptedJobs, Group, GroupJobs};
use super::mailbox::{CompletionFuture, Mailbox};
use super::outcome::JobResult;
use super::submission::Submission;
use super::watched::{WatchResult, WatchedValue};

/// Groups that wait for jobs, and counters.
#[derive(Debug, Default)]
pub(crate) struct Waiters(WatchedValue<WaiterTable>);

#[derive(Debug, Default)]
struct WaiterTable {
    by_job: HashMap<u64, JobWaiter>,
    /// Results of jobs that ended before their submission returned their numbers.
    ended_early: BTreeMap<u64, Arc<JobResult>>,
    /// Recently ended jobs with IDs, for a submission of the same ID before the store has the end.
    recent_named: VecDeque<(i64, u64)>,
    named_results: HashMap<u64, Arc<JobResult>>,
    submissions: Vec<Arc<Submission>>,
    /// Highest job number so far.
    highest_number: u64,
    /// Group that receives each result.
    all: Option<Arc<Group>>,
    /// No more events will come.
    ended: bool,
    /// All waiting groups have been notified of the end.
    is_closed: bool,
    stats: SenderStats,
}

/// Bounds of the recently ended jobs; ends are recorded in the store sooner, and fewer are pending.
const RECENT_MS: i64 = 5000;
const MAX_RECENT_JOBS: usize = 16_384;

/// Index of a job in a group; a list, since a job may be submitted again.
#[derive(Debug)]
struct JobWaiter {
    group: Arc<Group>,
    index: usize,
    next: Option<Box<JobWaiter>>,
}

/// Counters of a sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderStats {
    pub(crate) done: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) expired: u64,
    /// Requests without success.
    pub(crate) failed: u64,
    /// Attempts after the first of a job.
    pub(crate) retries: u64,
    /// Rejected requests, with status 429 and 400.
    pub(crate) rejected_by_status: [u64; 2],
    /// Disabled keys, with the reasons.
    pub(crate) unusable_keys: Vec<(String, String)>,
}

impl SenderStats {
    fn count_attempt(&mut self, attempt: &weir::send::AttemptRecord) {
        self.failed += u64::from(!attempt.succeeded);
        self.retries += u64::from(attempt.is_retry);
        match attempt.outcome {
            Ok(429) => self.rejected_by_status[0] += 1,
            Ok(400) => self.rejected_by_status[1] += 1,
            _ => {}
        }
    }

    fn count_job(&mut self, ended: &weir::send::FinishedJob) {
        match ended.state {
            State::Done => self.done += 1,
            State::Expired => self.expired += 1,
            _ => self.dead_lettered += 1,
        }
    }
}

/// Listener that delivers events of the sender to the registry.
#[derive(Debug)]
pub(crate) struct SenderListener {
    pub(crate) registry: Arc<Waiters>,
    pub(crate) keys: Vec<Arc<str>>,
}

impl Listener for SenderListener {
    fn on_events(&mut self, events: &[SenderEvent]) -> io::Result<()> {
        let mut deliveries = Vec::new();
        self.registry.0.with(|waiting| {
            for event in events {
                match event {
                    SenderEvent::AttemptEnded(attempt) => waiting.stats.count_attempt(attempt),
                    SenderEvent::KeyUnusable(key, reason) => {
                        let name = self.keys.get(*key).map_or_else(String::new, ToString::to_string);
                        waiting.stats.unusable_keys.push((name, reason.clone()));
                    }
                    SenderEvent::JobEnded(ended) => {
                        waiting.stats.count_job(ended);
                        let outcome = || Arc::new(JobResult::from_sender(ended, &self.keys));
                        if ended.entry.job.id.is_some() {
                            let outcome = outcome();
                            waiting.remember_named(ended.ended_at.0, ended.entry.number, &outcome);
                            waiting.on_job_ended(ended.entry.number, || outcome, &mut deliveries);
                        } else {
                            waiting.on_job_ended(ended.entry.number, outcome, &mut deliveries);
                        }
                    }
                }
            }
        });
        for of_group in deliveries.chunk_by(|one, next| Arc::ptr_eq(&one.0, &next.0)) {
            of_group[0].0.change(|jobs| {
                for (_, place, outcome) in of_group {
                    match place {
                        Some(place) => jobs.set_outcome(*place, Arc::clone(outcome)),
                        None => jobs.add(Arc::clone(outcome)),
                    }
                }
            });
        }
        Ok(())
    }
}

/// Notifies all waiting groups of the end of the sender.
impl Drop for SenderListener {
    fn drop(&mut self) {
        let (places, entering, all) = self.registry.0.with(|waiting| {
            waiting.ended = true;
            let places = std::mem::take(&mut waiting.by_job);
            (places, waiting.submissions.clone(), waiting.all.take())
        });
        for submission in entering {
            self.registry.withdraw_submission(&submission);
        }
        let mut last: Option<Arc<Group>> = None;
        for place in places.into_values() {
            let mut next = Some(Box::new(place));
            while let Some(place) = next {
                if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &place.group)) {
                    place.group.change(GroupJobs::set_sender_ended);
                    last = Some(place.group);
                }
                next = place.next;
            }
        }
        if let Some(all) = all {
            all.change(GroupJobs::set_sender_ended);
        }
        self.registry.0.change(|waiting| waiting.is_closed = true);
    }
}

type ResultDelivery = (Arc<Group>, Option<usize>, Arc<JobResult>);

impl WaiterTable {
    fn on_job_ended(
        &mut self,
        number: u64,
        outcome: impl FnOnce() -> Arc<JobResult>,
        deliveries: &mut Vec<ResultDelivery>,
    ) {
        let mut next = self.by_job.remove(&number).map(Box::new);
        let is_early = next.is_none() && self.submissions.iter().any(|submission| number > submission.highest_before);
        if next.is_none() && self.all.is_none() && !is_early {
            return;
        }
        let outcome = outcome();
        while let Some(place) = next {
            deliveries.push((place.group, Some(place.index), Arc::clone(&outcome)));
            next = place.next;
        }
        if let Some(all) = &self.all {
            deliveries.push((Arc::clone(all), None, Arc::clone(&outcome)));
        }
        if is_early {
            self.ended_early.insert(number, outcome);
        }
    }

    fn remember_named(&mut self, at_ms: i64, number: u64, outcome: &Arc<JobResult>) {
        self.recent_named.push_back((at_ms, number));
        self.named_results.insert(number, Arc::clone(outcome));
        while let Some((then_ms, first)) = self.recent_named.front().copied()
            && (then_ms + RECENT_MS < at_ms || self.recent_named.len() > MAX_RECENT_JOBS)
        {
            self.recent_named.pop_front();
            self.named_results.remove(&first);
        }
    }

    fn add(&mut self, number: u64, group: &Arc<Group>, place: usize) {
        let next = self.by_job.remove(&number).map(Box::new);
        self.by_job.insert(number, JobWaiter { group: Arc::clone(group), index: place, next });
    }

    fn remove_submission(&mut self, submission: &Arc<Submission>) {
        self.submissions.retain(|other| !Arc::ptr_eq(other, submission));
        match self.submissions.iter().map(|submission| submission.highest_before).min() {
            None => self.ended_early.clear(),
            Some(floor) if self.ended_early.first_key_value().is_some_and(|(first, _)| *first <= floor) => {
                self.ended_early = self.ended_early.split_off(&(floor + 1));
            }
            Some(_) => {}
        }
    }
}

impl Waiters {
    /// Registers a submission before it starts.
    pub(crate) fn open(&self, make: impl FnOnce(u64) -> Submission) -> Arc<Submission> {
        self.0.with(|waiting| {
            let submission = Arc::new(make(waiting.highest_number));
            waiting.submissions.push(Arc::clone(&submission));
            submission
        })
    }

    /// Completes a submission with the reply of the store.
    pub(crate) fn close(&self, submission: &Arc<Submission>, reply: Result<Vec<Receipt>, StoreError>) {
        let (group, first) = (&submission.group, submission.first_index);
        let receipts = match reply {
            Ok(receipts) => receipts,
            Err(error) => {
                let ended = self.0.change(|waiting| {
                    waiting.remove_submission(submission);
                    waiting.ended
                });
                return group.change(|jobs| {
                    if ended && error == StoreError::Closed {
                        jobs.set_sender_ended();
                    } else {
                        jobs.reject(first, submission.count, error);
                    }
                });
            }
        };
        let mut entered =
            AcceptedJobs { first_index: first, numbers: Vec::new(), ended: Vec::new(), duplicates: Vec::new() };
        let ended = self.0.change(|waiting| {
            for (place, receipt) in (first..).zip(&receipts) {
                let number = receipt.number();
                waiting.highest_number = waiting.highest_number.max(number);
                entered.numbers.push(number);
                match (waiting.ended_early.get(&number).or_else(|| waiting.named_results.get(&number)), receipt) {
                    (Some(outcome), _) => entered.ended.push((place, Arc::clone(outcome))),
                    (None, Receipt::Duplicate(..)) => {
                        // It may have ended; then no event follows.
                        entered.duplicates.push((place, number));
                        waiting.add(number, group, place);
                    }
                    (None, Receipt::Accepted(_)) => waiting.add(number, group, place),
                }
            }
            waiting.remove_submission(submission);
            if waiting.ended {
                waiting.by_job.clear();
            }
            waiting.ended
        });
        group.change(|jobs| {
            jobs.accept(entered);
            if ended {
                jobs.set_sender_ended();
            }
        });
    }

    /// Numbers of awaited jobs from `from` on, at most `most`.
    pub(crate) fn open_numbers(&self, from: u64, most: usize) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            self.0.with(|waiting| waiting.by_job.keys().copied().filter(|number| *number >= from).collect());
        numbers.sort_unstable();
        numbers.truncate(most);
        numbers
    }

    /// Delivers the result of a job that another sender has sent.
    pub(crate) fn on_remote_end(&self, number: u64, outcome: JobResult) {
        let mut deliveries = Vec::new();
        self.0.with(|waiting| {
            let outcome = Arc::new(outcome);
            let mut next = waiting.by_job.remove(&number).map(Box::new);
            while let Some(place) = next {
                deliveries.push((place.group, place.index, Arc::clone(&outcome)));
                next = place.next;
            }
        });
        for (group, place, outcome) in deliveries {
            group.change(|jobs| jobs.set_outcome(place, outcome));
        }
    }

    /// Forgets a dropped group.
    pub(crate) fn forget(&self, group: &Arc<Group>) {
        let numbers = group.with(|jobs| jobs.numbers());
        self.0.with(|waiting| {
            for number in numbers {
                let mut next = waiting.by_job.remove(&number).map(Box::new);
                while let Some(mut place) = next {
                    next = place.next.take();
                    if !Arc::ptr_eq(&place.group, group) {
                        waiting.add(number, &place.group, place.index);
                    }
                }
            }
        });
        self.withdraw(group);
    }

    /// Withdraws the group's jobs that are not accepted yet.
    pub(crate) fn withdraw(&self, group: &Arc<Group>) {
        let of_group = |submission: &&Arc<Submission>| Arc::ptr_eq(&submission.group, group);
        let entering: Vec<_> = self.0.with(|waiting| waiting.submissions.iter().filter(of_group).cloned().collect());
        entering.iter().for_each(|submission| self.withdraw_submission(submission));
    }

    /// Withdraws a submission, if it is not accepted yet.
    pub(crate) fn withdraw_submission(&self, submission: &Arc<Submission>) {
        if let Some(_pending) = submission.withdraw() {
            self.close(submission, Err(StoreError::Closed));
        }
    }

    /// Group that receives each result from now on.
    pub(crate) fn all(&self) -> Arc<Group> {
        self.0.with(|waiting| {
            let all = Arc::clone(waiting.all.get_or_insert_default());
            if waiting.ended {
                all.change(GroupJobs::set_sender_ended);
            }
            all
        })
    }

    pub(crate) fn stats(&self) -> SenderStats {
        self.0.with(|waiting| waiting.stats.clone())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.with(|waiting| waiting.ended)
    }

    /// Waits until no submission is pending, or for the end of the sender; false after the timeout.
    pub(crate) fn wait(&self, py: Python<'_>, for_end: bool, limit: Option<Duration>) -> PyResult<bool> {
        Ok(self.0.wait(py, limit, |waiting| waiting.is_reached(for_end))?.is_some())
    }

    /// The same for an asyncio loop; None if there is nothing to wait for.
    pub(crate) fn watch<'py>(
        &self,
        py: Python<'py>,
        for_end: bool,
        mailbox: &Mailbox,
    ) -> PyResult<Option<CompletionFuture<'py>>> {
        match self.0.watch(py, mailbox, |waiting| waiting.is_reached(for_end))? {
            WatchResult::Ready(()) => Ok(None),
            WatchResult::Later(promise) => Ok(Some(promise)),
        }
    }
}

impl WaiterTable {
    fn is_reached(&self, for_end: bool) -> Option<()> {
        (self.is_closed || !for_end && self.submissions.is_empty()).then_some(())
    }
}
