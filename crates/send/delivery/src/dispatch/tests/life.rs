//! Jobs in random settings: none is rejected, lost, done twice without a flag, or left behind.

use proptest::prelude::*;

use super::silence::HostPauses;
use super::simulation::{DispatchScenario, JobEnd};
use crate::dispatch::{DispatchFailure, DispatchOrder, DispatchRules, Nanos, ResponseClass, TtlExtension};
use crate::key_window;
use crate::key_window::KeyLimit;
use weir_base::failure::FailureKind;
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::models::{LimitModel, LimitWindow};
use weir_retry::backoff::Backoff;
use weir_retry::policy::BudgetRule;
use weir_workload::delay::Delay;

fn up_to(ms: u64) -> Delay {
    Delay::read(&format!("0ms..{ms}ms")).expect("valid")
}

fn setting(rng: &mut TestRng) -> DispatchScenario {
    let mut limits = Vec::new();
    for _ in 0..=rng.below(2) {
        let per = Nanos::from_millis(50 + rng.below(1000));
        limits.push(LimitWindow::new(LimitModel::ALL[rng.below(5) as usize], 1 + rng.below(20), per).expect("valid"));
    }
    let way_in = [0, 5, 50, 300][rng.below(4) as usize];
    let heaviest = limits.iter().map(LimitWindow::limit).min().unwrap_or(1);
    let faulty = rng.one_in(2);
    let mut faults = |most| if faulty { rng.below(most) } else { 0 };
    let (lost, unsent, errors) = (faults(100), faults(300), faults(300));
    let key = key_window::KeyRules {
        limits: limits.iter().copied().map(KeyLimit::new).collect(),
        ordered: rng.one_in(2),
        delay_bound: (!rng.one_in(3)).then(|| Nanos::from_millis(way_in)),
        clock_tick: Nanos::MILLI,
        ..key_window::KeyRules::default()
    };
    let mut rules = DispatchRules {
        key,
        learns_delay_bound: false,
        max_in_flight: if rng.one_in(3) { 1 + rng.below(4) as usize } else { 1000 },
        order: if rng.one_in(2) { DispatchOrder::Deadline } else { DispatchOrder::Fifo },
        attempt_timeout: Nanos::from_secs(2),
        budget: rng.one_in(4).then(BudgetRule::default),
        ttl_extension: rng.one_in(4).then_some(TtlExtension { max_extensions: 2, ttl: Nanos::from_secs(1) }),
        ..DispatchRules::default()
    };
    rules.retry.max_retries = rng.below(6) as u32;
    rules.retry.backoff = Backoff { min: Nanos::from_millis(rng.below(50)), max: Nanos::from_secs(1) };
    DispatchScenario {
        rules,
        keys: 1 + rng.below(4) as u32,
        limits,
        delay_in: up_to(way_in),
        delay_out: up_to([0, 50, 300][rng.below(3) as usize]),
        gap: up_to([0, 10, 200][rng.below(3) as usize]),
        initial_jobs: 1 + rng.below(30),
        jobs: 2 + rng.below(40),
        ttl: rng.one_in(2).then(|| Nanos::from_millis(100 + rng.below(5000))),
        min_ttl: None,
        max_weight: if rng.one_in(2) { 1 } else { heaviest },
        priorities: 1 + rng.below(3),
        pinned_per_mille: [0, 300, 900, 1000][rng.below(4) as usize],
        lost_per_mille: lost,
        unsent_per_mille: unsent,
        errors_per_mille: errors,
        has_headers: rng.one_in(3),
        others_interval: None,
        block_after: 10,
        until: Nanos::NEVER,
        timer_lateness: Nanos(rng.below(3) * 500_000),
        pauses: HostPauses::default(),
    }
}

#[test]
fn delays_longer_than_their_bound_cause_rejections() {
    let mut setting = DispatchScenario::reference();
    setting.until = Nanos::from_secs(20);
    setting.rules.key.delay_bound = Some(Nanos::from_millis(15));
    let result = setting.run(1);
    assert!(result.invalid_nonces > 10 && result.exceeded > 0, "{} {}", result.invalid_nonces, result.exceeded);
}

const SCHEDULES: u32 = 12_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    /// The simulation itself checks each action.
    #[test]
    fn each_job_has_one_end_and_the_server_has_no_reason_to_reject(seed: u64) {
        let setting = setting(&mut TestRng(SeededRng::new(seed, 95)));
        let result = setting.run(seed);
        prop_assert_eq!((result.exceeded, result.invalid_nonces), (0, 0), "{:?}", setting);
        prop_assert_eq!(result.ends.len() as u64, setting.jobs, "{:?}", setting);
        for (job, end) in &result.ends {
            let done = result.done.get(job).copied().unwrap_or(0);
            // A job without a response may have been done, and may be done again.
            let lost = setting.lost_per_mille > 0 && setting.rules.retry.max_retries > 0;
            let possible = match end {
                JobEnd::Done => done == 1 || (done > 1 && lost),
                JobEnd::Expired(DispatchFailure::Expired) => setting.ttl.is_some() && done == 0,
                // A response after the timeout is lost, too.
                JobEnd::Expired(_) => setting.ttl.is_some() && (done == 0 || setting.lost_per_mille > 0),
                JobEnd::DeadLettered(DispatchFailure::Response(ResponseClass::Failed(500))) => setting.errors_per_mille > 0 && (done == 0 || lost),
                JobEnd::DeadLettered(DispatchFailure::NoResponse(FailureKind::Timeout)) => setting.lost_per_mille > 0,
                JobEnd::DeadLettered(_) => false,
            };
            prop_assert!(possible, "{job}: {end:?}, done {done} times; {setting:?}");
        }
        if setting.ttl.is_none() && !setting.rules.retry.on.statuses.is_empty() && setting.errors_per_mille + setting.lost_per_mille == 0 {
            prop_assert!(result.ends.values().all(|end| *end == JobEnd::Done), "{setting:?}");
        }
    }
}
