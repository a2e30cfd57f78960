//! weir's own gate: [`Admission`], driven as `weir gate` drives it.

use std::collections::VecDeque;

use super::gate::{
    AttemptId, GateArrival, GateDecision, SimulatedGate, SimulatedOutcome, UpstreamCompletion, WaiterDecision,
};
use weir_base::Nanos;
use weir_resilience::admission::{
    AbandonReason, Admission, AdmissionConfig, AdmissionVerdict, QueueAction, QueueTicket, ServiceOutcome,
    ServiceSample,
};

/// Gate with weir's admission control.
#[derive(Debug)]
pub(super) struct WeirGate {
    admission: Admission,
    /// Queued attempts by ticket; the front has `first_ticket`.
    waiting: VecDeque<Option<AttemptId>>,
    first_ticket: u64,
    actions: Vec<QueueAction>,
}

impl WeirGate {
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        let admission = Admission::new(config, Nanos::ZERO);
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
        let at = self.waiting.iter().position(|queued| *queued == Some(id))?;
        Some(QueueTicket(self.first_ticket + at as u64))
    }

    fn apply_actions(&mut self, decisions: &mut Vec<WaiterDecision>) {
        let actions = std::mem::take(&mut self.actions);
        for action in &actions {
            match *action {
                QueueAction::Run(ticket) => decisions.extend(self.remove(ticket).map(WaiterDecision::Run)),
                QueueAction::Reject(ticket, rejection) => {
                    decisions.extend(self.remove(ticket).map(|id| WaiterDecision::Reject(id, rejection)));
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

    fn arrive(&mut self, now: Nanos, arrival: GateArrival<'_>, decisions: &mut Vec<WaiterDecision>) -> GateDecision {
        let GateArrival { id, call, .. } = arrival;
        if self.admission.slots().try_acquire(call.rank()) {
            return GateDecision::Run;
        }
        let verdict = self.admission.arrive(now, call, &mut self.actions);
        self.apply_actions(decisions);
        match verdict {
            AdmissionVerdict::Run => GateDecision::Run,
            AdmissionVerdict::Wait(ticket, recheck_at) => {
                self.insert(ticket, id);
                GateDecision::Wait(recheck_at)
            }
            AdmissionVerdict::Reject(rejection) => GateDecision::Reject(rejection),
        }
    }

    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, decisions: &mut Vec<WaiterDecision>) {
        let sample = ServiceSample {
            started: ended.start,
            in_flight_at_start: ended.in_flight_at_start,
            lag: ended.lag,
            read_delay: Nanos::ZERO,
        };
        let outcome = match ended.outcome {
            SimulatedOutcome::Responded => ServiceOutcome::Responded,
            SimulatedOutcome::Rejected => ServiceOutcome::Overloaded,
            SimulatedOutcome::DeadlineExceeded | SimulatedOutcome::ClientClosed => {
                let reason = if ended.outcome == SimulatedOutcome::ClientClosed {
                    AbandonReason::Unwanted
                } else {
                    AbandonReason::DeadlineExceeded
                };
                self.admission.abandoned(now, &sample, reason, &mut self.actions);
                return self.apply_actions(decisions);
            }
        };
        let slots = self.admission.slots();
        if !slots.release(outcome) && slots.can_skip_sample(ended.start) {
            return;
        }
        // This also gives the slot to a queued attempt.
        self.admission.ended(now, &sample, outcome, &mut self.actions);
        self.apply_actions(decisions);
    }

    fn recheck(&mut self, now: Nanos, id: AttemptId, decisions: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        let ticket = self.ticket(id)?;
        match self.admission.recheck(now, ticket)? {
            Ok(recheck_at) => Some(recheck_at),
            Err(rejection) => {
                decisions.extend(self.remove(ticket).map(|id| WaiterDecision::Reject(id, rejection)));
                None
            }
        }
    }

    fn withdraw(&mut self, _: Nanos, id: AttemptId) {
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
