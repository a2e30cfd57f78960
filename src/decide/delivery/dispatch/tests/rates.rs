//! How much of what an exchange lets through is used, by the minute.

use super::simulation::{DispatchResult, DispatchScenario, JobEnd};
use crate::decide::delivery::dispatch::{DispatchFailure, DispatchOrder, Nanos};
use crate::decide::ratelimit::models::{LimitModel, LimitWindow};
use crate::decide::service::delay::Delay;

fn delay(text: &str) -> Delay {
    Delay::read(text).expect(text)
}

/// The document's setting for some time, with a way of up to `ms` in and out, and a little more to send than goes.
fn saturated(ms: u64, keys: u32, seconds: u64) -> DispatchScenario {
    let mut setting = DispatchScenario::reference();
    setting.keys = keys;
    setting.rules.key.delay_bound = Some(Nanos::from_millis(ms));
    (setting.delay_in, setting.delay_out) = (delay(&format!("0ms..{ms}ms")), delay(&format!("0ms..{ms}ms")));
    setting.until = Nanos::from_secs(seconds);
    setting.gap = Delay::Constant(Nanos(1_000_000_000 / (22 * u64::from(keys))));
    setting
}

/// Accepted in a second, none refused.
fn rate(name: &str, setting: &DispatchScenario) -> (f64, DispatchResult) {
    let story = setting.run(1);
    let rate = story.accepted as f64 / setting.until.as_secs_f64();
    println!(
        "{name}: {rate:.2}/s, way in {}",
        story.delay_bound.map_or("not known".to_owned(), |way_in| way_in.to_string())
    );
    assert_eq!((story.exceeded, story.invalid_nonces), (0, 0), "{name}");
    (rate, story)
}

/// An oracle that knows every arrival would have 96.9, serial workers 85.
#[test]
fn the_documents_exchange_takes_95_a_second_from_ordered_keys() {
    let (rate, story) = rate("document, 10 min", &saturated(50, 5, 600));
    assert!(rate >= 95.0, "{rate}");
    let (least, most) = (story.per_key.iter().min(), story.per_key.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 60), "{:?}", story.per_key);
}

#[test]
fn a_way_in_that_is_learnt_costs_little() {
    let mut setting = saturated(50, 5, 600);
    setting.rules.key.delay_bound = None;
    let (learnt, _) = rate("learnt", &setting);
    setting.rules.learns_delay_bound = false;
    setting.until = Nanos::from_secs(60);
    let (answers_only, _) = rate("answers only", &setting);
    assert!(learnt >= 94.5 && answers_only >= 90.0 && learnt > answers_only, "{learnt}, {answers_only}");
}

/// One in fifty answers is lost, and missed after a second: every bound on the way in is then raised for a while.
#[test]
fn lost_answers_stop_no_key() {
    for learns in [false, true] {
        let mut setting = saturated(50, 5, 120);
        setting.rules.key.delay_bound = (!learns).then(|| Nanos::from_millis(50));
        setting.rules.attempt_timeout = Nanos::SECOND;
        setting.lost_per_mille = 20;
        let (rate, story) = rate(&format!("lost answers, learnt: {learns}"), &setting);
        assert!(rate >= if learns { 75.0 } else { 95.0 } && story.per_key.iter().all(|sent| *sent > 1500), "{rate}");
    }
}

#[test]
fn many_keys_are_as_good_as_one_each() {
    for (keys, seconds) in [(1, 200), (3, 60), (20, 20), (200, 10)] {
        let (rate, story) = rate(&format!("{keys} keys"), &saturated(50, keys, seconds));
        assert!(rate >= 19.0 * f64::from(keys), "{rate}");
        let (least, most) = (story.per_key.iter().min(), story.per_key.iter().max());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 12), "{:?}", story.per_key);
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
fn ordered_keys_with_other_ways_in() {
    for (ms, least) in [(0, 99.0), (5, 98.5), (500, 11.8)] {
        let (rate, _) = rate(&format!("ordered, {ms} ms"), &saturated(ms, 5, 60));
        // A way of 500 ms lets one after the other through: 1 / E[min(r, 500 ms)] = 2.4/s for a key.
        assert!(rate >= least, "{ms} ms: {rate}");
    }
}

/// Its generator makes a request and then sleeps 0 to 21 ms; its TTL is a second.
#[test]
fn of_the_documents_generator_nothing_is_lost_and_nothing_expires() {
    let mut setting = saturated(50, 5, 600);
    setting.gap = delay("0ms..21ms");
    setting.initial_jobs = 1;
    setting.jobs = 20_000;
    setting.ttl = Some(Nanos::SECOND);
    setting.until = Nanos::NEVER;
    let mut story = setting.run(1);
    assert_eq!((story.exceeded, story.invalid_nonces), (0, 0));
    assert!(story.ends.values().all(|end| *end == JobEnd::Done) && story.ends.len() == 20_000);
    story.responses.sort_unstable();
    let p99 = story.responses[story.responses.len() * 99 / 100];
    println!("generator: p50 {}, p99 {p99}", story.responses[story.responses.len() / 2]);
    assert!(p99 < Nanos::from_millis(900), "{p99}");
}

/// Too much for a while: by deadline, who has time waits.
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
        let story = setting.run(2);
        story.ends.values().filter(|end| **end == JobEnd::Expired(DispatchFailure::Expired)).count()
    };
    let (by_deadline, as_they_came) = (expired(DispatchOrder::Deadline), expired(DispatchOrder::Fifo));
    println!("expired: {by_deadline} by deadline, {as_they_came} as they came");
    assert!(by_deadline * 5 <= as_they_came, "{by_deadline} of {as_they_came}");
}

/// The user says twice what the server grants: a key finds out with few refusals, and goes on.
#[test]
fn a_limit_that_was_stated_too_high_costs_a_key_few_refusals() {
    let mut setting = saturated(50, 5, 300);
    setting.limits = vec![LimitWindow::read("10/1s", LimitModel::SlidingLog).expect("valid")];
    let story = setting.run(1);
    let rate = story.accepted as f64 / 300.0;
    println!("half the limit: {rate:.2}/s, {} refused", story.exceeded);
    assert!(story.exceeded <= 5 * 5 && rate > 44.0, "{} refused, {rate}", story.exceeded);
}

/// Five steps of priority are worth five seconds: what came before them is not passed for ever.
#[test]
fn nobody_waits_for_ever_behind_higher_priorities() {
    for order in [DispatchOrder::Deadline, DispatchOrder::Fifo] {
        let mut setting = saturated(50, 1, 60);
        setting.gap = Delay::Constant(Nanos::from_millis(25));
        (setting.initial_jobs, setting.priorities) = (1, 6);
        setting.rules.priority_step = Nanos::SECOND;
        setting.rules.order = order;
        let story = setting.run(1);
        let early = story.waited.iter().filter(|(job, _)| **job < 100);
        let longest = early.map(|(_, waited)| *waited).max().unwrap_or_default();
        let unsent = (0..100).filter(|job| !story.waited.contains_key(job)).count();
        println!("{order:?}: {longest}");
        assert!(unsent == 0 && longest < Nanos::from_secs(15), "{order:?}: {longest}, {unsent}");
    }
}

/// Half of all keys' room goes to somebody else, from the same limit.
#[test]
fn what_somebody_else_spends_costs_few_refusals() {
    let mut setting = saturated(50, 5, 120);
    setting.rules.key.ordered = false;
    (setting.others_interval, setting.block_after) = (Some(Nanos::from_millis(100)), 0);
    for headers in [false, true] {
        setting.has_headers = headers;
        let story = setting.run(1);
        println!("headers {headers}: {:.2}/s, {} refused", story.accepted as f64 / 120.0, story.exceeded);
        assert!(story.exceeded <= 16 && story.accepted > 120 * 45, "{} refused", story.exceeded);
    }
}

#[test]
fn headers_cost_nothing_as_long_as_nobody_else_spends() {
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

/// A packet is lost now and then, and sent again: the way in is far longer than was said.
#[test]
fn a_way_in_that_is_exceeded_now_and_then_costs_few_refusals() {
    for model in ["log", "bucket", "counter", "aligned"] {
        let mut setting = saturated(50, 5, 600);
        let window = LimitWindow::read(&format!("{model}:20/1s"), LimitModel::SlidingLog).expect("valid");
        setting.rules.key.limits[0].window = window;
        setting.limits = vec![window];
        setting.rules.key.ordered = false;
        setting.block_after = 0;
        setting.delay_in = delay("bimodal:0ms..50ms,250ms..350ms,0.1%");
        let story = setting.run(1);
        println!("{model}: {:.2}/s, {} refused", story.accepted as f64 / 600.0, story.exceeded);
        assert!(story.exceeded <= 2, "{model}: {} refused", story.exceeded);
    }
}

/// All of the round trip is the way in, so half of it is too little: the bound is tried, and taken back.
#[test]
fn a_way_in_that_is_learnt_wrongly_costs_few_refusals() {
    let mut setting = saturated(100, 5, 600);
    setting.rules.key.delay_bound = None;
    setting.delay_out = Delay::Constant(Nanos::ZERO);
    let story = setting.run(1);
    let rate = story.accepted as f64 / 600.0;
    let (refused, overtaken) = (story.exceeded, story.invalid_nonces);
    println!("one-way: {rate:.2}/s, {refused} refused, {overtaken} overtaken");
    assert!(refused + overtaken <= 10 && rate > 85.0, "{rate}, {refused}, {overtaken}");
}
