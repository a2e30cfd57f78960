//! Random keys at random servers, in virtual time: no server ever has a reason to refuse.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::{History, Limit, Nanos, Rules, Slot, Unit, Windows};
use crate::decide::account::{Account, Judgement};
use crate::decide::dice::{Dice, Lots};
use crate::decide::limit::{Limiter, Model, Window};

/// A length up to `most`: the extremes are where things break.
fn up_to(lots: &mut Lots, most: Nanos) -> Nanos {
    match lots.below(4) {
        0 => Nanos::ZERO,
        1 => most,
        _ => Nanos(lots.below(most.0 + 1)),
    }
}

/// A key and its world.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) rules: Rules,
    /// The way in is at most so long, whether the key knows it or not.
    pub(crate) way_in: Nanos,
    pub(crate) way_out: Nanos,
    pub(crate) heaviest: u64,
    /// Times between what is to be sent; 0: all is there from the start.
    pub(crate) gap: Nanos,
    /// One in so many answers is lost; 0: none.
    pub(crate) lost: u64,
    /// A connection has to be made first.
    pub(crate) connect: Nanos,
    pub(crate) requests: u64,
    /// In the middle of it another process goes on: with the history that the first one wrote, or with none but its sends.
    pub(crate) restart: Option<Restart>,
    /// The server's clock at our start.
    pub(crate) epoch: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Planned,
    Crash,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) accepted: u64,
    pub(crate) exceeded: u64,
    pub(crate) overtaken: u64,
    pub(crate) last_sent: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Leaves,
    Arrives,
    Answered,
    GivenUp,
}

const GIVE_UP: Nanos = Nanos::from_secs(5);

impl World {
    fn random(lots: &mut Lots, model: Model) -> Self {
        let per = Nanos::from_millis(20 + lots.below(1000));
        let most = [5, 30, 100][lots.below(3) as usize];
        let limit = 1 + lots.below(most);
        let unit = if lots.one_in(3) { Unit::Requests } else { Unit::Weight };
        let mut limits = vec![Limit { window: Window::new(model, limit, per).expect("valid"), unit }];
        if lots.one_in(3) {
            let model = Model::ALL[lots.below(5) as usize];
            let window = Window::new(model, 1 + lots.below(40), Nanos::from_millis(20 + lots.below(3000)));
            limits.push(Limit { window: window.expect("valid"), unit: Unit::Weight });
        }
        let heaviest = limits.iter().filter(|limit| limit.unit == Unit::Weight).map(|limit| limit.window.limit()).min();
        let way_in = up_to(lots, Nanos::from_millis(300));
        Self {
            rules: Rules {
                limits,
                ordered: lots.one_in(3),
                way_in: (!lots.one_in(4)).then_some(way_in),
                grain: Nanos::MILLI,
                ..Rules::default()
            },
            way_in,
            way_out: up_to(lots, Nanos::from_millis(300)),
            heaviest: if lots.one_in(2) { 1 } else { heaviest.unwrap_or(1) },
            gap: if lots.one_in(2) { Nanos::ZERO } else { Nanos(lots.below(2 * per.0)) },
            lost: [0, 0, 3, 10][lots.below(4) as usize],
            connect: if lots.one_in(4) { Nanos::from_millis(200) } else { Nanos::ZERO },
            requests: 5 + lots.below(40),
            restart: None,
            epoch: Nanos(lots.below(1_700_000_000_000_000_000)),
        }
    }

    pub(crate) fn run(&self, lots: &mut Lots) -> Story {
        let mut windows = Windows::new(&self.rules);
        // Each window judges its own unit: an account per unit would be the same, for windows are judged all or nothing.
        let server: Vec<Window> = self.rules.limits.iter().map(|limit| limit.window).collect();
        let mut accounts: Vec<(Unit, Account)> = [Unit::Weight, Unit::Requests]
            .map(|unit| {
                let limits = self.rules.limits.iter().zip(&server).filter(|(limit, _)| limit.unit == unit);
                let limits: Vec<Window> = limits.map(|(_, window)| *window).collect();
                (unit, Account::new(Limiter::new(&limits, Nanos::MILLI), 0))
            })
            .into();
        let mut story = Story::default();
        let mut events: BinaryHeap<Reverse<(Nanos, u64, Event)>> = BinaryHeap::new();
        let mut sent: Vec<(Slot, u64)> = Vec::new();
        let mut sent_at = Vec::new();
        // A clock that begins early: ages are not cut.
        let (mut now, mut due) = (Nanos::from_secs(10), Nanos::ZERO);
        let mut weight = 1 + lots.below(self.heaviest);
        // The numbers below were sent by another process.
        let mut before = 0;
        loop {
            if let Some(how) = self.restart.filter(|_| before == 0 && sent.len() as u64 == self.requests / 2) {
                before = self.requests / 2;
                let mut history = windows.history(now);
                if how == Restart::Crash {
                    let all = sent_at.iter().zip(&sent).map(|(at, (_, weight))| (now - *at, *weight));
                    history = History { sent: all.collect(), ..History::default() };
                }
                let since = up_to(lots, Nanos::from_millis(500));
                // Nobody is surprised if it takes longer than it is said to.
                now += since;
                windows = Windows::new(&self.rules);
                windows.resume(now, &history, up_to(lots, since));
            }
            let send_at = if sent.len() as u64 == self.requests { Nanos::NEVER } else { windows.earliest(weight) };
            let send_at = if send_at == Nanos::NEVER { send_at } else { send_at.max(due).max(now) };
            let next = events.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
            if send_at == Nanos::NEVER && next == Nanos::NEVER {
                break;
            }
            // What happens at the very instant of a send may come before it or after it.
            if send_at < next || (send_at == next && lots.one_in(2)) {
                now = send_at;
                let number = sent.len() as u64;
                sent.push((windows.sent(now, weight), weight));
                sent_at.push(now);
                story.last_sent = now - Nanos::from_secs(10);
                let leaves = now + up_to(lots, self.connect);
                events.push(Reverse((leaves, number, Event::Leaves)));
                due = now + up_to(lots, self.gap);
                weight = 1 + lots.below(self.heaviest);
                continue;
            }
            let Some(Reverse((at, number, event))) = events.pop() else { break };
            now = now.max(at);
            let (slot, weight) = sent[number as usize];
            let ours = number >= before;
            match event {
                // It was the other process that should have sent it.
                Event::Leaves if !ours => {}
                Event::Leaves => {
                    windows.left(slot, now);
                    events.push(Reverse((now + up_to(lots, self.way_in), number, Event::Arrives)));
                }
                Event::Arrives => {
                    for (unit, account) in &mut accounts {
                        let judged = account.judge(self.epoch + at, unit.amount(weight), Some(i128::from(number) + 1));
                        match judged {
                            Judgement::Exceeded(_) => story.exceeded += 1,
                            Judgement::InvalidNonce if self.rules.ordered => story.overtaken += 1,
                            _ if *unit == Unit::Weight => story.accepted += 1,
                            _ => {}
                        }
                    }
                    let worked = up_to(lots, Nanos::from_millis(50));
                    let answered = at + worked + up_to(lots, self.way_out);
                    if self.lost > 0 && lots.one_in(self.lost) {
                        events.push(Reverse((at + GIVE_UP, number, Event::GivenUp)));
                    } else {
                        events.push(Reverse((answered, number, Event::Answered)));
                    }
                }
                Event::Answered => {
                    // The server lets go of it while the answer is on its way, or as late as this.
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    assert!(!ours || windows.arrived_by(slot, now, Nanos::NEVER).is_some());
                }
                Event::GivenUp => {
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    if ours {
                        windows.gave_up(slot, now);
                    }
                }
            }
        }
        assert_eq!(sent.len() as u64, self.requests, "all were sent");
        story
    }
}

fn holds(seed: u64, model: Model) -> Result<(), TestCaseError> {
    let mut lots = Lots(Dice::new(seed, 77));
    let world = World::random(&mut lots, model);
    let story = world.run(&mut lots);
    prop_assert_eq!((story.exceeded, story.overtaken), (0, 0), "{:?}", world);
    Ok(())
}

/// How often one of a hundred keys is refused if the bound on the way in is a third of what it should be.
fn careless(model: Model) -> u64 {
    let refused = |seed| {
        let mut lots = Lots(Dice::new(seed, 78));
        let limits = vec![Limit::new(Window::new(model, 5, Nanos::from_millis(500)).expect("valid"))];
        let rules = Rules { limits, way_in: Some(Nanos::from_millis(100)), ..Rules::default() };
        let mut world = World { rules, requests: 60, ..World::random(&mut lots, model) };
        (world.way_in, world.way_out) = (Nanos::from_millis(300), Nanos::from_millis(300));
        (world.heaviest, world.gap, world.lost, world.connect) = (1, Nanos::ZERO, 0, Nanos::ZERO);
        u64::from(world.run(&mut lots).exceeded > 0)
    };
    (0..100).map(refused).sum()
}

#[test]
fn a_bound_that_is_too_short_is_found_out_by_every_model_that_looks_at_the_clock() {
    for model in Model::ALL {
        let refused = careless(model);
        assert!(refused >= 5 || model == Model::Concurrency, "{model:?}: {refused}");
    }
}

/// A bound that was learnt is taken back while a request is on its way that was given up already.
#[test]
fn what_was_given_up_arrives_though_the_bound_is_gone() {
    let limits = vec![Limit::new(Window::new(Model::SlidingLog, 1, Nanos::SECOND).expect("valid"))];
    let rules = Rules { limits, ordered: true, way_in: Some(Nanos::from_secs(9)), ..Rules::default() };
    let mut windows = Windows::new(&rules);
    let slot = windows.sent(Nanos::ZERO, 1);
    windows.left(slot, Nanos::ZERO);
    windows.gave_up(slot, Nanos::from_secs(1));
    assert_eq!(windows.earliest(1), Nanos::from_millis(9000 + 1001));
    windows.set_way_in(Nanos::from_secs(2), None);
    assert_eq!(windows.earliest(1), Nanos::from_millis(2000 + 1001));
}

/// The bound: N are sent in every stretch of T + J + a tick, whatever the ways are like.
fn is_fast(seed: u64, model: Model) -> Result<(), TestCaseError> {
    let mut lots = Lots(Dice::new(seed, 79));
    let mut world = World::random(&mut lots, model);
    let limit = Limit::new(world.rules.limits[0].window);
    world.rules.limits = vec![limit];
    (world.heaviest, world.gap, world.connect) = (1, Nanos::ZERO, Nanos::ZERO);
    world.rules.way_in = Some(world.way_in);
    let (most, per) = (limit.window.limit(), limit.window.per());
    // What must arrive in order cannot go faster than one per way in.
    world.rules.ordered &= world.way_in.0 * most < per.0 && model != Model::SlidingCounter;
    let story = world.run(&mut lots);
    let cycle = per + world.way_in + Nanos::MILLI;
    let bound = match (model, world.rules.ordered) {
        (_, true) => Nanos(((world.requests - 1) / most + 1) * cycle.0),
        // One less goes for the request that may come at any moment.
        (Model::SlidingCounter, _) if most == 1 => Nanos((world.requests - 1) * (cycle + per).0),
        (Model::SlidingCounter, _) => Nanos(((world.requests - 1) * (cycle.0 + most)).div_ceil(most - 1)),
        (Model::TokenBucket, _) => Nanos((world.requests - 1) / most * cycle.0) + Nanos::MILLI,
        _ => Nanos((world.requests - 1) / most * cycle.0),
    };
    prop_assert!(story.last_sent <= bound, "{}, not {bound}: {world:?}", story.last_sent);
    Ok(())
}

const SCHEDULES: u32 = 10_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    #[test]
    fn a_sliding_log_never_refuses(seed: u64) {
        holds(seed, Model::SlidingLog)?;
    }

    #[test]
    fn a_sliding_counter_never_refuses(seed: u64) {
        holds(seed, Model::SlidingCounter)?;
    }

    #[test]
    fn an_aligned_window_never_refuses(seed: u64) {
        holds(seed, Model::AlignedWindow)?;
    }

    #[test]
    fn a_token_bucket_never_refuses(seed: u64) {
        holds(seed, Model::TokenBucket)?;
    }

    #[test]
    fn a_limit_on_concurrency_never_refuses(seed: u64) {
        holds(seed, Model::Concurrency)?;
    }

    #[test]
    fn no_window_goes_slower_than_the_bound(seed: u64) {
        for model in [Model::SlidingLog, Model::AlignedWindow, Model::TokenBucket, Model::SlidingCounter] {
            is_fast(seed, model)?;
        }
    }

    #[test]
    fn who_goes_on_with_a_key_is_not_refused_either(seed: u64, planned: bool) {
        let mut lots = Lots(Dice::new(seed, 80));
        let model = Model::ALL[lots.below(4) as usize];
        let mut world = World::random(&mut lots, model);
        // What the server is still working on for the process that is gone, nobody knows.
        world.rules.limits.retain(|limit| limit.window.model() != Model::Concurrency);
        // Without a bound on the way in nobody knows when what the other one sent arrives.
        world.rules.way_in = Some(world.way_in);
        world.connect = Nanos::ZERO;
        world.restart = Some(if planned { Restart::Planned } else { Restart::Crash });
        let story = world.run(&mut lots);
        prop_assert_eq!((story.exceeded, story.overtaken), (0, 0), "{:?}", world);
    }
}
