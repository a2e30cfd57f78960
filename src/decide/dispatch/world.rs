//! A dispatcher at an exchange, in virtual time: random settings, and the document's.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Action, Asked, Dispatch, Event, JobId, Meaning, Nanos, Rules, Why};
use crate::decide::account::{Account, Judgement};
use crate::decide::delay::Delay;
use crate::decide::dice::{Dice, Lots};
use crate::decide::feedback::{Feedback, Quota};
use crate::decide::limit::{self, Limiter, Retry};
use crate::decide::policy::Kind;

/// A service, and what is sent to it.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) rules: Rules,
    pub(super) keys: u32,
    /// The server's limits; those of the rules, unless the user is mistaken.
    pub(super) limits: Vec<limit::Window>,
    pub(super) way_in: Delay,
    pub(super) way_out: Delay,
    /// Between two jobs.
    pub(super) gap: Delay,
    /// Jobs before the first gap.
    pub(super) at_once: u64,
    pub(super) jobs: u64,
    pub(super) ttl: Option<Nanos>,
    /// If there are different ones.
    pub(super) shortest_ttl: Option<Nanos>,
    pub(super) heaviest: u64,
    pub(super) priorities: u64,
    /// In a thousand jobs: those that name a key.
    pub(super) pinned: u64,
    /// In a thousand requests: answers that are lost, connections that fail, answers with 500.
    pub(super) lost: u64,
    pub(super) unsent: u64,
    pub(super) errors: u64,
    /// Answers say where the key stands, in whole seconds, as RateLimit and RateLimit-Policy do.
    pub(super) headers: bool,
    /// Somebody else spends one from each key's limits so often.
    pub(super) others: Option<Nanos>,
    /// So many refusals block a key; 0: none.
    pub(super) block_after: u64,
    /// Until then; the jobs that are left are not looked at.
    pub(super) until: Nanos,
    /// How late a timer is.
    pub(super) lateness: Nanos,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Expired(Why),
    Buried(Why),
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) ends: BTreeMap<JobId, End>,
    /// By job: how often the server did it.
    pub(super) done: BTreeMap<JobId, u32>,
    pub(super) exceeded: u64,
    pub(super) overtaken: u64,
    pub(super) accepted: u64,
    pub(super) per_key: Vec<u64>,
    /// From submission to the answer.
    pub(super) responses: Vec<Nanos>,
    pub(super) way_in: Option<Nanos>,
    /// When each was submitted and when it was first sent.
    pub(super) waited: BTreeMap<JobId, Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Arrives { job: JobId, attempt: u32, key: u32, nonce: u64 },
    Answered { job: JobId, attempt: u32, key: u32, outcome: u8, slot: bool, said: usize },
    Other { key: u32 },
    Left { job: JobId, attempt: u32 },
    Unsent { job: JobId, attempt: u32 },
    Submitted(JobId),
    Tick,
}

impl Setting {
    /// The document's: five keys, 20 per second each, up to 50 ms each way, blocked after ten refusals; saturated.
    pub(super) fn document() -> Self {
        let window = limit::Window::read("20/1s", limit::Model::SlidingLog).expect("valid");
        // Places enough: what is looked at are the windows.
        let epoch = Nanos::from_secs(1_700_000_000);
        let mut rules = Rules { epoch, in_flight: 100_000, ..Rules::default() };
        rules.key.limits = vec![super::super::window::Limit::new(window)];
        rules.key.ordered = true;
        rules.key.way_in = Some(Nanos::from_millis(50));
        Self {
            rules,
            keys: 5,
            limits: vec![window],
            way_in: Delay::read("0ms..50ms").expect("valid"),
            way_out: Delay::read("0ms..50ms").expect("valid"),
            gap: Delay::Constant(Nanos::from_millis(1)),
            at_once: 100,
            jobs: 1_000_000,
            ttl: None,
            shortest_ttl: None,
            heaviest: 1,
            priorities: 1,
            pinned: 0,
            lost: 0,
            unsent: 0,
            errors: 0,
            headers: false,
            others: None,
            block_after: 10,
            until: Nanos::from_secs(600),
            lateness: Nanos::ZERO,
        }
    }

    pub(super) fn asked(&self, job: JobId, now: Nanos) -> Asked {
        let dice = Dice::new(job, 5);
        let draw = |k, n: u64| ((dice.unit_at(k) * n as f64) as u64).min(n - 1);
        Asked {
            expires: self.ttl.map_or(Nanos::NEVER, |ttl| {
                now + self.shortest_ttl.map_or(ttl, |least| least + Nanos(draw(2, (ttl - least).0)))
            }),
            weight: 1 + draw(0, self.heaviest),
            priority: draw(1, self.priorities) as i32,
            key: (draw(3, 1000) < self.pinned).then(|| draw(4, self.keys.into()) as u32),
            ..Asked::default()
        }
    }

    pub(super) fn run(&self, seed: u64) -> Story {
        World::new(self, seed).run()
    }
}

struct World<'a> {
    setting: &'a Setting,
    lots: Lots,
    dice: [Dice; 3],
    dispatch: Dispatch,
    accounts: Vec<Account>,
    events: BinaryHeap<Reverse<(Nanos, u64, Happens)>>,
    number: u64,
    wake: Option<Nanos>,
    asked: BTreeMap<JobId, (Nanos, Asked)>,
    /// The attempts that the dispatcher waits for.
    live: BTreeMap<JobId, u32>,
    nonces: Vec<u64>,
    kept: Vec<u64>,
    /// What answers said; the first said nothing.
    said: Vec<Feedback>,
    story: Story,
}

impl<'a> World<'a> {
    fn new(setting: &'a Setting, seed: u64) -> Self {
        let account = Account::new(Limiter::new(&setting.limits, Nanos::MILLI), setting.block_after);
        Self {
            setting,
            lots: Lots(Dice::new(seed, 90)),
            dice: [91, 92, 93].map(|salt| Dice::new(seed, salt)),
            dispatch: Dispatch::new(setting.rules.clone(), setting.keys, seed),
            accounts: vec![account; setting.keys as usize],
            events: BinaryHeap::new(),
            number: 0,
            wake: None,
            asked: BTreeMap::new(),
            live: BTreeMap::new(),
            nonces: vec![0; setting.keys as usize],
            kept: vec![0; setting.keys as usize],
            said: vec![Feedback::default()],
            story: Story { per_key: vec![0; setting.keys as usize], ..Story::default() },
        }
    }

    fn at(&mut self, at: Nanos, what: Happens) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, what)));
    }

    fn run(mut self) -> Story {
        let setting = self.setting;
        let mut at = Nanos::ZERO;
        for job in 0..setting.jobs {
            if job >= setting.at_once {
                at += setting.gap.at(&self.dice[2], job);
            }
            if at > setting.until {
                break;
            }
            self.at(at, Happens::Submitted(job));
        }
        if let Some(gap) = setting.others {
            for key in 0..setting.keys {
                self.at(gap, Happens::Other { key });
            }
        }
        let mut actions = Vec::new();
        let mut now = Nanos::ZERO;
        while let Some(Reverse((at, _, what))) = self.events.pop() {
            if at > setting.until {
                break;
            }
            now = at;
            self.happen(now, what, &mut actions);
            if setting.pinned > 0 {
                self.dispatch.assert_nobody_is_held_up();
            }
            for action in std::mem::take(&mut actions) {
                self.act(now, action);
            }
        }
        self.story.way_in = self.dispatch.way_in();
        if setting.until == Nanos::NEVER {
            let (queued, dead, leased) = self.dispatch.sizes();
            assert_eq!((queued, dead, leased), (0, 0, 0), "nothing is left at {now}");
        }
        self.story
    }

    fn happen(&mut self, now: Nanos, what: Happens, actions: &mut Vec<Action>) {
        match what {
            Happens::Submitted(job) => {
                let asked = self.setting.asked(job, now);
                self.asked.insert(job, (now, asked));
                self.dispatch.on(now, Event::Submitted(job, asked), actions);
            }
            Happens::Tick => {
                // A timer that was set anew does not ring.
                if self.wake.is_some_and(|at| at + self.setting.lateness <= now) {
                    self.wake = None;
                    self.dispatch.on(now, Event::Tick, actions);
                }
            }
            Happens::Left { job, attempt } => self.dispatch.on(now, Event::Left(job, attempt), actions),
            Happens::Unsent { job, attempt } => {
                self.live.remove(&job);
                self.dispatch.on(now, Event::Failed(job, attempt, Kind::Connect), actions);
            }
            Happens::Arrives { job, attempt, key, nonce } => self.arrive(now, (job, attempt, key, nonce)),
            Happens::Other { key } => {
                let account = &mut self.accounts[key as usize];
                let nonce = account.counts().accepted + 1;
                account.judge(now, 1, Some(nonce.into()));
                if let Some(gap) = self.setting.others {
                    self.at(now + gap, Happens::Other { key });
                }
            }
            Happens::Answered { job, attempt, key, outcome, slot, said } => {
                if slot {
                    self.accounts[key as usize].finished(self.asked[&job].1.weight);
                }
                if self.live.get(&job) != Some(&attempt) {
                    return;
                }
                let meaning = match outcome {
                    0 => Meaning::Done,
                    1 => Meaning::Refused,
                    2 => Meaning::Overtaken,
                    3 => Meaning::Blocked,
                    4 => Meaning::Failed(500),
                    _ => return,
                };
                self.live.remove(&job);
                if meaning == Meaning::Done {
                    self.story.responses.push(now - self.asked[&job].0);
                }
                self.dispatch.on(now, Event::Answered(job, attempt, meaning, &self.said[said]), actions);
            }
        }
    }

    fn arrive(&mut self, now: Nanos, (job, attempt, key, nonce): (JobId, u32, u32, u64)) {
        let account = &mut self.accounts[key as usize];
        // Where the order does not matter, every nonce is good.
        let nonce = if self.setting.rules.key.ordered { nonce } else { account.counts().accepted + 1 };
        let judged = account.judge(now, self.asked[&job].1.weight, Some(nonce.into()));
        if self.setting.headers {
            let quotas = account.limiter().standings(now).into_iter().map(|standing| Quota {
                name: standing.window.to_string(),
                limit: Some(standing.window.limit()),
                per: Some(standing.window.per()),
                remaining: Some(standing.remaining),
                reset: match standing.more {
                    Retry::After(length) => Some(Nanos(length.0.next_multiple_of(Nanos::SECOND.0))),
                    _ => None,
                },
                unit: None,
            });
            self.said.push(Feedback { retry_after: None, quotas: quotas.collect() });
        }
        let failed = self.lots.below(1000) < self.setting.errors;
        let mut outcome = match judged {
            Judgement::Accepted if failed => 4,
            Judgement::Accepted => 0,
            Judgement::Exceeded(_) => 1,
            Judgement::InvalidNonce => 2,
            Judgement::Blocked => 3,
        };
        self.story.exceeded += u64::from(outcome == 1);
        self.story.overtaken += u64::from(outcome == 2);
        if outcome == 0 {
            self.story.accepted += 1;
            self.story.per_key[key as usize] += 1;
            *self.story.done.entry(job).or_default() += 1;
            if self.lots.below(1000) < self.setting.lost {
                outcome = 9;
            }
        }
        let back = now + self.setting.way_out.at(&self.dice[1], self.number);
        self.at(
            back,
            Happens::Answered { job, attempt, key, outcome, slot: judged.took_slot(), said: self.said.len() - 1 },
        );
    }

    fn act(&mut self, now: Nanos, action: Action) {
        match action {
            Action::WakeAt(at) => {
                assert!(at != Nanos::NEVER);
                self.wake = Some(at);
                self.at(at.max(now) + self.setting.lateness, Happens::Tick);
            }
            Action::Keep { key, high_water } => self.kept[key as usize] = high_water,
            Action::Send { job, key, attempt, nonce, again } => {
                let (since, asked) = self.asked[&job];
                assert!(!self.story.ends.contains_key(&job), "{job} has ended");
                assert!(asked.key.is_none_or(|only| only == key), "{job} goes by {key}");
                assert!(self.live.insert(job, attempt).is_none(), "{job} is on its way");
                assert!(nonce > self.nonces[key as usize] && nonce <= self.kept[key as usize], "{nonce}");
                self.nonces[key as usize] = nonce;
                self.story.waited.entry(job).or_insert(now - since);
                if let (Some(way_in), None) = (self.setting.rules.key.way_in, self.setting.rules.renew) {
                    assert!(now + way_in <= asked.expires, "{job} can't arrive in time");
                }
                let before = self.story.done.get(&job).copied().unwrap_or(0);
                assert!(before == 0 || again, "{job} may be done twice and nobody is told");
                if self.lots.below(1000) < self.setting.unsent {
                    return self.at(now + Nanos::MILLI, Happens::Unsent { job, attempt });
                }
                self.at(now, Happens::Left { job, attempt });
                let at = now + self.setting.way_in.at(&self.dice[0], self.number);
                self.at(at, Happens::Arrives { job, attempt, key, nonce });
            }
            Action::Cancel { job, attempt } => assert_eq!(self.live.remove(&job), Some(attempt)),
            Action::Done(job) => self.end(job, End::Done),
            Action::Expire { job, why } => self.end(job, End::Expired(why)),
            Action::Bury { job, why } => self.end(job, End::Buried(why)),
            Action::Dead { .. } | Action::Requeue(_) | Action::Renew { .. } | Action::Unusable { .. } => {}
            Action::Down(_) | Action::Up(_) => {}
        }
    }

    fn end(&mut self, job: JobId, end: End) {
        assert_eq!(self.story.ends.insert(job, end), None, "{job} ends twice");
        if end == End::Done {
            assert!(self.story.done.get(&job).is_some_and(|times| *times > 0), "{job} was never done");
        }
    }
}
