//! Hosts that fall silent, and hosts that only seem to: slow ones, ones with pauses, ones with a slow job.

use super::simulation::{DispatchResult, DispatchScenario, JobEnd};
use crate::decide::base::rng::{SeededRng, TestRng};
use crate::decide::delivery::dispatch::{Dispatch, Nanos};
use crate::decide::delivery::key_window::KeyLimit;
use crate::decide::ratelimit::models::{LimitModel, LimitWindow};
use crate::decide::service::delay::Delay;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Times at which a host responds to none, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPauses {
    /// Work stands still.
    stalls: Vec<(Nanos, Nanos)>,
    /// Requests are lost, and so are responses.
    blackouts: Vec<(Nanos, Nanos)>,
    /// Whether the dispatch takes silence for no evidence.
    are_ignored: bool,
}

impl HostPauses {
    pub(crate) fn prepare(&self, dispatch: &mut Dispatch) {
        if self.are_ignored {
            dispatch.add_host(None);
            dispatch.hosts[0].circuit.silence.disable();
        }
    }

    pub(crate) fn is_silent(&self, at: Nanos) -> bool {
        self.stalls.iter().chain(&self.blackouts).any(|(from, to)| (*from..*to).contains(&at))
    }

    pub(crate) fn is_lost(&self, at: Nanos) -> bool {
        self.blackouts.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Time of the response to a request that arrived then; `None` without one.
    pub(crate) fn end_of_work(&self, arrived: Nanos, work: Nanos) -> Option<Nanos> {
        let (mut at, mut left) = (arrived, work);
        for (from, to) in self.stalls.iter().filter(|(_, to)| *to > arrived) {
            if at + left < *from {
                break;
            }
            left = left - (*from - at);
            at = at.max(*to);
        }
        Some(at + left).filter(|end| !self.is_lost(*end))
    }
}

fn delay(text: &str) -> Delay {
    Delay::read(text).expect(text)
}

/// A host with one key, work as that text says, and a quarter more jobs than it takes.
fn host(limit: &str, work: &str, seconds: u64, per_s: f64) -> DispatchScenario {
    let mut scenario = DispatchScenario::reference();
    let window = LimitWindow::read(limit, LimitModel::SlidingLog).ok();
    scenario.limits = window.into_iter().collect();
    scenario.rules.key.limits = scenario.limits.iter().copied().map(KeyLimit::new).collect();
    (scenario.rules.key.learns_pace, scenario.rules.key.ordered) = (false, false);
    scenario.rules.key.delay_bound = None;
    scenario.rules.max_in_flight = 256;
    scenario.keys = 1;
    (scenario.delay_in, scenario.delay_out) = (delay("1ms..5ms"), delay(work));
    scenario.gap = Delay::Constant(Nanos::from_secs_f64(0.8 / per_s));
    (scenario.initial_jobs, scenario.block_after) = (per_s.ceil() as u64, 0);
    scenario.until = Nanos::from_secs(seconds);
    scenario
}

/// Number of jobs done.
fn done(result: &DispatchResult) -> u64 {
    result.ends.values().filter(|end| **end == JobEnd::Done).count() as u64
}

/// Jobs done, in proportion to those without silence as evidence.
fn compared(name: &str, scenario: &DispatchScenario, seed: u64) -> f64 {
    let mut without = scenario.clone();
    without.pauses.are_ignored = true;
    let (result, without) = (scenario.run(seed), without.run(seed));
    let ratio = done(&result) as f64 / done(&without) as f64;
    println!("{name}, {seed}: {} of {}, {ratio:.4}", done(&result), done(&without));
    ratio
}

/// Stalls of random lengths, so many per second on average.
fn stalls(rng: &mut TestRng, per_s: f64, length_ms: (u64, u64), until: Nanos) -> Vec<(Nanos, Nanos)> {
    let (mut at, mut all) = (Nanos::ZERO, Vec::new());
    while at < until {
        at = at + Nanos((rng.0.exponential() / per_s * 1e9) as u64);
        let end = at + ms(length_ms.0 + rng.below(length_ms.1 - length_ms.0 + 1));
        all.push((at, end));
        at = end;
    }
    all
}

#[test]
fn a_host_with_long_tailed_response_times_keeps_its_rate() {
    for (limit, work, per_s, seconds) in [
        ("100/1s", "lognormal:50ms,1", 100.0, 120),
        ("100/1s", "lognormal:50ms,1.5", 100.0, 120),
        ("10/1s", "lognormal:500ms,1", 10.0, 300),
        ("2/1s", "lognormal:500ms,1.5", 2.0, 1200),
        ("none", "lognormal:50ms,1.5", 1000.0, 20),
    ] {
        let scenario = host(limit, work, seconds, per_s);
        for seed in 0..2 {
            assert!(compared(&format!("{limit}, {work}"), &scenario, seed) >= 0.98);
        }
    }
}

#[test]
fn a_host_with_a_quick_and_a_slow_mode_keeps_its_rate() {
    for (limit, work, per_s, seconds) in [
        ("100/1s", "bimodal:5ms..15ms,2s..2s,0.5%", 100.0, 60),
        ("100/1s", "bimodal:5ms..15ms,2s..2s,2%", 100.0, 60),
        ("20/1s", "bimodal:5ms..15ms,2s..2s,20%", 20.0, 120),
        ("5/1s", "bimodal:5ms..15ms,2s..2s,0.8%", 5.0, 600),
        ("5/1s", "bimodal:5ms..15ms,2s..2s,50%", 5.0, 600),
        ("none", "bimodal:5ms..15ms,2s..2s,5%", 2000.0, 15),
    ] {
        let scenario = host(limit, work, seconds, per_s);
        for seed in 0..2 {
            assert!(compared(&format!("{limit}, {work}"), &scenario, seed) >= 0.98);
        }
    }
}

#[test]
fn a_host_that_takes_up_to_a_minute_keeps_its_rate() {
    for (limit, work, per_s, slots, seconds) in [
        ("1/1s", "5s..60s", 1.0, 256, 1800),
        ("1/5s", "5s..60s", 0.2, 256, 7200),
        ("1/10s", "30s", 0.1, 256, 7200),
        ("1/1s", "lognormal:12s,0.6", 1.0, 256, 1800),
        ("none", "5s..60s", 8.0, 256, 900),
        ("none", "5s..60s", 0.1, 3, 7200),
        ("none", "30s", 0.1, 3, 7200),
    ] {
        let mut scenario = host(limit, work, seconds, per_s);
        scenario.rules.max_in_flight = slots;
        scenario.rules.attempt_timeout = Nanos::from_secs(600);
        for seed in 0..2 {
            assert!(compared(&format!("{limit}, {work}, {slots} slots"), &scenario, seed) >= 0.98);
        }
    }
}

#[test]
fn a_host_with_short_pauses_keeps_its_rate() {
    for (limit, per_s, stalls_per_s, length_ms, seconds) in [
        ("100/1s", 100.0, 3.0, (20, 1000), 120),
        ("100/1s", 100.0, 1.0, (20, 300), 120),
        ("100/1s", 100.0, 0.2, (20, 1000), 120),
        ("100/1s", 100.0, 0.03, (1000, 1000), 300),
        ("20/1s", 20.0, 0.1, (500, 1000), 300),
        ("1000/1s", 1000.0, 1.0, (20, 500), 20),
        ("none", 1000.0, 1.0, (20, 1000), 20),
    ] {
        let mut scenario = host(limit, "10ms..50ms", seconds, per_s);
        let mut rng = TestRng(SeededRng::new(seconds, 97));
        scenario.pauses.stalls = stalls(&mut rng, stalls_per_s, length_ms, scenario.until);
        for seed in 0..2 {
            assert!(
                compared(&format!("{limit}, {stalls_per_s} stalls of {length_ms:?} ms per s"), &scenario, seed) >= 0.98
            );
        }
    }
}
