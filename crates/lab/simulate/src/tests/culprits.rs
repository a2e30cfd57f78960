//! What few heavy calls cost the others, without and with the decision about culprits, and what that costs where there
//! are none.

use crate::metrics::PhaseMetrics;
use crate::scenario::{self, heavy, heavy_work};
use crate::world::{CallerKind, KindWork, RetryModel, StallModel, StallTarget, TimeRange};
use crate::{Scenario, SimulatedLimiter, SimulationReport, run};
use weir_base::Nanos;
use weir_resilience::admission::Priority;
use weir_workload::delay::{Delay, DelayRange};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Fraction of the others' good calls that is lost in the minute of the heavy ones, their first seconds included.
fn lost(scenario: &Scenario, limiter: &SimulatedLimiter) -> f64 {
    let report = run(scenario, limiter);
    1.0 - report.phase("heavy").and_then(|phase| phase.first_kind_goodput).expect("calls")
}

fn lost_without_and_with(scenario: &Scenario) -> (f64, f64) {
    (lost(scenario, &SimulatedLimiter::Auto), lost(scenario, &SimulatedLimiter::Culprits))
}

/// A scenario of heavy calls, by its work.
fn of_work(work: KindWork) -> Scenario {
    heavy(scenario::default_scenario(), work)
}

#[test]
fn a_heavy_route_costs_the_others_next_to_nothing() {
    for seed in 1..=2 {
        let scenario = Scenario { seed, ..scenario::by_name("heavy-route").expect("a scenario") };
        let (without, with) = lost_without_and_with(&scenario);
        // Seed 1: 0.339 and 0.006.
        assert!(without > 0.25 && with < 0.03, "seed {seed}: {without} {with}");
    }
}

#[test]
fn a_heavy_caller_that_claims_to_be_critical_costs_the_others_next_to_nothing() {
    for seed in 1..=2 {
        let scenario = Scenario { seed, ..scenario::by_name("heavy-caller").expect("a scenario") };
        let (without, with) = lost_without_and_with(&scenario);
        // Seed 1: 0.802 and 0.009.
        assert!(without > 0.6 && with < 0.03, "seed {seed}: {without} {with}");
    }
}

#[test]
fn a_heavy_caller_that_retries_costs_the_others_next_to_nothing() {
    let mut scenario = of_work(heavy_work(0, 1));
    scenario.callers.retry = Some(RetryModel { max_retries: 5, first_wait: ms(100) });
    let (without, with) = lost_without_and_with(&scenario);
    assert!(with < 0.05 && with < without / 4.0, "{without} {with}");
}

#[test]
fn after_the_heavy_calls_no_call_is_rejected() {
    for work in [heavy_work(1, 100), heavy_work(0, 1)] {
        let report = run(&of_work(work), &SimulatedLimiter::Culprits);
        // The same caller has light calls now.
        let after = report.phase("after").expect("a phase");
        assert_eq!(after.rejected, Some(0.0), "{after:?}");
    }
}

#[test]
fn heavy_calls_that_nothing_tells_apart_are_as_without() {
    // Each has a name of its own, on the route of all others.
    let (without, with) = lost_without_and_with(&of_work(heavy_work(0, 0)));
    assert!((with - without).abs() < 0.01, "{without} {with}");
    // Every fiftieth call of all callers is heavy.
    let mut scenario = scenario::default_scenario();
    scenario.upstream.service = Delay::Bimodal {
        first: DelayRange { low: ms(20), high: ms(80) },
        second: DelayRange { low: ms(1500), high: ms(6000) },
        second_fraction: 0.02,
    };
    scenario.callers.deadline = Nanos::from_secs(20);
    let scenario = scenario.with_phase("overload", 1.5, 1.5, Nanos::from_secs(60));
    let goodput = |limiter| run(&scenario, &limiter).scored.goodput.expect("calls");
    let (without, with) = (goodput(SimulatedLimiter::Auto), goodput(SimulatedLimiter::Culprits));
    assert!(with >= without - 0.01, "{without} {with}");
}

#[test]
fn names_that_change_on_a_heavy_route_are_found_by_the_route() {
    let (without, with) = lost_without_and_with(&of_work(heavy_work(1, 0)));
    assert!(without > 0.25 && with < 0.03, "{without} {with}");
}

/// Heavy calls beside others, at this fraction of the load at which they do not fit.
fn part(fraction: f64, seed: u64) -> Scenario {
    let mut scenario = Scenario { seed, ..of_work(heavy_work(1, 1)) };
    for stage in &mut scenario.callers.stages {
        (stage.from_per_s, stage.to_per_s) = (stage.from_per_s * fraction, stage.to_per_s * fraction);
    }
    scenario
}

#[test]
fn a_healthy_service_with_heavy_callers_is_as_without() {
    for seed in 1..=2 {
        // 26 of 50 slots; and 37, where the limiter itself rejects a few.
        for (fraction, more) in [(0.35, 0.0), (0.5, 0.0005)] {
            let scenario = part(fraction, seed);
            let [without, with] =
                [SimulatedLimiter::Auto, SimulatedLimiter::Culprits].map(|of| run(&scenario, &of).scored);
            let (rejected, known) = (with.rejected.expect("calls"), without.rejected.expect("calls"));
            assert!(rejected <= known + more, "{fraction}, seed {seed}: {known} {rejected}");
        }
    }
}

#[test]
fn stalls_of_a_healthy_services_host_cost_no_call() {
    for target in [StallTarget::Upstream, StallTarget::Gates] {
        let mut scenario = part(0.35, 1);
        let (from, to) = (Nanos::from_secs(20), Nanos::from_secs(100));
        scenario.stalls =
            vec![StallModel { target, period: ms(200), regular: true, length: TimeRange::constant(ms(20)), from, to }];
        let [without, with] = [SimulatedLimiter::Auto, SimulatedLimiter::Culprits].map(|of| run(&scenario, &of).scored);
        assert!(with.rejected <= without.rejected, "{target:?}: {:?} {:?}", without.rejected, with.rejected);
    }
}

#[test]
fn many_small_callers_under_overload_are_served_as_without() {
    let mut scenario = scenario::default_scenario();
    // Far from even: a tenth of the calls takes two thirds of the time.
    scenario.upstream.service = Delay::Bimodal {
        first: DelayRange { low: ms(20), high: ms(80) },
        second: DelayRange { low: ms(400), high: ms(1600) },
        second_fraction: 0.1,
    };
    let light = heavy(scenario::default_scenario(), heavy_work(0, 1)).callers.kinds[0];
    let deadline = Nanos::from_secs(5);
    scenario.callers.kinds = vec![CallerKind {
        deadline_range: TimeRange::constant(deadline),
        work: KindWork { routes: 1, callers: 5000, ..KindWork::default() },
        ..light
    }];
    let scenario = scenario.with_phase("overload", 2.0, 2.0, Nanos::from_secs(60));
    for seed in 1..=2 {
        let scenario = Scenario { seed, ..scenario.clone() };
        let goodput = |limiter| run(&scenario, &limiter).scored.goodput.expect("calls");
        let (without, with) = (goodput(SimulatedLimiter::Auto), goodput(SimulatedLimiter::Culprits));
        assert!(with >= without - 0.01, "seed {seed}: {without} {with}");
    }
}

#[test]
fn a_route_that_is_ten_times_as_slow_by_nature_and_has_a_fifth_of_the_calls_is_left_alone() {
    let work = KindWork { factor: 8.0, ..heavy_work(1, 100) };
    let mut scenario = of_work(work);
    (scenario.callers.kinds[0].weight, scenario.callers.kinds[1].weight) = (0.8, 0.2);
    let [without, with] = [SimulatedLimiter::Auto, SimulatedLimiter::Culprits].map(|of| run(&scenario, &of));
    let goodput = |report: &SimulationReport| report.phase("heavy").and_then(|phase| phase.goodput);
    assert_eq!(goodput(&without), goodput(&with));
}

#[test]
fn without_culprits_scenarios_are_as_without_the_decision() {
    // The others take long in a debug build.
    let names = ["step-down", "priorities", "upstream-stalls", "short-deadlines", "callers-leave", "recovery"];
    for name in names {
        let scenario = scenario::by_name(name).expect(name);
        let [without, with] = [SimulatedLimiter::Auto, SimulatedLimiter::Culprits].map(|of| run(&scenario, &of).scored);
        let figures = |of: &PhaseMetrics| (of.goodput_per_s, of.rejected, of.p99_ms, of.goodput_by_priority);
        assert_eq!(figures(&without), figures(&with), "{name}");
    }
}

#[test]
fn a_caller_without_heavy_calls_keeps_its_priority() {
    // Critical calls of a light kind are not shed because another kind is a culprit.
    let mut scenario = scenario::by_name("heavy-route").expect("a scenario");
    scenario.callers.kinds[0].work.priority = Some(Priority::Critical);
    let (_, with) = lost_without_and_with(&scenario);
    assert!(with < 0.03, "{with}");
}
