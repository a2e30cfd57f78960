//! The allocations of simulated gates: sums, speed and failures.

pub(crate) mod model;
pub(crate) mod simulation;

use proptest::prelude::*;

use self::model::SplitTable;
use self::simulation::{CALLER_RULE, LEASE, SplitSimulation};
use super::*;

#[test]
fn gates_come_and_go_and_each_has_an_even_fraction_within_a_lease() {
    let mut simulation = SplitSimulation::new(1, 1, 1);
    simulation.run(LEASE.0 / 1_000_000 + 700);
    simulation.check_even();
    simulation.add_gate();
    simulation.add_gate();
    simulation.run(LEASE.0 / 1_000_000);
    simulation.check_even();
    simulation.gates[0].is_stopped = true;
    // Its lease, and one more request of the others.
    simulation.run(LEASE.0 / 1_000_000 * 4 / 3 + 50);
    simulation.check_even();
    let request = simulation.gates[1].allocations.leave_request();
    simulation.gates[1].is_stopped = true;
    let now = simulation.now;
    assert!(simulation.table.renew(now, 1, "g1", LEASE, &request).is_some());
    simulation.run(LEASE.0 / 3_000_000 + 50);
    simulation.check_even();
}

#[test]
fn a_caller_of_one_gate_has_the_rate_of_all_gates() {
    let mut simulation = SplitSimulation::new(4, 2, 3);
    simulation.run(5000);
    simulation.gates[2].demand[0] = 190.0;
    simulation.gates[1].demand[1] = 2000.0;
    simulation.run(4 * LEASE.0 / 1_000_000);
    let since = simulation.now;
    simulation.run(10_000);
    let (below, above) = (simulation.accepted_of(0, since), simulation.accepted_of(1, since));
    assert!(below >= 1880, "a caller below its rate is not limited: {below} of 1900");
    assert!((1900..=2060).contains(&above), "{above} of the 2000 that the rate has");
}

#[test]
fn each_gate_accepts_the_same_fraction_of_a_callers_calls() {
    let mut simulation = SplitSimulation::new(3, 1, 5);
    simulation.run(5000);
    for (gate, demand) in [300.0, 100.0, 50.0].into_iter().enumerate() {
        simulation.gates[gate].demand[0] = demand;
    }
    simulation.run(4 * LEASE.0 / 1_000_000);
    let since = simulation.now;
    simulation.run(20_000);
    let of = |gate: usize| simulation.accepted.iter().filter(|(at, _, by)| *at > since && *by == gate).count() as f64;
    for (gate, demand) in [(0, 300.0), (1, 100.0), (2, 50.0)] {
        let part = of(gate) / (demand * 20.0);
        assert!((part / (200.0 / 450.0) - 1.0).abs() < 0.1, "gate {gate}: {part}");
    }
    // Without the demand the own allocation ends.
    simulation.gates.iter_mut().for_each(|gate| gate.demand[0] = 1.0);
    simulation.run(30_000);
    assert!(simulation.gates.iter().all(|gate| gate.allocations.own_allocations() == 0));
}

#[test]
fn while_the_table_is_unreachable_gates_keep_their_fractions_and_are_live_again_after_it() {
    let mut simulation = SplitSimulation::new(3, 1, 9);
    simulation.run(5000);
    let before: Vec<Fraction> = simulation.gates.iter().map(|gate| gate.allocations.default_fraction()).collect();
    simulation.loss_percent = 100;
    simulation.run(20_000);
    let meanwhile: Vec<Fraction> = simulation.gates.iter().map(|gate| gate.allocations.default_fraction()).collect();
    assert_eq!((before, simulation.live_gates().count()), (meanwhile, 0));
    // The server has lost everything.
    (simulation.table, simulation.server_run, simulation.loss_percent) = (SplitTable::default(), 2, 0);
    for _ in 0..LEASE.0 / 1_000_000 * 2 {
        simulation.step();
        simulation.check();
        let sum: u32 = simulation.gates.iter().map(|gate| gate.allocations.default_fraction().parts()).sum();
        assert!(sum <= 65_536, "no gate gets more before the others have reported: {sum}");
    }
    simulation.check_even();
}

#[test]
fn a_gate_without_a_table_starts_with_the_fallback() {
    let mut allocations = Allocations::new(LEASE, Fraction::even(4));
    assert_eq!((allocations.default_fraction(), allocations.has_even_share()), (Fraction::NONE, false));
    let request = allocations.next_request(Nanos::ZERO, Vec::new).unwrap();
    assert_eq!(allocations.next_request(Nanos::SECOND, Vec::new), None, "one at a time");
    allocations.request_failed(Nanos::SECOND);
    assert_eq!(
        (allocations.default_fraction(), request.number, allocations.is_live(Nanos::SECOND)),
        (Fraction::even(4), 1, false)
    );
    assert_eq!(allocations.wake_at(), Nanos::SECOND + Nanos(LEASE.0 / 8));
}

#[test]
fn a_late_request_is_ignored() {
    let mut table = SplitTable::new_settled(1);
    let request = |number, parts| SplitRequest {
        number,
        default_fraction: Fraction::from_parts(parts),
        ..SplitRequest::default()
    };
    let mut renew = |gate: &str, request: &SplitRequest| table.renew(Nanos::SECOND, 1, gate, LEASE, request);
    assert_eq!(renew("a", &request(1, 0)).unwrap().default_fraction, Fraction::WHOLE);
    assert_eq!(renew("b", &request(1, 0)).unwrap().default_fraction, Fraction::NONE);
    assert_eq!(renew("a", &request(3, 65_536)).unwrap().default_fraction, Fraction::even(2));
    // The reduction is not confirmed yet, and an older request of the first gate does not confirm it.
    assert_eq!(renew("a", &request(2, 0)), None);
    assert_eq!(renew("b", &request(2, 0)).unwrap().default_fraction, Fraction::NONE);
    assert_eq!(renew("a", &request(4, 32_768)).unwrap().default_fraction, Fraction::even(2));
    assert_eq!(renew("b", &request(3, 0)).unwrap().default_fraction, Fraction::even(2));
}

#[test]
fn more_own_allocations_than_a_reply_holds_come_in_several_before_the_default_changes() {
    let mut simulation = SplitSimulation::new(2, 200, 2);
    (0..5000).for_each(|_| simulation.step());
    simulation.gates[0].demand.fill(150.0);
    (0..8000).for_each(|_| simulation.step());
    assert_eq!(simulation.gates[0].allocations.own_allocations(), 200);
    simulation.add_gate();
    let mut ms = 0;
    while simulation.gates[2].allocations.default_fraction() == Fraction::NONE {
        simulation.run(1);
        ms += 1;
    }
    assert_eq!(
        simulation.gates[2].allocations.own_allocations(),
        200,
        "the new gate has all own allocations before its default"
    );
    assert!(ms < LEASE.0 / 1_000_000, "after {ms} ms");
}

#[test]
fn live_gates_report_all_of_many_own_allocations_to_a_server_that_has_lost_them() {
    let mut simulation = SplitSimulation::new(3, 200, 4);
    (0..3000).for_each(|_| simulation.step());
    // Some callers use one gate, the others another.
    for (caller, number) in (0..200).map(|caller| (caller, caller % 2)) {
        simulation.gates[number].demand[caller] = 150.0;
    }
    (0..8000).for_each(|_| simulation.step());
    simulation.check();
    assert!(simulation.gates.iter().all(|gate| gate.allocations.own_allocations() == 200));
    (simulation.table, simulation.server_run, simulation.loss_percent) = (SplitTable::default(), 2, 40);
    for _ in 0..LEASE.0 / 1_000_000 {
        simulation.run(1);
    }
    simulation.loss_percent = 0;
    simulation.run(LEASE.0 / 1_000_000 * 2);
    simulation.check_even();
    assert!(simulation.gates.iter().all(|gate| gate.allocations.own_allocations() == 200));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn at_most_the_whole_is_used_and_in_quiet_times_all_of_it_on_demand(
        gates in 1..6_usize,
        callers in 1..4_usize,
        seed in any::<u64>(),
        demands in prop::collection::vec((0..6_usize, 0..4_usize, 0..600_u32), 0..8),
        failures in prop::collection::vec((0..6_usize, 0..8_u8, 1..5000_u64), 0..10),
    ) {
        let mut simulation = SplitSimulation::new(gates, callers, seed);
        let mut demands = demands.into_iter().cycle();
        let mut demand = |simulation: &mut SplitSimulation| {
            if let Some((gate, caller, rate)) = demands.next() {
                let gate = gate % simulation.gates.len();
                simulation.gates[gate].demand[caller % callers] = f64::from(rate);
            }
        };
        for (gate, failure, ms) in failures {
            demand(&mut simulation);
            let gate = gate % simulation.gates.len();
            match failure {
                0 => simulation.loss_percent = 40,
                1 => simulation.loss_percent = 100,
                2 => simulation.max_delay = Nanos::from_millis(900),
                3 => simulation.gates[gate].stalled_until = simulation.now + Nanos::from_millis(ms),
                4 => simulation.gates[gate].is_stopped = gate > 0,
                5 if simulation.gates.len() < 8 => simulation.add_gate(),
                6 => (simulation.table, simulation.server_run) = (SplitTable::default(), simulation.server_run + 1),
                _ => {}
            }
            simulation.run(ms);
            (simulation.loss_percent, simulation.max_delay) = (0, Nanos::from_millis(5));
        }
        // The longest stall, and three leases.
        simulation.run(5000 + 3 * LEASE.0 / 1_000_000);
        simulation.check_even();
        // Then no gate comes or goes, and each caller gets at most its burst, its rate, and a call per gate.
        let (since, gates) = (simulation.now, simulation.running_gates().len());
        simulation.run(8000);
        for caller in 0..callers {
            let demand: f64 = simulation.running_gates().iter().map(|gate| gate.demand[caller]).sum();
            let accepted = simulation.accepted_of(caller, since);
            let max = CALLER_RULE.burst as usize + gates + 8 * 200;
            prop_assert!(accepted <= max, "{accepted} of {max}");
            let min = (demand.min(200.0) * 8.0 * 0.9) as usize;
            prop_assert!(accepted + 5 >= min, "{accepted}, and {min} at min; {demand} come in");
        }
    }
}
