//! weir's own gate with `shed_culprits`: the decision about culprits before [`WeirGate`], as `weir gate` has it.

use std::collections::HashMap;

use super::admission::WeirGate;
use super::gate::{AttemptId, GateArrival, GateDecision, SimulatedGate, UpstreamCompletion, WaiterDecision};
use weir_base::Nanos;
use weir_resilience::admission::AdmissionConfig;
use weir_resilience::culprits::{CallOrigin, CulpritRule, Culprits};

/// Gate with weir's admission control that sheds culprits first.
#[derive(Debug)]
pub(super) struct CulpritGate {
    gate: WeirGate,
    culprits: Culprits,
    /// Origins of queued attempts.
    queued: HashMap<AttemptId, CallOrigin>,
}

impl CulpritGate {
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        let culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
        Self { gate: WeirGate::new(config), culprits, queued: HashMap::new() }
    }

    /// Reports what was decided on queued attempts.
    fn note(&mut self, now: Nanos, decisions: &[WaiterDecision]) {
        for decision in decisions {
            match decision {
                WaiterDecision::Run(id) => drop(self.queued.remove(id)),
                WaiterDecision::Reject(id, _) => {
                    self.queued.remove(id).into_iter().for_each(|origin| self.culprits.rejected(now, origin));
                }
            }
        }
    }
}

impl SimulatedGate for CulpritGate {
    fn paused(&mut self, ever: Nanos) {
        self.gate.paused(ever);
    }

    fn arrive(&mut self, now: Nanos, arrival: GateArrival<'_>, decisions: &mut Vec<WaiterDecision>) -> GateDecision {
        let slots = self.gate.limit().unwrap_or(u32::MAX);
        if let Err(rejection) = self.culprits.arrive(now, slots, arrival.origin) {
            return GateDecision::Reject(rejection);
        }
        let known = decisions.len();
        let decision = self.gate.arrive(now, arrival, decisions);
        self.note(now, &decisions[known..]);
        match decision {
            GateDecision::Run => {}
            GateDecision::Wait(_) => drop(self.queued.insert(arrival.id, arrival.origin)),
            GateDecision::Reject(_) => self.culprits.rejected(now, arrival.origin),
        }
        decision
    }

    fn released(&mut self, now: Nanos, origin: CallOrigin) {
        self.culprits.ended(now, origin);
    }

    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, decisions: &mut Vec<WaiterDecision>) {
        let known = decisions.len();
        self.gate.completed(now, ended, decisions);
        self.note(now, &decisions[known..]);
    }

    fn recheck(&mut self, now: Nanos, id: AttemptId, decisions: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        let known = decisions.len();
        let recheck_at = self.gate.recheck(now, id, decisions);
        self.note(now, &decisions[known..]);
        recheck_at
    }

    fn withdraw(&mut self, now: Nanos, id: AttemptId) {
        self.gate.withdraw(now, id);
        self.queued.remove(&id).into_iter().for_each(|origin| self.culprits.withdrawn(now, origin));
    }

    fn limit(&self) -> Option<u32> {
        self.gate.limit()
    }

    fn in_flight(&self) -> u32 {
        self.gate.in_flight()
    }

    fn queued(&self) -> u32 {
        self.gate.queued()
    }
}
