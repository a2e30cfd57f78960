//! Who waits for which job: what the sender's thread tells is put down there.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use weir::send::store::{Receipt, StoreError};
use weir::send::{Listener, News, State};

use super::entrance::Submission;
use super::group::{Entered, Group, Jobs};
use super::mailbox::{Mailbox, Promise};
use super::outcome::Outcome;
use super::watched::{Watch, Watched};

/// Who waits for which job.
#[derive(Debug, Default)]
pub(crate) struct Registry(Watched<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    places: HashMap<u64, Place>,
    /// Jobs that have ended before whoever submitted them knew their numbers.
    early: BTreeMap<u64, Arc<Outcome>>,
    /// Jobs with names that have ended a moment ago: for whoever submits one again before its end is recorded.
    recent: VecDeque<(i64, u64)>,
    named: HashMap<u64, Arc<Outcome>>,
    entering: Vec<Arc<Submission>>,
    /// The highest number that was given.
    highest: u64,
    /// Gets all that ends.
    all: Option<Arc<Group>>,
    /// Nothing more will be told.
    ended: bool,
    /// And all who waited know it.
    over: bool,
    tally: Tally,
}

/// Ends are recorded sooner, and there are no more of them that are not.
const RECENT_MS: i64 = 5000;
const MOST_RECENT: usize = 16_384;

/// A job's place in a group; there are several if it was submitted again.
#[derive(Debug)]
struct Place {
    group: Arc<Group>,
    place: usize,
    next: Option<Box<Place>>,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) graveyard: u64,
    pub(crate) expired: u64,
    /// Requests without success.
    pub(crate) failed: u64,
    /// Requests after the first of a job.
    pub(crate) retried: u64,
    /// By status: 429 and 400.
    pub(crate) refused: [u64; 2],
    /// Keys that are used no more, and why.
    pub(crate) lost: Vec<(String, String)>,
}

impl Tally {
    fn tried(&mut self, tried: &weir::send::Try) {
        self.failed += u64::from(!tried.done);
        self.retried += u64::from(tried.again);
        match tried.outcome {
            Ok(429) => self.refused[0] += 1,
            Ok(400) => self.refused[1] += 1,
            _ => {}
        }
    }

    fn ended(&mut self, ended: &weir::send::Ended) {
        match ended.state {
            State::Done => self.done += 1,
            State::Expired => self.expired += 1,
            _ => self.graveyard += 1,
        }
    }
}

/// Puts down what the sender tells.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) registry: Arc<Registry>,
    pub(crate) keys: Vec<Arc<str>>,
}

impl Listener for Ear {
    fn told(&mut self, news: &[News]) -> io::Result<()> {
        let mut told = Vec::new();
        self.registry.0.with(|waiting| {
            for news in news {
                match news {
                    News::Tried(tried) => waiting.tally.tried(tried),
                    News::KeyLost(key, why) => {
                        let name = self.keys.get(*key).map_or_else(String::new, ToString::to_string);
                        waiting.tally.lost.push((name, why.clone()));
                    }
                    News::Ended(ended) => {
                        waiting.tally.ended(ended);
                        let outcome = || Arc::new(Outcome::told(ended, &self.keys));
                        if ended.entry.job.id.is_some() {
                            let outcome = outcome();
                            waiting.keep(ended.at.0, ended.entry.number, &outcome);
                            waiting.ended(ended.entry.number, || outcome, &mut told);
                        } else {
                            waiting.ended(ended.entry.number, outcome, &mut told);
                        }
                    }
                }
            }
        });
        for of_group in told.chunk_by(|one, next| Arc::ptr_eq(&one.0, &next.0)) {
            of_group[0].0.change(|jobs| {
                for (_, place, outcome) in of_group {
                    match place {
                        Some(place) => jobs.end(*place, Arc::clone(outcome)),
                        None => jobs.add(Arc::clone(outcome)),
                    }
                }
            });
        }
        Ok(())
    }
}

/// The sender has ended.
impl Drop for Ear {
    fn drop(&mut self) {
        let (places, entering, all) = self.registry.0.with(|waiting| {
            waiting.ended = true;
            let places = std::mem::take(&mut waiting.places);
            (places, waiting.entering.clone(), waiting.all.take())
        });
        for submission in entering {
            submission.give_up();
        }
        let mut last: Option<Arc<Group>> = None;
        for place in places.into_values() {
            let mut next = Some(Box::new(place));
            while let Some(place) = next {
                if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &place.group)) {
                    place.group.change(Jobs::leave);
                    last = Some(place.group);
                }
                next = place.next;
            }
        }
        if let Some(all) = all {
            all.change(Jobs::leave);
        }
        self.registry.0.change(|waiting| waiting.over = true);
    }
}

type Told = (Arc<Group>, Option<usize>, Arc<Outcome>);

impl Waiting {
    fn ended(&mut self, number: u64, outcome: impl FnOnce() -> Arc<Outcome>, told: &mut Vec<Told>) {
        let mut next = self.places.remove(&number).map(Box::new);
        let is_early = next.is_none() && self.entering.iter().any(|submission| number > submission.floor);
        if next.is_none() && self.all.is_none() && !is_early {
            return;
        }
        let outcome = outcome();
        while let Some(place) = next {
            told.push((place.group, Some(place.place), Arc::clone(&outcome)));
            next = place.next;
        }
        if let Some(all) = &self.all {
            told.push((Arc::clone(all), None, Arc::clone(&outcome)));
        }
        if is_early {
            self.early.insert(number, outcome);
        }
    }

    fn keep(&mut self, at_ms: i64, number: u64, outcome: &Arc<Outcome>) {
        self.recent.push_back((at_ms, number));
        self.named.insert(number, Arc::clone(outcome));
        while let Some((then_ms, first)) = self.recent.front().copied()
            && (then_ms + RECENT_MS < at_ms || self.recent.len() > MOST_RECENT)
        {
            self.recent.pop_front();
            self.named.remove(&first);
        }
    }

    fn add(&mut self, number: u64, group: &Arc<Group>, place: usize) {
        let next = self.places.remove(&number).map(Box::new);
        self.places.insert(number, Place { group: Arc::clone(group), place, next });
    }

    fn leave_out(&mut self, submission: &Arc<Submission>) {
        self.entering.retain(|other| !Arc::ptr_eq(other, submission));
        match self.entering.iter().map(|submission| submission.floor).min() {
            None => self.early.clear(),
            Some(floor) if self.early.first_key_value().is_some_and(|(first, _)| *first <= floor) => {
                self.early = self.early.split_off(&(floor + 1));
            }
            Some(_) => {}
        }
    }
}

impl Registry {
    /// Notes a submission before it is made.
    pub(crate) fn open(&self, make: impl FnOnce(u64) -> Submission) -> Arc<Submission> {
        self.0.with(|waiting| {
            let submission = Arc::new(make(waiting.highest));
            waiting.entering.push(Arc::clone(&submission));
            submission
        })
    }

    /// The submission has been answered.
    pub(crate) fn close(&self, submission: &Arc<Submission>, answer: Result<Vec<Receipt>, StoreError>) {
        let (group, first) = (&submission.group, submission.first);
        let receipts = match answer {
            Ok(receipts) => receipts,
            Err(error) => {
                let ended = self.0.change(|waiting| {
                    waiting.leave_out(submission);
                    waiting.ended
                });
                return group.change(|jobs| {
                    if ended && error == StoreError::Closed {
                        jobs.leave();
                    } else {
                        jobs.refuse(first, submission.count, error);
                    }
                });
            }
        };
        let mut entered = Entered { first, numbers: Vec::new(), ended: Vec::new(), known: Vec::new() };
        let ended = self.0.change(|waiting| {
            for (place, receipt) in (first..).zip(&receipts) {
                let number = receipt.number();
                waiting.highest = waiting.highest.max(number);
                entered.numbers.push(number);
                match (waiting.early.get(&number).or_else(|| waiting.named.get(&number)), receipt) {
                    (Some(outcome), _) => entered.ended.push((place, Arc::clone(outcome))),
                    (None, Receipt::Known(..)) => {
                        // It may have ended; then nothing more is told of it.
                        entered.known.push((place, number));
                        waiting.add(number, group, place);
                    }
                    (None, Receipt::Accepted(_)) => waiting.add(number, group, place),
                }
            }
            waiting.leave_out(submission);
            if waiting.ended {
                waiting.places.clear();
            }
            waiting.ended
        });
        group.change(|jobs| {
            jobs.entered(entered);
            if ended {
                jobs.leave();
            }
        });
    }

    /// Some of the jobs that are waited for, from this number on.
    pub(crate) fn awaited(&self, from: u64, most: usize) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            self.0.with(|waiting| waiting.places.keys().copied().filter(|number| *number >= from).collect());
        numbers.sort_unstable();
        numbers.truncate(most);
        numbers
    }

    /// Another sender has brought a job to its end.
    pub(crate) fn ended_elsewhere(&self, number: u64, outcome: Outcome) {
        let mut told = Vec::new();
        self.0.with(|waiting| {
            let outcome = Arc::new(outcome);
            let mut next = waiting.places.remove(&number).map(Box::new);
            while let Some(place) = next {
                told.push((place.group, place.place, Arc::clone(&outcome)));
                next = place.next;
            }
        });
        for (group, place, outcome) in told {
            group.change(|jobs| jobs.end(place, outcome));
        }
    }

    /// Nobody asks for the group any more.
    pub(crate) fn forget(&self, group: &Arc<Group>) {
        let numbers = group.with(|jobs| jobs.numbers());
        self.0.with(|waiting| {
            for number in numbers {
                let mut next = waiting.places.remove(&number).map(Box::new);
                while let Some(mut place) = next {
                    next = place.next.take();
                    if !Arc::ptr_eq(&place.group, group) {
                        waiting.add(number, &place.group, place.place);
                    }
                }
            }
        });
        self.give_up(group);
    }

    /// What the group has submitted and is not accepted yet stays out.
    pub(crate) fn give_up(&self, group: &Arc<Group>) {
        let of_group = |submission: &&Arc<Submission>| Arc::ptr_eq(&submission.group, group);
        let entering: Vec<_> = self.0.with(|waiting| waiting.entering.iter().filter(of_group).cloned().collect());
        entering.iter().for_each(Submission::give_up);
    }

    /// A group that gets all that ends from now on.
    pub(crate) fn all(&self) -> Arc<Group> {
        self.0.with(|waiting| {
            let all = Arc::clone(waiting.all.get_or_insert_default());
            if waiting.ended {
                all.change(Jobs::leave);
            }
            all
        })
    }

    pub(crate) fn tally(&self) -> Tally {
        self.0.with(|waiting| waiting.tally.clone())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.with(|waiting| waiting.ended)
    }

    /// Waits until no submission waits, or until the sender has ended; says whether it is so in time.
    pub(crate) fn wait(&self, py: Python<'_>, for_end: bool, limit: Option<Duration>) -> PyResult<bool> {
        Ok(self.0.wait(py, limit, |waiting| waiting.is_so(for_end))?.is_some())
    }

    /// The same for an asyncio loop; None: it is so.
    pub(crate) fn watch<'py>(
        &self,
        py: Python<'py>,
        for_end: bool,
        mailbox: &Mailbox,
    ) -> PyResult<Option<Promise<'py>>> {
        match self.0.watch(py, mailbox, |waiting| waiting.is_so(for_end))? {
            Watch::Ready(()) => Ok(None),
            Watch::Later(promise) => Ok(Some(promise)),
        }
    }
}

impl Waiting {
    fn is_so(&self, for_end: bool) -> Option<()> {
        (self.over || !for_end && self.entering.is_empty()).then_some(())
    }
}
