//! Invariants of all scenarios, and small scenarios with hand-computed metrics.

use proptest::prelude::*;

use super::*;
use crate::call::ReplicaState;
use crate::scenario;
use crate::world::{ChangeEffect, RetryModel, UpstreamChange};
use weir_pace::schedule::{Arrivals, LoadStage};
use weir_workload::delay::{Delay, DelayRange};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Scenario with a service time of 100 ms, constant arrivals, a deadline of 1 s and no warm-up.
fn small(slots: u32, per_s: f64, seconds: u64) -> Scenario {
    let mut scenario = scenario::default_scenario();
    (scenario.upstream.slots, scenario.upstream.service) = (slots, Delay::Constant(ms(100)));
    scenario.callers.arrivals = Arrivals::Constant;
    scenario.callers.deadline = Nanos::SECOND;
    scenario.warmup = Nanos::ZERO;
    scenario.callers.stages = vec![LoadStage { from_per_s: per_s, to_per_s: per_s, length: Nanos::from_secs(seconds) }];
    scenario
}

#[test]
fn at_twice_the_capacity_a_limit_of_one_rejects_half() {
    let report = run(&small(1, 20.0, 10), &SimulatedLimiter::Static(Some(1)));
    let metrics = &report.scored;
    assert_eq!((metrics.offered_per_s, metrics.capacity_per_s), (20.0, 10.0));
    // The last call is still in service at the end.
    assert_eq!((metrics.goodput_per_s, metrics.rejected), (9.9, Some(0.5)));
    assert_eq!((metrics.p99_ms, metrics.p99_ratio), (Some(100.0), Some(1.0)));
}

#[test]
fn without_a_limit_the_queue_grows_until_no_response_is_in_time() {
    // Call k arrives at 50 k ms and is done at 100 (k + 1) ms: within its second up to k = 18.
    let report = run(&small(1, 20.0, 10), &SimulatedLimiter::None);
    assert_eq!(report.scored.goodput_per_s, 1.9);
    let last = report.series[report.series.len() - 1];
    assert_eq!((last.goodput_per_s, last.p99_ms), (0.0, Some(1000.0)));
    // 200 calls have arrived, 100 are done.
    assert!((last.in_flight - 97.5).abs() < 3.0, "{}", last.in_flight);
}

#[test]
fn cancelling_abandoned_calls_frees_capacity_for_others() {
    let mut scenario = small(1, 20.0, 100);
    scenario.upstream.service = Delay::Exponential { mean: ms(100) };
    let continues = run(&scenario, &SimulatedLimiter::None).scored.goodput_per_s;
    scenario.upstream.continues_abandoned_work = false;
    let cancels = run(&scenario, &SimulatedLimiter::None).scored.goodput_per_s;
    assert!(continues < 1.0 && cancels > 3.0, "{continues} {cancels}");
}

#[test]
fn changes_apply_from_their_time_on_to_calls_that_start_later() {
    let mut scenario = small(2, 30.0, 10);
    scenario.changes = vec![UpstreamChange { at: Nanos::from_secs(5), replica: None, effect: ChangeEffect::Slots(1) }];
    let report = run(&scenario, &SimulatedLimiter::Static(Some(2)));
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
fn rejected_callers_retry_up_to_the_maximum() {
    let mut scenario = small(1, 10.0, 20);
    scenario.upstream.service = Delay::Constant(Nanos::from_secs(100));
    scenario.callers.deadline = Nanos::from_secs(200);
    scenario.callers.retry = Some(RetryModel { max_retries: 3, first_wait: ms(10) });
    // The first call keeps the only slot.
    let report = run(&scenario, &SimulatedLimiter::Static(Some(1)));
    assert!((report.scored.attempts_per_s - 40.0).abs() < 1.0, "{}", report.scored.attempts_per_s);
}

#[test]
fn replicas_are_chosen_by_calls_in_flight() {
    let mut scenario = small(1, 10.0, 10);
    (scenario.upstream.replicas, scenario.upstream.service) = (2, Delay::Constant(ms(90)));
    scenario.changes = vec![UpstreamChange { at: Nanos(1), replica: Some(0), effect: ChangeEffect::Slowdown(100.0) }];
    let report = run(&scenario, &SimulatedLimiter::None);
    // All but the first calls, which find as many in flight at the slow replica.
    assert!(report.scored.goodput_per_s > 8.5, "{:?}", report.scored);
}

/// Erlang C formula (1917): probability of waiting, by the recursion of the loss formula.
fn erlang_c(slots: u32, load: f64) -> f64 {
    let loss = (1..=slots).fold(1.0, |loss, n| load * loss / (f64::from(n) + load * loss));
    loss / (1.0 - load / f64::from(slots) * (1.0 - loss))
}

#[test]
fn waits_match_queueing_theory() {
    let mut scenario = scenario::default_scenario();
    let mean = 0.1;
    (scenario.upstream.slots, scenario.upstream.service) = (10, Delay::Exponential { mean: ms(100) });
    scenario.callers.deadline = Nanos::from_secs(1000);
    let (slots, load) = (10, 8.0);
    scenario = scenario.with_phase("even", 0.8, 0.8, Nanos::from_secs(5000));
    let report = run(&scenario, &SimulatedLimiter::None);
    // Little's law: calls in service plus queued calls.
    let in_flight = load + erlang_c(slots, load) * load / (f64::from(slots) - load);
    assert!((report.scored.in_flight / in_flight - 1.0).abs() < 0.02, "{} {in_flight}", report.scored.in_flight);
    assert!(report.scored.p50_ms.is_some_and(|ms| ms / 1000.0 / mean < 1.0));
}

#[test]
fn runs_are_reproducible_and_calls_independent_of_the_limiter() {
    let scenario = scenario::by_name("retry-storm").expect("a scenario");
    let json =
        |limiter: &SimulatedLimiter, scenario: &Scenario| serde_json::to_string(&run(scenario, limiter)).expect("JSON");
    assert_eq!(json(&SimulatedLimiter::Auto, &scenario), json(&SimulatedLimiter::Auto, &scenario));
    let other = Scenario { seed: 2, ..scenario.clone() };
    assert_ne!(json(&SimulatedLimiter::Auto, &scenario), json(&SimulatedLimiter::Auto, &other));
    let offered = |limiter| run(&scenario, &limiter).series.iter().map(|point| point.offered_per_s).collect::<Vec<_>>();
    assert_eq!(offered(SimulatedLimiter::Auto), offered(SimulatedLimiter::None));
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let times = || (1_u64..50, 0_u64..200);
    let service = prop_oneof![
        times().prop_map(|(low, more)| Delay::Uniform(DelayRange { low: ms(low), high: ms(low + more) })),
        times().prop_map(|(mean, _)| Delay::Exponential { mean: ms(mean) }),
        times().prop_map(|(same, _)| Delay::Constant(ms(same))),
    ];
    let max_queue = prop_oneof![1 => Just(usize::MAX), 1 => 0_usize..9];
    let retry = prop::option::of(
        (1_u32..40, 0_u64..300).prop_map(|(times, after)| RetryModel { max_retries: times, first_wait: ms(after) }),
    );
    let to = prop_oneof![(0_u32..20).prop_map(ChangeEffect::Slots), (0.1..9.0).prop_map(ChangeEffect::Slowdown)];
    let change = (0_u64..6000, prop::option::of(0_u32..3), to);
    let changes = prop::collection::vec(change, 0..4).prop_map(|mut all| {
        all.sort_by_key(|change| change.0);
        all.into_iter().map(|(at, replica, to)| UpstreamChange { at: ms(at), replica, effect: to }).collect::<Vec<_>>()
    });
    let loads = prop::collection::vec((0.0..4.0, 0.0..4.0, 100_u64..2500), 1..4);
    let upstream = (1_u32..4, 1_u32..20, service, max_queue, any::<bool>());
    let callers = (1_u64..2000, [0.0..1.0, 0.01..1.0, 0.0..1.0, 0.0..1.0], retry);
    (any::<u64>(), 1_u32..6, upstream, callers, changes, loads).prop_map(
        |(seed, gates, upstream, callers, changes, loads)| {
            let mut scenario = Scenario { seed, gates, changes, warmup: Nanos::ZERO, ..scenario::default_scenario() };
            (scenario.upstream.replicas, scenario.upstream.slots) = (upstream.0, upstream.1);
            (scenario.upstream.service, scenario.upstream.max_queue, scenario.upstream.continues_abandoned_work) =
                (upstream.2, upstream.3, upstream.4);
            scenario.callers.deadline = ms(callers.0);
            (scenario.callers.priorities, scenario.callers.retry) = (callers.1, callers.2);
            loads
                .into_iter()
                .fold(scenario, |scenario, (from, to, length)| scenario.with_phase("some", from, to, ms(length)))
        },
    )
}

fn limiters() -> impl Strategy<Value = SimulatedLimiter> {
    prop_oneof![3 => Just(SimulatedLimiter::Auto), 5 => prop::sample::select(SimulatedLimiter::ALL.to_vec()), 1 => (1_u32..50).prop_map(|n| SimulatedLimiter::Static(Some(n)))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Each attempt ends exactly once, and gates and replicas count exactly the attempts that they hold.
    #[test]
    fn every_attempt_has_one_outcome(scenario in scenarios(), limiter in limiters()) {
        let unloaded = UnloadedLatency::of(&scenario.upstream.service);
        let mut simulation = Simulation::new(&scenario, &limiter, unloaded);
        simulation.run();
        let record = &simulation.record;
        let sum = |of: fn(&crate::record::RecordWindow) -> u64| {
            record.windows.iter().chain([&record.current]).map(of).sum::<u64>()
        };
        let ended = sum(|w| w.responses) + sum(|w| w.rejected) + sum(|w| w.upstream_rejected) + sum(|w| w.timed_out);
        let open = simulation.attempts.count(|call| matches!(call.gate_state, GateState::Running | GateState::Waiting));
        prop_assert_eq!(sum(|w| w.attempts), ended + open);
        prop_assert_eq!(sum(|w| w.arrived.iter().sum()), sum(|w| w.attempts));
        prop_assert_eq!(sum(|w| w.served.iter().sum()), sum(|w| w.responses));
        prop_assert!(sum(|w| w.response_ms.iter().filter(|took| **took > 2000.001).count() as u64) == 0);

        let at_replicas = simulation.attempts.count(|call| call.replica_state != ReplicaState::None);
        prop_assert_eq!(at_replicas, simulation.replicas.iter().map(|replica| u64::from(replica.in_flight())).sum::<u64>());
        prop_assert_eq!(at_replicas, u64::from(simulation.at_upstream));
        let waiting = simulation.attempts.count(|call| call.gate_state == GateState::Waiting);
        prop_assert_eq!(waiting, u64::from(simulation.queued));
        for (index, gate) in simulation.gates.iter().enumerate() {
            let of_gate = |state| simulation.attempts.count(|call| call.gate_state == state && call.gate as usize == index);
            prop_assert_eq!(u64::from(gate.queued()), of_gate(GateState::Waiting));
            let running = of_gate(GateState::Running);
            // weir's own also counts abandoned calls that may still be in service.
            let abandoned = u64::from(gate.in_flight()).checked_sub(running);
            prop_assert!(abandoned == Some(0) || limiter == SimulatedLimiter::Auto && abandoned.is_some(), "{:?}", abandoned);
        }
        let report = SimulationReport::new(&scenario, &limiter, unloaded, &simulation.record);
        for metrics in report.phases.iter().chain([&report.scored]) {
            let measured = [metrics.rejected, metrics.upstream_rejected, metrics.goodput];
            let is_idle = metrics.attempts_per_s == 0.0;
            prop_assert!(measured[..2].iter().all(|value| value.is_none() == is_idle), "{:?}", metrics);
            for value in measured.into_iter().flatten().chain([metrics.in_flight]) {
                prop_assert!(value.is_finite() && value >= 0.0, "{:?}", metrics);
            }
        }
    }
}
