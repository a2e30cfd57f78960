//! Property tests of admission against a naive model: a list of queued calls and one of calls in flight.

use proptest::prelude::*;

use crate::admission::{
    AbandonReason, Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, Priority,
    QueueAction, QueueTicket, ServiceOutcome, ServiceSample,
};
use weir_base::Nanos;

#[derive(Clone, Copy, Debug)]
enum AdmissionStep {
    Arrive { priority: usize, spread: u8, deadline: Option<u64> },
    End(usize, ServiceOutcome),
    Abandon(usize),
    Withdraw(usize),
}

/// Queued call of the model.
#[derive(Clone, Copy, Debug)]
struct WaiterModel {
    ticket: QueueTicket,
    priority: usize,
    queued_at: Nanos,
    deadline: Nanos,
    recheck_at: Nanos,
}

/// Admission with few slots, and its state as seen from outside.
struct AdmissionModel {
    admission: Admission,
    config: AdmissionConfig,
    limit: usize,
    admitted: Vec<ServiceSample>,
    waiting: Vec<WaiterModel>,
    ended_tickets: Vec<QueueTicket>,
    now: Nanos,
}

impl AdmissionModel {
    fn new(limit: u32, config: &AdmissionConfig) -> Self {
        let config = AdmissionConfig { limit: ConcurrencyLimitConfig::Fixed(limit), ..config.clone() };
        let admission = Admission::new(&config, Nanos::ZERO);
        let limit = limit as usize;
        Self {
            admission,
            config,
            limit,
            admitted: Vec::new(),
            waiting: Vec::new(),
            ended_tickets: Vec::new(),
            now: Nanos::ZERO,
        }
    }

    fn admit(&mut self) {
        self.admitted.push(ServiceSample {
            started: self.now,
            in_flight_at_start: self.admission.slots().in_flight(),
            lag: Nanos::ZERO,
            read_delay: Nanos::ZERO,
        });
    }

    fn leave_queue(&mut self, ticket: QueueTicket) -> Result<WaiterModel, TestCaseError> {
        prop_assert!(!self.ended_tickets.contains(&ticket), "{ticket:?} ends twice");
        let at = self.waiting.iter().position(|waiter| waiter.ticket == ticket);
        self.ended_tickets.push(ticket);
        Ok(self.waiting.remove(at.ok_or_else(|| TestCaseError::fail("no call waits with that ticket"))?))
    }

    fn apply(&mut self, actions: &mut Vec<QueueAction>) -> Result<(), TestCaseError> {
        for action in actions.drain(..) {
            match action {
                QueueAction::Run(ticket) => {
                    let next = self.leave_queue(ticket)?;
                    prop_assert!(
                        self.waiting.iter().all(|other| other.priority <= next.priority),
                        "a call of higher priority waits"
                    );
                    let mut class = self.waiting.iter().filter(|other| other.priority == next.priority);
                    let (older, newer) = (class.clone().any(|o| o.ticket < ticket), class.any(|o| o.ticket > ticket));
                    prop_assert!(!(older && newer), "neither the oldest nor the newest");
                    if self.config.max_queue_wait == Nanos::NEVER {
                        prop_assert!(!older, "not first come, first served");
                    }
                    self.admit();
                }
                QueueAction::Reject(ticket, rejection) => {
                    let rejected = self.leave_queue(ticket)?;
                    prop_assert!(rejection.retry_after >= Nanos::SECOND);
                    if self.config.max_queue_wait == Nanos::NEVER
                        && self.waiting.len() + 1 < self.config.max_queued as usize
                    {
                        prop_assert!(rejected.deadline <= self.now, "rejected without need");
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves the clock, and rechecks queued calls when they are due.
    fn advance_to(&mut self, to: Nanos) -> Result<(), TestCaseError> {
        while let Some(due) =
            self.waiting.iter().min_by_key(|waiter| waiter.recheck_at).filter(|due| due.recheck_at <= to).copied()
        {
            self.now = self.now.max(due.recheck_at);
            match self.admission.recheck(self.now, due.ticket) {
                Some(Ok(again)) => {
                    prop_assert!(again > self.now && again <= due.deadline.max(self.now));
                    self.waiting
                        .iter_mut()
                        .filter(|waiter| waiter.ticket == due.ticket)
                        .for_each(|w| w.recheck_at = again);
                }
                Some(Err(_)) => drop(self.leave_queue(due.ticket)?),
                None => return Err(TestCaseError::fail("a queued call is lost")),
            }
        }
        self.now = to;
        Ok(())
    }

    fn step(&mut self, step: AdmissionStep) -> Result<(), TestCaseError> {
        let mut actions = Vec::new();
        match step {
            AdmissionStep::Arrive { priority, spread, deadline } => {
                let deadline = deadline.map_or(Nanos::NEVER, |ms| self.now + Nanos::from_millis(ms));
                let call = CallArrival { deadline, priority: Priority::ALL[priority], spread, connection: None };
                let verdict = if self.admission.slots().try_acquire(call.rank()) {
                    AdmissionVerdict::Run
                } else {
                    self.admission.arrive(self.now, &call, &mut actions)
                };
                self.apply(&mut actions)?;
                match verdict {
                    AdmissionVerdict::Run => {
                        prop_assert!(
                            self.waiting.iter().all(|other| other.priority < priority),
                            "the call jumps the queue"
                        );
                        self.admit();
                    }
                    AdmissionVerdict::Wait(ticket, look) => {
                        prop_assert!(look > self.now);
                        self.waiting.push(WaiterModel {
                            ticket,
                            priority,
                            queued_at: self.now,
                            deadline,
                            recheck_at: look.min(deadline),
                        });
                    }
                    AdmissionVerdict::Reject(rejection) => prop_assert!(rejection.retry_after >= Nanos::SECOND),
                }
            }
            AdmissionStep::End(which, outcome) if !self.admitted.is_empty() => {
                let sample = self.admitted.swap_remove(which % self.admitted.len());
                let _ = self.admission.slots().release(outcome);
                self.admission.ended(self.now, &sample, outcome, &mut actions);
            }
            AdmissionStep::Abandon(which) if !self.admitted.is_empty() => {
                let sample = self.admitted.swap_remove(which % self.admitted.len());
                self.admission.abandoned(self.now, &sample, AbandonReason::Unwanted, &mut actions);
            }
            AdmissionStep::Withdraw(which) if !self.waiting.is_empty() => {
                let ticket = self.waiting[which % self.waiting.len()].ticket;
                self.admission.withdraw(ticket);
                self.leave_queue(ticket)?;
            }
            AdmissionStep::End(..) | AdmissionStep::Abandon(_) | AdmissionStep::Withdraw(_) => {}
        }
        self.apply(&mut actions)?;
        self.check_invariants()
    }

    fn check_invariants(&self) -> Result<(), TestCaseError> {
        let slots = self.admission.slots();
        prop_assert_eq!(slots.in_flight() as usize, self.admitted.len());
        prop_assert_eq!(slots.waiting() as usize, self.waiting.len());
        prop_assert!(self.admitted.len() <= self.limit, "more calls in flight than the limit");
        prop_assert!(self.waiting.is_empty() || self.admitted.len() == self.limit, "a slot is free while a call waits");
        prop_assert!(self.waiting.len() <= self.config.max_queued as usize);
        for waiter in &self.waiting {
            prop_assert!(self.now < waiter.deadline, "a call waits beyond its deadline");
            prop_assert!(
                self.config.max_queue_wait == Nanos::NEVER || self.now - waiter.queued_at < self.config.max_queue_wait
            );
        }
        Ok(())
    }
}

fn steps() -> impl Strategy<Value = Vec<(u64, AdmissionStep)>> {
    let arrive = (0_usize..4, any::<u8>(), prop::option::of(1_u64..3000));
    let arrive = arrive.prop_map(|(priority, spread, deadline)| AdmissionStep::Arrive { priority, spread, deadline });
    let outcome = prop_oneof![
        8 => Just(ServiceOutcome::Responded),
        1 => Just(ServiceOutcome::Failed),
        1 => Just(ServiceOutcome::Overloaded),
    ];
    let step = prop_oneof![
        6 => arrive,
        4 => (any::<usize>(), outcome).prop_map(|(which, outcome)| AdmissionStep::End(which, outcome)),
        1 => any::<usize>().prop_map(AdmissionStep::Abandon),
        1 => any::<usize>().prop_map(AdmissionStep::Withdraw),
    ];
    let pause = prop_oneof![3 => Just(0_u64), 3 => 1_u64..20_000, 1 => 1_u64..2_000_000];
    prop::collection::vec((pause.prop_map(|us| us * 1000), step), 1..80)
}

fn configs() -> impl Strategy<Value = AdmissionConfig> {
    let max_wait = prop_oneof![Just(Nanos::NEVER), (5_u64..1000).prop_map(Nanos::from_millis)];
    (max_wait, 0_u32..12).prop_map(|(max_wait, queue)| AdmissionConfig {
        max_queue_wait: max_wait,
        max_queued: queue,
        ..AdmissionConfig::default()
    })
}

proptest! {
    /// No slot is lost; no call waits beside a free slot, beyond its maximum wait or its deadline; each ends once.
    #[test]
    fn each_call_runs_or_waits_or_is_rejected(limit in 1_u32..5, config in configs(), steps in steps()) {
        let mut model = AdmissionModel::new(limit, &config);
        for (pause, step) in steps {
            model.advance_to(model.now + Nanos(pause))?;
            model.step(step)?;
        }
    }
}
