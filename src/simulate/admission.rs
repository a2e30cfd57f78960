//! weir's own gate, driven as its edges drive it.

use std::collections::VecDeque;

use super::gate::{AttemptId, GateDecision, SimulatedGate, SimulatedOutcome, UpstreamCompletion, WaiterDecision};
use crate::decide::Nanos;
use crate::decide::admit::{
    AbandonReason, Admission, AdmissionConfig, AdmissionVerdict, CallArrival, QueueAction, QueueTicket, ServiceOutcome,
    ServiceSample,
};

#[derive(Debug)]
pub(super) struct WeirGate {
    admission: Admission,
    /// Who has which ticket: the first of them has the ticket `first`.
    waiting: VecDeque<Option<AttemptId>>,
    first_ticket: u64,
    actions: Vec<QueueAction>,
}

impl WeirGate {
    pub(super) fn new(terms: &AdmissionConfig) -> Self {
        let admission = Admission::new(terms, Nanos::ZERO);
        Self { admission, waiting: VecDeque::new(), first_ticket: 0, actions: Vec::new() }
    }

    fn insert(&mut self, ticket: QueueTicket, id: AttemptId) {
        if self.waiting.is_empty() {
            self.first_ticket = ticket.0;
        }
        let at = (ticket.0 - self.first_ticket) as usize;
        self.waiting.resize(at.max(self.waiting.len()), None);
        self.waiting.push_back(Some(id));
    }

    fn remove(&mut self, ticket: QueueTicket) -> Option<AttemptId> {
        let at = ticket.0.checked_sub(self.first_ticket)? as usize;
        let id = self.waiting.get_mut(at)?.take();
        while self.waiting.front() == Some(&None) {
            self.waiting.pop_front();
            self.first_ticket += 1;
        }
        id
    }

    fn ticket(&self, id: AttemptId) -> Option<QueueTicket> {
        let at = self.waiting.iter().position(|held| *held == Some(id))?;
        Some(QueueTicket(self.first_ticket + at as u64))
    }

    fn apply_actions(&mut self, told: &mut Vec<WaiterDecision>) {
        let actions = std::mem::take(&mut self.actions);
        for action in &actions {
            match *action {
                QueueAction::Run(ticket) => told.extend(self.remove(ticket).map(WaiterDecision::Run)),
                QueueAction::Reject(ticket, why) => {
                    told.extend(self.remove(ticket).map(|id| WaiterDecision::Reject(id, why)));
                }
            }
        }
        self.actions = actions;
        self.actions.clear();
    }
}

impl SimulatedGate for WeirGate {
    fn paused(&mut self, ever: Nanos) {
        self.admission.set_total_pause(ever);
    }

    fn arrive(
        &mut self,
        now: Nanos,
        id: AttemptId,
        call: &CallArrival,
        told: &mut Vec<WaiterDecision>,
    ) -> GateDecision {
        if self.admission.slots().try_acquire(call.rank()) {
            return GateDecision::Run;
        }
        let verdict = self.admission.arrive(now, call, &mut self.actions);
        self.apply_actions(told);
        match verdict {
            AdmissionVerdict::Run => GateDecision::Run,
            AdmissionVerdict::Wait(ticket, look) => {
                self.insert(ticket, id);
                GateDecision::Wait(look)
            }
            AdmissionVerdict::Reject(refusal) => GateDecision::Reject(refusal),
        }
    }

    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, told: &mut Vec<WaiterDecision>) {
        let sample = ServiceSample {
            started: ended.start,
            in_flight_at_start: ended.in_flight_at_start,
            lag: ended.lag,
            read_delay: Nanos::ZERO,
        };
        let end = match ended.outcome {
            SimulatedOutcome::Responded => ServiceOutcome::Responded,
            SimulatedOutcome::Rejected => ServiceOutcome::Overloaded,
            SimulatedOutcome::DeadlineExceeded | SimulatedOutcome::ClientClosed => {
                let why = if ended.outcome == SimulatedOutcome::ClientClosed {
                    AbandonReason::Unwanted
                } else {
                    AbandonReason::DeadlineExceeded
                };
                self.admission.abandoned(now, &sample, why, &mut self.actions);
                return self.apply_actions(told);
            }
        };
        let room = self.admission.slots();
        if !room.release(end) && room.can_skip_sample(ended.start) {
            return;
        }
        // This hands the place over, too, if somebody waits for it.
        self.admission.ended(now, &sample, end, &mut self.actions);
        self.apply_actions(told);
    }

    fn recheck(&mut self, now: Nanos, id: AttemptId, told: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        let ticket = self.ticket(id)?;
        match self.admission.recheck(now, ticket)? {
            Ok(look) => Some(look),
            Err(refusal) => {
                told.extend(self.remove(ticket).map(|id| WaiterDecision::Reject(id, refusal)));
                None
            }
        }
    }

    fn withdraw(&mut self, id: AttemptId) {
        if let Some(ticket) = self.ticket(id) {
            self.admission.withdraw(ticket);
            self.remove(ticket);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.admission.slots().limit())
    }

    fn in_flight(&self) -> u32 {
        self.admission.slots().in_flight()
    }

    fn queued(&self) -> u32 {
        self.admission.slots().waiting()
    }
}
