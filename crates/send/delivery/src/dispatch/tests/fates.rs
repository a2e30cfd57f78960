//! Outcomes of jobs, case by case.

use crate::dispatch::{
    DeliveryGuarantee, Dispatch, DispatchAction, DispatchFailure, DispatchRules, DispatchSizes, Event, JobSubmission,
    KeyPause, Nanos, PauseCause, ResponseClass, TtlExtension,
};
use crate::key_window::{KeyHistory, KeyLimit};
use crate::limit_headers::RateLimitHeaders;
use weir_base::failure::FailureKind;
use weir_limits::models::{LimitModel, LimitWindow};
use weir_retry::backoff::Backoff;
use weir_retry::policy::BudgetRule;

pub(super) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(super) fn rules(limit: &str) -> DispatchRules {
    let window = LimitWindow::read(limit, LimitModel::SlidingLog).expect(limit);
    let mut rules = DispatchRules { attempt_timeout: ms(1000), ..DispatchRules::default() };
    rules.key.limits = vec![KeyLimit::new(window)];
    rules.key.delay_bound = Some(ms(50));
    rules.retry.max_retries = 2;
    rules.retry.backoff = Backoff { min: ms(10), max: ms(10) };
    rules
}

pub(super) struct DispatchDriver {
    dispatch: Dispatch,
    no_headers: RateLimitHeaders,
}

impl DispatchDriver {
    pub(super) fn new(rules: DispatchRules, keys: u32) -> Self {
        Self { dispatch: Dispatch::new(rules, keys, 1), no_headers: RateLimitHeaders::default() }
    }

    /// Actions for an event, without timers and high-water marks.
    pub(super) fn on(&mut self, at: Nanos, event: Event<'_>) -> Vec<DispatchAction> {
        let mut actions = Vec::new();
        self.dispatch.on(at, event, &mut actions);
        actions.retain(|action| !matches!(action, DispatchAction::WakeAt(_) | DispatchAction::SaveHighWater { .. }));
        actions
    }

    pub(super) fn submit(&mut self, at: Nanos, job: u64) -> Vec<DispatchAction> {
        self.on(at, Event::Submitted(job, JobSubmission::default()))
    }

    pub(super) fn respond(&mut self, at: Nanos, job: u64, attempt: u32, class: ResponseClass) -> Vec<DispatchAction> {
        let silent = self.no_headers.clone();
        self.on(at, Event::Responded(job, attempt, class, &silent))
    }
}

/// Job and key of each send.
fn sent(actions: &[DispatchAction]) -> Vec<(u64, u32)> {
    let sends = actions.iter().filter_map(|action| match action {
        DispatchAction::Send { job, key, .. } => Some((*job, *key)),
        _ => None,
    });
    sends.collect()
}

/// Submits job `other` and responds to it, so that the host is known to be up.
fn respond_to_another(world: &mut DispatchDriver, at: Nanos, other: u64) -> Vec<DispatchAction> {
    world.submit(at, other);
    let mut actions = world.respond(at + ms(1), other, 1, ResponseClass::Done);
    actions.retain(|action| *action != DispatchAction::Done(other));
    actions
}

#[test]
fn a_job_that_fails_while_others_get_responses_is_retried_until_its_attempts_are_used_up() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let why = DispatchFailure::Response(ResponseClass::Failed(503));
    assert_eq!(world.respond(ms(100), 7, 1, ResponseClass::Failed(503)), [], "it is to be seen whose fault it is");
    let retrying = respond_to_another(&mut world, ms(101), 8);
    assert_eq!(retrying, [DispatchAction::ScheduleRetry { job: 7, until: ms(110), reason: why }], "its own");
    assert_eq!(world.on(ms(109), Event::Tick), []);
    let again = world.on(ms(110), Event::Tick);
    assert!(again[0] == DispatchAction::Requeue(7) && sent(&again) == [(7, 0)], "{again:?}");
    let retrying = world.respond(ms(200), 7, 2, ResponseClass::Failed(503));
    assert_eq!(retrying, [DispatchAction::ScheduleRetry { job: 7, until: ms(210), reason: why }], "now it is known to");
    world.on(ms(210), Event::Tick);
    assert_eq!(
        world.respond(ms(300), 7, 3, ResponseClass::Failed(503)),
        [DispatchAction::DeadLetter { job: 7, reason: why }]
    );
    assert_eq!(world.dispatch.sizes(), DispatchSizes::default());
}

#[test]
fn a_failure_without_other_responses_does_not_count_if_the_job_then_succeeds() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let mut now = ms(0);
    for attempt in 1..100 {
        world.respond(now, 7, attempt, ResponseClass::Failed(503));
        let due = now + ms(13);
        assert_eq!(sent(&world.on(due, Event::Tick)), [(7, 0)]);
        now = due;
    }
    assert_eq!(world.respond(now, 7, 100, ResponseClass::Done), [DispatchAction::Done(7)]);
}

#[test]
fn a_batch_of_one_faulty_job_ends_with_its_attempts_without_any_other_response() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let mut now = ms(0);
    for attempt in 1..3 {
        let retrying = world.respond(now, 7, attempt, ResponseClass::Failed(500));
        let [DispatchAction::ScheduleRetry { until, .. }] = retrying[..] else { panic!("{retrying:?}") };
        world.on(until, Event::Tick);
        now = until + ms(1);
    }
    let why = DispatchFailure::Response(ResponseClass::Failed(500));
    assert_eq!(
        world.respond(now, 7, 3, ResponseClass::Failed(500)),
        [DispatchAction::DeadLetter { job: 7, reason: why }]
    );
}

#[test]
fn the_last_job_of_a_batch_that_gets_a_500_while_others_get_responses_has_failed_by_itself() {
    for (status, is_own) in [(500, true), (503, false), (502, false)] {
        let mut world = DispatchDriver::new(rules("100/1s"), 1);
        (0..3).for_each(|job| drop(world.submit(ms(0), job)));
        world.respond(ms(5), 0, 1, ResponseClass::Done);
        world.respond(ms(5), 1, 1, ResponseClass::Done);
        let retrying = world.respond(ms(6), 2, 1, ResponseClass::Failed(status));
        assert_eq!(matches!(retrying[..], [DispatchAction::ScheduleRetry { .. }]), is_own, "{status}: {retrying:?}");
    }
}

#[test]
fn a_rate_limit_rejection_never_counts_as_an_attempt_whatever_its_status() {
    let mut world = DispatchDriver::new(DispatchRules { attempt_timeout: ms(9000), ..rules("1000/1s") }, 2);
    world.submit(ms(0), 7);
    let headers = RateLimitHeaders { retry_after: Some(ms(100)), ..RateLimitHeaders::default() };
    for attempt in 1..40 {
        let at = ms(400 * u64::from(attempt));
        let class = if attempt % 2 == 0 { ResponseClass::RateLimited } else { ResponseClass::Failed(503) };
        let mut actions = world.on(at, Event::Responded(7, attempt, class, &headers));
        actions.extend(world.on(at + ms(150), Event::Tick));
        actions.extend(respond_to_another(&mut world, at + ms(200), 1000 + u64::from(attempt)));
        assert!(!actions.iter().any(|action| matches!(action, DispatchAction::DeadLetter { .. })), "{actions:?}");
    }
    assert_eq!(world.respond(ms(16_000), 7, 40, ResponseClass::Done), [DispatchAction::Done(7)]);
}

#[test]
fn failures_that_are_not_retryable_are_dead_lettered_at_once() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let why = DispatchFailure::Response(ResponseClass::Failed(404));
    assert_eq!(
        world.respond(ms(1), 7, 1, ResponseClass::of(404)),
        [DispatchAction::DeadLetter { job: 7, reason: why }]
    );
    let heavy = JobSubmission { weight: 101, ..JobSubmission::default() };
    let buried = world.on(ms(2), Event::Submitted(8, heavy));
    assert_eq!(buried, [DispatchAction::DeadLetter { job: 8, reason: DispatchFailure::TooHeavy }]);
}

#[test]
fn an_unsent_request_costs_no_attempt_and_no_slot_even_if_others_get_responses() {
    let mut world = DispatchDriver::new(rules("1000/1s"), 1);
    world.submit(ms(0), 7);
    for attempt in 1..50 {
        let at = ms(20 * u64::from(attempt));
        world.on(at, Event::Failed(7, attempt, FailureKind::Connect));
        let retrying = respond_to_another(&mut world, at, 1000 + u64::from(attempt));
        assert!(matches!(retrying[..], [DispatchAction::ScheduleRetry { .. }]), "{retrying:?}");
        assert_eq!(sent(&world.on(at + ms(10), Event::Tick)), [(7, 0)]);
    }
}

#[test]
fn a_rate_limited_key_pauses_and_another_one_goes_on() {
    let mut world = DispatchDriver::new(rules("100/1s"), 2);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let feedback = RateLimitHeaders { retry_after: Some(ms(5000)), ..RateLimitHeaders::default() };
    world.on(ms(100), Event::Responded(7, 1, ResponseClass::RateLimited, &feedback));
    assert_eq!(sent(&world.on(ms(150), Event::Tick)), [(7, 1)]);
    for job in 10..20 {
        assert_eq!(sent(&world.submit(ms(200), job)), [(job, 1)]);
    }
    // A single key is never earlier than its Retry-After.
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    world.on(ms(100), Event::Responded(7, 1, ResponseClass::RateLimited, &feedback));
    assert_eq!(sent(&world.on(ms(5099), Event::Tick)), []);
    assert_eq!(sent(&world.on(ms(5100), Event::Tick)), [(7, 0)]);
}

#[test]
fn no_response_holds_a_key_for_longer_than_the_longest_pause() {
    let hour = 3_600_000;
    for length in [Nanos::NEVER, ms(hour * 24 * 365)] {
        let mut world = DispatchDriver::new(rules("100/1s"), 1);
        world.submit(ms(0), 7);
        let feedback = RateLimitHeaders { retry_after: Some(length), ..RateLimitHeaders::default() };
        world.on(ms(100), Event::Responded(7, 1, ResponseClass::RateLimited, &feedback));
        let pauses: Vec<KeyPause> = world.dispatch.pauses().collect();
        let expected = (0, ms(hour + 100), PauseCause::RetryAfter, true, false);
        let of = |pause: &KeyPause| (pause.key, pause.until, pause.cause, pause.is_capped, pause.is_of_all_keys);
        assert_eq!((pauses.iter().map(of).collect::<Vec<_>>(), world.dispatch.pause_changes()), (vec![expected], 1));
        assert_eq!(sent(&world.on(ms(hour + 99), Event::Tick)), []);
        assert_eq!(sent(&world.on(ms(hour + 100), Event::Tick)), [(7, 0)]);
        assert_eq!(world.dispatch.pauses().count(), 0);
    }
}

#[test]
fn a_wait_of_nothing_counts_once_until_a_success() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let nothing = RateLimitHeaders { retry_after: Some(Nanos::ZERO), ..RateLimitHeaders::default() };
    world.on(ms(100), Event::Responded(7, 1, ResponseClass::RateLimited, &nothing));
    assert_eq!(sent(&world.on(ms(150), Event::Tick)), [(7, 0)]);
    world.on(ms(200), Event::Responded(7, 2, ResponseClass::RateLimited, &nothing));
    assert_eq!(sent(&world.on(ms(260), Event::Tick)), [], "it has not helped");
    assert_eq!(sent(&world.on(ms(10_000), Event::Tick)), [(7, 0)]);
}

#[test]
fn a_service_that_asks_for_a_pause_gets_it_from_all_keys() {
    let mut world = DispatchDriver::new(rules("100/1s"), 2);
    world.submit(ms(0), 7);
    let feedback = RateLimitHeaders { retry_after: Some(ms(3000)), ..RateLimitHeaders::default() };
    world.on(ms(100), Event::Responded(7, 1, ResponseClass::Failed(503), &feedback));
    assert_eq!(sent(&world.submit(ms(200), 8)), []);
    assert_eq!(sent(&world.on(ms(3099), Event::Tick)), []);
    assert_eq!(sent(&world.on(ms(3100), Event::Tick)), [(8, 1)], "the failed job waits for a response to this one");
    assert_eq!(sent(&world.respond(ms(3101), 8, 1, ResponseClass::Done)), [(7, 0)]);
}

#[test]
fn an_unusable_key_is_not_used_until_it_is_usable_again() {
    let mut world = DispatchDriver::new(rules("100/1s"), 2);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let why = DispatchFailure::Response(ResponseClass::Unauthorized);
    let actions = world.respond(ms(10), 7, 1, ResponseClass::of(401));
    assert!(
        actions.contains(&DispatchAction::KeyUnusable { key: 0, reason: why }) && sent(&actions) == [(7, 1)],
        "{actions:?}"
    );
    let actions = world.respond(ms(20), 7, 2, ResponseClass::Blocked);
    assert!(
        actions.contains(&DispatchAction::KeyUnusable {
            key: 1,
            reason: DispatchFailure::Response(ResponseClass::Blocked)
        })
    );
    assert_eq!((sent(&actions), world.dispatch.usable_keys()), (vec![], 0));
    assert_eq!(sent(&world.on(ms(5000), Event::KeyUsable(0))), [(7, 0)]);
    assert_eq!(world.respond(ms(5010), 7, 3, ResponseClass::Done), [DispatchAction::Done(7)]);
}

#[test]
fn a_request_without_a_response_is_cancelled_and_flagged_when_sent_again() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    assert_eq!(world.on(ms(999), Event::Tick), []);
    assert_eq!(world.on(ms(1000), Event::Tick), [DispatchAction::Cancel { job: 7, attempt: 1 }]);
    assert_eq!(world.respond(ms(1005), 7, 1, ResponseClass::Done), [], "of a cancelled attempt nothing is heard");
    let again = world.on(ms(1013), Event::Tick);
    assert!(matches!(again[..], [DispatchAction::Send { attempt: 2, maybe_duplicate: true, .. }]), "{again:?}");
}

#[test]
fn a_job_is_not_sent_when_it_can_not_arrive_in_time() {
    let mut world = DispatchDriver::new(DispatchRules { attempt_timeout: ms(9000), ..rules("1/1s") }, 1);
    let asked = |ttl| JobSubmission { expires_at: ms(ttl), ..JobSubmission::default() };
    assert_eq!(sent(&world.on(ms(0), Event::Submitted(1, asked(50)))), [(1, 0)]);
    world.on(ms(0), Event::Departed(1, 1));
    // The slot is free at 1051, and the delay bound is 50 ms.
    world.on(ms(1), Event::Submitted(2, asked(1100)));
    assert_eq!(world.on(ms(1050), Event::Tick), []);
    assert_eq!(world.on(ms(1051), Event::Tick), [DispatchAction::Expire { job: 2, reason: DispatchFailure::Expired }]);
    assert_eq!(
        world.on(ms(1052), Event::Submitted(3, asked(1101))),
        [DispatchAction::Expire { job: 3, reason: DispatchFailure::Expired }]
    );
    assert_eq!(sent(&world.on(ms(1052), Event::Submitted(4, asked(1102)))), [(4, 0)]);
}

#[test]
fn the_ttl_of_an_expired_job_may_be_extended() {
    let mut rules = rules("1/1s");
    rules.ttl_extension = Some(TtlExtension { max_extensions: 1, ttl: ms(100) });
    let mut world = DispatchDriver::new(rules, 1);
    world.submit(ms(0), 1);
    world.on(ms(0), Event::Departed(1, 1));
    world.on(ms(0), Event::Submitted(2, JobSubmission { expires_at: ms(500), ..JobSubmission::default() }));
    assert_eq!(world.on(ms(451), Event::Tick), [DispatchAction::ExtendTtl { job: 2, expires_at: ms(551) }]);
    assert_eq!(world.on(ms(502), Event::Tick), [DispatchAction::Expire { job: 2, reason: DispatchFailure::Expired }]);
}

#[test]
fn a_job_that_may_have_been_sent_before_a_crash_is_flagged_or_dead_lettered() {
    let asked = JobSubmission { maybe_sent: true, ..JobSubmission::default() };
    let mut again = DispatchDriver::new(rules("1/1s"), 1);
    let actions = again.on(ms(0), Event::Submitted(1, asked));
    assert!(matches!(actions[..], [DispatchAction::Send { maybe_duplicate: true, .. }]), "{actions:?}");
    let mut once = DispatchDriver::new(DispatchRules { delivery: DeliveryGuarantee::AtMostOnce, ..rules("1/1s") }, 1);
    let actions = once.on(ms(0), Event::Submitted(1, asked));
    assert_eq!(actions, [DispatchAction::DeadLetter { job: 1, reason: DispatchFailure::MaybeSent }]);
}

#[test]
fn retries_beyond_the_budget_wait() {
    let budget = BudgetRule { fraction: 0.0, min_per_window: 1, window: ms(1000) };
    let mut world = DispatchDriver::new(DispatchRules { budget: Some(budget), ..rules("100/1s") }, 1);
    for job in 0..5 {
        world.submit(ms(0), job);
        world.respond(ms(5), job, 1, ResponseClass::Failed(408));
    }
    let mut retried = Vec::new();
    for at in 15..3000 {
        retried.extend(sent(&world.on(ms(at), Event::Tick)).iter().map(|_| at));
    }
    assert_eq!(retried.len(), 3, "{retried:?}");
    assert!(retried.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{retried:?}");
}

#[test]
fn a_withdrawn_job_has_no_end_and_its_number_is_free() {
    let mut world = DispatchDriver::new(rules("2/1s"), 1);
    world.submit(ms(0), 1);
    assert_eq!(world.submit(ms(0), 1), [], "it is there already");
    assert_eq!(world.on(ms(1), Event::Withdrawn(1)), []);
    assert_eq!(world.respond(ms(2), 1, 1, ResponseClass::Done), []);
    assert_eq!(world.dispatch.sizes(), DispatchSizes::default());
    assert_eq!(sent(&world.submit(ms(3), 1)), [(1, 0)]);
    // Its slot is taken nevertheless.
    assert_eq!(sent(&world.submit(ms(4), 2)), []);
}

#[test]
fn another_process_goes_on_with_keys_and_nonces() {
    let mut first = DispatchDriver::new(rules("2/1s"), 1);
    first.dispatch.on(ms(5000), Event::Submitted(1, JobSubmission::default()), &mut Vec::new());
    first.on(ms(5000), Event::Departed(1, 1));
    let history = first.dispatch.history(ms(5010), 0, 0).expect("a key");
    let mut second = DispatchDriver::new(rules("2/1s"), 1);
    second.dispatch.resume(0, 9_000);
    second.dispatch.add_host(None);
    second.dispatch.resume_lane(ms(7000), 0, 0, &history, ms(90));
    let mut actions = Vec::new();
    second.dispatch.on(ms(7000), Event::Submitted(1, JobSubmission::default()), &mut actions);
    assert!(
        matches!(actions[..], [DispatchAction::SaveHighWater { .. }, DispatchAction::Send { nonce: 9_001, .. }, ..]),
        "{actions:?}"
    );
    second.on(ms(7000), Event::Departed(1, 1));
    second.submit(ms(7000), 2);
    // Sent 100 ms ago, arrived 50 ms ago.
    assert_eq!(sent(&second.on(ms(7950), Event::Tick)), []);
    assert_eq!(sent(&second.on(ms(7951), Event::Tick)), [(2, 0)]);
    let nothing = second.dispatch.history(ms(9999), 0, 3);
    assert_eq!(nothing, None::<KeyHistory>);
}

#[test]
fn a_timer_is_set_once_and_for_the_next_event() {
    let mut dispatch = Dispatch::new(rules("1/1s"), 1, 1);
    let mut actions = Vec::new();
    dispatch.on(ms(0), Event::Submitted(1, JobSubmission::default()), &mut actions);
    assert_eq!(actions.last(), Some(&DispatchAction::WakeAt(ms(1000))), "the attempt's time");
    actions.clear();
    dispatch.on(ms(0), Event::Departed(1, 1), &mut actions);
    assert_eq!(actions, []);
    dispatch.on(
        ms(1),
        Event::Submitted(2, JobSubmission { expires_at: ms(2000), ..JobSubmission::default() }),
        &mut actions,
    );
    assert_eq!(actions, []);
    dispatch.on(ms(80), Event::Responded(1, 1, ResponseClass::Done, &RateLimitHeaders::default()), &mut actions);
    assert_eq!(actions, [DispatchAction::Done(1), DispatchAction::WakeAt(ms(1051))], "the slot of the first");
}
