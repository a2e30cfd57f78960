//! Many gates, one table, in virtual time: messages take any time or are lost, gates stand still, die, leave and come; and
//! callers send to them.

use proptest::prelude::*;

use super::table::SplitTable;
use super::*;
use crate::decide::callers::{CallerLimiter, CallerRule};
use crate::decide::dice::Dice;

const LEASE: Nanos = Nanos::from_millis(2000);
const TICK: Nanos = Nanos::from_millis(1);
const LIMIT_ID: u64 = 7;
/// What each caller may send, to all gates together.
const CALLER_RULE: CallerRule = CallerRule { limit: 200, per: Nanos::SECOND, burst: 50, entries: 1024 };

fn allocation(key: u64) -> AllocationKey {
    AllocationKey { limit: LIMIT_ID, key }
}

/// One gate, and what is on its way between it and the table.
struct GateSimulation {
    name: String,
    allocations: Allocations,
    callers: CallerLimiter,
    /// An ask that has not come to the table yet, and when it does.
    requests: Vec<(Nanos, SplitRequest)>,
    reply: Option<(Nanos, SplitRequest, SplitReply)>,
    /// Nobody answers: when it gives up.
    gives_up_at: Nanos,
    /// It does nothing before.
    stalled_until: Nanos,
    is_stopped: bool,
    /// What each caller sends it per second, and what of it is due.
    demand: Vec<f64>,
    due: Vec<f64>,
}

struct SplitSimulation {
    now: Nanos,
    table: SplitTable,
    /// Changes when the server begins anew, with nothing of what it knew.
    server_run: u32,
    gates: Vec<GateSimulation>,
    callers: usize,
    dice: Dice,
    /// Of 100 messages so many are lost, and they take up to so long.
    loss_percent: u64,
    max_delay: Nanos,
    /// When what was accepted, of whom, by which gate.
    accepted: Vec<(Nanos, usize, usize)>,
}

impl SplitSimulation {
    fn new(gates: usize, callers: usize, seed: u64) -> Self {
        let mut world = Self {
            now: Nanos::ZERO,
            table: SplitTable::default(),
            server_run: 1,
            gates: Vec::new(),
            callers,
            dice: Dice::new(seed, 0),
            loss_percent: 0,
            max_delay: Nanos::from_millis(5),
            accepted: Vec::new(),
        };
        (0..gates).for_each(|_| world.add_gate());
        world
    }

    fn add_gate(&mut self) {
        let salt = self.dice.bits();
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

    fn delivery_time(&mut self) -> Option<Nanos> {
        let lost = self.dice.bits() % 100 < self.loss_percent;
        let takes = Nanos(self.dice.bits() % self.max_delay.0.max(1));
        (!lost).then_some(self.now + takes)
    }

    /// A millisecond goes by.
    fn step(&mut self) {
        self.now += TICK;
        for number in 0..self.gates.len() {
            // What has been sent comes to the table, whatever has become of who sent it, and in whatever order.
            let asked = std::mem::take(&mut self.gates[number].requests);
            let (come, not_yet): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(at, _)| *at <= self.now);
            self.gates[number].requests = not_yet;
            for (_, ask) in come {
                let name = self.gates[number].name.clone();
                let said = self.table.renew(self.now, self.server_run, &name, LEASE, &ask);
                let way = self.delivery_time();
                let gate = &mut self.gates[number];
                // An answer to a question that was given up is not heard.
                if gate.allocations.last_request == ask.number && gate.gives_up_at < Nanos::NEVER {
                    gate.reply = said.zip(way).map(|(said, at)| (at, ask, said));
                }
            }
            if !self.gates[number].is_stopped && self.now >= self.gates[number].stalled_until {
                self.run_gate(number);
            }
        }
    }

    fn run_gate(&mut self, number: usize) {
        let now = self.now;
        let gate = &mut self.gates[number];
        if let Some((at, ask, said)) = gate.reply.clone()
            && at <= now
        {
            (gate.reply, gate.gives_up_at) = (None, Nanos::NEVER);
            gate.allocations.on_reply(now, &ask, &said);
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
        let wanted = || callers.demand(now).into_iter().map(|(key, wants)| (allocation(key), wants)).collect();
        if let Some(ask) = gate.allocations.next_request(now, wanted) {
            let way = self.delivery_time();
            let gate = &mut self.gates[number];
            gate.gives_up_at = now + Nanos::from_millis(600);
            gate.requests.extend(way.map(|at| (at, ask)));
        }
    }

    /// Whose portions are nobody else's.
    fn live_gates(&self) -> impl Iterator<Item = &GateSimulation> {
        self.gates.iter().filter(|gate| gate.allocations.is_live(self.now))
    }

    fn check(&self) {
        let sum = |of: &dyn Fn(&Allocations) -> Fraction| {
            self.live_gates().map(|gate| of(&gate.allocations).parts()).sum::<u32>()
        };
        assert!(
            sum(&Allocations::default_fraction) <= 65_536,
            "usual ones at {:?}: {}",
            self.now,
            sum(&Allocations::default_fraction)
        );
        for key in 0..self.callers as u64 {
            let sum = sum(&|portions: &Allocations| portions.fraction_of(allocation(key)));
            assert!(sum <= 65_536, "of {key} at {:?}: {sum}", self.now);
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
            self.check();
        }
    }

    fn running_gates(&self) -> Vec<&GateSimulation> {
        self.gates.iter().filter(|gate| !gate.is_stopped).collect()
    }

    /// All gates have their even share, and nothing is wasted but what cannot be divided.
    fn check_even(&self) {
        let alive = self.running_gates();
        for gate in &alive {
            assert!(gate.allocations.is_live(self.now), "{} at {:?}", gate.name, self.now);
            assert_eq!(gate.allocations.gates() as usize, alive.len(), "{}", gate.name);
            assert_eq!(gate.allocations.default_fraction(), Fraction::even(alive.len() as u32), "{}", gate.name);
        }
    }

    /// How many calls of a caller were accepted since then, of all gates.
    fn accepted_of(&self, caller: usize, since: Nanos) -> usize {
        self.accepted.iter().filter(|(at, of, _)| *at > since && *of == caller).count()
    }
}

#[test]
fn gates_come_and_go_and_each_has_an_even_share_within_a_lease() {
    let mut world = SplitSimulation::new(1, 1, 1);
    world.run(LEASE.0 / 1_000_000 + 700);
    world.check_even();
    world.add_gate();
    world.add_gate();
    world.run(LEASE.0 / 1_000_000);
    world.check_even();
    world.gates[0].is_stopped = true;
    // Its lease, and one more question of the others.
    world.run(LEASE.0 / 1_000_000 * 4 / 3 + 50);
    world.check_even();
    let ask = world.gates[1].allocations.leave_request();
    world.gates[1].is_stopped = true;
    let now = world.now;
    assert!(world.table.renew(now, 1, "g1", LEASE, &ask).is_some());
    world.run(LEASE.0 / 3_000_000 + 50);
    world.check_even();
}

#[test]
fn a_caller_that_comes_in_at_one_gate_has_the_rate_of_all() {
    let mut world = SplitSimulation::new(4, 2, 3);
    world.run(5000);
    world.gates[2].demand[0] = 190.0;
    world.gates[1].demand[1] = 2000.0;
    world.run(4 * LEASE.0 / 1_000_000);
    let since = world.now;
    world.run(10_000);
    let (below, above) = (world.accepted_of(0, since), world.accepted_of(1, since));
    assert!(below >= 1880, "who is below its rate has all of it accepted: {below} of 1900");
    assert!((1900..=2060).contains(&above), "{above} of the 2000 that the rate has");
}

#[test]
fn where_more_comes_in_more_is_accepted_and_the_same_part_everywhere() {
    let mut world = SplitSimulation::new(3, 1, 5);
    world.run(5000);
    for (gate, demand) in [300.0, 100.0, 50.0].into_iter().enumerate() {
        world.gates[gate].demand[0] = demand;
    }
    world.run(4 * LEASE.0 / 1_000_000);
    let since = world.now;
    world.run(20_000);
    let of = |gate: usize| world.accepted.iter().filter(|(at, _, by)| *at > since && *by == gate).count() as f64;
    for (gate, demand) in [(0, 300.0), (1, 100.0), (2, 50.0)] {
        let part = of(gate) / (demand * 20.0);
        assert!((part / (200.0 / 450.0) - 1.0).abs() < 0.1, "gate {gate}: {part}");
    }
    // And when it is over, nothing is said of it any more.
    world.gates.iter_mut().for_each(|gate| gate.demand[0] = 1.0);
    world.run(30_000);
    assert!(world.gates.iter().all(|gate| gate.allocations.own_allocations() == 0));
}

#[test]
fn while_the_table_is_away_all_go_on_with_what_they_have_and_are_live_again_after_it() {
    let mut world = SplitSimulation::new(3, 1, 9);
    world.run(5000);
    let before: Vec<Fraction> = world.gates.iter().map(|gate| gate.allocations.default_fraction()).collect();
    world.loss_percent = 100;
    world.run(20_000);
    let meanwhile: Vec<Fraction> = world.gates.iter().map(|gate| gate.allocations.default_fraction()).collect();
    assert_eq!((before, world.live_gates().count()), (meanwhile, 0));
    // It has forgotten everything.
    (world.table, world.server_run, world.loss_percent) = (SplitTable::default(), 2, 0);
    for _ in 0..LEASE.0 / 1_000_000 * 2 {
        world.step();
        world.check();
        let sum: u32 = world.gates.iter().map(|gate| gate.allocations.default_fraction().parts()).sum();
        assert!(sum <= 65_536, "nobody has more than it had while others have it still: {sum}");
    }
    world.check_even();
}

#[test]
fn a_gate_without_a_table_begins_with_what_it_is_told_to() {
    let mut portions = Allocations::new(LEASE, Fraction::even(4));
    assert_eq!((portions.default_fraction(), portions.has_even_share()), (Fraction::NONE, false));
    let ask = portions.next_request(Nanos::ZERO, Vec::new).unwrap();
    assert_eq!(portions.next_request(Nanos::SECOND, Vec::new), None, "one at a time");
    portions.request_failed(Nanos::SECOND);
    assert_eq!(
        (portions.default_fraction(), ask.number, portions.is_live(Nanos::SECOND)),
        (Fraction::even(4), 1, false)
    );
    assert_eq!(portions.wake_at(), Nanos::SECOND + Nanos(LEASE.0 / 8));
}

#[test]
fn a_question_that_comes_late_is_not_heard() {
    let mut table = SplitTable::new_settled(1);
    let ask = |number, parts| SplitRequest {
        number,
        default_fraction: Fraction::from_parts(parts),
        ..SplitRequest::default()
    };
    let mut renew = |gate: &str, ask: &SplitRequest| table.renew(Nanos::SECOND, 1, gate, LEASE, ask);
    assert_eq!(renew("a", &ask(1, 0)).unwrap().default_fraction, Fraction::WHOLE);
    assert_eq!(renew("b", &ask(1, 0)).unwrap().default_fraction, Fraction::NONE);
    assert_eq!(renew("a", &ask(3, 65_536)).unwrap().default_fraction, Fraction::even(2));
    // That it has given it up is not known yet, and an older one of the first does not say so.
    assert_eq!(renew("a", &ask(2, 0)), None);
    assert_eq!(renew("b", &ask(2, 0)).unwrap().default_fraction, Fraction::NONE);
    assert_eq!(renew("a", &ask(4, 32_768)).unwrap().default_fraction, Fraction::even(2));
    assert_eq!(renew("b", &ask(3, 0)).unwrap().default_fraction, Fraction::even(2));
}

#[test]
fn more_claims_than_one_answer_has_room_for_are_told_in_several_before_anything_else_changes() {
    let mut world = SplitSimulation::new(2, 200, 2);
    (0..5000).for_each(|_| world.step());
    world.gates[0].demand.fill(150.0);
    (0..8000).for_each(|_| world.step());
    assert_eq!(world.gates[0].allocations.own_allocations(), 200);
    world.add_gate();
    let mut ms = 0;
    while world.gates[2].allocations.default_fraction() == Fraction::NONE {
        world.run(1);
        ms += 1;
    }
    assert_eq!(
        world.gates[2].allocations.own_allocations(),
        200,
        "before it has anything it knows of all that it has not"
    );
    assert!(ms < LEASE.0 / 1_000_000, "after {ms} ms");
}

#[test]
fn whoever_is_live_says_all_of_many_claims_to_a_server_that_has_forgotten_them() {
    let mut world = SplitSimulation::new(3, 200, 4);
    (0..3000).for_each(|_| world.step());
    // Some come in at the one gate, the others at another.
    for (caller, number) in (0..200).map(|caller| (caller, caller % 2)) {
        world.gates[number].demand[caller] = 150.0;
    }
    (0..8000).for_each(|_| world.step());
    world.check();
    assert!(world.gates.iter().all(|gate| gate.allocations.own_allocations() == 200));
    (world.table, world.server_run, world.loss_percent) = (SplitTable::default(), 2, 40);
    for _ in 0..LEASE.0 / 1_000_000 {
        world.run(1);
    }
    world.loss_percent = 0;
    world.run(LEASE.0 / 1_000_000 * 2);
    world.check_even();
    assert!(world.gates.iter().all(|gate| gate.allocations.own_allocations() == 200));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_more_than_the_whole_is_used_and_in_quiet_times_all_of_it_where_it_is_wanted(
        gates in 1..6_usize,
        callers in 1..4_usize,
        seed in any::<u64>(),
        demands in prop::collection::vec((0..6_usize, 0..4_usize, 0..600_u32), 0..8),
        troubles in prop::collection::vec((0..6_usize, 0..8_u8, 1..5000_u64), 0..10),
    ) {
        let mut world = SplitSimulation::new(gates, callers, seed);
        let mut demands = demands.into_iter().cycle();
        let mut demand = |world: &mut SplitSimulation| {
            if let Some((gate, caller, rate)) = demands.next() {
                let gate = gate % world.gates.len();
                world.gates[gate].demand[caller % callers] = f64::from(rate);
            }
        };
        for (gate, what, ms) in troubles {
            demand(&mut world);
            let gate = gate % world.gates.len();
            match what {
                0 => world.loss_percent = 40,
                1 => world.loss_percent = 100,
                2 => world.max_delay = Nanos::from_millis(900),
                3 => world.gates[gate].stalled_until = world.now + Nanos::from_millis(ms),
                4 => world.gates[gate].is_stopped = gate > 0,
                5 if world.gates.len() < 8 => world.add_gate(),
                6 => (world.table, world.server_run) = (SplitTable::default(), world.server_run + 1),
                _ => {}
            }
            world.run(ms);
            (world.loss_percent, world.max_delay) = (0, Nanos::from_millis(5));
        }
        // The longest stand-still, and three leases.
        world.run(5000 + 3 * LEASE.0 / 1_000_000);
        world.check_even();
        // Then nothing comes or goes, and no caller has more than its burst, its rate, and a call per gate.
        let (since, gates) = (world.now, world.running_gates().len());
        world.run(8000);
        for caller in 0..callers {
            let demand: f64 = world.running_gates().iter().map(|gate| gate.demand[caller]).sum();
            let accepted = world.accepted_of(caller, since);
            let most = CALLER_RULE.burst as usize + gates + 8 * 200;
            prop_assert!(accepted <= most, "{accepted} of {most}");
            let least = (demand.min(200.0) * 8.0 * 0.9) as usize;
            prop_assert!(accepted + 5 >= least, "{accepted}, and {least} at least; {demand} come in");
        }
    }
}
