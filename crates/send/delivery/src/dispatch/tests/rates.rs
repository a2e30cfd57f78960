//! Used fraction of a service's limits, over minutes.

use super::simulation::{DispatchResult, DispatchScenario, JobEnd};
use crate::dispatch::{DispatchFailure, DispatchOrder, Nanos};
use weir_limits::models::{LimitModel, LimitWindow};
use weir_workload::delay::Delay;

fn delay(text: &str) -> Delay {
    Delay::read(text).expect(text)
}

/// The reference workload for some time, with delays of up to `ms` each way, and slightly more jobs than the limit.
fn saturated(ms: u64, keys: u32, seconds: u64) -> DispatchScenario {
    let mut setting = DispatchScenario::reference();
    setting.keys = keys;
    setting.rules.key.delay_bound = Some(Nanos::from_millis(ms));
    (setting.delay_in, setting.delay_out) = (delay(&format!("0ms..{ms}ms")), delay(&format!("0ms..{ms}ms")));
    setting.until = Nanos::from_secs(seconds);
    setting.gap = Delay::Constant(Nanos(1_000_000_000 / (22 * u64::from(keys))));
    setting
}

/// Accepted requests per second, without rejections.
fn rate(name: &str, setting: &DispatchScenario) -> (f64, DispatchResult) {
    let result = setting.run(1);
    let rate = result.accepted as f64 / setting.until.as_secs_f64();
    println!(
        "{name}: {rate:.2}/s, way in {}",
        result.delay_bound.map_or("not known".to_owned(), |way_in| way_in.to_string())
    );
    assert_eq!((result.exceeded, result.invalid_nonces), (0, 0), "{name}");
    (rate, result)
}

/// With exact knowledge of all arrivals it would be 96.9, with serial workers 85.
#[test]
fn the_reference_workload_reaches_95_per_second_with_ordered_keys() {
    let (rate, result) = rate("document, 10 min", &saturated(50, 5, 600));
    assert!(rate >= 95.0, "{rate}");
    let (least, most) = (result.per_key.iter().min(), result.per_key.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 60), "{:?}", result.per_key);
}

#[test]
fn a_learnt_delay_bound_costs_little() {
    let mut setting = saturated(50, 5, 600);
    setting.rules.key.delay_bound = None;
    let (learnt, _) = rate("learnt", &setting);
    setting.rules.learns_delay_bound = false;
    setting.until = Nanos::from_secs(60);
    let (responses_only, _) = rate("answers only", &setting);
    assert!(learnt >= 94.5 && responses_only >= 90.0 && learnt > responses_only, "{learnt}, {responses_only}");
}

/// One in fifty responses is lost, and times out after a second: the delay bound is then raised for a while.
#[test]
fn lost_responses_stop_no_key() {
    for learns in [false, true] {
        let mut setting = saturated(50, 5, 120);
        setting.rules.key.delay_bound = (!learns).then(|| Nanos::from_millis(50));
        setting.rules.attempt_timeout = Nanos::SECOND;
        setting.lost_per_mille = 20;
        let (rate, result) = rate(&format!("lost answers, learnt: {learns}"), &setting);
        assert!(rate >= if learns { 75.0 } else { 95.0 } && result.per_key.iter().all(|sent| *sent > 1500), "{rate}");
    }
}

#[test]
fn many_keys_are_as_good_as_one_each() {
    for (keys, seconds) in [(1, 200), (3, 60), (20, 20), (200, 10)] {
        let (rate, result) = rate(&format!("{keys} keys"), &saturated(50, keys, seconds));
        assert!(rate >= 19.0 * f64::from(keys), "{rate}");
        let (least, most) = (result.per_key.iter().min(), result.per_key.iter().max());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 12), "{:?}", result.per_key);
    }
}

#[test]
fn keys_without_an_order_reach_the_bound_of_every_model() {
    for model in ["log", "aligned", "bucket", "counter"] {
        for ms in [0, 5, 50, 500] {
            let mut setting = saturated(ms, 5, 30);
            setting.rules.key.ordered = false;
            let window = LimitWindow::read(&format!("{model}:20/1s"), LimitModel::SlidingLog).expect("valid");
            setting.rules.key.limits[0].window = window;
            setting.limits = vec![window];
            let (rate, _) = rate(&format!("{model}, {ms} ms, in any order"), &setting);
            let limit = if model == "counter" { 19.0 } else { 20.0 };
            let bound = 5.0 * limit / (1.0 + ms as f64 / 1e3 + 0.001) * 0.995;
            assert!(rate >= bound, "{model}, {ms} ms: {rate}, not {bound}");
        }
    }
}

#[test]
fn ordered_keys_with_other_delays() {
    for (ms, least) in [(0, 99.0), (5, 98.5), (500, 11.8)] {
        let (rate, _) = rate(&format!("ordered, {ms} ms"), &saturated(ms, 5, 60));
        // With a delay of 500 ms requests go one by one: 1 / E[min(r, 500 ms)] = 2.4/s per key.
        assert!(rate >= least, "{ms} ms: {rate}");
    }
}

/// Generator of the reference workload: a request, then a sleep of 0 to 21 ms; a TTL of a second.
#[test]
fn no_job_of_the_reference_generator_is_lost_or_expires() {
    let mut setting = saturated(50, 5, 600);
    setting.gap = delay("0ms..21ms");
    setting.initial_jobs = 1;
    setting.jobs = 20_000;
    setting.ttl = Some(Nanos::SECOND);
    setting.until = Nanos::NEVER;
    let mut result = setting.run(1);
    assert_eq!((result.exceeded, result.invalid_nonces), (0, 0));
    assert!(result.ends.values().all(|end| *end == JobEnd::Done) && result.ends.len() == 20_000);
    result.responses.sort_unstable();
    let p99 = result.responses[result.responses.len() * 99 / 100];
    println!("generator: p50 {}, p99 {p99}", result.responses[result.responses.len() / 2]);
    assert!(p99 < Nanos::from_millis(900), "{p99}");
}

/// Overload for a while: ordered by deadline, jobs with a long TTL wait.
#[test]
fn by_deadline_fewer_expire() {
    let mut setting = saturated(50, 5, 60);
    setting.gap = Delay::Constant(Nanos::from_millis(10));
    setting.jobs = 6000;
    setting.until = Nanos::NEVER;
    (setting.min_ttl, setting.ttl) = (Some(Nanos::from_millis(500)), Some(Nanos::from_secs(60)));
    let expired = |order| {
        let mut setting = setting.clone();
        setting.rules.order = order;
        let result = setting.run(2);
        result.ends.values().filter(|end| **end == JobEnd::Expired(DispatchFailure::Expired)).count()
    };
    let (by_deadline, as_they_came) = (expired(DispatchOrder::Deadline), expired(DispatchOrder::Fifo));
    println!("expired: {by_deadline} by deadline, {as_they_came} as they came");
    assert!(by_deadline * 5 <= as_they_came, "{by_deadline} of {as_they_came}");
}

/// The configured limit is twice the server's: a key detects that with few rejections, and goes on.
#[test]
fn a_limit_that_is_configured_too_high_costs_a_key_few_rejections() {
    let mut setting = saturated(50, 5, 300);
    setting.limits = vec![LimitWindow::read("10/1s", LimitModel::SlidingLog).expect("valid")];
    let result = setting.run(1);
    let rate = result.accepted as f64 / 300.0;
    println!("half the limit: {rate:.2}/s, {} rejected", result.exceeded);
    assert!(result.exceeded <= 5 * 5 && rate > 44.0, "{} rejected, {rate}", result.exceeded);
}

/// Five steps of priority are worth five seconds: earlier jobs are not overtaken for ever.
#[test]
fn no_job_waits_for_ever_behind_higher_priorities() {
    for order in [DispatchOrder::Deadline, DispatchOrder::Fifo] {
        let mut setting = saturated(50, 1, 60);
        setting.gap = Delay::Constant(Nanos::from_millis(25));
        (setting.initial_jobs, setting.priorities) = (1, 6);
        setting.rules.priority_step = Nanos::SECOND;
        setting.rules.order = order;
        let result = setting.run(1);
        let early = result.waited.iter().filter(|(job, _)| **job < 100);
        let longest = early.map(|(_, waited)| *waited).max().unwrap_or_default();
        let unsent = (0..100).filter(|job| !result.waited.contains_key(job)).count();
        println!("{order:?}: {longest}");
        assert!(unsent == 0 && longest < Nanos::from_secs(15), "{order:?}: {longest}, {unsent}");
    }
}

/// Another client uses half of each key's limit.
#[test]
fn requests_of_another_client_cost_few_rejections() {
    let mut setting = saturated(50, 5, 120);
    setting.rules.key.ordered = false;
    (setting.others_interval, setting.block_after) = (Some(Nanos::from_millis(100)), 0);
    for headers in [false, true] {
        setting.has_headers = headers;
        let result = setting.run(1);
        println!("headers {headers}: {:.2}/s, {} rejected", result.accepted as f64 / 120.0, result.exceeded);
        assert!(result.exceeded <= 16 && result.accepted > 120 * 45, "{} rejected", result.exceeded);
    }
}

#[test]
fn headers_cost_nothing_while_no_other_client_sends() {
    for model in ["log", "aligned", "bucket", "counter"] {
        let mut setting = saturated(50, 5, 30);
        let window = LimitWindow::read(&format!("{model}:20/1s"), LimitModel::SlidingLog).expect("valid");
        setting.rules.key.limits[0].window = window;
        setting.limits = vec![window];
        setting.rules.key.ordered = false;
        let (without, _) = rate(model, &setting);
        setting.has_headers = true;
        let (with, _) = rate(&format!("{model}, with headers"), &setting);
        assert!(with >= without * 0.995, "{model}: {with}, not {without}");
    }
}

/// A packet is lost now and then, and retransmitted: the delay is far longer than the configured bound.
#[test]
fn a_delay_bound_that_is_exceeded_now_and_then_costs_few_rejections() {
    for model in ["log", "bucket", "counter", "aligned"] {
        let mut setting = saturated(50, 5, 600);
        let window = LimitWindow::read(&format!("{model}:20/1s"), LimitModel::SlidingLog).expect("valid");
        setting.rules.key.limits[0].window = window;
        setting.limits = vec![window];
        setting.rules.key.ordered = false;
        setting.block_after = 0;
        setting.delay_in = delay("bimodal:0ms..50ms,250ms..350ms,0.1%");
        let result = setting.run(1);
        println!("{model}: {:.2}/s, {} rejected", result.accepted as f64 / 600.0, result.exceeded);
        assert!(result.exceeded <= 2, "{model}: {} rejected", result.exceeded);
    }
}

/// The whole round trip is the way in, so half of it is too low a bound: it is tried, and raised again.
#[test]
fn a_delay_bound_that_is_learnt_too_low_costs_few_rejections() {
    let mut setting = saturated(100, 5, 600);
    setting.rules.key.delay_bound = None;
    setting.delay_out = Delay::Constant(Nanos::ZERO);
    let result = setting.run(1);
    let rate = result.accepted as f64 / 600.0;
    let (rejected, invalid_nonces) = (result.exceeded, result.invalid_nonces);
    println!("one-way: {rate:.2}/s, {rejected} rejected, {invalid_nonces} overtaken");
    assert!(rejected + invalid_nonces <= 10 && rate > 85.0, "{rate}, {rejected}, {invalid_nonces}");
}
