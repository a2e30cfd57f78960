//! The verdict against services whose fate is known by construction, in virtual time.

mod simulated_service;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use self::simulated_service::{Clients, ServiceModel, SimulatedService};
use super::*;
use crate::recorder::Interval;
use weir_base::Nanos;

const RULES: RecoveryRules =
    RecoveryRules { warmup_s: 2, baseline_s: 10, trigger: TriggerLength::Seconds(3), stable_s: 10, observe_s: 60 };

/// A test of a service at a load, with a spike.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    model: ServiceModel,
    clients: Clients,
    /// Load as a fraction of the capacity, and the factor of the spike.
    share: f64,
    spike: f64,
    seed: u64,
}

impl Scenario {
    fn load(&self) -> f64 {
        self.share * self.model.capacity()
    }

    /// Seconds of work that the spike leaves behind, with the load of this many requests per call.
    fn left_behind_s(&self, requests_per_call: f64) -> f64 {
        (self.share * self.spike * requests_per_call - 1.0).max(0.0) * 3.0
    }

    /// Runs the test; `alter` changes what is seen of a second, by its number in its phase.
    fn run(
        &self,
        rules: RecoveryRules,
        alter: &mut dyn FnMut(RecoveryPhase, usize, &mut RecoverySecond),
    ) -> RecoveryTest {
        let mut test = RecoveryTest::new(rules);
        let mut service = SimulatedService::new(self.model, self.clients, self.seed);
        for _ in 0..1000 {
            let phase = test.phase();
            let level = match phase {
                RecoveryPhase::Trigger => self.spike * self.load(),
                RecoveryPhase::Rest => (self.load() / 20.0).max(1.0),
                _ => self.load(),
            };
            let mut second = service.second(level);
            alter(phase, test.seconds_of(phase).len(), &mut second);
            if test.add(second) == RecoveryAction::End {
                return test;
            }
        }
        panic!("a test that does not end: {self:?}");
    }

    fn finding(&self) -> RecoveryFinding {
        self.run(RULES, &mut |_, _, _| ()).finding("not reached")
    }
}

/// One to four slots of 10 to 40 ms each.
fn models() -> impl Strategy<Value = ServiceModel> {
    (1_usize..5, 10_u32..40).prop_map(|(slots, ms)| ServiceModel { slots, service_s: f64::from(ms) / 1e3 })
}

const PATIENT: Clients = Clients { timeout_s: f64::INFINITY, retries: 0 };

/// The same scenarios in each run, since random arrivals may do anything: in one of many thousand scenarios the times of
/// the baseline grow by chance, and there is no verdict.
fn known_scenarios() -> ProptestConfig {
    ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(24), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(known_scenarios())]

    /// What the spike leaves behind makes calls wait longer than clients do, and their retries are more than the service
    /// gets done: the queue grows for ever.
    #[test]
    fn a_service_whose_clients_retry_beyond_its_capacity_is_metastable(
        model in models(), share in 0.75_f64..0.85, retries in 2_u64..4, spike in 3.0_f64..6.0, seed: u64
    ) {
        let scenario = Scenario { model, clients: Clients { timeout_s: 1.0, retries }, share, spike, seed };
        prop_assert!(scenario.left_behind_s(1.0) > 3.0 && share * (retries + 1) as f64 > 2.0);
        let found = scenario.finding();
        prop_assert_eq!(found.verdict, RecoveryVerdict::Metastable, "{:?} {:?}", scenario, found);
        prop_assert_eq!(found.recovery_s, None);
    }

    /// All retries together are less than the service gets done.
    #[test]
    fn a_service_that_serves_all_retries_recovers(
        model in models(), share in 0.15_f64..0.2, spike in 8.0_f64..10.0, seed: u64
    ) {
        let scenario = Scenario { model, clients: Clients { timeout_s: 1.0, retries: 2 }, share, spike, seed };
        let (work_s, spare) = (scenario.left_behind_s(3.0), 1.0 - 3.0 * share);
        prop_assert!(work_s / spare < 50.0);
        let found = scenario.finding();
        prop_assert_eq!(found.verdict, RecoveryVerdict::Recovered, "{:?} {:?}", scenario, found);
        prop_assert!(found.recovery_s.is_some_and(|s| s as f64 <= work_s / spare + 5.0), "{:?} {:?}", scenario, found);
    }

    /// Without retries the queue drains at the rate that is left.
    #[test]
    fn a_queue_that_drains_is_a_recovery_after_that_time(
        model in models(), share in 0.4_f64..0.7, spike in 3.0_f64..5.0, seed: u64
    ) {
        let scenario = Scenario { model, clients: PATIENT, share, spike, seed };
        let drained_s = scenario.left_behind_s(1.0) / (1.0 - share);
        let found = scenario.finding();
        let verdicts: &[_] = match drained_s {
            s if s > 2.0 => &[RecoveryVerdict::Recovered],
            _ => &[RecoveryVerdict::Recovered, RecoveryVerdict::Undisturbed],
        };
        prop_assert!(verdicts.contains(&found.verdict), "{:?} {:?}", scenario, found);
        let seconds = found.recovery_s.map(|s| s as f64);
        // Chance arrivals make the queue longer, or shorter.
        let range = 0.5 * drained_s - 3.0..=1.6 * drained_s + 5.0;
        prop_assert!(seconds.is_some_and(|s| range.contains(&s)), "{drained_s}: {:?} {:?}", scenario, found);
    }

    /// A host that stalls, once in each phase, and a second of luck decide nothing.
    #[test]
    fn one_second_does_not_decide(
        model in models(), share in 0.75_f64..0.85, at in 0_usize..10, retries in prop::sample::select(vec![0_u64, 3]), seed: u64
    ) {
        let is_metastable = retries > 0;
        let clients = if is_metastable { Clients { timeout_s: 1.0, retries } } else { PATIENT };
        let scenario = Scenario { model, clients, share, spike: if is_metastable { 4.0 } else { 1.3 }, seed };
        let plain = scenario.finding();
        let altered = scenario.run(RULES, &mut |_, number, second| {
            if number % 60 == at {
                let ended = second.ended().max(1);
                let (good, ms) = if is_metastable { (ended, 5) } else { (0, 900) };
                (second.good, second.failed) = (good, ended - good);
                second.times = weir_histogram::Histogram::coarse();
                (0..good).for_each(|_| second.times.record(Nanos::from_millis(ms)));
            }
        });
        let altered = altered.finding("not reached");
        if is_metastable {
            prop_assert_eq!((plain.verdict, altered.verdict), (RecoveryVerdict::Metastable, RecoveryVerdict::Metastable));
        } else {
            let is_back = |verdict| matches!(verdict, RecoveryVerdict::Recovered | RecoveryVerdict::Undisturbed);
            prop_assert!(is_back(plain.verdict) && is_back(altered.verdict), "{:?} {:?} {:?}", scenario, plain, altered);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any seconds at all lead to an end, and to as many seconds as phases have.
    #[test]
    fn every_test_ends(
        counts in prop::collection::vec((0_u64..200, 0_u64..200, 1_u64..2000), 1..60), observe_s in 1_usize..20
    ) {
        let rules = RecoveryRules { observe_s, baseline_s: 3, stable_s: 3, ..RULES };
        let mut test = RecoveryTest::new(rules);
        let mut ended = false;
        for (good, failed, ms) in counts.iter().cycle().take(20 + 8 * observe_s.max(3)) {
            let mut second = RecoverySecond::of(&Interval { ok: *good, failed: *failed, ..Interval::default() }, 100.0);
            (0..*good).for_each(|_| second.times.record(Nanos::from_millis(*ms)));
            ended |= test.add(second) == RecoveryAction::End;
        }
        prop_assert!(ended);
        let all: usize = test.starts().iter().map(|(phase, _)| test.seconds_of(*phase).len()).sum();
        prop_assert_eq!(all, test.seconds().len());
    }
}

#[test]
fn a_metastable_service_comes_back_when_its_load_is_taken_away() {
    let model = ServiceModel { slots: 2, service_s: 0.02 };
    let clients = Clients { timeout_s: 1.0, retries: 1 };
    let scenario = Scenario { model, clients, share: 0.75, spike: 4.0, seed: 1 };
    let rules = RecoveryRules { observe_s: 20, ..RULES };
    let test = scenario.run(rules, &mut |_, _, _| ());
    let found = test.finding("not reached");
    assert_eq!(found.verdict, RecoveryVerdict::Metastable, "{found:?}");
    let rest = found.rest.unwrap();
    assert!(rest.recovered && rest.recovery_s.is_some_and(|s| s <= 2), "{rest:?}");
    // What has piled up: up to 15 s by the spike, and half a request for each that is served, for 20 s.
    assert!((8..38).contains(&rest.duration_s), "{rest:?}");
    assert!(found.reason.contains(" of 75 calls per second succeeded in the last 10 s, with "), "{}", found.reason);
    let report = RecoveryReport::of(&test, RecoveryFacts { load_per_s: 75.0, ..RecoveryFacts::default() });
    assert_eq!(report.series.len(), test.seconds().len());
    let phases: Vec<RecoveryPhase> = report.phases.iter().map(|phase| phase.phase).collect();
    use RecoveryPhase::{Baseline, Observation, Rest, Return, Trigger, WarmUp};
    assert_eq!(phases, [WarmUp, Baseline, Trigger, Observation, Rest, Return]);
    let per_call: Vec<f64> = report.phases.iter().filter_map(|phase| phase.requests_per_call).collect();
    assert!(per_call[1] < 1.01 && per_call[3] > 1.5, "{per_call:?}");
}

#[test]
fn a_service_that_stays_slower_is_degraded() {
    let model = ServiceModel { slots: 2, service_s: 0.02 };
    let scenario = Scenario { model, clients: PATIENT, share: 0.6, spike: 3.0, seed: 3 };
    // What it had in memory is gone: each call takes 60 ms longer.
    let test = scenario.run(RecoveryRules { observe_s: 20, ..RULES }, &mut |phase, _, second| {
        if !matches!(phase, RecoveryPhase::WarmUp | RecoveryPhase::Baseline) {
            let times: Vec<(Nanos, u64)> = second.times.recorded().collect();
            second.times = weir_histogram::Histogram::coarse();
            let slower = |time: Nanos| time + Nanos::from_millis(60);
            times.iter().for_each(|(time, count)| (0..*count).for_each(|_| second.times.record(slower(*time))));
        }
    });
    let found = test.finding("not reached");
    assert_eq!(found.verdict, RecoveryVerdict::Degraded, "{found:?}");
    assert_eq!(found.rest.map(|rest| rest.recovered), Some(false));
    assert!(found.reason.starts_with("all of the load is served, with a median of "), "{}", found.reason);
}

#[test]
fn a_load_that_the_service_does_not_take_has_no_verdict() {
    let model = ServiceModel { slots: 2, service_s: 0.02 };
    for clients in [PATIENT, Clients { timeout_s: 0.5, retries: 2 }] {
        let found = Scenario { model, clients, share: 1.6, spike: 2.0, seed: 5 }.finding();
        assert_eq!((found.verdict, found.recovery_s), (RecoveryVerdict::Inconclusive, None));
        assert!(found.reason.contains(" before the trigger"), "{}", found.reason);
    }
    let mut test = RecoveryTest::new(RULES);
    let silent = RecoverySecond::of(&Interval::default(), 50.0);
    let last = (0..12).map(|_| test.add(silent.clone())).last();
    assert_eq!(last, Some(RecoveryAction::End));
    assert_eq!(test.finding("").reason, "no call succeeded before the trigger");
}

#[test]
fn a_trigger_without_a_length_ends_when_it_is_told_or_without_a_verdict() {
    let rules = RecoveryRules { trigger: TriggerLength::UntilEnded { max_s: 7 }, ..RULES };
    let good = |test: &mut RecoveryTest| {
        let mut second = RecoverySecond::of(&Interval { ok: 50, ..Interval::default() }, 50.0);
        (0..50).for_each(|_| second.times.record(Nanos::from_millis(10)));
        test.add(second)
    };
    let mut test = RecoveryTest::new(rules);
    let actions: Vec<RecoveryAction> = (0..12).map(|_| good(&mut test)).collect();
    assert_eq!(actions.last(), Some(&RecoveryAction::Trigger));
    let mut endless = test.clone();
    assert_eq!((0..7).map(|_| good(&mut endless)).last(), Some(RecoveryAction::End));
    assert_eq!(endless.finding("").reason, "the trigger did not end within 7 s");
    (0..2).for_each(|_| assert_eq!(good(&mut test), RecoveryAction::Continue));
    test.end_trigger();
    good(&mut test);
    assert_eq!(test.phase(), RecoveryPhase::Observation);
    assert_eq!((0..10).map(|_| good(&mut test)).last(), Some(RecoveryAction::End));
    assert_eq!(test.finding("").verdict, RecoveryVerdict::Undisturbed);
}
