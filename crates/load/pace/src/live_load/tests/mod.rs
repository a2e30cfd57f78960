//! Changed loads: examples, and the same arrivals and users as loads that were started with the same stages.

use proptest::prelude::*;

use super::*;
use crate::feed::{ClosedFeed, Feed, OpenFeed};
use crate::notation;
use crate::schedule::{Arrivals, Schedule, ScheduledArrival};
use crate::shard::Shard;
use crate::user_stages::UserStages;
use crate::users::Users;

fn at(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn stage(from: f64, to: f64, ms: u64) -> LoadStage {
    LoadStage { from_per_s: from, to_per_s: to, length: at(ms) }
}

fn open(stages: Vec<LoadStage>) -> LiveLoad {
    let length = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length);
    LiveLoad::new(LevelKind::Rate, stages, LoadEnd::At(length))
}

#[test]
fn recorded_times_can_only_be_stopped() {
    let mut load = LiveLoad::recorded(Nanos::NEVER);
    for change in [LoadChange::Rate(5.0), LoadChange::Users(5), LoadChange::Pause, LoadChange::Resume] {
        assert_eq!(load.change(change, at(1_000)), Err(ChangeRejection::Recorded), "{change:?}");
    }
    load.change(LoadChange::Stop, at(2_000)).expect("runs");
    assert_eq!((load.until(), load.stages(), load.changes().len()), (at(2_000), &[][..], 1));
}

#[test]
fn a_change_cuts_the_stages_and_holds_to_the_end() {
    let mut load = open(vec![stage(0.0, 100.0, 10_000), stage(100.0, 100.0, 50_000)]);
    load.change(LoadChange::Rate(80.0), at(5_000)).expect("a rate");
    assert_eq!(load.stages(), [stage(0.0, 50.0, 5_000), stage(80.0, 80.0, 55_000)]);
    load.change(LoadChange::Pause, at(7_000)).expect("not paused");
    assert_eq!(load.change(LoadChange::Pause, at(7_500)), Err(ChangeRejection::AlreadyPaused));
    load.change(LoadChange::Resume, at(9_000)).expect("paused");
    assert_eq!(load.change(LoadChange::Resume, at(9_500)), Err(ChangeRejection::NotPaused));
    load.change(LoadChange::Stop, at(20_000)).expect("runs");
    let stages = [(0.0, 50.0, 5_000), (80.0, 80.0, 2_000), (0.0, 0.0, 2_000), (80.0, 80.0, 11_000)];
    assert_eq!(load.stages(), stages.map(|(from, to, ms)| stage(from, to, ms)));
    assert_eq!(notation::written(load.stages(), load.kind()), "0-50/5s,80/2s,0/2s,80/11s");
    assert_eq!((load.until(), load.changes().len()), (at(20_000), 4));
    assert_eq!(load.change(LoadChange::Rate(1.0), at(20_000)), Err(ChangeRejection::Over));
}

#[test]
fn what_does_not_go_with_a_load_is_rejected_and_leaves_it_as_it_was() {
    let mut load = open(vec![stage(10.0, 10.0, 1_000)]);
    let before = load.clone();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert_eq!(load.change(LoadChange::Rate(rate), at(1)), Err(ChangeRejection::InvalidRate), "{rate}");
    }
    assert_eq!(load.change(LoadChange::Users(1), at(1)), Err(ChangeRejection::NoUsers));
    assert_eq!(load, before);
    let users = vec![stage(3.0, 3.0, 1_000)];
    let mut load = LiveLoad::new(LevelKind::Users, users, LoadEnd::At(at(1_000)));
    assert_eq!(load.change(LoadChange::Rate(1.0), at(1)), Err(ChangeRejection::NoRate));
    for users in [0, u64::MAX] {
        assert_eq!(load.change(LoadChange::Users(users), at(1)), Err(ChangeRejection::InvalidUsers), "{users}");
    }
    load.change(LoadChange::Users(5), at(500)).expect("users");
    assert_eq!(notation::written(load.stages(), load.kind()), "3u/500ms,5u/500ms");
}

#[test]
fn a_load_of_a_number_of_requests_lasts_until_they_have_arrived() {
    let mut load = LiveLoad::new(LevelKind::Rate, vec![stage(10.0, 10.0, 10_000)], LoadEnd::Arrivals(100));
    load.change(LoadChange::Rate(20.0), at(5_000)).expect("a rate");
    assert_eq!(load.until(), at(7_500));
    load.change(LoadChange::Pause, at(6_000)).expect("runs");
    assert_eq!(load.until(), Nanos::NEVER);
    load.change(LoadChange::Resume, at(60_000)).expect("paused");
    assert_eq!(load.until(), at(61_500));
    assert_eq!(
        [load.level_at(at(30_000)), load.latest_level(at(30_000)), load.latest_level(at(61_000))],
        [0.0, 20.0, 20.0]
    );
}

/// Changes, each this long after the one before.
fn changes() -> impl Strategy<Value = Vec<(u64, LoadChange)>> {
    let change = prop_oneof![
        4 => (1..400_u32).prop_map(|rate| LoadChange::Rate(f64::from(rate) / 2.0)),
        1 => Just(LoadChange::Pause),
        1 => Just(LoadChange::Resume),
    ];
    prop::collection::vec((0..700_u64, change), 0..7)
}

/// Arrivals of the shards of an open loop that is changed as it goes, each change at half its lead time before it holds;
/// with what waited at each step.
fn changed_arrivals(
    mut load: LiveLoad,
    changes: &[(u64, LoadChange)],
    arrivals: Arrivals,
    shards: u64,
) -> (LiveLoad, Vec<ScheduledArrival>) {
    let feed = |index| {
        let schedule = Schedule::new(load.stages().to_vec(), arrivals, 5).sharded(Shard::WHOLE.split(index, shards));
        Feed::Open(OpenFeed::new(schedule, u64::MAX, Nanos::NEVER))
    };
    let mut feeds: Vec<Feed> = (0..shards).map(feed).collect();
    let (mut all, mut now) = (Vec::new(), 0);
    let mut changes = changes.iter();
    let mut next = changes.next().map(|(after, change)| (*after, *change));
    while at(now) < load.until() + at(1) {
        if let Some((when, change)) = next.filter(|(when, _)| *when <= now) {
            let holds = at(when.max(now) + 100);
            let _ = load.change(change, holds);
            for (index, feed) in feeds.iter_mut().enumerate() {
                // Threads learn of it at their own times, and each may have taken what is due by then.
                for _ in 0..index * 3 {
                    all.extend(feed.due(at(now + index as u64 * 7)).map(|start| start.arrival));
                }
                feed.change(load.stages(), load.until(), at(now + index as u64 * 7));
            }
            next = changes.next().map(|(after, change)| (now + after, *change));
        }
        for feed in &mut feeds {
            all.extend(std::iter::from_fn(|| feed.due(at(now))).map(|start| start.arrival));
            assert_eq!(feed.backlog(at(now)), 0);
        }
        now += 23;
    }
    for feed in &mut feeds {
        all.extend(std::iter::from_fn(|| feed.due(load.until())).map(|start| start.arrival));
    }
    all.sort_by_key(|arrival| arrival.number);
    (load, all)
}

proptest! {
    /// Oracle: a schedule of the stages in the notation of the command line.
    #[test]
    fn a_load_that_is_changed_has_the_arrivals_of_one_that_is_started_with_its_stages(
        first in prop::collection::vec((0..200_u32, 0..200_u32, 100..2000_u64), 1..4), changes in changes(),
        kind in prop::sample::select(vec![Arrivals::Constant, Arrivals::Poisson]), shards in 1..4_u64, stop in prop::option::of(0..3000_u64)
    ) {
        let stages = first.iter().map(|(from, to, ms)| stage(f64::from(*from), f64::from(*to), *ms)).collect();
        let mut changes = changes;
        changes.extend(stop.map(|after| (after, LoadChange::Stop)));
        let (load, changed) = changed_arrivals(open(stages), &changes, kind, shards);
        let written = notation::written(load.stages(), load.kind());
        let again: Vec<_> = match written.as_str() {
            "" => Vec::new(),
            text => Schedule::new(notation::stages(text).expect("own notation"), kind, 5).collect(),
        };
        prop_assert_eq!(changed.len(), again.len(), "{}", written);
        for (one, other) in changed.iter().zip(&again) {
            prop_assert_eq!(one.number, other.number);
            // A ramp that is cut has a slope that is rounded otherwise.
            prop_assert!(one.intended.0.abs_diff(other.intended.0) <= 20, "{:?} and {:?} of {}", one, other, written);
        }
    }

    /// Oracle: the number of users of the stages at each look. Each request takes no time, and users are looked at every
    /// millisecond.
    #[test]
    fn a_closed_loop_that_is_changed_has_as_many_users_as_its_stages(
        count in 1..9_u64, levels in prop::collection::vec((1..300_u64, 0..14_u64), 0..8), threads in 1..4_u64
    ) {
        let mut load = LiveLoad::new(LevelKind::Users, vec![stage(count as f64, count as f64, 2_000)], LoadEnd::At(at(2_000)));
        let users = Users { count, ramp_up: Nanos::ZERO, loops: None };
        let mut feeds: Vec<ClosedFeed> = (0..threads).map(|thread| {
            ClosedFeed::new(users, at(2_000), Shard::WHOLE, thread, threads)
        }).collect();
        feeds.iter_mut().for_each(|feed| feed.grant(0..u64::MAX));
        let mut feeds: Vec<Feed> = feeds.into_iter().map(Feed::Closed).collect();
        let mut running: Vec<Vec<u32>> = vec![Vec::new(); feeds.len()];
        let mut levels = levels.into_iter();
        let mut next = levels.next();
        for now in 0..2_000 {
            if let Some((when, level)) = next.filter(|(when, _)| *when <= now) {
                let change = match level {
                    0 if load.is_paused() => LoadChange::Resume,
                    0 => LoadChange::Pause,
                    users => LoadChange::Users(users),
                };
                if load.change(change, at(now + 60)).is_ok() {
                    feeds.iter_mut().for_each(|feed| feed.change(load.stages(), load.until(), at(now)));
                }
                next = levels.next().map(|(after, level)| (when + after, level));
            }
            for (feed, running) in feeds.iter_mut().zip(&mut running) {
                running.retain(|user| feed.next_on(*user, at(now)).is_some());
                running.extend(std::iter::from_fn(|| feed.due(at(now))).map(|start| start.user));
                let distinct: std::collections::BTreeSet<u32> = running.iter().copied().collect();
                prop_assert_eq!(distinct.len(), running.len(), "a user twice");
            }
            let all: usize = running.iter().map(Vec::len).sum();
            prop_assert_eq!(all as f64, load.level_at(at(now)), "at {}", now);
        }
    }

    #[test]
    fn a_closed_loop_in_stages_has_their_users(
        levels in prop::collection::vec((0..9_u32, 0..9_u32, 1..200_u64), 1..6), threads in 1..4_u64
    ) {
        let stages: Vec<LoadStage> = levels.iter().map(|(from, to, ms)| stage(f64::from(*from), f64::from(*to), *ms)).collect();
        let staged = UserStages::new(stages);
        let users = Users { count: staged.peak(), ramp_up: Nanos::ZERO, loops: None };
        let mut feeds: Vec<Feed> = (0..threads).map(|thread| {
            let mut feed = ClosedFeed::new(users, staged.length(), Shard::WHOLE, thread, threads).in_stages(staged.clone());
            feed.grant(0..u64::MAX);
            Feed::Closed(feed)
        }).collect();
        let mut running: Vec<Vec<u32>> = vec![Vec::new(); feeds.len()];
        for ms in 0..staged.length().as_millis() {
            let now = Nanos(ms * 1_000_000 + 123_457);
            for (feed, running) in feeds.iter_mut().zip(&mut running) {
                running.retain(|user| feed.next_on(*user, now).is_some());
                running.extend(std::iter::from_fn(|| feed.due(now)).map(|start| start.user));
                prop_assert!(feed.next_due().is_none_or(|at| at > now));
            }
            let expected = (0..staged.peak()).filter(|user| staged.active(*user, now).is_some_and(|active| active.start <= now));
            prop_assert_eq!(running.iter().map(Vec::len).sum::<usize>(), expected.count(), "at {}", now);
        }
    }
}
