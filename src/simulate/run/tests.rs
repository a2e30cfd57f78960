//! What holds in every world, and small worlds whose figures can be worked out by hand.

use proptest::prelude::*;

use super::*;
use crate::decide::delay::{Delay, DelayRange};
use crate::decide::schedule::{Arrivals, LoadStage};
use crate::decide::station::StationOverflow;
use crate::simulate::scenario;
use crate::simulate::world::{RetryModel, UpstreamChange};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// So many slots of 100 ms, evenly spread calls, nothing left out of the score.
fn small(slots: u32, per_s: f64, seconds: u64) -> Scenario {
    let mut world = scenario::default_scenario();
    (world.upstream.slots, world.upstream.service) = (slots, Delay::Constant(ms(100)));
    world.callers.arrivals = Arrivals::Constant;
    world.callers.deadline = Nanos::SECOND;
    world.warmup = Nanos::ZERO;
    world.callers.stages = vec![LoadStage { from_per_s: per_s, to_per_s: per_s, length: Nanos::from_secs(seconds) }];
    world
}

#[test]
fn of_twice_what_one_slot_can_take_a_limit_of_one_refuses_half() {
    let report = run(&small(1, 20.0, 10), &SimulatedLimiter::Static(Some(1)));
    let figures = &report.scored;
    assert_eq!((figures.offered_per_s, figures.capacity_per_s), (20.0, 10.0));
    // The last one is not done at the end.
    assert_eq!((figures.goodput_per_s, figures.rejected), (9.9, 0.5));
    assert_eq!((figures.p99_ms, figures.p99_slowdown), (100.0, 1.0));
}

#[test]
fn without_a_limit_the_queue_grows_until_nobody_is_answered_in_time() {
    // Call k comes at 50 k ms and is done at 100 (k + 1): within its second up to k = 18.
    let report = run(&small(1, 20.0, 10), &SimulatedLimiter::None);
    assert_eq!(report.scored.goodput_per_s, 1.9);
    let last = report.series[report.series.len() - 1];
    assert_eq!((last.goodput_per_s, last.p99_ms), (0.0, Some(1000.0)));
    // 200 have come, 100 are done.
    assert!((last.in_flight - 97.5).abs() < 3.0, "{}", last.in_flight);
}

#[test]
fn an_upstream_that_notices_that_nobody_waits_has_time_for_those_who_do() {
    let mut world = small(1, 20.0, 100);
    world.upstream.service = Delay::Exponential { mean: ms(100) };
    let works_on = run(&world, &SimulatedLimiter::None).scored.goodput_per_s;
    world.upstream.continues_abandoned_work = false;
    let notices = run(&world, &SimulatedLimiter::None).scored.goodput_per_s;
    assert!(works_on < 1.0 && notices > 3.0, "{works_on} {notices}");
}

#[test]
fn changes_hold_from_their_instant_on_and_what_is_in_work_stays_in_work() {
    let mut world = small(2, 30.0, 10);
    world.changes = vec![UpstreamChange { at: Nanos::from_secs(5), replica: None, effect: ChangeEffect::Slots(1) }];
    let report = run(&world, &SimulatedLimiter::Static(Some(2)));
    let goodput = |range: std::ops::Range<usize>| {
        let points = &report.series[range.clone()];
        points.iter().map(|point| point.goodput_per_s).sum::<f64>() / range.len() as f64
    };
    assert!((goodput(1..10) - 20.0).abs() < 0.5, "{}", goodput(1..10));
    assert!((goodput(11..20) - 10.0).abs() < 0.5, "{}", goodput(11..20));
    let slower =
        vec![UpstreamChange { at: Nanos::from_secs(5), replica: Some(0), effect: ChangeEffect::Slowdown(2.0) }];
    let report = run(&Scenario { changes: slower, ..small(2, 8.0, 10) }, &SimulatedLimiter::None);
    assert_eq!((report.series[8].p99_ms, report.series[11].p99_ms), (Some(100.0), Some(200.0)));
}

#[test]
fn a_refused_caller_comes_again_as_often_as_it_may_and_waits_as_told_if_it_obeys() {
    let mut world = small(1, 10.0, 20);
    world.upstream.service = Delay::Constant(Nanos::from_secs(100));
    world.callers.deadline = Nanos::from_secs(200);
    let retry = RetryModel { max_retries: 3, first_wait: ms(10), honors_retry_after: false };
    world.callers.retry = Some(retry);
    // The first call has the only place for ever.
    let report = run(&world, &SimulatedLimiter::Static(Some(1)));
    assert!((report.scored.attempts_per_s - 40.0).abs() < 1.0, "{}", report.scored.attempts_per_s);
    world.callers.retry = Some(RetryModel { honors_retry_after: true, ..retry });
    let obeying = run(&world, &SimulatedLimiter::Static(Some(1)));
    let tries = |report: &SimulationReport| report.series[1].attempts_per_s;
    assert!(tries(&report) > 30.0 && tries(&obeying) == 10.0, "{} {}", tries(&report), tries(&obeying));
}

#[test]
fn replicas_have_their_turns_or_the_one_with_the_fewest_is_chosen() {
    let mut world = small(1, 10.0, 10);
    (world.upstream.replicas, world.upstream.service) = (2, Delay::Constant(ms(90)));
    world.changes = vec![UpstreamChange { at: Nanos(1), replica: Some(0), effect: ChangeEffect::Slowdown(100.0) }];
    let report = run(&world, &SimulatedLimiter::None);
    // All but those that find as many at the slow one, which are the first ones.
    assert!(report.scored.goodput_per_s > 8.5, "{:?}", report.scored);
    world.upstream.balance = ReplicaBalance::RoundRobin;
    let report = run(&world, &SimulatedLimiter::None);
    assert!((report.scored.goodput_per_s - 5.0).abs() < 0.3, "{:?}", report.scored);
}

/// A. K. Erlang's formula of 1917 for who has to wait, from the recursion of the loss formula.
fn erlang_c(slots: u32, load: f64) -> f64 {
    let loss = (1..=slots).fold(1.0, |loss, n| load * loss / (f64::from(n) + load * loss));
    loss / (1.0 - load / f64::from(slots) * (1.0 - loss))
}

#[test]
fn waits_are_those_of_queueing_theory() {
    let mut world = scenario::default_scenario();
    let mean = 0.1;
    (world.upstream.slots, world.upstream.service) = (10, Delay::Exponential { mean: ms(100) });
    world.callers.deadline = Nanos::from_secs(1000);
    let (slots, load) = (10, 8.0);
    world = world.with_phase("even", 0.8, 0.8, Nanos::from_secs(5000));
    let report = run(&world, &SimulatedLimiter::None);
    // By Little's law: those in work, and those that wait.
    let in_flight = load + erlang_c(slots, load) * load / (f64::from(slots) - load);
    assert!((report.scored.in_flight / in_flight - 1.0).abs() < 0.02, "{} {in_flight}", report.scored.in_flight);
    assert!((report.scored.p50_ms / 1000.0 / mean) < 1.0);
}

#[test]
fn a_run_repeats_and_another_limiter_meets_the_same_calls() {
    let world = scenario::by_name("retry-storm").expect("a scenario");
    let json =
        |limiter: &SimulatedLimiter, world: &Scenario| serde_json::to_string(&run(world, limiter)).expect("JSON");
    assert_eq!(json(&SimulatedLimiter::Auto, &world), json(&SimulatedLimiter::Auto, &world));
    let other = Scenario { seed: 2, ..world.clone() };
    assert_ne!(json(&SimulatedLimiter::Auto, &world), json(&SimulatedLimiter::Auto, &other));
    let offered = |limiter| run(&world, &limiter).series.iter().map(|point| point.offered_per_s).collect::<Vec<_>>();
    assert_eq!(offered(SimulatedLimiter::Auto), offered(SimulatedLimiter::None));
}

fn worlds() -> impl Strategy<Value = Scenario> {
    let times = || (1_u64..50, 0_u64..200);
    let service = prop_oneof![
        times().prop_map(|(low, more)| Delay::Uniform(DelayRange { low: ms(low), high: ms(low + more) })),
        times().prop_map(|(mean, _)| Delay::Exponential { mean: ms(mean) }),
        times().prop_map(|(same, _)| Delay::Constant(ms(same))),
    ];
    let overflow = prop_oneof![
        Just(StationOverflow::Slow),
        Just(usize::MAX).prop_map(|queue| StationOverflow::Reject { queue }),
        (0_usize..9).prop_map(|queue| StationOverflow::Reject { queue })
    ];
    let retry = prop::option::of((1_u32..40, 0_u64..300, any::<bool>()).prop_map(|(times, after, obeys)| RetryModel {
        max_retries: times,
        first_wait: ms(after),
        honors_retry_after: obeys,
    }));
    let to = prop_oneof![(0_u32..20).prop_map(ChangeEffect::Slots), (0.1..9.0).prop_map(ChangeEffect::Slowdown)];
    let change = (0_u64..6000, prop::option::of(0_u32..3), to);
    let changes = prop::collection::vec(change, 0..4).prop_map(|mut all| {
        all.sort_by_key(|change| change.0);
        all.into_iter().map(|(at, replica, to)| UpstreamChange { at: ms(at), replica, effect: to }).collect::<Vec<_>>()
    });
    let loads = prop::collection::vec((0.0..4.0, 0.0..4.0, 100_u64..2500), 1..4);
    let upstream = (1_u32..4, 1_u32..20, service, overflow, any::<bool>(), any::<bool>());
    let callers = (1_u64..2000, [0.0..1.0, 0.01..1.0, 0.0..1.0, 0.0..1.0], retry);
    (any::<u64>(), 1_u32..6, upstream, callers, changes, loads).prop_map(
        |(seed, gates, upstream, callers, changes, loads)| {
            let mut world = Scenario { seed, gates, changes, warmup: Nanos::ZERO, ..scenario::default_scenario() };
            (world.upstream.replicas, world.upstream.slots) = (upstream.0, upstream.1);
            (world.upstream.service, world.upstream.overflow, world.upstream.continues_abandoned_work) =
                (upstream.2, upstream.3, upstream.4);
            world.upstream.balance =
                if upstream.5 { ReplicaBalance::RoundRobin } else { ReplicaBalance::LeastInFlight };
            world.callers.deadline = ms(callers.0);
            (world.callers.priorities, world.callers.retry) = (callers.1, callers.2);
            loads.into_iter().fold(world, |world, (from, to, length)| world.with_phase("some", from, to, ms(length)))
        },
    )
}

fn limiters() -> impl Strategy<Value = SimulatedLimiter> {
    prop_oneof![3 => Just(SimulatedLimiter::Auto), 5 => prop::sample::select(SimulatedLimiter::ALL.to_vec()), 1 => (1_u32..50).prop_map(|n| SimulatedLimiter::Static(Some(n)))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Nobody is lost or counted twice, whatever happens; gates and replicas know of exactly those that are there.
    #[test]
    fn every_try_has_one_end(world in worlds(), limiter in limiters()) {
        let plain = UnloadedLatency::of(&world.upstream.service);
        let mut simulation = Simulation::new(&world, &limiter, plain);
        simulation.run();
        let record = &simulation.record;
        let sum = |of: fn(&crate::simulate::record::RecordWindow) -> u64| {
            record.windows.iter().chain([&record.current]).map(of).sum::<u64>()
        };
        let ended = sum(|w| w.responses) + sum(|w| w.rejected) + sum(|w| w.failed) + sum(|w| w.deadline_exceeded);
        let open = simulation.attempts.count(|call| matches!(call.gate_state, GateState::Running | GateState::Waiting));
        prop_assert_eq!(sum(|w| w.attempts), ended + open);
        prop_assert_eq!(sum(|w| w.arrived.iter().sum()), sum(|w| w.attempts));
        prop_assert_eq!(sum(|w| w.served.iter().sum()), sum(|w| w.responses));
        prop_assert!(sum(|w| w.response_ms.iter().filter(|took| **took > 2000.001).count() as u64) == 0);

        let at_work = simulation.attempts.count(|call| call.replica_state != ReplicaState::None);
        prop_assert_eq!(at_work, simulation.replicas.iter().map(|replica| u64::from(replica.in_flight())).sum::<u64>());
        prop_assert_eq!(at_work, u64::from(simulation.at_upstream));
        let waiting = simulation.attempts.count(|call| call.gate_state == GateState::Waiting);
        prop_assert_eq!(waiting, u64::from(simulation.queued));
        for (index, gate) in simulation.gates.iter().enumerate() {
            let of_gate = |place| simulation.attempts.count(|call| call.gate_state == place && call.gate as usize == index);
            prop_assert_eq!(u64::from(gate.queued()), of_gate(GateState::Waiting));
            let running = of_gate(GateState::Running);
            // weir's own also counts those that were given up and may be in work still.
            let ghosts = u64::from(gate.in_flight()).checked_sub(running);
            prop_assert!(ghosts == Some(0) || limiter == SimulatedLimiter::Auto && ghosts.is_some(), "{:?}", ghosts);
        }
        let report = SimulationReport::new(&world, &limiter, plain, &simulation.record);
        for figures in report.phases.iter().chain([&report.scored]) {
            for share in [figures.rejected, figures.failed, figures.goodput, figures.in_flight] {
                prop_assert!(share.is_finite() && share >= 0.0, "{:?}", figures);
            }
        }
    }
}
