//! Hosts that only seem to fall silent: slow ones, ones with pauses, ones with slow jobs. None may lose its rate.

use proptest::prelude::*;

use super::simulation::{DispatchResult, DispatchScenario, JobEnd};
use crate::dispatch::{Dispatch, JobId, Nanos};
use crate::key_window::KeyLimit;
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::models::{LimitModel, LimitWindow};
use weir_workload::delay::Delay;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Times at which a host responds to none, in order, and jobs to which it responds late.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPauses {
    /// Work stands still.
    pub(crate) stalls: Vec<(Nanos, Nanos)>,
    /// Requests are lost, and so are responses.
    pub(crate) blackouts: Vec<(Nanos, Nanos)>,
    /// Jobs that take this long: one in N.
    pub(crate) slow_jobs: Option<(u64, Nanos)>,
    /// Jobs that get no response: the first of each N, from the first of all to a last one.
    pub(crate) hanging_jobs: Option<(u64, u64, JobId)>,
    /// Time from which all work takes this much longer.
    pub(crate) slow_from: Option<(Nanos, Nanos)>,
    /// Whether the dispatch takes silence for no evidence.
    pub(crate) are_ignored: bool,
}

impl HostPauses {
    pub(crate) fn prepare(&self, dispatch: &mut Dispatch) {
        if self.are_ignored {
            dispatch.add_host(None);
            dispatch.hosts[0].circuit.silence.disable();
        }
    }

    pub(crate) fn is_silent(&self, at: Nanos) -> bool {
        self.is_blackout(at) || self.stalls.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    fn is_blackout(&self, at: Nanos) -> bool {
        self.blackouts.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    pub(crate) fn is_lost(&self, at: Nanos, job: JobId) -> bool {
        let hangs = |(each, hanging, last)| job < last && job % each < hanging;
        self.is_blackout(at) || self.hanging_jobs.is_some_and(hangs)
    }

    /// Time of the response to a request that arrived then; `None` without one.
    pub(crate) fn end_of_work(&self, arrived: Nanos, job: JobId, work: Nanos) -> Option<Nanos> {
        let slow = self.slow_jobs.filter(|(each, _)| job % each == each - 1).map(|(_, work)| work);
        let more = self.slow_from.filter(|(from, _)| arrived >= *from).map_or(Nanos::ZERO, |(_, more)| more);
        let (mut at, mut left) = (arrived, slow.unwrap_or(work) + more);
        for (from, to) in self.stalls.iter().filter(|(_, to)| *to > arrived) {
            if at + left < *from {
                break;
            }
            left = left - (*from - at);
            at = at.max(*to);
        }
        Some(at + left).filter(|end| !self.is_blackout(*end))
    }
}

/// A host with one key and work as that text says, and a quarter more jobs than its limit allows. A limit of 1 per
/// interval is the hardest: what is not sent in time is never caught up with.
pub(crate) fn host(limit: &str, work: &str, seconds: u64, per_s: f64) -> DispatchScenario {
    let mut scenario = DispatchScenario::reference();
    scenario.limits = LimitWindow::read(limit, LimitModel::SlidingLog).into_iter().collect();
    scenario.rules.key.limits = scenario.limits.iter().copied().map(KeyLimit::new).collect();
    (scenario.rules.key.learns_pace, scenario.rules.key.ordered) = (false, false);
    scenario.rules.max_in_flight = 256;
    scenario.rules.attempt_timeout = Nanos::from_secs(600);
    scenario.rules.key.delay_bound = Some(ms(5));
    scenario.keys = 1;
    scenario.delay_in = Delay::read("1ms..5ms").expect("valid");
    scenario.delay_out = Delay::read(work).expect("valid");
    scenario.gap = Delay::Constant(Nanos::from_secs_f64(0.8 / per_s));
    (scenario.initial_jobs, scenario.block_after) = (per_s.ceil() as u64, 0);
    scenario.until = Nanos::from_secs(seconds);
    scenario
}

/// Number of jobs done.
pub(crate) fn done(result: &DispatchResult) -> u64 {
    result.ends.values().filter(|end| **end == JobEnd::Done).count() as u64
}

/// Jobs done, and those done without silence as evidence.
fn compared(name: &str, scenario: &DispatchScenario, seed: u64) -> (u64, u64) {
    let mut without = scenario.clone();
    without.pauses.are_ignored = true;
    let (result, without) = (scenario.run(seed), without.run(seed));
    assert_eq!(result.max_attempts_used, 0);
    assert!(result.done.values().all(|times| *times == 1), "sent twice");
    let (result, without) = (done(&result), done(&without));
    println!("{name}, {seed}: {result} of {without}, {:.4}", result as f64 / without as f64);
    (result, without)
}

fn assert_harmless(name: &str, scenario: &DispatchScenario) {
    let (result, without) = compared(name, scenario, 1);
    assert!(result as f64 >= 0.98 * without as f64, "{name}: {result} of {without}");
}

/// Stalls of random lengths, `per_s` per second on average.
fn stalls(rng: &mut TestRng, per_s: f64, length_ms: (u64, u64), until: Nanos) -> Vec<(Nanos, Nanos)> {
    let (mut at, mut all) = (Nanos::ZERO, Vec::new());
    while at < until {
        let end = at + ms(length_ms.0 + rng.below(length_ms.1 - length_ms.0 + 1));
        all.push((at, end));
        at = end + Nanos::from_secs_f64(rng.0.exponential() / per_s);
    }
    all
}

#[test]
fn a_host_with_long_tailed_response_times_keeps_its_rate() {
    for (limit, work, per_s, seconds) in [
        ("1/10ms", "lognormal:50ms,1", 100.0, 60),
        ("1/10ms", "lognormal:50ms,1.5", 100.0, 60),
        ("1/100ms", "lognormal:500ms,1", 10.0, 300),
        ("1/500ms", "lognormal:500ms,1.5", 2.0, 1200),
        ("none", "lognormal:50ms,1.5", 1000.0, 10),
    ] {
        assert_harmless(&format!("{limit}, {work}"), &host(limit, work, seconds, per_s));
    }
}

#[test]
fn a_host_with_a_quick_and_a_slow_mode_keeps_its_rate() {
    for (limit, work, per_s, seconds) in [
        ("1/10ms", "bimodal:5ms..15ms,2s..2s,0.5%", 100.0, 60),
        ("1/10ms", "bimodal:5ms..15ms,2s..2s,2%", 100.0, 60),
        ("1/50ms", "bimodal:5ms..15ms,2s..2s,20%", 20.0, 120),
        ("1/200ms", "bimodal:5ms..15ms,2s..2s,0.8%", 5.0, 600),
        ("1/200ms", "bimodal:5ms..15ms,2s..2s,50%", 5.0, 600),
        ("none", "bimodal:5ms..15ms,2s..2s,5%", 1000.0, 10),
    ] {
        assert_harmless(&format!("{limit}, {work}"), &host(limit, work, seconds, per_s));
    }
}

#[test]
fn a_host_that_takes_up_to_a_minute_keeps_its_rate() {
    for (limit, work, per_s, slots, seconds) in [
        ("1/1s", "5s..60s", 1.0, 256, 1800),
        ("1/5s", "5s..60s", 0.2, 256, 7200),
        ("1/10s", "30s", 0.1, 256, 7200),
        ("1/1s", "30s", 1.0, 256, 1800),
        ("1/1s", "lognormal:12s,0.6", 1.0, 256, 1800),
        ("none", "5s..60s", 8.0, 256, 600),
        ("none", "5s..60s", 0.1, 3, 7200),
        ("none", "30s", 0.1, 3, 7200),
    ] {
        let mut scenario = host(limit, work, seconds, per_s);
        scenario.rules.max_in_flight = slots;
        assert_harmless(&format!("{limit}, {work}, {slots} slots"), &scenario);
    }
}

#[test]
fn a_host_with_short_pauses_keeps_its_rate() {
    for (limit, per_s, stalls_per_s, length_ms, seconds) in [
        ("1/10ms", 100.0, 3.0, (20, 1000), 60),
        ("1/10ms", 100.0, 1.0, (20, 300), 60),
        ("1/10ms", 100.0, 0.2, (20, 1000), 120),
        ("1/10ms", 100.0, 0.03, (1000, 1000), 300),
        ("1/50ms", 20.0, 0.1, (500, 1000), 300),
        ("10/10ms", 1000.0, 1.0, (20, 500), 10),
        ("none", 1000.0, 1.0, (20, 1000), 10),
    ] {
        let mut scenario = host(limit, "10ms..50ms", seconds, per_s);
        let mut rng = TestRng(SeededRng::new(seconds, 97));
        scenario.pauses.stalls = stalls(&mut rng, stalls_per_s, length_ms, scenario.until);
        assert_harmless(&format!("{limit}, {stalls_per_s} stalls of {length_ms:?} ms per s"), &scenario);
    }
}

#[test]
fn slow_jobs_among_quick_ones_hold_up_none() {
    for (limit, per_s) in [("1/10ms", 100.0), ("1/200ms", 5.0), ("1/1s", 1.0)] {
        for slow in [2, 20] {
            let mut scenario = host(limit, "10ms..50ms", 60 + (1000.0 / per_s) as u64, per_s);
            scenario.pauses.slow_jobs = Some((150, Nanos::from_secs(slow)));
            let (result, without) = compared(&format!("{limit}, one job in 150 takes {slow} s"), &scenario, 1);
            assert_eq!(result, without);
        }
    }
}

#[test]
fn a_host_that_gets_much_slower_at_once_is_held_up_for_two_response_times_at_most() {
    for (limit, per_s, slower_s) in
        [("1/10ms", 100.0, 2), ("1/50ms", 20.0, 2), ("1/50ms", 20.0, 10), ("1/500ms", 2.0, 60)]
    {
        let mut scenario = host(limit, "10ms..50ms", 300, per_s);
        scenario.pauses.slow_from = Some((Nanos::from_secs(60), Nanos::from_secs(slower_s)));
        let (result, without) = compared(&format!("{limit}, {slower_s} s slower"), &scenario, 1);
        let lost_s = (without - result.min(without)) as f64 / per_s;
        assert!(lost_s <= 2.0 * slower_s as f64, "{limit}, {slower_s} s slower: {lost_s} s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a host's response times are, silence as evidence costs at most 2% of its rate; a job or two may be in
    /// flight at the end.
    #[test]
    fn no_host_that_responds_to_all_loses_its_rate(seed: u64) {
        let mut rng = TestRng(SeededRng::new(seed, 98));
        let work = ["10ms..50ms", "lognormal:100ms,1.2", "bimodal:5ms..15ms,2s..2s,3%", "exponential:300ms", "1s..5s", "30s"];
        let (work, per_s) = (work[rng.below(6) as usize], [1, 5, 20, 60][rng.below(4) as usize]);
        let limit = if rng.one_in(4) { "none".to_owned() } else { format!("1/{}ms", 1000 / per_s) };
        let mut scenario = host(&limit, work, 60 + 3000 / per_s, per_s as f64);
        scenario.rules.max_in_flight = [4, 16, 256][rng.below(3) as usize];
        if rng.one_in(3) {
            scenario.rules.key.delay_bound = None;
        }
        if rng.one_in(2) {
            let (per_s, longest) = ([0.02, 0.2, 2.0][rng.below(3) as usize], 20 + rng.below(980));
            scenario.pauses.stalls = stalls(&mut rng, per_s, (20, longest), scenario.until);
        }
        scenario.pauses.slow_jobs = rng.one_in(3).then(|| (20 + rng.below(500), ms(100 + rng.below(20_000))));
        let (result, without) = compared(&format!("{limit}, {work}, {:?}", scenario.pauses.slow_jobs), &scenario, seed);
        prop_assert!(result as f64 >= 0.98 * without as f64 - 2.0, "{result} of {without}: {scenario:?}");
    }
}
