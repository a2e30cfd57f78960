//! Many gates and one table in virtual time: messages are delayed or lost, gates stall, crash, leave and come; callers
//! send to them.

use super::table::SplitTable;
use super::*;
use crate::decide::callers::{CallerLimiter, CallerRule};
use crate::decide::dice::Dice;

pub(super) const LEASE: Nanos = Nanos::from_millis(2000);
pub(super) const TICK: Nanos = Nanos::from_millis(1);
pub(super) const LIMIT_ID: u64 = 7;
/// Rate of each caller, of all gates together.
pub(super) const CALLER_RULE: CallerRule = CallerRule { limit: 200, per: Nanos::SECOND, burst: 50, entries: 1024 };

pub(super) fn allocation(key: u64) -> AllocationKey {
    AllocationKey { limit: LIMIT_ID, key }
}

/// A gate, and its messages in transit.
pub(super) struct GateSimulation {
    pub(super) name: String,
    pub(super) allocations: Allocations,
    pub(super) callers: CallerLimiter,
    /// Requests in transit to the table, and their arrivals.
    pub(super) requests: Vec<(Nanos, SplitRequest)>,
    pub(super) reply: Option<(Nanos, SplitRequest, SplitReply)>,
    /// Timeout of the request without a reply.
    pub(super) gives_up_at: Nanos,
    /// End of a stall.
    pub(super) stalled_until: Nanos,
    pub(super) is_stopped: bool,
    /// Calls per second from each caller, and those due now.
    pub(super) demand: Vec<f64>,
    pub(super) due: Vec<f64>,
}

pub(super) struct SplitSimulation {
    pub(super) now: Nanos,
    pub(super) table: SplitTable,
    /// Number of the server's run, which changes when it restarts empty.
    pub(super) server_run: u32,
    pub(super) gates: Vec<GateSimulation>,
    pub(super) callers: usize,
    pub(super) rng: Dice,
    /// Percentage of lost messages, and the longest delay.
    pub(super) loss_percent: u64,
    pub(super) max_delay: Nanos,
    /// Accepted calls: time, caller and gate.
    pub(super) accepted: Vec<(Nanos, usize, usize)>,
}

impl SplitSimulation {
    pub(super) fn new(gates: usize, callers: usize, seed: u64) -> Self {
        let mut simulation = Self {
            now: Nanos::ZERO,
            table: SplitTable::default(),
            server_run: 1,
            gates: Vec::new(),
            callers,
            rng: Dice::new(seed, 0),
            loss_percent: 0,
            max_delay: Nanos::from_millis(5),
            accepted: Vec::new(),
        };
        (0..gates).for_each(|_| simulation.add_gate());
        simulation
    }

    pub(super) fn add_gate(&mut self) {
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

    pub(super) fn delivery_time(&mut self) -> Option<Nanos> {
        let lost = self.rng.bits() % 100 < self.loss_percent;
        let takes = Nanos(self.rng.bits() % self.max_delay.0.max(1));
        (!lost).then_some(self.now + takes)
    }

    /// Advances by a millisecond.
    pub(super) fn step(&mut self) {
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

    pub(super) fn run_gate(&mut self, number: usize) {
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
    pub(super) fn live_gates(&self) -> impl Iterator<Item = &GateSimulation> {
        self.gates.iter().filter(|gate| gate.allocations.is_live(self.now))
    }

    pub(super) fn check(&self) {
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

    pub(super) fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
            self.check();
        }
    }

    pub(super) fn running_gates(&self) -> Vec<&GateSimulation> {
        self.gates.iter().filter(|gate| !gate.is_stopped).collect()
    }

    /// Asserts that all gates have an even fraction, and nothing but the remainder is unused.
    pub(super) fn check_even(&self) {
        let alive = self.running_gates();
        for gate in &alive {
            assert!(gate.allocations.is_live(self.now), "{} at {:?}", gate.name, self.now);
            assert_eq!(gate.allocations.gates() as usize, alive.len(), "{}", gate.name);
            assert_eq!(gate.allocations.default_fraction(), Fraction::even(alive.len() as u32), "{}", gate.name);
        }
    }

    /// Number of a caller's calls accepted since then by all gates.
    pub(super) fn accepted_of(&self, caller: usize, since: Nanos) -> usize {
        self.accepted.iter().filter(|(at, of, _)| *at > since && *of == caller).count()
    }
}
