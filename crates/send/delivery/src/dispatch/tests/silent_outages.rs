//! Hosts that take requests for a while and respond to none.

use proptest::prelude::*;

use super::silence::{done, host};
use super::simulation::{DispatchResult, DispatchScenario, JobEnd};
use crate::dispatch::{DeliveryGuarantee, Nanos};
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::models::{LimitModel, LimitWindow};

fn s(s: u64) -> Nanos {
    Nanos::from_secs(s)
}

/// A host with a limit of 100/s that falls silent after three seconds; all jobs are there from the start.
fn outage(limit: &str, length: Nanos, are_lost: bool, jobs: u64) -> DispatchScenario {
    let mut scenario = host(limit, "12ms..70ms", 600, 100.0);
    scenario.rules.attempt_timeout = s(30);
    scenario.rules.key.delay_bound = None;
    (scenario.initial_jobs, scenario.jobs) = (jobs, jobs);
    let silent = (s(3), s(3) + length);
    if are_lost {
        scenario.pauses.blackouts.push(silent);
    } else {
        scenario.pauses.stalls.push(silent);
    }
    scenario
}

/// The longest time by which jobs are later than the even rate from then on, without those that time out; all of the
/// time if none is done in it.
fn behind(result: &DispatchResult, from: Nanos, until: Nanos, per_s: f64) -> f64 {
    let after = result.done_at.iter().filter(|at| (from..until).contains(*at));
    if after.clone().next().is_none() {
        return (until - from).as_secs_f64();
    }
    let late = after.enumerate().map(|(number, at)| (*at - from).as_secs_f64() - number as f64 / per_s);
    late.fold(0.0, f64::max)
}

#[test]
fn a_silence_of_ten_seconds_costs_no_job_and_thirty_requests_and_the_full_rate_is_back_within_a_second() {
    for (are_lost, timeout) in [(true, 30), (true, 2), (false, 30), (false, 2)] {
        let mut requests = Vec::new();
        for seed in 0..20 {
            let mut scenario = outage("bucket:100/1s", s(10), are_lost, 3000);
            scenario.rules.attempt_timeout = s(timeout);
            let result = scenario.run(seed);
            assert_eq!((done(&result), result.max_attempts_used), (3000, 0), "lost: {are_lost}, {timeout} s");
            // Requests that have their responses after it are not sent twice.
            assert!(are_lost || timeout == 2 || result.done.values().all(|times| *times == 1));
            let late = behind(&result, s(13), s(30), 100.0);
            assert!(late <= 1.0, "lost: {are_lost}, {timeout} s: {late} s");
            requests.push(result.sent_into_silence);
        }
        println!("lost: {are_lost}, {timeout} s: {requests:?}");
        assert!(requests.iter().sum::<u64>() <= 30 * 20, "{requests:?}");
        assert!(requests.iter().all(|requests| *requests <= 34), "{requests:?}");
    }
}

#[test]
fn what_requests_that_hang_take_of_a_limit_is_free_again_before_their_timeouts() {
    let scenario = outage("log:100/1s", s(5), true, 3000);
    let result = scenario.run(1);
    assert_eq!((done(&result), result.exceeded), (3000, 0));
    let rate = |from: u64| {
        let within = result.done_at.iter().filter(|at| (s(from)..s(from + 3)).contains(*at));
        within.count() as f64 / 3.0
    };
    // Some 20 of 100 are taken for as long as the silence was.
    println!("before {}, at first {}, then {}", rate(0), rate(9), rate(15));
    assert!(rate(9) >= 60.0 && rate(15) >= 0.95 * rate(0), "{} {} {}", rate(0), rate(9), rate(15));
}

#[test]
fn requests_that_hang_are_sent_again_when_the_host_has_responded_for_as_long_as_they_had_waited() {
    let scenario = outage("bucket:100/1s", s(10), true, 1000);
    let result = scenario.run(1);
    assert_eq!((done(&result), result.max_attempts_used), (1000, 0));
    let last = result.done_at.last().copied().unwrap_or_default();
    assert!((s(23)..s(26)).contains(&last), "{last}");
    for at_most_once in [false, true] {
        let mut scenario = outage("bucket:100/1s", s(10), true, 1000);
        if at_most_once {
            scenario.rules.delivery = DeliveryGuarantee::AtMostOnce;
        } else {
            scenario.rules.retry.max_retries = 0;
        }
        let result = scenario.run(1);
        let last = result.done_at.last().copied().unwrap_or_default();
        let hung = 1000 - done(&result);
        assert_eq!((hung > 0, last >= s(33)), (!at_most_once, at_most_once), "{hung} given up, the last at {last}");
    }
}

#[test]
fn jobs_that_hang_for_ever_use_up_their_attempts_though_they_make_a_silence() {
    let mut scenario = host("1/1s", "10ms..50ms", 600, 1.0);
    scenario.rules.attempt_timeout = s(10);
    scenario.rules.retry.max_retries = 2;
    (scenario.initial_jobs, scenario.jobs) = (300, 300);
    scenario.pauses.hanging_jobs = Some((50, 5, 150));
    let result = scenario.run(1);
    let dead_lettered = result.ends.values().filter(|end| matches!(end, JobEnd::DeadLettered(_))).count();
    assert_eq!((done(&result), dead_lettered), (285, 15));
}

#[test]
fn a_silence_gives_nothing_up() {
    let mut scenario = outage("bucket:100/1s", s(20), true, 1000);
    scenario.rules.give_up_after = Some(s(5));
    assert_eq!(done(&scenario.run(1)), 1000);
}

#[test]
fn probes_that_hang_do_not_hide_the_end_of_a_silence_before_their_timeouts() {
    let mut scenario = outage("bucket:100/1s", s(40), true, 5000);
    (scenario.rules.attempt_timeout, scenario.rules.key.delay_bound) = (s(60), Some(Nanos::from_millis(5)));
    let result = scenario.run(1);
    let late = behind(&result, s(43), s(50), 100.0);
    assert!(late <= 3.2, "{late} s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A silence costs no job an attempt, few requests, and little time.
    #[test]
    fn a_silence_costs_few_requests_and_no_attempts(seed: u64) {
        let mut rng = TestRng(SeededRng::new(seed, 99));
        let (per_s, seconds) = (20 + rng.below(100), 2 + rng.below(40));
        let (are_lost, bound) = (rng.one_in(2), rng.one_in(2));
        let jobs = per_s * (3 + seconds) + 500;
        let limit = format!("bucket:{per_s}/1s");
        let mut scenario = outage(&limit, s(seconds), are_lost, jobs);
        scenario.limits = vec![LimitWindow::read(&limit, LimitModel::SlidingLog).expect("valid")];
        scenario.rules.attempt_timeout = s([2, 10, 30, 60][rng.below(4) as usize]);
        scenario.rules.key.delay_bound = bound.then(|| Nanos::from_millis(5));
        let result = scenario.run(seed);
        prop_assert_eq!((done(&result), result.max_attempts_used, result.exceeded), (jobs, 0, 0));
        let probes = 2.0 * seconds as f64;
        // The response times are not known well below a hundred responses.
        let silence_s = if per_s < 50 { 0.6 } else { 0.2 };
        let most = silence_s * per_s as f64 + 5.0 + probes.min(24.0 + 16.0 * (seconds as f64 / 10.0).max(1.0).ln());
        prop_assert!(result.sent_into_silence as f64 <= most, "{} at {per_s}/s in {seconds} s", result.sent_into_silence);
        if bound {
            let end = s(3 + seconds);
            let late = behind(&result, end, end + s(4), per_s as f64);
            prop_assert!(late <= 1.0_f64.max(0.08 * seconds as f64), "{late} s behind at {per_s}/s after {seconds} s");
        }
    }
}
