//! Controlled delay: a queue judged by the time since it was last empty, newest first while overloaded.
//!
//! After Facebook ("Fail at Scale", ACM Queue 2015): a call can wait for 100 ms if the queue was empty within the last
//! 100 ms, else for 5 ms, and then the newest goes first. Behind the queue is a fixed number of workers.

use std::collections::VecDeque;

use super::REJECTION;
use crate::gate::{AttemptId, GateArrival, GateDecision, SimulatedGate, UpstreamCompletion, WaiterDecision};
use weir_base::Nanos;

const OVERLOADED_WAIT_TIMEOUT: Nanos = Nanos::from_millis(5);
const NORMAL_WAIT_TIMEOUT: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
pub(crate) struct Codel {
    workers: u32,
    in_flight: u32,
    queue: VecDeque<(AttemptId, Nanos)>,
    last_empty_at: Nanos,
}

impl Codel {
    pub(crate) fn new(workers: u32) -> Self {
        Self { workers, in_flight: 0, queue: VecDeque::new(), last_empty_at: Nanos::ZERO }
    }

    fn is_overloaded(&self, now: Nanos) -> bool {
        now - self.last_empty_at > NORMAL_WAIT_TIMEOUT
    }

    fn remove(&mut self, now: Nanos, id: AttemptId) {
        self.queue.retain(|(waiting, _)| *waiting != id);
        if self.queue.is_empty() {
            self.last_empty_at = now;
        }
    }
}

impl SimulatedGate for Codel {
    fn arrive(&mut self, now: Nanos, arrival: GateArrival<'_>, _: &mut Vec<WaiterDecision>) -> GateDecision {
        if self.queue.is_empty() {
            self.last_empty_at = now;
            if self.in_flight < self.workers {
                self.in_flight += 1;
                return GateDecision::Run;
            }
        }
        let until = now + if self.is_overloaded(now) { OVERLOADED_WAIT_TIMEOUT } else { NORMAL_WAIT_TIMEOUT };
        self.queue.push_back((arrival.id, until));
        GateDecision::Wait(until)
    }

    fn completed(&mut self, now: Nanos, _: &UpstreamCompletion, decisions: &mut Vec<WaiterDecision>) {
        self.in_flight -= 1;
        while self.in_flight < self.workers {
            let next = if self.is_overloaded(now) { self.queue.back() } else { self.queue.front() };
            let Some((id, until)) = next.copied() else { return };
            self.remove(now, id);
            if until <= now {
                decisions.push(WaiterDecision::Reject(id, REJECTION));
            } else {
                self.in_flight += 1;
                decisions.push(WaiterDecision::Run(id));
            }
        }
    }

    fn recheck(&mut self, now: Nanos, id: AttemptId, decisions: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        self.remove(now, id);
        decisions.push(WaiterDecision::Reject(id, REJECTION));
        None
    }

    fn withdraw(&mut self, _: Nanos, id: AttemptId) {
        self.queue.retain(|(waiting, _)| *waiting != id);
    }

    fn limit(&self) -> Option<u32> {
        Some(self.workers)
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn queued(&self) -> u32 {
        self.queue.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::SimulatedOutcome;
    use weir_resilience::admission::{CallArrival, Priority};
    use weir_resilience::culprits::CallOrigin;

    const CALL: CallArrival =
        CallArrival { deadline: Nanos::NEVER, priority: Priority::Normal, spread: 0, connection: None };

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn arrive(codel: &mut Codel, at: u64, id: AttemptId) -> GateDecision {
        codel.arrive(ms(at), GateArrival { id, call: &CALL, origin: CallOrigin::default() }, &mut Vec::new())
    }

    fn next(codel: &mut Codel, at: u64) -> Vec<WaiterDecision> {
        let mut decisions = Vec::new();
        codel.completed(
            ms(at),
            &UpstreamCompletion {
                start: Nanos::ZERO,
                in_flight_at_start: 1,
                lag: Nanos::ZERO,
                outcome: SimulatedOutcome::Responded,
            },
            &mut decisions,
        );
        decisions
    }

    #[test]
    fn after_a_recently_empty_queue_waits_are_long_and_the_oldest_is_next() {
        let mut codel = Codel::new(1);
        assert_eq!(arrive(&mut codel, 1000, 0), GateDecision::Run);
        assert_eq!(arrive(&mut codel, 1000, 1), GateDecision::Wait(ms(1100)));
        assert_eq!(arrive(&mut codel, 1050, 2), GateDecision::Wait(ms(1150)));
        assert_eq!(next(&mut codel, 1060), [WaiterDecision::Run(1)]);
    }

    #[test]
    fn under_overload_waits_are_5_ms_and_the_newest_is_next() {
        let mut codel = Codel::new(1);
        for (at, id) in [(1000, 0), (1000, 1), (1090, 2)] {
            arrive(&mut codel, at, id);
        }
        let mut decisions = Vec::new();
        assert_eq!(codel.recheck(ms(1100), 1, &mut decisions), None);
        assert_eq!(arrive(&mut codel, 1101, 3), GateDecision::Wait(ms(1106)));
        assert_eq!(next(&mut codel, 1102), [WaiterDecision::Run(3)]);
        assert_eq!(next(&mut codel, 1103), [WaiterDecision::Run(2)]);
        assert_eq!((codel.in_flight(), codel.queued()), (1, 0));
    }
}
