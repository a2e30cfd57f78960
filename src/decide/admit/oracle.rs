//! What admission must do, said naively: everybody who waits or is in is kept, and looked for.

use proptest::prelude::*;

use super::{Action, Admission, Arrival, End, GivenUp, LimitTerms, Priority, Sample, Terms, Ticket, Verdict};
use crate::decide::Nanos;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive { priority: usize, spread: u8, deadline: Option<u64> },
    End(usize, End),
    GiveUp(usize),
    Withdraw(usize),
}

/// One that waits.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    ticket: Ticket,
    priority: usize,
    since: Nanos,
    deadline: Nanos,
    look: Nanos,
}

/// A gate of few places, and all that is known of it from outside.
struct Gate {
    admission: Admission,
    terms: Terms,
    limit: usize,
    inside: Vec<Sample>,
    waiting: Vec<Waiter>,
    ended: Vec<Ticket>,
    now: Nanos,
}

impl Gate {
    fn new(limit: u32, terms: &Terms) -> Self {
        let terms = Terms { limit: LimitTerms::Fixed(limit), ..terms.clone() };
        let admission = Admission::new(&terms, Nanos::ZERO);
        let limit = limit as usize;
        Self { admission, terms, limit, inside: Vec::new(), waiting: Vec::new(), ended: Vec::new(), now: Nanos::ZERO }
    }

    fn enters(&mut self) {
        self.inside.push(Sample {
            began: self.now,
            beside: self.admission.room().in_flight(),
            lag: Nanos::ZERO,
            idle: Nanos::ZERO,
        });
    }

    fn leaves_line(&mut self, ticket: Ticket) -> Result<Waiter, TestCaseError> {
        prop_assert!(!self.ended.contains(&ticket), "{ticket:?} ends twice");
        let at = self.waiting.iter().position(|waiter| waiter.ticket == ticket);
        self.ended.push(ticket);
        Ok(self.waiting.remove(at.ok_or_else(|| TestCaseError::fail("nobody waits with that ticket"))?))
    }

    fn heed(&mut self, actions: &mut Vec<Action>) -> Result<(), TestCaseError> {
        for action in actions.drain(..) {
            match action {
                Action::Run(ticket) => {
                    let next = self.leaves_line(ticket)?;
                    prop_assert!(
                        self.waiting.iter().all(|other| other.priority <= next.priority),
                        "a higher one waits"
                    );
                    let mut class = self.waiting.iter().filter(|other| other.priority == next.priority);
                    let (older, newer) = (class.clone().any(|o| o.ticket < ticket), class.any(|o| o.ticket > ticket));
                    prop_assert!(!(older && newer), "neither the oldest nor the newest");
                    if self.terms.patience == Nanos::NEVER {
                        prop_assert!(!older, "who came first is not first");
                    }
                    self.enters();
                }
                Action::Refuse(ticket, refusal) => {
                    let gone = self.leaves_line(ticket)?;
                    prop_assert!(refusal.retry_after >= Nanos::SECOND);
                    if self.terms.patience == Nanos::NEVER && self.waiting.len() + 1 < self.terms.queue as usize {
                        prop_assert!(gone.deadline <= self.now, "refused without need");
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks at those that wait when they are to be looked at.
    fn pass(&mut self, to: Nanos) -> Result<(), TestCaseError> {
        while let Some(due) = self.waiting.iter().min_by_key(|waiter| waiter.look).filter(|due| due.look <= to).copied()
        {
            self.now = self.now.max(due.look);
            match self.admission.overdue(self.now, due.ticket) {
                Some(Ok(again)) => {
                    prop_assert!(again > self.now && again <= due.deadline.max(self.now));
                    self.waiting.iter_mut().filter(|waiter| waiter.ticket == due.ticket).for_each(|w| w.look = again);
                }
                Some(Err(_)) => drop(self.leaves_line(due.ticket)?),
                None => return Err(TestCaseError::fail("it waits, and admission has forgotten it")),
            }
        }
        self.now = to;
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let mut actions = Vec::new();
        match step {
            Step::Arrive { priority, spread, deadline } => {
                let deadline = deadline.map_or(Nanos::NEVER, |ms| self.now + Nanos::from_millis(ms));
                let call = Arrival { deadline, priority: Priority::ALL[priority], spread };
                let verdict = if self.admission.room().enter(call.rank()) {
                    Verdict::Run
                } else {
                    self.admission.arrive(self.now, &call, &mut actions)
                };
                self.heed(&mut actions)?;
                match verdict {
                    Verdict::Run => {
                        prop_assert!(self.waiting.iter().all(|other| other.priority < priority), "it jumps the line");
                        self.enters();
                    }
                    Verdict::Wait(ticket, look) => {
                        prop_assert!(look > self.now);
                        self.waiting.push(Waiter {
                            ticket,
                            priority,
                            since: self.now,
                            deadline,
                            look: look.min(deadline),
                        });
                    }
                    Verdict::Refuse(refusal) => prop_assert!(refusal.retry_after >= Nanos::SECOND),
                }
            }
            Step::End(which, end) if !self.inside.is_empty() => {
                let sample = self.inside.swap_remove(which % self.inside.len());
                let _ = self.admission.room().leave(end);
                self.admission.ended(self.now, &sample, end, &mut actions);
            }
            Step::GiveUp(which) if !self.inside.is_empty() => {
                let sample = self.inside.swap_remove(which % self.inside.len());
                self.admission.given_up(self.now, &sample, GivenUp::Unwanted, &mut actions);
            }
            Step::Withdraw(which) if !self.waiting.is_empty() => {
                let ticket = self.waiting[which % self.waiting.len()].ticket;
                self.admission.withdraw(ticket);
                self.leaves_line(ticket)?;
            }
            Step::End(..) | Step::GiveUp(_) | Step::Withdraw(_) => {}
        }
        self.heed(&mut actions)?;
        self.holds()
    }

    fn holds(&self) -> Result<(), TestCaseError> {
        let room = self.admission.room();
        prop_assert_eq!(room.in_flight() as usize, self.inside.len());
        prop_assert_eq!(room.waiting() as usize, self.waiting.len());
        prop_assert!(self.inside.len() <= self.limit, "more are in than may be");
        prop_assert!(self.waiting.is_empty() || self.inside.len() == self.limit, "a place is free, and somebody waits");
        prop_assert!(self.waiting.len() <= self.terms.queue as usize);
        for waiter in &self.waiting {
            prop_assert!(self.now < waiter.deadline, "it waits beyond its deadline");
            prop_assert!(self.terms.patience == Nanos::NEVER || self.now - waiter.since < self.terms.patience);
        }
        Ok(())
    }
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let arrive = (0_usize..4, any::<u8>(), prop::option::of(1_u64..3000));
    let arrive = arrive.prop_map(|(priority, spread, deadline)| Step::Arrive { priority, spread, deadline });
    let end = prop_oneof![8 => Just(End::Answered), 1 => Just(End::Failed), 1 => Just(End::Overloaded)];
    let step = prop_oneof![
        6 => arrive,
        4 => (any::<usize>(), end).prop_map(|(which, end)| Step::End(which, end)),
        1 => any::<usize>().prop_map(Step::GiveUp),
        1 => any::<usize>().prop_map(Step::Withdraw),
    ];
    let pause = prop_oneof![3 => Just(0_u64), 3 => 1_u64..20_000, 1 => 1_u64..2_000_000];
    prop::collection::vec((pause.prop_map(|us| us * 1000), step), 1..80)
}

fn terms() -> impl Strategy<Value = Terms> {
    let patience = prop_oneof![Just(Nanos::NEVER), (5_u64..1000).prop_map(Nanos::from_millis)];
    (patience, 0_u32..12).prop_map(|(patience, queue)| Terms { patience, queue, ..Terms::default() })
}

proptest! {
    /// No place is lost, nobody waits beside a free one, beyond its time or its deadline, and each ends once.
    #[test]
    fn everybody_who_comes_is_in_or_waits_or_is_refused(limit in 1_u32..5, terms in terms(), steps in steps()) {
        let mut gate = Gate::new(limit, &terms);
        for (pause, step) in steps {
            gate.pass(gate.now + Nanos(pause))?;
            gate.step(step)?;
        }
    }
}
