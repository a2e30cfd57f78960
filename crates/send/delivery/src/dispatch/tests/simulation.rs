//! A dispatcher and a rate-limited service in virtual time: random settings, and the reference workload.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::silence::HostPauses;
use crate::dispatch::{
    Dispatch, DispatchAction, DispatchFailure, DispatchRules, DispatchSizes, Event, JobId, JobSubmission, Nanos,
    ResponseClass,
};
use crate::limit_headers::{Quota, RateLimitHeaders};
use weir_base::failure::FailureKind;
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::key_quota::{KeyQuota, QuotaDecision};
use weir_limits::models::{self, RetryTime, ServerLimiter};
use weir_workload::delay::Delay;

/// A service, and the jobs that are sent to it.
#[derive(Clone, Debug)]
pub(crate) struct DispatchScenario {
    pub(crate) rules: DispatchRules,
    pub(crate) keys: u32,
    /// Limits of the server; those of the rules, unless the configuration is wrong.
    pub(crate) limits: Vec<models::LimitWindow>,
    pub(crate) delay_in: Delay,
    pub(crate) delay_out: Delay,
    /// Time between two jobs.
    pub(crate) gap: Delay,
    /// Jobs before the first gap.
    pub(crate) initial_jobs: u64,
    pub(crate) jobs: u64,
    pub(crate) ttl: Option<Nanos>,
    /// Shortest TTL, if they differ.
    pub(crate) min_ttl: Option<Nanos>,
    pub(crate) max_weight: u64,
    pub(crate) priorities: u64,
    /// Jobs in a thousand that name a key.
    pub(crate) pinned_per_mille: u64,
    /// Requests in a thousand: responses that are lost, connections that fail, responses with 500.
    pub(crate) lost_per_mille: u64,
    pub(crate) unsent_per_mille: u64,
    pub(crate) errors_per_mille: u64,
    /// Whether responses report the key's quota, in whole seconds, as RateLimit and RateLimit-Policy do.
    pub(crate) has_headers: bool,
    /// Interval at which another client spends one request of each key's limits.
    pub(crate) others_interval: Option<Nanos>,
    /// Rejections that block a key; 0: none.
    pub(crate) block_after: u64,
    /// End of the simulation; the remaining jobs are ignored.
    pub(crate) until: Nanos,
    pub(crate) timer_lateness: Nanos,
    pub(crate) pauses: HostPauses,
}

/// End of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Done,
    Expired(DispatchFailure),
    DeadLettered(DispatchFailure),
}

/// Result of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct DispatchResult {
    pub(crate) ends: BTreeMap<JobId, JobEnd>,
    /// Executions at the server, by job.
    pub(crate) done: BTreeMap<JobId, u32>,
    pub(crate) exceeded: u64,
    pub(crate) invalid_nonces: u64,
    pub(crate) accepted: u64,
    pub(crate) per_key: Vec<u64>,
    /// Time from submission to response.
    pub(crate) responses: Vec<Nanos>,
    pub(crate) delay_bound: Option<Nanos>,
    /// Submission and first send, by job.
    pub(crate) waited: BTreeMap<JobId, Nanos>,
    /// Times at which jobs were done.
    pub(crate) done_at: Vec<Nanos>,
    /// Requests that arrived while the host was silent.
    pub(crate) sent_into_silence: u64,
    pub(crate) max_attempts_used: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DispatchSimulationEvent {
    Arrives { job: JobId, attempt: u32, key: u32, nonce: u64 },
    Responded { job: JobId, attempt: u32, key: u32, outcome: u8, slot: bool, said: usize },
    OtherSender { key: u32 },
    Departed { job: JobId, attempt: u32 },
    Unsent { job: JobId, attempt: u32 },
    Submitted(JobId),
    Tick,
}

impl DispatchScenario {
    /// The reference workload: five keys, 20/s each, up to 50 ms each way, blocked after ten rejections; saturated.
    pub(crate) fn reference() -> Self {
        let window = models::LimitWindow::read("20/1s", models::LimitModel::SlidingLog).expect("valid");
        // Enough slots: the windows are tested.
        let epoch = Nanos::from_secs(1_700_000_000);
        let mut rules = DispatchRules { epoch, max_in_flight: 100_000, ..DispatchRules::default() };
        rules.key.limits = vec![crate::key_window::KeyLimit::new(window)];
        rules.key.ordered = true;
        rules.key.delay_bound = Some(Nanos::from_millis(50));
        Self {
            rules,
            keys: 5,
            limits: vec![window],
            delay_in: Delay::read("0ms..50ms").expect("valid"),
            delay_out: Delay::read("0ms..50ms").expect("valid"),
            gap: Delay::Constant(Nanos::from_millis(1)),
            initial_jobs: 100,
            jobs: 1_000_000,
            ttl: None,
            min_ttl: None,
            max_weight: 1,
            priorities: 1,
            pinned_per_mille: 0,
            lost_per_mille: 0,
            unsent_per_mille: 0,
            errors_per_mille: 0,
            has_headers: false,
            others_interval: None,
            block_after: 10,
            until: Nanos::from_secs(600),
            timer_lateness: Nanos::ZERO,
            pauses: HostPauses::default(),
        }
    }

    pub(crate) fn submission(&self, job: JobId, now: Nanos) -> JobSubmission {
        let rng = SeededRng::new(job, 5);
        let draw = |k, n: u64| ((rng.unit_at(k) * n as f64) as u64).min(n - 1);
        JobSubmission {
            expires_at: self.ttl.map_or(Nanos::NEVER, |ttl| {
                now + self.min_ttl.map_or(ttl, |least| least + Nanos(draw(2, (ttl - least).0)))
            }),
            weight: 1 + draw(0, self.max_weight),
            priority: draw(1, self.priorities) as i32,
            key: (draw(3, 1000) < self.pinned_per_mille).then(|| draw(4, self.keys.into()) as u32),
            ..JobSubmission::default()
        }
    }

    pub(crate) fn run(&self, seed: u64) -> DispatchResult {
        DispatchSimulation::new(self, seed).run()
    }
}

struct DispatchSimulation<'a> {
    scenario: &'a DispatchScenario,
    lots: TestRng,
    rng: [SeededRng; 3],
    dispatch: Dispatch,
    accounts: Vec<KeyQuota>,
    events: BinaryHeap<Reverse<(Nanos, u64, DispatchSimulationEvent)>>,
    number: u64,
    wake_at: Option<Nanos>,
    submissions: BTreeMap<JobId, (Nanos, JobSubmission)>,
    /// Attempts in flight.
    awaited: BTreeMap<JobId, u32>,
    nonces: Vec<u64>,
    saved_high_water: Vec<u64>,
    /// Headers of responses; the first ones are empty.
    response_headers: Vec<RateLimitHeaders>,
    result: DispatchResult,
}

impl<'a> DispatchSimulation<'a> {
    fn new(scenario: &'a DispatchScenario, seed: u64) -> Self {
        let account = KeyQuota::new(ServerLimiter::new(&scenario.limits, Nanos::MILLI), scenario.block_after);
        let mut dispatch = Dispatch::new(scenario.rules.clone(), scenario.keys, seed);
        scenario.pauses.prepare(&mut dispatch);
        Self {
            scenario,
            lots: TestRng(SeededRng::new(seed, 90)),
            rng: [91, 92, 93].map(|salt| SeededRng::new(seed, salt)),
            dispatch,
            accounts: vec![account; scenario.keys as usize],
            events: BinaryHeap::new(),
            number: 0,
            wake_at: None,
            submissions: BTreeMap::new(),
            awaited: BTreeMap::new(),
            nonces: vec![0; scenario.keys as usize],
            saved_high_water: vec![0; scenario.keys as usize],
            response_headers: vec![RateLimitHeaders::default()],
            result: DispatchResult { per_key: vec![0; scenario.keys as usize], ..DispatchResult::default() },
        }
    }

    fn schedule(&mut self, at: Nanos, what: DispatchSimulationEvent) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, what)));
    }

    fn run(mut self) -> DispatchResult {
        let setting = self.scenario;
        let mut at = Nanos::ZERO;
        for job in 0..setting.jobs {
            if job >= setting.initial_jobs {
                at += setting.gap.at(&self.rng[2], job);
            }
            if at > setting.until {
                break;
            }
            self.schedule(at, DispatchSimulationEvent::Submitted(job));
        }
        if let Some(gap) = setting.others_interval {
            for key in 0..setting.keys {
                self.schedule(gap, DispatchSimulationEvent::OtherSender { key });
            }
        }
        let mut actions = Vec::new();
        let mut now = Nanos::ZERO;
        while let Some(Reverse((at, _, what))) = self.events.pop() {
            if at > setting.until {
                break;
            }
            now = at;
            self.handle(now, what, &mut actions);
            if setting.pinned_per_mille > 0 {
                self.dispatch.assert_no_job_is_held_up();
            }
            for action in std::mem::take(&mut actions) {
                self.act(now, action);
            }
        }
        self.result.delay_bound = self.dispatch.delay_bound();
        if setting.until == Nanos::NEVER {
            assert_eq!(self.dispatch.sizes(), DispatchSizes::default(), "nothing is left at {now}");
        }
        self.result
    }

    fn handle(&mut self, now: Nanos, what: DispatchSimulationEvent, actions: &mut Vec<DispatchAction>) {
        match what {
            DispatchSimulationEvent::Submitted(job) => {
                let asked = self.scenario.submission(job, now);
                self.submissions.insert(job, (now, asked));
                self.dispatch.on(now, Event::Submitted(job, asked), actions);
            }
            DispatchSimulationEvent::Tick => {
                // A replaced timer does not fire.
                if self.wake_at.is_some_and(|at| at + self.scenario.timer_lateness <= now) {
                    self.wake_at = None;
                    self.dispatch.on(now, Event::Tick, actions);
                }
            }
            DispatchSimulationEvent::Departed { job, attempt } => {
                self.dispatch.on(now, Event::Departed(job, attempt), actions);
            }
            DispatchSimulationEvent::Unsent { job, attempt } => {
                self.awaited.remove(&job);
                self.dispatch.on(now, Event::Failed(job, attempt, FailureKind::Connect), actions);
            }
            DispatchSimulationEvent::Arrives { job, attempt, key, nonce } => {
                self.arrive(now, (job, attempt, key, nonce));
            }
            DispatchSimulationEvent::OtherSender { key } => {
                let account = &mut self.accounts[key as usize];
                let nonce = account.counts().accepted + 1;
                account.judge(now, 1, Some(nonce.into()));
                if let Some(gap) = self.scenario.others_interval {
                    self.schedule(now + gap, DispatchSimulationEvent::OtherSender { key });
                }
            }
            DispatchSimulationEvent::Responded { job, attempt, key, outcome, slot, said } => {
                if slot {
                    self.accounts[key as usize].finished(self.submissions[&job].1.weight);
                }
                if self.awaited.get(&job) != Some(&attempt) {
                    return;
                }
                let meaning = match outcome {
                    0 => ResponseClass::Done,
                    1 => ResponseClass::RateLimited,
                    2 => ResponseClass::InvalidNonce,
                    3 => ResponseClass::Blocked,
                    4 => ResponseClass::Failed(500),
                    _ => return,
                };
                self.awaited.remove(&job);
                if meaning == ResponseClass::Done {
                    self.result.responses.push(now - self.submissions[&job].0);
                    self.result.done_at.push(now);
                }
                self.dispatch.on(now, Event::Responded(job, attempt, meaning, &self.response_headers[said]), actions);
            }
        }
    }

    fn arrive(&mut self, now: Nanos, (job, attempt, key, nonce): (JobId, u32, u32, u64)) {
        self.result.sent_into_silence += u64::from(self.scenario.pauses.is_silent(now));
        if self.scenario.pauses.is_lost(now, job) {
            return;
        }
        let account = &mut self.accounts[key as usize];
        // Without an order each nonce is valid.
        let nonce = if self.scenario.rules.key.ordered { nonce } else { account.counts().accepted + 1 };
        let judged = account.judge(now, self.submissions[&job].1.weight, Some(nonce.into()));
        if self.scenario.has_headers {
            let quotas = account.limiter().usages(now).into_iter().map(|standing| Quota {
                name: standing.window.to_string(),
                limit: Some(standing.window.limit()),
                per: Some(standing.window.per()),
                remaining: Some(standing.remaining),
                reset: match standing.more {
                    RetryTime::After(length) => Some(Nanos(length.0.next_multiple_of(Nanos::SECOND.0))),
                    _ => None,
                },
                unit: None,
            });
            self.response_headers.push(RateLimitHeaders { retry_after: None, quotas: quotas.collect() });
        }
        let failed = self.lots.below(1000) < self.scenario.errors_per_mille;
        let mut outcome = match judged {
            QuotaDecision::Accepted if failed => 4,
            QuotaDecision::Accepted => 0,
            QuotaDecision::Exceeded(_) => 1,
            QuotaDecision::InvalidNonce => 2,
            QuotaDecision::Blocked => 3,
        };
        self.result.exceeded += u64::from(outcome == 1);
        self.result.invalid_nonces += u64::from(outcome == 2);
        if outcome == 0 {
            self.result.accepted += 1;
            self.result.per_key[key as usize] += 1;
            *self.result.done.entry(job).or_default() += 1;
            if self.lots.below(1000) < self.scenario.lost_per_mille {
                outcome = 9;
            }
        }
        let work = self.scenario.delay_out.at(&self.rng[1], self.number);
        let Some(back) = self.scenario.pauses.end_of_work(now, job, work) else { return };
        self.schedule(
            back,
            DispatchSimulationEvent::Responded {
                job,
                attempt,
                key,
                outcome,
                slot: judged.consumed_slot(),
                said: self.response_headers.len() - 1,
            },
        );
    }

    fn act(&mut self, now: Nanos, action: DispatchAction) {
        match action {
            DispatchAction::WakeAt(at) => {
                assert!(at != Nanos::NEVER);
                self.wake_at = Some(at);
                self.schedule(at.max(now) + self.scenario.timer_lateness, DispatchSimulationEvent::Tick);
            }
            DispatchAction::SaveHighWater { key, high_water } => self.saved_high_water[key as usize] = high_water,
            DispatchAction::Send { job, key, attempt, nonce, maybe_duplicate: again } => {
                let (since, asked) = self.submissions[&job];
                assert!(!self.result.ends.contains_key(&job), "{job} has ended");
                assert!(asked.key.is_none_or(|only| only == key), "{job} goes by {key}");
                assert!(self.awaited.insert(job, attempt).is_none(), "{job} is on its way");
                assert!(nonce > self.nonces[key as usize] && nonce <= self.saved_high_water[key as usize], "{nonce}");
                self.nonces[key as usize] = nonce;
                self.result.waited.entry(job).or_insert(now - since);
                if let (Some(way_in), None) = (self.scenario.rules.key.delay_bound, self.scenario.rules.ttl_extension) {
                    assert!(now + way_in <= asked.expires_at, "{job} can't arrive in time");
                }
                let before = self.result.done.get(&job).copied().unwrap_or(0);
                assert!(before == 0 || again, "{job} may be done twice without a flag");
                if self.lots.below(1000) < self.scenario.unsent_per_mille {
                    return self.schedule(now + Nanos::MILLI, DispatchSimulationEvent::Unsent { job, attempt });
                }
                self.schedule(now, DispatchSimulationEvent::Departed { job, attempt });
                let at = now + self.scenario.delay_in.at(&self.rng[0], self.number);
                self.schedule(at, DispatchSimulationEvent::Arrives { job, attempt, key, nonce });
            }
            DispatchAction::Cancel { job, attempt } => assert_eq!(self.awaited.remove(&job), Some(attempt)),
            DispatchAction::Done(job) => self.end(job, JobEnd::Done),
            DispatchAction::Expire { job, reason: why } => self.end(job, JobEnd::Expired(why)),
            DispatchAction::DeadLetter { job, reason: why } => self.end(job, JobEnd::DeadLettered(why)),
            DispatchAction::ScheduleRetry { job, .. } => {
                let used = self.dispatch.queue.get(job).map_or(0, |job| job.attempts_used);
                self.result.max_attempts_used = self.result.max_attempts_used.max(used);
            }
            DispatchAction::Requeue(_)
            | DispatchAction::ExtendTtl { .. }
            | DispatchAction::KeyUnusable { .. }
            | DispatchAction::HostDown(_)
            | DispatchAction::HostUp(_) => {}
        }
    }

    fn end(&mut self, job: JobId, end: JobEnd) {
        assert_eq!(self.result.ends.insert(job, end), None, "{job} ends twice");
        if end == JobEnd::Done {
            assert!(self.result.done.get(&job).is_some_and(|times| *times > 0), "{job} was never done");
        }
    }
}
