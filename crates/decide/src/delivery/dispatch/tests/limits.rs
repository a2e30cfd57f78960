//! Each limit, made the bottleneck in virtual time, is the one that is named.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use crate::base::failure::FailureKind;
use crate::delivery::dispatch::{
    Dispatch, DispatchAction, DispatchRules, Event, JobId, JobSubmission, LimitTimes, Nanos, ResponseClass, SendLimit,
};
use crate::delivery::key_window::KeyLimit;
use crate::delivery::limit_headers::RateLimitHeaders;
use crate::ratelimit::limit_unit::LimitUnit;
use crate::ratelimit::models::{LimitModel, LimitWindow, ServerLimiter};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn limit(text: &str, unit: LimitUnit) -> KeyLimit {
    KeyLimit { window: LimitWindow::read(text, LimitModel::SlidingLog).expect(text), unit }
}

/// A delivery to one host that responds after a constant time.
struct LimitedDelivery {
    rules: DispatchRules,
    keys: u32,
    jobs: u64,
    /// Time between two submissions.
    gap: Nanos,
    weight: u64,
    service_time: Nanos,
    /// Limit that the service has, unknown to the sender.
    hidden_limit: Option<&'static str>,
    /// Wait that each response asks for with 503.
    retry_after: Option<Nanos>,
    is_down: bool,
    until: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LimitedEvent {
    Submitted(JobId),
    Responded(JobId, u32, bool),
    Tick,
}

impl Default for LimitedDelivery {
    fn default() -> Self {
        let mut rules = DispatchRules { max_in_flight: 10_000, ..DispatchRules::default() };
        rules.key.learns_pace = false;
        Self {
            rules,
            keys: 1,
            jobs: 100_000,
            gap: Nanos::ZERO,
            weight: 1,
            service_time: ms(20),
            hidden_limit: None,
            retry_after: None,
            is_down: false,
            until: Nanos::from_secs(20),
        }
    }
}

impl LimitedDelivery {
    fn run(&self) -> LimitTimes {
        let mut dispatch = Dispatch::new(self.rules.clone(), self.keys, 1);
        let window = self.hidden_limit.map(|text| LimitWindow::read(text, LimitModel::SlidingLog).expect(text));
        let mut service = ServerLimiter::new(&Vec::from_iter(window), Nanos::MILLI);
        let mut events: BinaryHeap<Reverse<(Nanos, LimitedEvent)>> = BinaryHeap::new();
        // As many as a sender claims ahead.
        let mut submitted = 0..self.jobs;
        for job in submitted.by_ref().take(2_000) {
            events.push(Reverse((Nanos(self.gap.0 * job), LimitedEvent::Submitted(job))));
        }
        let mut actions = Vec::new();
        let feedback = RateLimitHeaders { retry_after: self.retry_after, ..RateLimitHeaders::default() };
        let none = RateLimitHeaders::default();
        while let Some(Reverse((now, event))) = events.pop()
            && now <= self.until
        {
            match event {
                LimitedEvent::Submitted(job) => {
                    let asked = JobSubmission { weight: self.weight, ..JobSubmission::default() };
                    dispatch.on(now, Event::Submitted(job, asked), &mut actions);
                }
                LimitedEvent::Responded(job, attempt, _) if self.is_down => {
                    dispatch.on(now, Event::Failed(job, attempt, FailureKind::Connect), &mut actions);
                }
                LimitedEvent::Responded(job, attempt, true) => {
                    service.finished(self.weight);
                    dispatch.on(now, Event::Responded(job, attempt, ResponseClass::Done, &none), &mut actions);
                }
                LimitedEvent::Responded(job, attempt, false) => {
                    let class = ResponseClass::RateLimited;
                    dispatch.on(now, Event::Responded(job, attempt, class, &feedback), &mut actions);
                }
                LimitedEvent::Tick => dispatch.on(now, Event::Tick, &mut actions),
            }
            let mut departed = Vec::new();
            for action in actions.drain(..) {
                match action {
                    DispatchAction::WakeAt(at) => events.push(Reverse((at.max(now), LimitedEvent::Tick))),
                    DispatchAction::Send { job, attempt, .. } => {
                        let is_accepted = service.judge(now, self.weight).is_ok() && self.retry_after.is_none();
                        let at = now + self.service_time;
                        events.push(Reverse((at, LimitedEvent::Responded(job, attempt, is_accepted))));
                        departed.push((job, attempt));
                    }
                    DispatchAction::Done(_) => events.extend(
                        submitted
                            .next()
                            .map(|job| Reverse((now.max(Nanos(self.gap.0 * job)), LimitedEvent::Submitted(job)))),
                    ),
                    _ => {}
                }
            }
            for (job, attempt) in departed.into_iter().filter(|_| !self.is_down) {
                dispatch.on(now, Event::Departed(job, attempt), &mut actions);
            }
            let wakes = actions.extract_if(.., |action| matches!(action, DispatchAction::WakeAt(_)));
            for wake in wakes {
                if let DispatchAction::WakeAt(at) = wake {
                    events.push(Reverse((at.max(now), LimitedEvent::Tick)));
                }
            }
        }
        dispatch.limit_times(self.until)
    }

    fn name(&self) -> &'static str {
        let times = self.run();
        times.binding().map_or("none", |limit| limit.name())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_tighter_of_two_declared_limits_is_named(
        keys in 1..5_u32, tight in 5..40_u64, factor in 3..9_u64, tight_first in any::<bool>(),
        model in prop::sample::select(vec!["log", "bucket", "aligned", "counter"]),
    ) {
        let mut delivery = LimitedDelivery { keys, ..LimitedDelivery::default() };
        let tight = limit(&format!("{model}:{tight}/1s"), LimitUnit::Requests);
        let loose = limit(&format!("{}/1s", tight.window.limit() * factor), LimitUnit::Requests);
        delivery.rules.key.limits = if tight_first { vec![tight, loose] } else { vec![loose, tight] };
        delivery.rules.key.delay_bound = Some(ms(10));
        prop_assert_eq!(delivery.run().binding(), Some(SendLimit::Declared(tight)));
    }

    #[test]
    fn a_limit_on_weight_or_on_concurrency_is_named(keys in 1..4_u32, weight in 2..30_u64, most in 1..8_u64) {
        let mut delivery = LimitedDelivery { keys, weight, ..LimitedDelivery::default() };
        delivery.rules.key.limits =
            vec![limit("1000/1s", LimitUnit::Requests), limit("100/1s", LimitUnit::Weight)];
        prop_assert_eq!(delivery.name(), "weight_limit");
        delivery.rules.key.limits =
            vec![limit("1000/1s", LimitUnit::Requests), limit(&format!("concurrency:{most}"), LimitUnit::Requests)];
        prop_assert_eq!(delivery.name(), "concurrency_limit");
    }

    #[test]
    fn the_order_is_named_with_and_without_a_delay_bound(
        keys in 1..4_u32, bound in prop::option::of(10..200_u64), service in 10..200_u64,
    ) {
        let mut delivery = LimitedDelivery { keys, service_time: ms(service), ..LimitedDelivery::default() };
        delivery.rules.key.limits = vec![limit("1000/1s", LimitUnit::Requests)];
        delivery.rules.key.ordered = true;
        delivery.rules.learns_delay_bound = false;
        delivery.rules.key.delay_bound = bound.map(ms);
        prop_assert_eq!(delivery.name(), "ordered");
    }

    #[test]
    fn the_maximum_of_requests_in_flight_is_named(keys in 1..4_u32, most in 1..100_usize, service in 50..900_u64) {
        let mut delivery = LimitedDelivery { keys, service_time: ms(service), ..LimitedDelivery::default() };
        delivery.rules.max_in_flight = most;
        delivery.rules.key.learns_pace = keys % 2 == 0;
        prop_assert_eq!(delivery.name(), "max_concurrency");
    }

    #[test]
    fn a_slow_host_is_named_until_it_has_all_slots(service in 2_000..60_000_u64) {
        let service_time = ms(service);
        let delivery = LimitedDelivery { service_time, until: ms(1_500), ..LimitedDelivery::default() };
        prop_assert_eq!(delivery.name(), "host_speed");
    }

    #[test]
    fn a_pause_that_the_host_asks_for_is_named(keys in 1..4_u32, s in 2..500_u64, learns in any::<bool>()) {
        let retry_after = Some(Nanos::from_secs(s));
        let mut delivery = LimitedDelivery { keys, retry_after, ..LimitedDelivery::default() };
        delivery.rules.key.learns_pace = learns;
        prop_assert_eq!(delivery.name(), "pause");
        delivery.rules.key.limits = vec![limit("20/1s", LimitUnit::Requests)];
        prop_assert_eq!(delivery.name(), "pause");
    }

    #[test]
    fn a_slow_input_is_named(gap in 200..2_000_u64, service in 1..150_u64) {
        let mut delivery =
            LimitedDelivery { jobs: 200, gap: ms(gap), service_time: ms(service), ..LimitedDelivery::default() };
        delivery.rules.key.limits = vec![limit("20/1s", LimitUnit::Requests)];
        delivery.rules.key.ordered = true;
        prop_assert_eq!(delivery.name(), "jobs");
    }
}

#[test]
fn a_host_that_is_down_is_named() {
    let mut delivery = LimitedDelivery { is_down: true, ..LimitedDelivery::default() };
    delivery.rules.key.limits = vec![limit("20/1s", LimitUnit::Requests)];
    assert_eq!(delivery.name(), "host_down");
}

#[test]
fn the_last_jobs_of_a_host_that_is_down_wait_for_it() {
    let delivery = LimitedDelivery { is_down: true, jobs: 1, ..LimitedDelivery::default() };
    assert_eq!(delivery.name(), "host_down");
}

#[test]
fn without_a_usable_key_the_keys_are_named() {
    assert_eq!(LimitedDelivery { keys: 0, ..LimitedDelivery::default() }.name(), "keys");
}

#[test]
fn a_learnt_limit_is_named() {
    for (hidden, names) in
        [("100/1s", ["learned_rate", "pause"]), ("concurrency:7", ["learned_concurrency", "learned_rate"])]
    {
        let mut delivery = LimitedDelivery { hidden_limit: Some(hidden), ..LimitedDelivery::default() };
        (delivery.rules.key.learns_pace, delivery.until) = (true, Nanos::from_secs(120));
        let times = delivery.run();
        assert!(names.contains(&times.binding().expect("a limit").name()), "{hidden}: {times:?}");
    }
}

#[test]
fn all_time_counts_once() {
    let mut delivery = LimitedDelivery { keys: 3, jobs: 50, ..LimitedDelivery::default() };
    delivery.rules.key.limits = vec![limit("20/1s", LimitUnit::Requests)];
    let times = delivery.run();
    let total: u64 = times.all().map(|(_, time)| time.0).sum();
    assert!(total.abs_diff(delivery.until.0) < ms(50).0, "{times:?}");
    let half = LimitTimes::default();
    assert_eq!(times.since(&half), times);
    assert_eq!(times.since(&times).binding(), None);
}
