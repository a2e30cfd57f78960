//! Hosts with outages, hangs and faulty jobs, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;

use crate::dispatch::circuit::MIN_FAILED_JOBS;
use crate::dispatch::{
    Dispatch, DispatchAction, DispatchRules, DispatchSizes, Event, JobId, JobSubmission, Nanos, ResponseClass,
};
use crate::limit_headers::RateLimitHeaders;
use weir_base::failure::FailureKind;
use weir_base::rng::{SeededRng, TestRng};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Kind of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureMode {
    Responds(u16),
    RefusesConnections,
    Resets,
    Hangs,
}

#[derive(Clone, Debug)]
struct FaultyHost {
    /// Response time of a success; a failure takes half of it.
    response_time: Nanos,
    /// Begin and end of the outage.
    outage: (Nanos, Nanos),
    mode: FailureMode,
    jobs: u64,
    /// One in N jobs always gets a 500; 0: none.
    poison: u64,
}

impl FaultyHost {
    fn healthy(takes: u64, jobs: u64) -> Self {
        Self {
            response_time: ms(takes),
            outage: (Nanos::NEVER, Nanos::NEVER),
            mode: FailureMode::Hangs,
            jobs,
            poison: 0,
        }
    }

    fn is_poisoned(&self, job: JobId) -> bool {
        self.poison > 0 && (job % JOB_IDS_PER_HOST).is_multiple_of(self.poison)
    }

    fn is_down(&self, at: Nanos) -> bool {
        (self.outage.0..self.outage.1).contains(&at)
    }
}

/// Result, by host.
#[derive(Clone, Debug, Default, PartialEq)]
struct OutageResult {
    done: u64,
    dead_lettered: u64,
    good_dead_lettered: u64,
    /// Requests sent during the outage.
    sent_into_outage: u64,
    last_done: Nanos,
    /// Completion times.
    done_at: Vec<Nanos>,
    /// Requests, by job.
    attempts: BTreeMap<JobId, u32>,
}

const JOB_IDS_PER_HOST: u64 = 1_000_000;
/// End of an attempt: time, attempt, and a status, or 0 for a refused connection, 1 for a reset one.
type ScheduledEnd = (Nanos, u64, JobId, u32, u16);

fn run(services: &[FaultyHost], rules: DispatchRules, until: Nanos) -> Vec<OutageResult> {
    let mut dispatch = Dispatch::new(rules, 1, 1);
    let mut results = vec![OutageResult::default(); services.len()];
    let mut events: BinaryHeap<Reverse<ScheduledEnd>> = BinaryHeap::new();
    let (mut wake, mut number, mut now) = (Nanos::NEVER, 0, Nanos::ZERO);
    let mut actions = Vec::new();
    let mut live: BTreeMap<JobId, u32> = BTreeMap::new();
    for _ in services {
        dispatch.add_host(None);
    }
    for (host, service) in (0..).zip(services) {
        for job in 0..service.jobs {
            let asked = JobSubmission { host, ..JobSubmission::default() };
            dispatch.on(now, Event::Submitted(u64::from(host) * JOB_IDS_PER_HOST + job, asked), &mut actions);
        }
    }
    loop {
        for action in std::mem::take(&mut actions) {
            match action {
                DispatchAction::WakeAt(at) => {
                    assert!(at >= now, "a timer in the past");
                    wake = at;
                }
                DispatchAction::Send { job, attempt, .. } => {
                    live.insert(job, attempt);
                    let host = (job / JOB_IDS_PER_HOST) as usize;
                    let (service, result) = (&services[host], &mut results[host]);
                    *result.attempts.entry(job).or_default() += 1;
                    let is_poison = service.is_poisoned(job);
                    let half = Nanos(service.response_time.0 / 2);
                    let (at, says) = match service.mode {
                        _ if !service.is_down(now) && is_poison => (now + half, 500),
                        // Requests in flight at the begin of the outage get no response, either.
                        _ if !service.is_down(now) && !service.is_down(now + service.response_time) => {
                            (now + service.response_time, 200)
                        }
                        FailureMode::Responds(status) => (now + half, status),
                        FailureMode::RefusesConnections => (now + ms(1), 0),
                        FailureMode::Resets => (now + half, 1),
                        FailureMode::Hangs => (Nanos::NEVER, 2),
                    };
                    result.sent_into_outage += u64::from(service.is_down(now));
                    number += 1;
                    if at < Nanos::NEVER {
                        events.push(Reverse((at, number, job, attempt, says)));
                    }
                }
                DispatchAction::Cancel { job, .. } => drop(live.remove(&job)),
                DispatchAction::Done(job) => {
                    let result = &mut results[(job / JOB_IDS_PER_HOST) as usize];
                    (result.done, result.last_done) = (result.done + 1, now);
                    result.done_at.push(now);
                }
                DispatchAction::DeadLetter { job, .. } => {
                    let (result, service) =
                        (&mut results[(job / JOB_IDS_PER_HOST) as usize], &services[(job / JOB_IDS_PER_HOST) as usize]);
                    result.dead_lettered += 1;
                    result.good_dead_lettered += u64::from(!service.is_poisoned(job));
                }
                _ => {}
            }
        }
        let next = events.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
        if dispatch.sizes() == DispatchSizes::default() || next.min(wake) > until {
            return results;
        }
        if wake <= next {
            now = wake;
            wake = Nanos::NEVER;
            dispatch.on(now, Event::Tick, &mut actions);
            continue;
        }
        let Some(Reverse((at, _, job, attempt, says))) = events.pop() else { return results };
        now = at;
        if live.get(&job) != Some(&attempt) {
            continue;
        }
        live.remove(&job);
        let silent = RateLimitHeaders::default();
        let event = match says {
            0 => Event::Failed(job, attempt, FailureKind::Connect),
            1 => Event::Failed(job, attempt, FailureKind::Reset),
            status => Event::Responded(job, attempt, ResponseClass::of(status), &silent),
        };
        dispatch.on(now, event, &mut actions);
    }
}

fn rules(slots: usize) -> DispatchRules {
    DispatchRules { max_in_flight: slots, ..DispatchRules::default() }
}

const FAILURE_MODES: [FailureMode; 4] =
    [FailureMode::Responds(503), FailureMode::Responds(500), FailureMode::RefusesConnections, FailureMode::Resets];

#[test]
fn an_outage_of_ten_seconds_costs_no_job_and_thirty_requests_and_the_full_rate_is_back_within_a_second() {
    for down in FAILURE_MODES {
        for from in [0, 100] {
            let outage = (ms(from), ms(from + 10_000));
            let service = FaultyHost { outage, mode: down, ..FaultyHost::healthy(20, 1000) };
            let result = run(&[service], rules(256), Nanos::from_secs(600)).remove(0);
            assert_eq!((result.done, result.dead_lettered), (1000, 0), "{down:?}");
            // Requests sent before the first failure was detected are unavoidable.
            assert!(result.sent_into_outage <= 30, "{down:?} from {from}: {} requests", result.sent_into_outage);
            let a_second_later = outage.1 + Nanos::SECOND;
            assert!(result.last_done <= a_second_later, "{down:?} from {from}: {}", result.last_done - outage.1);
        }
    }
}

#[test]
fn a_long_outage_is_found_to_be_over_within_a_twentieth_of_it() {
    let service = FaultyHost {
        outage: (ms(0), ms(3_600_000)),
        mode: FailureMode::RefusesConnections,
        ..FaultyHost::healthy(20, 1000)
    };
    let result = run(&[service], rules(256), Nanos::from_secs(7200)).remove(0);
    assert_eq!((result.done, result.dead_lettered), (1000, 0));
    assert!(result.sent_into_outage < 250, "{}", result.sent_into_outage);
    assert!(result.last_done < ms(3_600_000 + 75_000), "{}", result.last_done);
}

#[test]
fn poisoned_jobs_use_up_their_own_attempts_and_the_others_are_delivered() {
    for (one_in, jobs) in [(1000, 1000), (100, 1000), (10, 1000), (3, 300), (2, 40), (10, 10)] {
        for takes in [1, 20, 1000] {
            let service = FaultyHost { poison: one_in, ..FaultyHost::healthy(takes, jobs) };
            let result = run(&[service], rules(64), Nanos::from_secs(7200)).remove(0);
            let poisoned = jobs.div_ceil(one_in);
            let setting = format!("one in {one_in} of {jobs}, {takes} ms");
            assert_eq!(
                (result.done, result.dead_lettered, result.good_dead_lettered),
                (jobs - poisoned, poisoned, 0),
                "{setting}"
            );
        }
    }
}

#[test]
fn a_host_that_hangs_costs_the_others_less_than_a_twentieth_of_their_rate() {
    for takes in [5, 50, 500] {
        let well = || (0..5).map(|_| FaultyHost::healthy(takes, 4000));
        let hanging =
            FaultyHost { outage: (ms(0), Nanos::NEVER), mode: FailureMode::Hangs, ..FaultyHost::healthy(1, 10_000) };
        let last = |results: &[OutageResult]| results.iter().map(|result| result.last_done).max().unwrap_or_default();
        let until = Nanos::from_secs(600);
        let alone = last(&run(&well().collect::<Vec<_>>(), rules(256), until));
        // Its jobs are first in the queue.
        let beside = run(&std::iter::once(hanging).chain(well()).collect::<Vec<_>>(), rules(256), until);
        assert!(beside[1..].iter().all(|result| result.done == 4000));
        let beside = last(&beside[1..]);
        println!("{takes} ms: {alone} alone, {beside} beside it");
        assert!(beside.0 as f64 <= alone.0 as f64 * 1.05, "{takes} ms: {alone} alone, {beside} beside it");
    }
}

#[test]
fn jobs_of_a_service_that_responds_500_to_all_wait_unless_give_up_after_is_set() {
    let service = FaultyHost { poison: 1, ..FaultyHost::healthy(5, 100) };
    let result = run(std::slice::from_ref(&service), rules(64), Nanos::from_secs(86_400)).remove(0);
    assert_eq!((result.done, result.dead_lettered), (0, 0));
    let give_up = DispatchRules { give_up_after: Some(Nanos::from_secs(60)), ..rules(64) };
    let result = run(&[service], give_up, Nanos::from_secs(600)).remove(0);
    assert_eq!((result.done, result.dead_lettered), (0, 100));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the hosts do, good jobs are delivered (except for the last few of a long outage with status 500), and
    /// an outage costs as many requests as the naive sum.
    #[test]
    fn good_jobs_are_delivered_whatever_the_hosts_do(seed: u64) {
        let mut rng = TestRng(SeededRng::new(seed, 96));
        let services: Vec<FaultyHost> = (0..1 + rng.below(5)).map(|_| {
            let from = ms(rng.below(2000));
            let outage = if rng.one_in(2) { (from, from + ms(rng.below(60_000))) } else { (Nanos::NEVER, Nanos::NEVER) };
            let down = if rng.one_in(5) { FailureMode::Hangs } else { FAILURE_MODES[rng.below(4) as usize] };
            let poison = if rng.one_in(3) { 7 + rng.below(50) } else { 0 };
            FaultyHost { outage, mode: down, poison, ..FaultyHost::healthy(1 + rng.below(300), 1 + rng.below(300)) }
        }).collect();
        let slots = 1 + rng.below(300) as usize;
        let results = run(&services, rules(slots), Nanos::from_secs(3600));
        for (service, result) in services.iter().zip(&results) {
            // The last few jobs that get a 500 through all of their backoffs look like faulty ones.
            let is_long = service.outage.1 - service.outage.0 > Nanos::from_secs(15);
            let may_end = if is_long && matches!(service.mode, FailureMode::Responds(500)) { MIN_FAILED_JOBS as u64 - 1 } else { 0 };
            prop_assert!(result.good_dead_lettered <= may_end, "{} of {:?}", result.good_dead_lettered, service);
            let poisoned = if service.poison > 0 { service.jobs.div_ceil(service.poison) } else { 0 };
            prop_assert_eq!(result.done, service.jobs - poisoned - result.good_dead_lettered, "{:?} {} places", service, slots);
            // Probes, requests in flight, and those before enough had failed; repeated for failures that were not the
            // host's.
            let length = service.outage.1 - service.outage.0;
            let probes = 30.0 + 25.0 * (length.as_secs_f64() / 10.0).max(1.0).ln() + length.as_secs_f64() * 2.6;
            let most = probes + 2.0 * slots as f64;
            prop_assert!((result.sent_into_outage as f64) < most, "{} requests: {:?}", result.sent_into_outage, service);
        }
    }
}
