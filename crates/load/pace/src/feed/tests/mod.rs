//! Open and closed feeds: examples, and the balance of arrivals that are sent, dropped or waiting.

use super::*;
use crate::schedule::{Arrivals, LoadStage, Schedule};
use crate::shard::Shard;
use crate::users::Users;
use proptest::prelude::*;
use weir_base::nanos::Nanos;

fn schedule(rate: f64, seconds: u64) -> Schedule {
    let stages = vec![LoadStage { from_per_s: rate, to_per_s: rate, length: Nanos::from_secs(seconds) }];
    Schedule::new(stages, Arrivals::Constant, 0)
}

fn open(rate: f64, seconds: u64, max_wait: Nanos) -> Feed {
    Feed::Open(OpenFeed::new(schedule(rate, seconds), u64::MAX, max_wait))
}

fn closed(users: Users, until: Nanos, permits: u64) -> Feed {
    let mut feed = ClosedFeed::new(users, until, Shard::WHOLE, 0, 1);
    feed.grant(0..permits);
    Feed::Closed(feed)
}

#[test]
fn an_arrival_that_waits_for_a_connection_keeps_its_intended_start() {
    let mut feed = open(10.0, 1, Nanos::NEVER);
    let late = Nanos::from_millis(450);
    assert_eq!(feed.backlog(late), 5);
    let times: Vec<u64> =
        std::iter::from_fn(|| feed.next_on(0, late)).map(|s| s.arrival.intended.0 / 1_000_000).collect();
    assert_eq!(times, [0, 100, 200, 300, 400]);
    assert_eq!(feed.next_due(), Some(Nanos::from_millis(500)));
    assert_eq!(feed.backlog(late), 0);
}

#[test]
fn an_arrival_that_waits_too_long_is_dropped_and_counted() {
    let mut feed = open(10.0, 1, Nanos::from_millis(250));
    let first = feed.due(Nanos::from_millis(500));
    assert_eq!(first.map(|s| s.arrival.number), Some(3));
    assert_eq!((feed.take_offered(), feed.take_dropped()), (4, 3));
    feed.stop(Nanos::from_millis(700));
    assert_eq!((feed.take_offered(), feed.take_dropped()), (4, 4), "0.4, 0.5, 0.6 and 0.7 s were due");
    assert_eq!(feed.next_due(), None);
}

#[test]
fn drops_in_the_warm_up_do_not_count() {
    let feed = OpenFeed::new(schedule(10.0, 1), u64::MAX, Nanos::from_millis(250));
    let mut feed = Feed::Open(feed.counting_from(Nanos::from_millis(150)));
    assert_eq!(feed.due(Nanos::from_millis(500)).map(|s| s.arrival.number), Some(3));
    assert_eq!((feed.take_offered(), feed.take_dropped()), (2, 1), "of 0, 0.1, 0.2 and 0.3 s");
    feed.stop(Nanos::from_millis(700));
    assert_eq!((feed.take_offered(), feed.take_dropped()), (4, 4));
}

#[test]
fn what_is_in_a_pool_arrives_when_a_user_is_free_and_the_rest_never() {
    let mut open = OpenFeed::pooled();
    let queue = open.queue().unwrap();
    (0..3).for_each(|number| queue.push(ScheduledArrival { number, intended: Nanos::ZERO }));
    let mut feed = Feed::Open(open.counting_from(Nanos::from_secs(1)));
    let late = Nanos::from_secs(900);
    assert_eq!(feed.backlog(late), 0);
    let arrival = ScheduledArrival { number: 0, intended: late };
    assert_eq!(feed.next_on(0, late), Some(DueRequest { arrival, user: 0 }));
    feed.stop(late);
    assert_eq!((feed.take_offered(), feed.take_dropped(), feed.next_due()), (1, 0, None));
}

#[test]
fn a_user_makes_its_loops_and_ends() {
    let users = Users { count: 2, ramp_up: Nanos::from_secs(10), loops: Some(3) };
    let mut feed = closed(users, Nanos::NEVER, u64::MAX);
    let first = feed.due(Nanos::ZERO);
    assert_eq!(first.map(|s| s.user), Some(0));
    assert!(feed.due(Nanos(1)).is_none(), "the second user starts at 5 s");
    assert_eq!(feed.next_due(), Some(Nanos::from_secs(5)));
    assert!(feed.next_on(0, Nanos(2)).is_some() && feed.next_on(0, Nanos(3)).is_some());
    assert!(feed.next_on(0, Nanos(4)).is_none());
    assert_eq!(feed.due(Nanos::from_secs(5)).map(|s| s.user), Some(1));
}

#[test]
fn users_that_have_not_started_by_the_end_do_not_come_any_more() {
    let users = Users { count: 4, ramp_up: Nanos::from_secs(1), loops: None };
    let stages = vec![LoadStage { from_per_s: 0.0, to_per_s: 4.0, length: Nanos::from_secs(1) }];
    let until = Nanos::from_secs(1);
    for stages in [None, Some(stages)] {
        for last_look in [None, Some(Nanos::from_millis(600))] {
            let mut feed = closed(users, until, u64::MAX);
            if let (Feed::Closed(_), Some(stages)) = (&feed, &stages) {
                feed.change(stages, until, Nanos::ZERO);
            }
            while last_look.and_then(|now| feed.due(now)).is_some() {}
            assert!(feed.next_due().is_some_and(|due| due < until));
            assert_eq!(feed.due(until), None, "its thread was not there in time");
            assert_eq!(feed.next_due(), None, "or it would be awaited for ever");
        }
    }
}

#[test]
fn a_user_whose_connection_failed_pauses() {
    let users = Users { count: 1, ramp_up: Nanos::ZERO, loops: None };
    let mut feed = closed(users, Nanos::from_secs(1), u64::MAX);
    assert!(feed.due(Nanos::ZERO).is_some());
    feed.pause_user(0, Nanos::from_millis(100));
    assert!(feed.due(Nanos::from_millis(99)).is_none());
    assert_eq!(feed.next_due(), Some(Nanos::from_millis(100)));
    assert!(feed.due(Nanos::from_millis(100)).is_some());
    feed.pause_user(0, Nanos::from_secs(2));
    assert_eq!(feed.next_due(), None, "the run is over by then");
}

#[test]
fn no_more_requests_than_permits() {
    let users = Users { count: 3, ramp_up: Nanos::ZERO, loops: None };
    let mut feed = closed(users, Nanos::NEVER, 5);
    let mut made = std::iter::from_fn(|| feed.due(Nanos(1))).count();
    while feed.next_on(0, Nanos(2)).is_some() {
        made += 1;
    }
    assert_eq!(made, 5);
    assert_eq!(feed.next_due(), None);
}

proptest! {
    /// Whenever connections are free, each arrival is sent once, in order, not before its time, or counted as
    /// dropped; all others that were due are the backlog. Oracle: the schedule.
    #[test]
    fn each_arrival_is_sent_once_or_dropped_or_waits(
        rate in 1.0..500.0_f64, max_wait_ms in 0..400_u64, steps in prop::collection::vec((0..80_u64, 0..6_usize), 1..80)
    ) {
        let mut feed = open(rate, 2, Nanos::from_millis(max_wait_ms));
        let arrived = |now: Nanos| schedule(rate, 2).take_while(|arrival| arrival.intended <= now).count() as u64;
        let (mut now, mut sent, mut dropped, mut last) = (Nanos::ZERO, 0_u64, 0_u64, None);
        for (ms, free) in steps {
            now += Nanos::from_millis(ms);
            for _ in 0..free {
                if let Some(start) = feed.due(now) {
                    prop_assert!(start.arrival.intended <= now);
                    prop_assert!(now - start.arrival.intended <= Nanos::from_millis(max_wait_ms));
                    prop_assert!(last.is_none_or(|l| l < start.arrival.number));
                    last = Some(start.arrival.number);
                    sent += 1;
                }
            }
            dropped += feed.take_dropped();
            prop_assert_eq!(feed.backlog(now) + sent + dropped, arrived(now));
        }
        feed.stop(now);
        dropped += feed.take_dropped();
        prop_assert_eq!(sent + dropped, arrived(now));
        prop_assert_eq!(feed.take_offered(), arrived(now));
    }
}
