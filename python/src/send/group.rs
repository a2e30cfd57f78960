//! Jobs that somebody has submitted, and what came of them so far.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use weir::send::store::StoreError;

use super::outcome::{Outcome, OutcomeHandle};
use super::registry::Registry;
use super::sender::{Inside, SenderHandle};
use super::watched::{Watch, Watched};
use crate::client::kin::Kin;
use crate::errors;
use crate::form::Time;

pub(crate) type Group = Watched<Jobs>;

/// Jobs in the order of their submission, numbered from 0; those at the front may have been taken away.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    taken: usize,
    slots: VecDeque<Slot>,
    /// In the order of their ends.
    ended: VecDeque<usize>,
    /// So many have come to no end yet.
    open: usize,
    /// So many submissions wait to be accepted.
    entering: usize,
    refused: Option<StoreError>,
    /// Jobs that the store had before: it may know how they ended.
    known: Vec<(usize, u64)>,
    /// The sender has ended: no more will come.
    left: bool,
}

#[derive(Debug)]
enum Slot {
    Entering,
    Open(u64),
    Ended(Arc<Outcome>),
    Taken,
}

/// What came of a submission.
pub(crate) struct Entered {
    pub(crate) first: usize,
    pub(crate) numbers: Vec<u64>,
    pub(crate) ended: Vec<(usize, Arc<Outcome>)>,
    pub(crate) known: Vec<(usize, u64)>,
}

impl Jobs {
    /// Makes places for so many more; says which is the first.
    pub(crate) fn enter(&mut self, count: usize) -> usize {
        let first = self.next_place();
        self.slots.extend((0..count).map(|_| Slot::Entering));
        self.open += count;
        self.entering += 1;
        first
    }

    pub(crate) fn next_place(&self) -> usize {
        self.taken + self.slots.len()
    }

    pub(crate) fn entered(&mut self, entered: Entered) {
        self.entering = self.entering.saturating_sub(1);
        for (place, number) in (entered.first..).zip(entered.numbers) {
            if let Some(slot @ Slot::Entering) = self.slot(place) {
                *slot = Slot::Open(number);
            }
        }
        for (place, outcome) in entered.ended {
            self.end(place, outcome);
        }
        self.known.extend(entered.known);
    }

    pub(crate) fn refuse(&mut self, first: usize, count: usize, error: StoreError) {
        self.entering = self.entering.saturating_sub(1);
        for place in first..first + count {
            if let Some(slot @ Slot::Entering) = self.slot(place) {
                *slot = Slot::Taken;
                self.open -= 1;
            }
        }
        self.trim();
        self.refused.get_or_insert(error);
    }

    pub(crate) fn end(&mut self, place: usize, outcome: Arc<Outcome>) {
        if let Some(slot @ (Slot::Entering | Slot::Open(_))) = self.slot(place) {
            *slot = Slot::Ended(outcome);
            self.open -= 1;
            self.ended.push_back(place);
        }
    }

    /// One more that nobody has submitted here.
    pub(crate) fn add(&mut self, outcome: Arc<Outcome>) {
        self.ended.push_back(self.next_place());
        self.slots.push_back(Slot::Ended(outcome));
    }

    pub(crate) fn leave(&mut self) {
        self.left = true;
    }

    /// Those that are open, by the store's number.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number = |slot: &Slot| if let Slot::Open(number) = slot { Some(*number) } else { None };
        self.slots.iter().filter_map(number).collect()
    }

    fn slot(&mut self, place: usize) -> Option<&mut Slot> {
        self.slots.get_mut(place.checked_sub(self.taken)?)
    }

    fn number(&mut self, place: usize) -> Option<u64> {
        match self.slot(place)? {
            Slot::Open(number) => Some(*number),
            Slot::Ended(outcome) => Some(outcome.number()),
            Slot::Entering | Slot::Taken => None,
        }
    }

    fn outcome(&mut self, place: usize) -> Option<Arc<Outcome>> {
        match self.slot(place)? {
            Slot::Ended(outcome) => Some(Arc::clone(outcome)),
            _ => None,
        }
    }

    /// Takes away what has ended, in the order of the ends.
    fn take_ended(&mut self) -> Vec<Arc<Outcome>> {
        let places = std::mem::take(&mut self.ended);
        let outcomes = places.into_iter().filter_map(|place| self.take(place)).collect();
        self.trim();
        outcomes
    }

    /// Takes away what has ended, in the order of submission, up to the first that has not.
    fn take_front(&mut self) -> Vec<Arc<Outcome>> {
        let mut outcomes = Vec::new();
        while let Some(Slot::Ended(_) | Slot::Taken) = self.slots.front() {
            outcomes.extend(self.take(self.taken));
            self.trim();
        }
        self.ended.clear();
        outcomes
    }

    fn take(&mut self, place: usize) -> Option<Arc<Outcome>> {
        let slot = self.slot(place).filter(|slot| matches!(slot, Slot::Ended(_)))?;
        match std::mem::replace(slot, Slot::Taken) {
            Slot::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    fn trim(&mut self) {
        while let Some(Slot::Taken) = self.slots.front() {
            self.slots.pop_front();
            self.taken += 1;
        }
    }

    /// Whether it has come so far; what is wrong goes first.
    fn reached(&mut self, need: Need) -> Option<Result<(), Broken>> {
        if let Some(error) = self.refused.take() {
            return Some(Err(Broken::Refused(error)));
        }
        let is_there = match need {
            Need::Accepted => self.entering == 0,
            Need::Any => !self.ended.is_empty() || self.open == 0,
            Need::More => !self.ended.is_empty(),
            Need::Front => self.slots.front().is_none_or(|slot| matches!(slot, Slot::Ended(_))),
            Need::All => self.open == 0,
            Need::End(place) => self.slot(place).is_none_or(|slot| matches!(slot, Slot::Ended(_) | Slot::Taken)),
        };
        if is_there { Some(Ok(())) } else { self.left.then_some(Err(Broken::Left)) }
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
enum Need {
    /// All that was submitted is accepted.
    Accepted,
    /// Something that has ended and was not taken; or nothing is open.
    Any,
    /// Something that has ended and was not taken.
    More,
    /// The first that was not taken has ended.
    Front,
    /// All have ended.
    All,
    /// The one with this number has ended.
    End(usize),
}

impl Need {
    fn read(word: i64) -> Self {
        match word {
            -1 => Self::Accepted,
            -2 => Self::Any,
            -3 => Self::Front,
            -4 => Self::More,
            place => usize::try_from(place).map_or(Self::All, Self::End),
        }
    }
}

enum Broken {
    Refused(StoreError),
    Left,
}

/// Lets the registry forget the group with the last who asks for it.
struct Held {
    registry: Arc<Registry>,
    group: Arc<Group>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.registry.forget(&self.group);
    }
}

/// Jobs that were submitted together or one after the other.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct GroupHandle {
    held: Kin<Held>,
    sender: Py<SenderHandle>,
}

impl GroupHandle {
    pub(crate) fn of(sender: &Bound<'_, SenderHandle>, group: Arc<Group>) -> PyResult<Self> {
        let registry = Arc::clone(sender.get().inside()?.registry());
        Ok(Self { held: Kin::new(Held { registry, group }), sender: sender.clone().unbind() })
    }

    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.held.group
    }

    fn inside(&self) -> PyResult<&Inside> {
        self.sender.get().inside()
    }

    fn broken(&self, py: Python<'_>, broken: &Broken) -> PyErr {
        match broken {
            Broken::Refused(error) => errors::refused(error),
            Broken::Left => match self.inside() {
                Ok(inside) => inside.left_behind(py),
                Err(error) => error,
            },
        }
    }
}

#[pymethods]
impl GroupHandle {
    /// An empty one.
    #[new]
    fn new(sender: &Bound<'_, SenderHandle>) -> PyResult<Self> {
        Self::of(sender, Arc::default())
    }

    /// Submits jobs; if they are several, what is wrong with one is told with its place.
    fn submit(&self, py: Python<'_>, jobs: &Bound<'_, PyList>, are_several: bool) -> PyResult<()> {
        self.inside()?.submit(py, self.group(), jobs, are_several)
    }

    /// Waits until it has come so far: -1 all accepted, -2 any ended or none open, -3 the front ended, -4 any ended, -5 all
    /// ended, or the job at this place ended. Says whether it has, or the time is over.
    fn wait(&self, py: Python<'_>, need: i64, limit: Option<Time>) -> PyResult<bool> {
        self.inside()?.look_up(py, self.group())?;
        let need = Need::read(need);
        match self.group().wait(py, limit.map(|Time(limit)| limit), |jobs| jobs.reached(need))? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(broken)) => Err(self.broken(py, &broken)),
        }
    }

    /// None if it has come so far; else a letter and the future that is set with the next change.
    fn watch<'py>(
        &self,
        py: Python<'py>,
        need: i64,
        mailbox: &super::mailbox::Mailbox,
    ) -> PyResult<Option<super::mailbox::Promise<'py>>> {
        self.inside()?.look_up(py, self.group())?;
        let need = Need::read(need);
        match self.group().watch(py, mailbox, |jobs| jobs.reached(need))? {
            Watch::Later(promise) => Ok(Some(promise)),
            Watch::Ready(Ok(())) => Ok(None),
            Watch::Ready(Err(broken)) => Err(self.broken(py, &broken)),
        }
    }

    /// Takes back what is not accepted yet.
    fn give_up(&self) -> PyResult<()> {
        self.inside()?.registry().give_up(self.group());
        Ok(())
    }

    /// Whether this one has ended, for good or because the sender did.
    fn is_done(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        self.inside()?.look_up(py, self.group())?;
        Ok(self.group().with(|jobs| jobs.left || jobs.outcome(place).is_some()))
    }

    /// The store's number for the job.
    fn number(&self, place: usize) -> PyResult<Option<u64>> {
        self.inside()?;
        Ok(self.group().with(|jobs| jobs.number(place)))
    }

    /// What came of the job, if it has ended and was not taken.
    fn outcome(&self, place: usize) -> PyResult<Option<OutcomeHandle>> {
        self.inside()?;
        Ok(self.group().with(|jobs| jobs.outcome(place)).map(OutcomeHandle))
    }

    /// Takes what has ended, in the order of the ends.
    fn take_ended(&self) -> PyResult<Vec<OutcomeHandle>> {
        self.inside()?;
        Ok(self.group().with(Jobs::take_ended).into_iter().map(OutcomeHandle).collect())
    }

    /// Takes what has ended, in the order of submission, up to the first that has not.
    fn take_front(&self) -> PyResult<Vec<OutcomeHandle>> {
        self.inside()?;
        Ok(self.group().with(Jobs::take_front).into_iter().map(OutcomeHandle).collect())
    }

    /// Jobs without an end.
    #[getter]
    fn open(&self) -> PyResult<usize> {
        self.inside()?;
        Ok(self.group().with(|jobs| jobs.open))
    }

    /// Jobs that were not taken.
    fn __len__(&self) -> PyResult<usize> {
        self.inside()?;
        Ok(self.group().with(|jobs| jobs.slots.len()))
    }
}

impl Inside {
    /// Asks the store how jobs ended that it had before.
    fn look_up(&self, py: Python<'_>, group: &Arc<Group>) -> PyResult<()> {
        let known = group.with(|jobs| std::mem::take(&mut jobs.known));
        if known.is_empty() {
            return Ok(());
        }
        let found = py.detach(|| self.ends_of(&known)).map_err(|error| errors::refused(&error))?;
        group.change(|jobs| found.into_iter().for_each(|(place, outcome)| jobs.end(place, Arc::new(outcome))));
        Ok(())
    }
}
