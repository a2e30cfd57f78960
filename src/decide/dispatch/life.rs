//! The life of jobs in random settings: none is refused, lost, done twice in silence, or left behind.

use proptest::prelude::*;

use super::world::{End, Setting};
use super::{Meaning, Nanos, Order, Renew, Rules, Why};
use crate::decide::delay::Delay;
use crate::decide::dice::{Dice, Lots};
use crate::decide::limit::{Model, Window};
use crate::decide::policy::{Backoff, Budget, Kind};
use crate::decide::window::{self, Limit};

fn up_to(ms: u64) -> Delay {
    Delay::read(&format!("0ms..{ms}ms")).expect("valid")
}

fn setting(lots: &mut Lots) -> Setting {
    let mut limits = Vec::new();
    for _ in 0..=lots.below(2) {
        let per = Nanos::from_millis(50 + lots.below(1000));
        limits.push(Window::new(Model::ALL[lots.below(5) as usize], 1 + lots.below(20), per).expect("valid"));
    }
    let way_in = [0, 5, 50, 300][lots.below(4) as usize];
    let heaviest = limits.iter().map(Window::limit).min().unwrap_or(1);
    let faulty = lots.one_in(2);
    let mut faults = |most| if faulty { lots.below(most) } else { 0 };
    let (lost, unsent, errors) = (faults(100), faults(300), faults(300));
    let key = window::Rules {
        limits: limits.iter().copied().map(Limit::new).collect(),
        ordered: lots.one_in(2),
        way_in: (!lots.one_in(3)).then(|| Nanos::from_millis(way_in)),
        grain: Nanos::MILLI,
        ..window::Rules::default()
    };
    let mut rules = Rules {
        key,
        learns_way_in: false,
        in_flight: if lots.one_in(3) { 1 + lots.below(4) as usize } else { 1000 },
        order: if lots.one_in(2) { Order::Deadline } else { Order::FirstIn },
        attempt_timeout: Nanos::from_secs(2),
        budget: lots.one_in(4).then(Budget::default),
        renew: lots.one_in(4).then_some(Renew { times: 2, ttl: Nanos::from_secs(1) }),
        ..Rules::default()
    };
    rules.retry.times = lots.below(6) as u32;
    rules.retry.backoff = Backoff { first: Nanos::from_millis(lots.below(50)), most: Nanos::from_secs(1) };
    Setting {
        rules,
        keys: 1 + lots.below(4) as u32,
        limits,
        way_in: up_to(way_in),
        way_out: up_to([0, 50, 300][lots.below(3) as usize]),
        gap: up_to([0, 10, 200][lots.below(3) as usize]),
        at_once: 1 + lots.below(30),
        jobs: 2 + lots.below(40),
        ttl: lots.one_in(2).then(|| Nanos::from_millis(100 + lots.below(5000))),
        shortest_ttl: None,
        heaviest: if lots.one_in(2) { 1 } else { heaviest },
        priorities: 1 + lots.below(3),
        pinned: [0, 300, 900, 1000][lots.below(4) as usize],
        lost,
        unsent,
        errors,
        headers: lots.one_in(3),
        others: None,
        block_after: 10,
        until: Nanos::NEVER,
        lateness: Nanos(lots.below(3) * 500_000),
    }
}

#[test]
fn a_world_whose_ways_are_longer_than_was_said_refuses() {
    let mut setting = Setting::document();
    setting.until = Nanos::from_secs(20);
    setting.rules.key.way_in = Some(Nanos::from_millis(15));
    let story = setting.run(1);
    assert!(story.overtaken > 10 && story.exceeded > 0, "{} {}", story.overtaken, story.exceeded);
}

const SCHEDULES: u32 = 12_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    /// The world itself looks at each action; see there.
    #[test]
    fn every_job_has_one_end_and_no_server_has_a_reason_to_refuse(seed: u64) {
        let setting = setting(&mut Lots(Dice::new(seed, 95)));
        let story = setting.run(seed);
        prop_assert_eq!((story.exceeded, story.overtaken), (0, 0), "{:?}", setting);
        prop_assert_eq!(story.ends.len() as u64, setting.jobs, "{:?}", setting);
        for (job, end) in &story.ends {
            let done = story.done.get(job).copied().unwrap_or(0);
            // What was not answered may have been done all the same, and may be done again.
            let unheard = setting.lost > 0 && setting.rules.retry.times > 0;
            let possible = match end {
                End::Done => done == 1 || (done > 1 && unheard),
                End::Expired(Why::Late) => setting.ttl.is_some() && done == 0,
                // An answer that comes too late to be waited for is lost, too.
                End::Expired(_) => setting.ttl.is_some() && (done == 0 || setting.lost > 0),
                End::Buried(Why::Answer(Meaning::Failed(500))) => setting.errors > 0 && (done == 0 || unheard),
                End::Buried(Why::Kind(Kind::Timeout)) => setting.lost > 0,
                End::Buried(_) => false,
            };
            prop_assert!(possible, "{job}: {end:?}, done {done} times; {setting:?}");
        }
        if setting.ttl.is_none() && !setting.rules.retry.on.statuses.is_empty() && setting.errors + setting.lost == 0 {
            prop_assert!(story.ends.values().all(|end| *end == End::Done), "{setting:?}");
        }
    }
}
