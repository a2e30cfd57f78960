//! weir's own gate, driven as its edges drive it.

use std::collections::VecDeque;

use super::gate::{Ended, Entry, Gate, How, Id, Told};
use crate::decide::Nanos;
use crate::decide::admit::{Action, Admission, Arrival, End, GivenUp, Sample, Terms, Ticket, Verdict};

#[derive(Debug)]
pub(super) struct Weir {
    admission: Admission,
    /// Who has which ticket: the first of them has the ticket `first`.
    waiting: VecDeque<Option<Id>>,
    first: u64,
    actions: Vec<Action>,
}

impl Weir {
    pub(super) fn new(terms: &Terms) -> Self {
        let admission = Admission::new(terms, Nanos::ZERO);
        Self { admission, waiting: VecDeque::new(), first: 0, actions: Vec::new() }
    }

    fn holds(&mut self, ticket: Ticket, id: Id) {
        if self.waiting.is_empty() {
            self.first = ticket.0;
        }
        let at = (ticket.0 - self.first) as usize;
        self.waiting.resize(at.max(self.waiting.len()), None);
        self.waiting.push_back(Some(id));
    }

    fn gives_back(&mut self, ticket: Ticket) -> Option<Id> {
        let at = ticket.0.checked_sub(self.first)? as usize;
        let id = self.waiting.get_mut(at)?.take();
        while self.waiting.front() == Some(&None) {
            self.waiting.pop_front();
            self.first += 1;
        }
        id
    }

    fn ticket(&self, id: Id) -> Option<Ticket> {
        let at = self.waiting.iter().position(|held| *held == Some(id))?;
        Some(Ticket(self.first + at as u64))
    }

    fn tell(&mut self, told: &mut Vec<Told>) {
        let actions = std::mem::take(&mut self.actions);
        for action in &actions {
            match *action {
                Action::Run(ticket) => told.extend(self.gives_back(ticket).map(Told::Run)),
                Action::Refuse(ticket, why) => told.extend(self.gives_back(ticket).map(|id| Told::Refuse(id, why))),
            }
        }
        self.actions = actions;
        self.actions.clear();
    }
}

impl Gate for Weir {
    fn paused(&mut self, ever: Nanos) {
        self.admission.paused(ever);
    }

    fn arrive(&mut self, now: Nanos, id: Id, call: &Arrival, told: &mut Vec<Told>) -> Entry {
        if self.admission.room().enter(call.rank()) {
            return Entry::Run;
        }
        let verdict = self.admission.arrive(now, call, &mut self.actions);
        self.tell(told);
        match verdict {
            Verdict::Run => Entry::Run,
            Verdict::Wait(ticket, look) => {
                self.holds(ticket, id);
                Entry::Wait(look)
            }
            Verdict::Refuse(refusal) => Entry::Refuse(refusal),
        }
    }

    fn ended(&mut self, now: Nanos, ended: &Ended, told: &mut Vec<Told>) {
        let sample = Sample { began: ended.began, beside: ended.beside, lag: ended.lag, idle: Nanos::ZERO };
        let end = match ended.how {
            How::Answered => End::Answered,
            How::Refused => End::Overloaded,
            How::GivenUp | How::Gone => {
                let why = if ended.how == How::Gone { GivenUp::Unwanted } else { GivenUp::Late };
                self.admission.given_up(now, &sample, why, &mut self.actions);
                return self.tell(told);
            }
        };
        let room = self.admission.room();
        if !room.leave(end) && room.spares(ended.began) {
            return;
        }
        // This hands the place over, too, if somebody waits for it.
        self.admission.ended(now, &sample, end, &mut self.actions);
        self.tell(told);
    }

    fn overdue(&mut self, now: Nanos, id: Id, told: &mut Vec<Told>) -> Option<Nanos> {
        let ticket = self.ticket(id)?;
        match self.admission.overdue(now, ticket)? {
            Ok(look) => Some(look),
            Err(refusal) => {
                told.extend(self.gives_back(ticket).map(|id| Told::Refuse(id, refusal)));
                None
            }
        }
    }

    fn withdraw(&mut self, id: Id) {
        if let Some(ticket) = self.ticket(id) {
            self.admission.withdraw(ticket);
            self.gives_back(ticket);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.admission.room().limit())
    }

    fn in_flight(&self) -> u32 {
        self.admission.room().in_flight()
    }

    fn waiting(&self) -> u32 {
        self.admission.room().waiting()
    }
}
