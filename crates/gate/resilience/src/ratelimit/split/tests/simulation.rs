//! Many gates and one table in virtual time: messages are delayed or lost, gates stall, crash, leave and come; callers
//! send to them.

use super::model::SplitTable;
use crate::ratelimit::per_caller::{CallerLimiter, CallerRule};
use crate::ratelimit::split::*;
use weir_base::rng::SeededRng;

pub(crate) const LEASE: Nanos = Nanos::from_millis(2000);
pub(crate) const TICK: Nanos = Nanos::from_millis(1);
pub(crate) const LIMIT_ID: u64 = 7;
/// Rate of each caller, of all gates together.
pub(crate) const CALLER_RULE: CallerRule = CallerRule { limit: 200, per: Nanos::SECOND, burst: 50, entries: 1024 };

pub(crate) fn allocation(key: u64) -> AllocationKey {
    AllocationKey { limit: LIMIT_ID, key }
}

/// A gate, and its messages in transit.
pub(crate) struct GateSimulation {
    pub(crate) name: String,
    pub(crate) allocations: Allocations,
    pub(crate) callers: CallerLimiter,
    /// Requests in transit to the table, and their arrivals.
    pub(crate) requests: Vec<(Nanos, SplitRequest)>,
    pub(crate) reply: Option<(Nanos, SplitRequest, SplitReply)>,
    /// Timeout of the request without a reply.
    pub(crate) gives_up_at: Nanos,
    /// End of a stall.
    pub(crate) stalled_until: Nanos,
    pub(crate) is_stopped: bool,
    /// Calls per second from each caller, and those due now.
    pub(crate) demand: Vec<f64>,
    pub(crate) due: Vec<f64>,
}

pub(crate) struct SplitSimulation {
    pub(crate) now: Nanos,
    pub(crate) table: SplitTable,
    /// Number of the server's run, which changes when it restarts empty.
    pub(crate) server_run: u32,
    pub(crate) gates: Vec<GateSimulation>,
    pub(crate) callers: usize,
    pub(crate) rng: SeededRng,
    /// Percentage of lost messages, and the longest delay.
    pub(crate) loss_percent: u64,
    pub(crate) max_delay: Nanos,
    /// Accepted calls: time, caller and gate.
    pub(crate) accepted: Vec<(Nanos, usize, usize)>,
}

impl SplitSimulation {
    pub(crate) fn new(gates: usize, callers: usize, seed: u64) -> Self {
        let mut simulation = Self {
            now: Nanos::ZERO,
            table: SplitTable::default(),
            server_run: 1,
            gates: Vec::new(),
            callers,
            rng: SeededRng::new(seed, 0),
            loss_percent: 0,
            max_delay: Nanos::from_millis(5),
            accepted: Vec::new(),
        };
        (0..gates).for_each(|_| simulation.add_gate());
        simulation
    }

    pub(crate) fn add_gate(&mut self) {
        let salt = self.rng.bits();
        self.gates.push(GateSimulation {
            name: format!("g{}", self.gates.len()),
            allocations: Allocations::new(LEASE, Fraction::NONE),
            callers: CallerLimiter::shared(CALLER_RULE, salt),
            requests: Vec::new(),
            reply: None,
            gives_up_at: Nanos::NEVER,
            stalled_until: self.now,
            is_stopped: false,
            demand: vec![0.0; self.callers],
            due: vec![0.0; self.callers],
        });
    }

    pub(crate) fn delivery_time(&mut self) -> Option<Nanos> {
        let lost = self.rng.bits() % 100 < self.loss_percent;
        let takes = Nanos(self.rng.bits() % self.max_delay.0.max(1));
        (!lost).then_some(self.now + takes)
    }

    /// Advances by a millisecond.
    pub(crate) fn step(&mut self) {
        self.now += TICK;
        for number in 0..self.gates.len() {
            // Requests reach the table in any order, even if their gate has stopped.
            let sent = std::mem::take(&mut self.gates[number].requests);
            let (arrived, in_transit): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(at, _)| *at <= self.now);
            self.gates[number].requests = in_transit;
            for (_, request) in arrived {
                let name = self.gates[number].name.clone();
                let reply = self.table.renew(self.now, self.server_run, &name, LEASE, &request);
                let delivery = self.delivery_time();
                let gate = &mut self.gates[number];
                // A reply after the timeout is lost.
                if gate.allocations.last_request == request.number && gate.gives_up_at < Nanos::NEVER {
                    gate.reply = reply.zip(delivery).map(|(reply, at)| (at, request, reply));
                }
            }
            if !self.gates[number].is_stopped && self.now >= self.gates[number].stalled_until {
                self.run_gate(number);
            }
        }
    }

    pub(crate) fn run_gate(&mut self, number: usize) {
        let now = self.now;
        let gate = &mut self.gates[number];
        if let Some((at, request, reply)) = gate.reply.clone()
            && at <= now
        {
            (gate.reply, gate.gives_up_at) = (None, Nanos::NEVER);
            gate.allocations.on_reply(now, &request, &reply);
            gate.callers.set_fractions(
                now,
                gate.allocations.default_fraction(),
                gate.allocations.own_of_limit(LIMIT_ID),
            );
        } else if gate.gives_up_at <= now {
            (gate.reply, gate.gives_up_at) = (None, Nanos::NEVER);
            gate.allocations.request_failed(now);
        }
        for caller in 0..self.callers {
            gate.due[caller] += gate.demand[caller] / 1000.0;
            while gate.due[caller] >= 1.0 {
                gate.due[caller] -= 1.0;
                if gate.callers.allows(now, caller as u64, 1).is_ok() {
                    self.accepted.push((now, caller, number));
                }
            }
        }
        let callers = &mut gate.callers;
        let wanted = || callers.demand(now).into_iter().map(|(key, demand)| (allocation(key), demand)).collect();
        if let Some(request) = gate.allocations.next_request(now, wanted) {
            let delivery = self.delivery_time();
            let gate = &mut self.gates[number];
            gate.gives_up_at = now + Nanos::from_millis(600);
            gate.requests.extend(delivery.map(|at| (at, request)));
        }
    }

    /// Gates whose fractions are exclusively their own.
    pub(crate) fn live_gates(&self) -> impl Iterator<Item = &GateSimulation> {
        self.gates.iter().filter(|gate| gate.allocations.is_live(self.now))
    }

    pub(crate) fn check(&self) {
        let sum = |of: &dyn Fn(&Allocations) -> Fraction| {
            self.live_gates().map(|gate| of(&gate.allocations).parts()).sum::<u32>()
        };
        assert!(
            sum(&Allocations::default_fraction) <= 65_536,
            "defaults at {:?}: {}",
            self.now,
            sum(&Allocations::default_fraction)
        );
        for key in 0..self.callers as u64 {
            let sum = sum(&|allocations: &Allocations| allocations.fraction_of(allocation(key)));
            assert!(sum <= 65_536, "of {key} at {:?}: {sum}", self.now);
        }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
            self.check();
        }
    }

    pub(crate) fn running_gates(&self) -> Vec<&GateSimulation> {
        self.gates.iter().filter(|gate| !gate.is_stopped).collect()
    }

    /// Asserts that all gates have an even fraction, and nothing but the remainder is unused.
    pub(crate) fn check_even(&self) {
        let alive = self.running_gates();
        for gate in &alive {
            assert!(gate.allocations.is_live(self.now), "{} at {:?}", gate.name, self.now);
            assert_eq!(gate.allocations.gates() as usize, alive.len(), "{}", gate.name);
            assert_eq!(gate.allocations.default_fraction(), Fraction::even(alive.len() as u32), "{}", gate.name);
        }
    }

    /// Number of a caller's calls accepted since then by all gates.
    pub(crate) fn accepted_of(&self, caller: usize, since: Nanos) -> usize {
        self.accepted.iter().filter(|(at, of, _)| *at > since && *of == caller).count()
    }
}
