//! Queues of jobs: one for all keys, and one for each.

use proptest::prelude::*;

use crate::dispatch::queue::State;
use crate::dispatch::{
    Dispatch, DispatchAction, DispatchRules, DispatchSizes, Event, JobId, JobSubmission, Nanos, ResponseClass,
};
use crate::key_window::KeyLimit;
use crate::limit_headers::RateLimitHeaders;
use weir_limits::models::{LimitModel, LimitWindow as Counted};

impl Dispatch {
    /// Naive check that no job waits in vain: the first job that a key may send cannot go by it yet.
    pub(crate) fn assert_no_job_is_held_up(&self) {
        if self.leased >= self.rules.max_in_flight.max(1) {
            return;
        }
        for (id, host) in (0..).zip(&self.hosts) {
            // Jobs that the host itself holds back do not concern the queues.
            if host.circuit.permission(self.latest) != crate::dispatch::circuit::SendPermission::All
                || !host.slots.has_slot(self.latest, self.slot_pool(host))
            {
                continue;
            }
            for key in 0..self.keys.len() as u32 {
                let of_host =
                    |job: &&crate::dispatch::DispatchJob| job.state == State::Queued && job.submission.host == id;
                let may = |job: &&crate::dispatch::DispatchJob| {
                    of_host(job) && job.submission.key.is_none_or(|only| only == key)
                };
                let Some(first) = self.queue.all().filter(may).min_by_key(|job| job.rank) else { continue };
                let when = host.lanes.earliest(key, first.submission.weight);
                let now = self.latest;
                assert!(
                    when.is_none_or(|at| at > now),
                    "key {key} could send at {when:?}, {now}: {:?}",
                    first.submission
                );
            }
        }
    }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn dispatch(limit: &str, keys: u32) -> Dispatch {
    let window = Counted::read(limit, LimitModel::SlidingLog).expect(limit);
    let mut rules = DispatchRules {
        attempt_timeout: Nanos::from_secs(3600),
        order: crate::dispatch::DispatchOrder::Fifo,
        ..DispatchRules::default()
    };
    rules.key.limits = vec![KeyLimit::new(window)];
    rules.key.delay_bound = Some(ms(50));
    Dispatch::new(rules, keys, 1)
}

fn sent(actions: &[DispatchAction]) -> Vec<(JobId, u32)> {
    let sends = actions.iter().filter_map(|action| match action {
        DispatchAction::Send { job, key, .. } => Some((*job, *key)),
        _ => None,
    });
    sends.collect()
}

/// Jobs sent for an event; they depart at once.
fn on(dispatch: &mut Dispatch, at: Nanos, event: Event<'_>) -> Vec<(JobId, u32)> {
    let mut actions = Vec::new();
    dispatch.on(at, event, &mut actions);
    let sent = sent(&actions);
    for (job, _) in &sent {
        dispatch.on(at, Event::Departed(*job, 1), &mut Vec::new());
    }
    dispatch.assert_no_job_is_held_up();
    sent
}

fn submit(dispatch: &mut Dispatch, at: Nanos, job: JobId, key: Option<u32>) -> Vec<(JobId, u32)> {
    on(dispatch, at, Event::Submitted(job, JobSubmission { key, ..JobSubmission::default() }))
}

#[test]
fn a_job_goes_by_the_key_that_it_names_and_waits_for_it() {
    let mut world = dispatch("1/1s", 3);
    assert_eq!(submit(&mut world, ms(0), 1, Some(2)), [(1, 2)]);
    assert_eq!(submit(&mut world, ms(1), 2, Some(2)), [], "the others are free");
    assert_eq!(on(&mut world, ms(1050), Event::Tick), []);
    assert_eq!(on(&mut world, ms(1051), Event::Tick), [(2, 2)]);
}

#[test]
fn a_queue_for_one_key_delays_no_job_for_another() {
    let mut world = dispatch("1/1s", 2);
    submit(&mut world, ms(0), 0, Some(0));
    for job in 1..100 {
        assert_eq!(submit(&mut world, ms(1), job, Some(0)), []);
    }
    assert_eq!(submit(&mut world, ms(2), 200, None), [(200, 1)], "the other key is free");
    assert_eq!(submit(&mut world, ms(3), 201, None), []);
    assert_eq!(on(&mut world, ms(1051), Event::Tick), [(1, 0)], "the earlier job");
    assert_eq!(on(&mut world, ms(1053), Event::Tick), [(201, 1)]);
    assert_eq!((world.queued(0, Some(0)), world.queued(0, None), world.sizes().queued), (98, 0, 98));
}

#[test]
fn an_earlier_job_for_any_key_goes_before_those_for_one() {
    let mut world = dispatch("1/1s", 1);
    submit(&mut world, ms(0), 0, None);
    submit(&mut world, ms(1), 1, None);
    submit(&mut world, ms(2), 2, Some(0));
    submit(&mut world, ms(3), 3, None);
    let order: Vec<_> = (1..=3).flat_map(|n| on(&mut world, ms(1100 * n), Event::Tick)).collect();
    assert_eq!(order, [(1, 0), (2, 0), (3, 0)]);
}

/// Two keys with a limit of 10/s on weights.
fn weighted() -> Dispatch {
    let mut rules = dispatch("10/1s", 2).rules;
    let window = Counted::read("10/1s", LimitModel::SlidingLog).expect("valid");
    rules.key.limits = vec![KeyLimit { window, unit: weir_limits::limit_unit::LimitUnit::Weight }];
    Dispatch::new(rules, 2, 1)
}

fn heavy(key: Option<u32>) -> JobSubmission {
    JobSubmission { weight: 10, key, ..JobSubmission::default() }
}

#[test]
fn a_light_job_for_any_key_takes_no_room_from_an_earlier_heavy_one_for_its_key() {
    let mut world = weighted();
    assert_eq!(submit(&mut world, ms(0), 1, Some(0)), [(1, 0)]);
    assert_eq!(on(&mut world, ms(1), Event::Submitted(2, heavy(Some(0)))), [], "until key 0 is empty");
    assert_eq!(submit(&mut world, ms(2), 3, None), [(3, 1)]);
    assert_eq!(submit(&mut world, ms(3), 4, None), [(4, 1)], "key 0 was used before key 1, and is not free");
    assert_eq!(on(&mut world, ms(1051), Event::Tick), [(2, 0)]);
}

#[test]
fn a_heavy_job_is_waited_for_at_one_key_and_the_others_go_on_with_their_own() {
    let mut world = weighted();
    assert_eq!(submit(&mut world, ms(0), 1, Some(0)), [(1, 0)]);
    assert_eq!(submit(&mut world, ms(9), 2, Some(1)), [(2, 1)]);
    assert_eq!(on(&mut world, ms(10), Event::Submitted(3, heavy(None))), [], "until key 0 has let go of its first");
    assert_eq!(submit(&mut world, ms(11), 4, Some(0)), [], "it would be in the way");
    assert_eq!(submit(&mut world, ms(12), 5, Some(1)), [(5, 1)]);
    assert_eq!(submit(&mut world, ms(13), 6, None), [], "it is behind the heavy one");
    assert_eq!(on(&mut world, ms(1051), Event::Tick), [(3, 0), (6, 1)]);
    assert_eq!(on(&mut world, ms(2102), Event::Tick), [(4, 0)]);
}

#[test]
fn a_job_for_an_unusable_key_waits_and_delays_no_others() {
    let mut world = dispatch("100/1s", 2);
    submit(&mut world, ms(0), 1, Some(0));
    let silent = RateLimitHeaders::default();
    on(&mut world, ms(1), Event::Responded(1, 1, ResponseClass::Unauthorized, &silent));
    assert_eq!(submit(&mut world, ms(2), 2, Some(0)), []);
    assert_eq!(submit(&mut world, ms(2), 3, None), [(3, 1)]);
    assert_eq!(submit(&mut world, ms(3), 4, Some(9)), [], "there is no such key");
    assert_eq!(world.sizes(), DispatchSizes { queued: 3, retrying: 0, leased: 1 });
    on(&mut world, ms(4), Event::Withdrawn(4));
    let back = on(&mut world, ms(5), Event::KeyUsable(0));
    assert_eq!(back.iter().map(|(job, key)| (*job, *key)).collect::<Vec<_>>(), [(1, 0), (2, 0)]);
    assert_eq!(world.sizes(), DispatchSizes { queued: 0, retrying: 0, leased: 3 });
    let late = JobSubmission { key: Some(9), expires_at: ms(100), ..JobSubmission::default() };
    let mut actions = Vec::new();
    world.on(ms(6), Event::Submitted(5, late), &mut actions);
    world.on(ms(51), Event::Tick, &mut actions);
    assert!(
        actions.contains(&DispatchAction::Expire { job: 5, reason: crate::dispatch::DispatchFailure::Expired }),
        "{actions:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Jobs for any key go as fast as without the keys that other jobs wait for.
    #[test]
    fn jobs_for_busy_keys_cost_the_others_nothing(gaps in prop::collection::vec(0_u64..40, 1..20)) {
        // Keys 0 and 1 are overloaded with jobs of their own; 2 and 3 have none.
        let mut crowded = dispatch("3/1s", 4);
        let mut alone = dispatch("3/1s", 2);
        for job in 0..120 {
            submit(&mut crowded, ms(0), 1000 + job, Some(job as u32 % 2));
        }
        let mut sent_by_world = [Vec::new(), Vec::new()];
        let mut jobs = gaps.iter().zip(0..);
        let mut next = jobs.next().map(|(gap, job)| (ms(10 * gap), job));
        for now in (0..1500).map(|step| ms(10 * step)) {
            let is_there = next.filter(|(at, _)| *at <= now);
            for (world, sent_by_world) in [&mut crowded, &mut alone].into_iter().zip(&mut sent_by_world) {
                let comes = is_there.map(|(_, job)| Event::Submitted(job, JobSubmission::default()));
                for event in comes.into_iter().chain([Event::Tick]) {
                    let sent = on(world, now, event).into_iter().filter(|(job, _)| *job < 1000);
                    sent_by_world.extend(sent.map(|(job, _)| (now, job)));
                }
            }
            if is_there.is_some() {
                next = jobs.next().map(|(gap, job)| (now + ms(10 * gap), job));
            }
        }
        prop_assert_eq!(sent_by_world[1].len(), gaps.len());
        prop_assert_eq!(&sent_by_world[0], &sent_by_world[1]);
        prop_assert!(crowded.queued(0, Some(0)) > 0 && crowded.queued(0, Some(1)) > 0, "they are still busy");
    }
}
