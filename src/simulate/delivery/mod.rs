//! Delivery through rate limits in virtual time: the windows of one key, the service that counts it, and what comes of it.
//!
//! ```text
//!   jobs ──► Windows ──way in──► service ◄── neighbour on the same key
//!               ▲                   │ accepted, or rejected with 429
//!               └────── way out ◄───┘
//! ```
//!
//! The sender is the very code that stands in `weir send` ([`crate::decide::window`]); jobs are always there. An
//! [oracle](World::oracle) that reads the service's own count gives the most that any sender could have got accepted.

#[cfg(test)]
mod promises;
mod service;
#[cfg(test)]
mod slow;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use self::service::{Headers, RetryAfter, Service};
use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::dice::Dice;
use crate::decide::feedback::Feedback;
use crate::decide::limit::Retry;
use crate::decide::window::{Rules, Slot, WayIn, Windows};

/// One key, and all that happens to its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Who counts.
    pub service: Service,
    /// What the sender was told.
    pub rules: Rules,
    /// The most requests without a response.
    pub in_flight: usize,
    /// Jobs to deliver.
    pub jobs: u64,
    /// The end, whatever is left by then.
    pub until: Nanos,
    /// From the sender to the service.
    pub way_in: Delay,
    /// From the service to the sender.
    pub way_out: Delay,
    /// How long the service works on what it has accepted.
    pub work: Delay,
    /// Stalls of the sender's machine: one begins so often, and lasts so long.
    pub stalls: Option<(Nanos, Nanos)>,
}

/// What came of it; all times are those at the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivered {
    /// When each request was accepted.
    pub accepted: Vec<Nanos>,
    /// When each was rejected.
    pub rejected: Vec<Nanos>,
    /// When the last job was accepted.
    pub ended: Nanos,
    /// With nothing in flight the sender waited so long beyond the moment when all of the limits was free.
    pub idle: Nanos,
}

impl Delivered {
    /// How many were accepted in [from, to).
    pub fn accepted_within(&self, from: Nanos, to: Nanos) -> usize {
        self.accepted.iter().filter(|at| (from..to).contains(at)).count()
    }

    /// The fraction of the requests that arrived from `from` on that was rejected.
    pub fn rejected_from(&self, from: Nanos) -> f64 {
        let rejected = self.rejected.iter().filter(|at| **at >= from).count();
        let all = rejected + self.accepted_within(from, Nanos::NEVER);
        rejected as f64 / all.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Worked,
    Neighbour,
    Arrives(usize),
    Answered(usize),
    Wake,
}

struct Run<'a> {
    world: &'a World,
    dice: [Dice; 3],
    count: service::Count,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    number: u64,
    delivered: Delivered,
}

impl<'a> Run<'a> {
    fn new(world: &'a World, seed: u64) -> Self {
        let mut run = Self {
            world,
            dice: [101, 102, 103].map(|salt| Dice::new(seed, salt)),
            count: world.service.count(),
            events: BinaryHeap::new(),
            number: 0,
            delivered: Delivered::default(),
        };
        if let Some(gap) = world.service.neighbour {
            run.at(gap, Event::Neighbour);
        }
        run
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }

    fn next(&mut self) -> Option<(Nanos, Event)> {
        let Reverse((at, _, event)) = self.events.pop()?;
        let all = self.delivered.accepted.len() as u64 >= self.world.jobs;
        (at < self.world.until && !all).then_some((at, event))
    }

    /// Another user of the key sends, and takes whatever comes.
    fn neighbour(&mut self, now: Nanos) {
        if self.count.judge(now, &self.world.service).is_ok() {
            self.worked(now);
        }
        if let Some(gap) = self.world.service.neighbour {
            self.at(now + gap, Event::Neighbour);
        }
    }

    fn worked(&mut self, now: Nanos) -> Nanos {
        let at = now + self.world.work.at(&self.dice[1], self.number);
        self.at(at, Event::Worked);
        at
    }

    fn judge(&mut self, now: Nanos) -> Result<(), Retry> {
        let judged = self.count.judge(now, &self.world.service);
        match judged {
            Ok(()) => {
                self.delivered.accepted.push(now);
                self.delivered.ended = now;
            }
            Err(_) => self.delivered.rejected.push(now),
        }
        judged
    }
}

impl World {
    /// The sender of weir.
    pub fn deliver(&self, seed: u64) -> Delivered {
        let mut run = Run::new(self, seed);
        let mut windows = Windows::new(&self.rules);
        let mut way_in = self.rules.way_in.map_or_else(WayIn::learnt, WayIn::given);
        let mut bound = way_in.bound();
        let mut sent: Vec<(Slot, Nanos, bool, Feedback)> = Vec::new();
        let (mut out, mut unsent, mut wake) = (0, self.jobs, Nanos::NEVER);
        run.at(Nanos::ZERO, Event::Wake);
        while let Some((now, event)) = run.next() {
            let awake = self.awake(now);
            match event {
                Event::Worked => run.count.finished(&self.service),
                Event::Neighbour => run.neighbour(now),
                Event::Arrives(index) => {
                    let judged = run.judge(now);
                    let feedback = self.service.feedback(now, &mut run.count, judged.err());
                    let done = if judged.is_ok() { run.worked(now) } else { now };
                    let back = done + self.way_out.at(&run.dice[2], run.number);
                    (sent[index].2, sent[index].3) = (judged.is_ok(), feedback);
                    run.at(back, Event::Answered(index));
                }
                // Nothing is read while the sender's machine stands still.
                Event::Answered(_) | Event::Wake if awake > now => run.at(awake, event),
                Event::Answered(index) => {
                    let (slot, at, accepted, feedback) = &sent[index];
                    let to_blame = !accepted && way_in.refused(now, *at);
                    windows.heard(*slot, now, &feedback.quotas);
                    if *accepted {
                        windows.accepted(*slot, now);
                    } else {
                        windows.refused(*slot, now, feedback.retry_after, !to_blame);
                        unsent += 1;
                    }
                    let usual = way_in.usual();
                    if let Some(took) = windows.arrived_by(*slot, now, usual)
                        && *accepted
                    {
                        way_in.answered(took);
                    }
                    out -= 1;
                    run.at(now, Event::Wake);
                }
                Event::Wake => {
                    if wake <= now {
                        wake = Nanos::NEVER;
                    }
                    windows.advance(now);
                    if bound != way_in.bound() {
                        bound = way_in.bound();
                        windows.set_way_in(now, bound);
                    }
                    let mut earliest = windows.earliest(1);
                    while earliest <= now && out < self.in_flight && unsent > 0 {
                        let slot = windows.sent(now, 1);
                        windows.left(slot, now);
                        let index = sent.len();
                        sent.push((slot, now, false, Feedback::default()));
                        let arrives = now + self.way_in.at(&run.dice[0], run.number);
                        run.at(arrives, Event::Arrives(index));
                        (out, unsent) = (out + 1, unsent - 1);
                        earliest = windows.earliest(1);
                    }
                    if out == 0 && unsent > 0 {
                        let free = now + run.count.reset(now);
                        run.delivered.idle = run.delivered.idle.max(earliest - free);
                    }
                    if earliest > now && earliest < wake {
                        wake = earliest;
                        run.at(earliest, Event::Wake);
                    }
                }
            }
        }
        run.delivered
    }

    /// A sender that reads the service's own count, and whose requests arrive at once.
    pub fn oracle(&self, seed: u64) -> Delivered {
        let mut run = Run::new(self, seed);
        let (mut out, mut wake) = (0, Nanos::NEVER);
        run.at(Nanos::ZERO, Event::Wake);
        while let Some((now, event)) = run.next() {
            match event {
                Event::Worked => {
                    run.count.finished(&self.service);
                    run.at(now, Event::Wake);
                }
                Event::Neighbour => run.neighbour(now),
                Event::Arrives(_) => {}
                Event::Answered(_) => {
                    out -= 1;
                    run.at(now, Event::Wake);
                }
                Event::Wake => {
                    while out < self.in_flight {
                        if let Err(retry) = run.judge(now) {
                            if let Retry::After(length) = retry
                                && (wake <= now || wake == Nanos::NEVER)
                            {
                                wake = now + length.max(Nanos(1));
                                run.at(wake, Event::Wake);
                            }
                            break;
                        }
                        out += 1;
                        let done = run.worked(now);
                        let ways = self.way_in.at(&run.dice[0], run.number) + self.way_out.at(&run.dice[2], run.number);
                        run.at(done + ways, Event::Answered(0));
                    }
                }
            }
        }
        run.delivered
    }

    /// When the sender's machine goes on.
    fn awake(&self, now: Nanos) -> Nanos {
        let Some((every, length)) = self.stalls.filter(|(every, _)| *every > Nanos::ZERO) else { return now };
        let begun = Nanos(now.0 - now.0 % every.0);
        if begun > Nanos::ZERO { now.max(begun + length) } else { now }
    }
}
