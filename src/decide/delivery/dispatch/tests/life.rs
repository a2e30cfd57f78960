//! The life of jobs in random settings: none is refused, lost, done twice in silence, or left behind.

use proptest::prelude::*;

use super::simulation::{DispatchScenario, JobEnd};
use crate::decide::base::failure::FailureKind;
use crate::decide::base::rng::{SeededRng, TestRng};
use crate::decide::call::policy::{Backoff, BudgetRule};
use crate::decide::delivery::dispatch::{
    DispatchFailure, DispatchOrder, DispatchRules, Nanos, ResponseClass, TtlExtension,
};
use crate::decide::delivery::key_window::{self, KeyLimit};
use crate::decide::ratelimit::models::{LimitModel, LimitWindow};
use crate::decide::service::delay::Delay;

fn up_to(ms: u64) -> Delay {
    Delay::read(&format!("0ms..{ms}ms")).expect("valid")
}

fn setting(lots: &mut TestRng) -> DispatchScenario {
    let mut limits = Vec::new();
    for _ in 0..=lots.below(2) {
        let per = Nanos::from_millis(50 + lots.below(1000));
        limits.push(LimitWindow::new(LimitModel::ALL[lots.below(5) as usize], 1 + lots.below(20), per).expect("valid"));
    }
    let way_in = [0, 5, 50, 300][lots.below(4) as usize];
    let heaviest = limits.iter().map(LimitWindow::limit).min().unwrap_or(1);
    let faulty = lots.one_in(2);
    let mut faults = |most| if faulty { lots.below(most) } else { 0 };
    let (lost, unsent, errors) = (faults(100), faults(300), faults(300));
    let key = key_window::KeyRules {
        limits: limits.iter().copied().map(KeyLimit::new).collect(),
        ordered: lots.one_in(2),
        delay_bound: (!lots.one_in(3)).then(|| Nanos::from_millis(way_in)),
        clock_tick: Nanos::MILLI,
        ..key_window::KeyRules::default()
    };
    let mut rules = DispatchRules {
        key,
        learns_delay_bound: false,
        max_in_flight: if lots.one_in(3) { 1 + lots.below(4) as usize } else { 1000 },
        order: if lots.one_in(2) { DispatchOrder::Deadline } else { DispatchOrder::Fifo },
        attempt_timeout: Nanos::from_secs(2),
        budget: lots.one_in(4).then(BudgetRule::default),
        ttl_extension: lots.one_in(4).then_some(TtlExtension { max_extensions: 2, ttl: Nanos::from_secs(1) }),
        ..DispatchRules::default()
    };
    rules.retry.max_retries = lots.below(6) as u32;
    rules.retry.backoff = Backoff { min: Nanos::from_millis(lots.below(50)), max: Nanos::from_secs(1) };
    DispatchScenario {
        rules,
        keys: 1 + lots.below(4) as u32,
        limits,
        delay_in: up_to(way_in),
        delay_out: up_to([0, 50, 300][lots.below(3) as usize]),
        gap: up_to([0, 10, 200][lots.below(3) as usize]),
        initial_jobs: 1 + lots.below(30),
        jobs: 2 + lots.below(40),
        ttl: lots.one_in(2).then(|| Nanos::from_millis(100 + lots.below(5000))),
        min_ttl: None,
        max_weight: if lots.one_in(2) { 1 } else { heaviest },
        priorities: 1 + lots.below(3),
        pinned_per_mille: [0, 300, 900, 1000][lots.below(4) as usize],
        lost_per_mille: lost,
        unsent_per_mille: unsent,
        errors_per_mille: errors,
        has_headers: lots.one_in(3),
        others_interval: None,
        block_after: 10,
        until: Nanos::NEVER,
        timer_lateness: Nanos(lots.below(3) * 500_000),
    }
}

#[test]
fn a_world_whose_ways_are_longer_than_was_said_refuses() {
    let mut setting = DispatchScenario::reference();
    setting.until = Nanos::from_secs(20);
    setting.rules.key.delay_bound = Some(Nanos::from_millis(15));
    let story = setting.run(1);
    assert!(story.invalid_nonces > 10 && story.exceeded > 0, "{} {}", story.invalid_nonces, story.exceeded);
}

const SCHEDULES: u32 = 12_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    /// The world itself looks at each action; see there.
    #[test]
    fn every_job_has_one_end_and_no_server_has_a_reason_to_refuse(seed: u64) {
        let setting = setting(&mut TestRng(SeededRng::new(seed, 95)));
        let story = setting.run(seed);
        prop_assert_eq!((story.exceeded, story.invalid_nonces), (0, 0), "{:?}", setting);
        prop_assert_eq!(story.ends.len() as u64, setting.jobs, "{:?}", setting);
        for (job, end) in &story.ends {
            let done = story.done.get(job).copied().unwrap_or(0);
            // What was not answered may have been done all the same, and may be done again.
            let unheard = setting.lost_per_mille > 0 && setting.rules.retry.max_retries > 0;
            let possible = match end {
                JobEnd::Done => done == 1 || (done > 1 && unheard),
                JobEnd::Expired(DispatchFailure::Expired) => setting.ttl.is_some() && done == 0,
                // An answer that comes too late to be waited for is lost, too.
                JobEnd::Expired(_) => setting.ttl.is_some() && (done == 0 || setting.lost_per_mille > 0),
                JobEnd::DeadLettered(DispatchFailure::Response(ResponseClass::Failed(500))) => setting.errors_per_mille > 0 && (done == 0 || unheard),
                JobEnd::DeadLettered(DispatchFailure::NoResponse(FailureKind::Timeout)) => setting.lost_per_mille > 0,
                JobEnd::DeadLettered(_) => false,
            };
            prop_assert!(possible, "{job}: {end:?}, done {done} times; {setting:?}");
        }
        if setting.ttl.is_none() && !setting.rules.retry.on.statuses.is_empty() && setting.errors_per_mille + setting.lost_per_mille == 0 {
            prop_assert!(story.ends.values().all(|end| *end == JobEnd::Done), "{setting:?}");
        }
    }
}
