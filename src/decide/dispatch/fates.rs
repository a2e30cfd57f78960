//! What becomes of a job, one by one.

use super::{Action, Asked, Dispatch, Event, MaybeSent, Meaning, Nanos, Renew, Rules, Why};
use crate::decide::feedback::Feedback;
use crate::decide::limit::{Model, Window};
use crate::decide::policy::{Backoff, Budget, Kind};
use crate::decide::window::{History, Limit};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn rules(limit: &str) -> Rules {
    let window = Window::read(limit, Model::SlidingLog).expect(limit);
    let mut rules = Rules { attempt_timeout: ms(1000), ..Rules::default() };
    rules.key.limits = vec![Limit::new(window)];
    rules.key.way_in = Some(ms(50));
    rules.retry.times = 2;
    rules.retry.backoff = Backoff { first: ms(10), most: ms(10) };
    rules
}

struct Driven {
    dispatch: Dispatch,
    silent: Feedback,
}

impl Driven {
    fn new(rules: Rules, keys: u32) -> Self {
        Self { dispatch: Dispatch::new(rules, keys, 1), silent: Feedback::default() }
    }

    /// What is done about it, without the timer and the marks.
    fn on(&mut self, at: Nanos, event: Event<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        self.dispatch.on(at, event, &mut actions);
        actions.retain(|action| !matches!(action, Action::WakeAt(_) | Action::Keep { .. }));
        actions
    }

    fn submit(&mut self, at: Nanos, job: u64) -> Vec<Action> {
        self.on(at, Event::Submitted(job, Asked::default()))
    }

    fn answer(&mut self, at: Nanos, job: u64, attempt: u32, meaning: Meaning) -> Vec<Action> {
        let silent = self.silent.clone();
        self.on(at, Event::Answered(job, attempt, meaning, &silent))
    }
}

/// Job and key of each that is sent.
fn sent(actions: &[Action]) -> Vec<(u64, u32)> {
    let sends = actions.iter().filter_map(|action| match action {
        Action::Send { job, key, .. } => Some((*job, *key)),
        _ => None,
    });
    sends.collect()
}

/// Answers job `other`, which is sent for it, so that the host is known to be well.
fn somebody_is_answered(world: &mut Driven, at: Nanos, other: u64) -> Vec<Action> {
    world.submit(at, other);
    let mut actions = world.answer(at + ms(1), other, 1, Meaning::Done);
    actions.retain(|action| *action != Action::Done(other));
    actions
}

#[test]
fn a_job_that_fails_while_others_are_answered_is_a_dead_letter_until_its_tries_are_used_up() {
    let mut world = Driven::new(rules("100/1s"), 1);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let why = Why::Answer(Meaning::Failed(503));
    assert_eq!(world.answer(ms(100), 7, 1, Meaning::Failed(503)), [], "it is to be seen whose fault it is");
    let dead = somebody_is_answered(&mut world, ms(101), 8);
    assert_eq!(dead, [Action::Dead { job: 7, until: ms(110), why }], "its own");
    assert_eq!(world.on(ms(109), Event::Tick), []);
    let again = world.on(ms(110), Event::Tick);
    assert!(again[0] == Action::Requeue(7) && sent(&again) == [(7, 0)], "{again:?}");
    let dead = world.answer(ms(200), 7, 2, Meaning::Failed(503));
    assert_eq!(dead, [Action::Dead { job: 7, until: ms(210), why }], "now it is known to");
    world.on(ms(210), Event::Tick);
    assert_eq!(world.answer(ms(300), 7, 3, Meaning::Failed(503)), [Action::Bury { job: 7, why }]);
    assert_eq!(world.dispatch.sizes(), (0, 0, 0));
}

#[test]
fn a_job_costs_nothing_that_fails_with_nobody_answered_and_is_answered_itself() {
    let mut world = Driven::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let mut now = ms(0);
    for attempt in 1..100 {
        world.answer(now, 7, attempt, Meaning::Failed(503));
        let due = now + ms(13);
        assert_eq!(sent(&world.on(due, Event::Tick)), [(7, 0)]);
        now = due;
    }
    assert_eq!(world.answer(now, 7, 100, Meaning::Done), [Action::Done(7)]);
}

#[test]
fn a_pile_of_one_bad_job_ends_with_its_tries_though_no_other_job_was_ever_answered() {
    let mut world = Driven::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let mut now = ms(0);
    for attempt in 1..3 {
        let dead = world.answer(now, 7, attempt, Meaning::Failed(500));
        let [Action::Dead { until, .. }] = dead[..] else { panic!("{dead:?}") };
        world.on(until, Event::Tick);
        now = until + ms(1);
    }
    let why = Why::Answer(Meaning::Failed(500));
    assert_eq!(world.answer(now, 7, 3, Meaning::Failed(500)), [Action::Bury { job: 7, why }]);
}

#[test]
fn the_last_job_of_a_pile_that_gets_a_500_while_others_are_answered_has_failed_of_itself() {
    for (status, is_own) in [(500, true), (503, false), (502, false)] {
        let mut world = Driven::new(rules("100/1s"), 1);
        (0..3).for_each(|job| drop(world.submit(ms(0), job)));
        world.answer(ms(5), 0, 1, Meaning::Done);
        world.answer(ms(5), 1, 1, Meaning::Done);
        let dead = world.answer(ms(6), 2, 1, Meaning::Failed(status));
        assert_eq!(matches!(dead[..], [Action::Dead { .. }]), is_own, "{status}: {dead:?}");
    }
}

#[test]
fn a_refusal_for_rate_is_never_a_try_whatever_its_status() {
    let mut world = Driven::new(Rules { attempt_timeout: ms(9000), ..rules("1000/1s") }, 2);
    world.submit(ms(0), 7);
    let told = Feedback { retry_after: Some(ms(100)), ..Feedback::default() };
    for attempt in 1..40 {
        let at = ms(400 * u64::from(attempt));
        let meaning = if attempt % 2 == 0 { Meaning::Refused } else { Meaning::Failed(503) };
        let mut actions = world.on(at, Event::Answered(7, attempt, meaning, &told));
        actions.extend(world.on(at + ms(150), Event::Tick));
        actions.extend(somebody_is_answered(&mut world, at + ms(200), 1000 + u64::from(attempt)));
        assert!(!actions.iter().any(|action| matches!(action, Action::Bury { .. })), "{actions:?}");
    }
    assert_eq!(world.answer(ms(16_000), 7, 40, Meaning::Done), [Action::Done(7)]);
}

#[test]
fn what_another_try_would_not_help_is_buried_at_once() {
    let mut world = Driven::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let why = Why::Answer(Meaning::Failed(404));
    assert_eq!(world.answer(ms(1), 7, 1, Meaning::of(404)), [Action::Bury { job: 7, why }]);
    let heavy = Asked { weight: 101, ..Asked::default() };
    let buried = world.on(ms(2), Event::Submitted(8, heavy));
    assert_eq!(buried, [Action::Bury { job: 8, why: Why::TooHeavy }]);
}

#[test]
fn what_was_never_sent_costs_no_try_and_no_slot_even_if_others_are_answered() {
    let mut world = Driven::new(rules("1000/1s"), 1);
    world.submit(ms(0), 7);
    for attempt in 1..50 {
        let at = ms(20 * u64::from(attempt));
        world.on(at, Event::Failed(7, attempt, Kind::Connect));
        let dead = somebody_is_answered(&mut world, at, 1000 + u64::from(attempt));
        assert!(matches!(dead[..], [Action::Dead { .. }]), "{dead:?}");
        assert_eq!(sent(&world.on(at + ms(10), Event::Tick)), [(7, 0)]);
    }
}

#[test]
fn a_key_that_was_refused_holds_still_and_another_one_goes_on() {
    let mut world = Driven::new(rules("100/1s"), 2);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let feedback = Feedback { retry_after: Some(ms(5000)), ..Feedback::default() };
    world.on(ms(100), Event::Answered(7, 1, Meaning::Refused, &feedback));
    assert_eq!(sent(&world.on(ms(150), Event::Tick)), [(7, 1)]);
    for job in 10..20 {
        assert_eq!(sent(&world.submit(ms(200), job)), [(job, 1)]);
    }
    // One key alone is never earlier than it was told.
    let mut world = Driven::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    world.on(ms(100), Event::Answered(7, 1, Meaning::Refused, &feedback));
    assert_eq!(sent(&world.on(ms(5099), Event::Tick)), []);
    assert_eq!(sent(&world.on(ms(5100), Event::Tick)), [(7, 0)]);
}

#[test]
fn a_service_that_asks_for_a_pause_gets_it_from_all_keys() {
    let mut world = Driven::new(rules("100/1s"), 2);
    world.submit(ms(0), 7);
    let feedback = Feedback { retry_after: Some(ms(3000)), ..Feedback::default() };
    world.on(ms(100), Event::Answered(7, 1, Meaning::Failed(503), &feedback));
    assert_eq!(sent(&world.submit(ms(200), 8)), []);
    assert_eq!(sent(&world.on(ms(3099), Event::Tick)), []);
    assert_eq!(sent(&world.on(ms(3100), Event::Tick)), [(8, 1)], "the one that failed waits for an answer to it");
    assert_eq!(sent(&world.answer(ms(3101), 8, 1, Meaning::Done)), [(7, 0)]);
}

#[test]
fn a_key_that_is_of_no_use_is_left_alone_until_somebody_says_otherwise() {
    let mut world = Driven::new(rules("100/1s"), 2);
    assert_eq!(sent(&world.submit(ms(0), 7)), [(7, 0)]);
    let why = Why::Answer(Meaning::Unauthorized);
    let actions = world.answer(ms(10), 7, 1, Meaning::of(401));
    assert!(actions.contains(&Action::Unusable { key: 0, why }) && sent(&actions) == [(7, 1)], "{actions:?}");
    let actions = world.answer(ms(20), 7, 2, Meaning::Blocked);
    assert!(actions.contains(&Action::Unusable { key: 1, why: Why::Answer(Meaning::Blocked) }));
    assert_eq!((sent(&actions), world.dispatch.usable_keys()), (vec![], 0));
    assert_eq!(sent(&world.on(ms(5000), Event::Usable(0))), [(7, 0)]);
    assert_eq!(world.answer(ms(5010), 7, 3, Meaning::Done), [Action::Done(7)]);
}

#[test]
fn a_request_without_an_answer_is_cancelled_and_said_to_be_sent_again() {
    let mut world = Driven::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    assert_eq!(world.on(ms(999), Event::Tick), []);
    assert_eq!(world.on(ms(1000), Event::Tick), [Action::Cancel { job: 7, attempt: 1 }]);
    assert_eq!(world.answer(ms(1005), 7, 1, Meaning::Done), [], "of a cancelled attempt nothing is heard");
    let again = world.on(ms(1013), Event::Tick);
    assert!(matches!(again[..], [Action::Send { attempt: 2, again: true, .. }]), "{again:?}");
}

#[test]
fn a_job_is_not_sent_when_it_can_not_arrive_in_time() {
    let mut world = Driven::new(Rules { attempt_timeout: ms(9000), ..rules("1/1s") }, 1);
    let asked = |ttl| Asked { expires: ms(ttl), ..Asked::default() };
    assert_eq!(sent(&world.on(ms(0), Event::Submitted(1, asked(50)))), [(1, 0)]);
    world.on(ms(0), Event::Left(1, 1));
    // The slot is free at 1051, and the way in is 50 ms.
    world.on(ms(1), Event::Submitted(2, asked(1100)));
    assert_eq!(world.on(ms(1050), Event::Tick), []);
    assert_eq!(world.on(ms(1051), Event::Tick), [Action::Expire { job: 2, why: Why::Late }]);
    assert_eq!(world.on(ms(1052), Event::Submitted(3, asked(1101))), [Action::Expire { job: 3, why: Why::Late }]);
    assert_eq!(sent(&world.on(ms(1052), Event::Submitted(4, asked(1102)))), [(4, 0)]);
}

#[test]
fn an_expired_job_may_be_renewed() {
    let mut rules = rules("1/1s");
    rules.renew = Some(Renew { times: 1, ttl: ms(100) });
    let mut world = Driven::new(rules, 1);
    world.submit(ms(0), 1);
    world.on(ms(0), Event::Left(1, 1));
    world.on(ms(0), Event::Submitted(2, Asked { expires: ms(500), ..Asked::default() }));
    assert_eq!(world.on(ms(451), Event::Tick), [Action::Renew { job: 2, expires: ms(551) }]);
    assert_eq!(world.on(ms(502), Event::Tick), [Action::Expire { job: 2, why: Why::Late }]);
}

#[test]
fn what_may_have_been_sent_before_a_crash_is_flagged_or_buried() {
    let asked = Asked { maybe_sent: true, ..Asked::default() };
    let mut again = Driven::new(rules("1/1s"), 1);
    let actions = again.on(ms(0), Event::Submitted(1, asked));
    assert!(matches!(actions[..], [Action::Send { again: true, .. }]), "{actions:?}");
    let mut once = Driven::new(Rules { maybe_sent: MaybeSent::Bury, ..rules("1/1s") }, 1);
    let actions = once.on(ms(0), Event::Submitted(1, asked));
    assert_eq!(actions, [Action::Bury { job: 1, why: Why::MaybeSent }]);
}

#[test]
fn retries_beyond_the_budget_wait() {
    let budget = Budget { share: 0.0, floor: 1, window: ms(1000) };
    let mut world = Driven::new(Rules { budget: Some(budget), ..rules("100/1s") }, 1);
    for job in 0..5 {
        world.submit(ms(0), job);
        world.answer(ms(5), job, 1, Meaning::Failed(408));
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
    let mut world = Driven::new(rules("2/1s"), 1);
    world.submit(ms(0), 1);
    assert_eq!(world.submit(ms(0), 1), [], "it is there already");
    assert_eq!(world.on(ms(1), Event::Withdrawn(1)), []);
    assert_eq!(world.answer(ms(2), 1, 1, Meaning::Done), []);
    assert_eq!(world.dispatch.sizes(), (0, 0, 0));
    assert_eq!(sent(&world.submit(ms(3), 1)), [(1, 0)]);
    // Its slot is taken all the same.
    assert_eq!(sent(&world.submit(ms(4), 2)), []);
}

#[test]
fn another_process_goes_on_with_keys_and_nonces() {
    let mut first = Driven::new(rules("2/1s"), 1);
    first.dispatch.on(ms(5000), Event::Submitted(1, Asked::default()), &mut Vec::new());
    first.on(ms(5000), Event::Left(1, 1));
    let history = first.dispatch.history(ms(5010), 0, 0).expect("a key");
    let mut second = Driven::new(rules("2/1s"), 1);
    second.dispatch.resume(0, 9_000);
    second.dispatch.add_host(None);
    second.dispatch.resume_lane(ms(7000), 0, 0, &history, ms(90));
    let mut actions = Vec::new();
    second.dispatch.on(ms(7000), Event::Submitted(1, Asked::default()), &mut actions);
    assert!(matches!(actions[..], [Action::Keep { .. }, Action::Send { nonce: 9_001, .. }, ..]), "{actions:?}");
    second.on(ms(7000), Event::Left(1, 1));
    second.submit(ms(7000), 2);
    // Sent 100 ms ago, arrived 50 ms ago.
    assert_eq!(sent(&second.on(ms(7950), Event::Tick)), []);
    assert_eq!(sent(&second.on(ms(7951), Event::Tick)), [(2, 0)]);
    let nothing = second.dispatch.history(ms(9999), 0, 3);
    assert_eq!(nothing, None::<History>);
}

#[test]
fn a_timer_is_asked_for_once_and_for_what_comes_next() {
    let mut dispatch = Dispatch::new(rules("1/1s"), 1, 1);
    let mut actions = Vec::new();
    dispatch.on(ms(0), Event::Submitted(1, Asked::default()), &mut actions);
    assert_eq!(actions.last(), Some(&Action::WakeAt(ms(1000))), "the attempt's time");
    actions.clear();
    dispatch.on(ms(0), Event::Left(1, 1), &mut actions);
    assert_eq!(actions, []);
    dispatch.on(ms(1), Event::Submitted(2, Asked { expires: ms(2000), ..Asked::default() }), &mut actions);
    assert_eq!(actions, []);
    dispatch.on(ms(80), Event::Answered(1, 1, Meaning::Done, &Feedback::default()), &mut actions);
    assert_eq!(actions, [Action::Done(1), Action::WakeAt(ms(1051))], "the slot of the first");
}
