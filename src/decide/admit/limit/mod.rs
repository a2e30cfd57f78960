//! How many may be in flight, from how long things take.
//!
//! A service that can do N things at a time takes as long for one of them as it does for N; beyond that, whatever more
//! it is given waits in it, and everything takes longer in proportion. So the best limit is where the curve of times
//! over concurrency bends, and nobody has to be told where that is: those in flight are never exactly as many, each
//! that ends says how long it took beside how many, and together they draw the curve (`Map`). The limit is set a
//! little beyond the bend (`Knee`).
//!
//! What it takes for that to be true:
//!
//! - **No memory of a best time.** A limit that compares times with the least ever seen believes that a service which
//!   has become slower is overloaded, and one that compares with a slow average forgets under steady overload what
//!   unhindered was. Here the curve forgets too, but where there is no low end any more, the limit is lowered by a
//!   quarter for as long as it takes to see it again. That is no starving: the upstream is as busy as before but for
//!   the end of a queue, or loses a quarter of its work for a moment every half minute.
//! - **The other end is looked at, too.** What was learnt above the limit is forgotten within seconds. Then, if it is
//!   used, the limit is raised by a quarter for the time of an answer. If that takes no longer, it grows.
//! - **Those that began together count together.** Of what has just begun only the quick ones have ended. A sample waits
//!   until nearly all that began with it have ended, and counts up to twice the usual time.
//! - **Tails.** Whoever waits for a slot waits for the mean call, and the usual one may be far quicker. The bend is as
//!   much steeper.
//! - **A service that has changed is learnt anew.** What comes tells by being far off what is known of its like.
//! - **Refusals by the upstream are no times.** They are a ceiling.
//!
//! The curve is what Little's law demands of any service with a fixed capacity; the idea to look at the relation of
//! concurrency to what comes out, and not at times alone, is that of Uber's Cinnamon and of failsafe-go.

mod map;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::map::{Knee, Map};
use super::{Room, Sample};
use crate::decide::Nanos;

/// While nothing speaks for a limit there is room for so many times those that were in of late, and for so many at least.
const SLACK: f64 = 4.0;
const FLOOR: f64 = 100.0;
/// How long a first limit stands whatever is in.
const OPENING: Nanos = Nanos::from_secs(10);
/// Those that may wait in the upstream, as a share of the knee: it must not run dry between an answer and the next call.
const HEADROOM: f64 = 0.03;
/// What waits in the upstream for so long (ns) harms nobody.
const TOLERATED: f64 = 1e6;
/// Where things take less than that it may be so much: such a time is the machine's more than the service's, and gets less
/// for each the more there are. As long as a stall of a shared host; DAGOR takes an average wait of 20 ms in the service for
/// overload (Zhou and others, "Overload control for scaling WeChat microservices", 2018, 4.1).
const TOLERATED_OF_QUICK: f64 = 20e6;
/// Those that come at once are let in up to the first limit; from then on there is room for twice as many until it is known
/// for how many there is.
const BURST: Nanos = Nanos::from_millis(100);
/// How far below and above the knee is looked at, and by how many samples times have to be known there.
const LOW: f64 = 0.75;
const HIGH: f64 = 1.2;
const KNOWN: f64 = 30.0;
/// From one such look to the next it takes so many stays.
const BETWEEN: f64 = 8.0;
/// As many are needed to know something.
const LEAST: u32 = 60;
/// At first only of those that began beside so few.
const FIRST: u32 = 64;
/// Samples that wait for their time.
const MOST_PENDING: usize = 1024;
/// A time counts up to so many typical ones, and is waited for as long, at least.
const CLAMP: f64 = 2.0;
/// All are waited for until this share of the slow ones is still out, ...
const OUT: f64 = 0.02;
/// ... of which we know by steps of this size.
const TUNE: f64 = 0.05;
/// The mean of all is that of so many, of which none counts more than so many typical ones.
const MANY: u32 = 1000;
const TAIL: f64 = 50.0;
/// A stay counts up to so many typical times.
const LONGEST: f64 = 8.0;
/// What was learnt above the limit, and up to it, is forgotten in so many stays, at least in so long (ns).
const FORGET_ABOVE: (f64, f64) = (3.0, 0.5e9);
const FORGET_BELOW: (f64, f64) = (60.0, 10e9);
/// From one growth to the next it takes so many stays: the last one has to show first.
const STRIDE: f64 = 2.2;
/// By how much the limit grows at first, and at most.
const STEP: (f64, f64) = (0.2, 1.0);
/// The upstream refuses for want of room if it refuses more than this share.
const REFUSING: f64 = 0.02;

/// An upstream that has answered nobody for so long, and for so many times as long as callers have, is one that calls
/// without an answer say something of.
const HOPELESS: Nanos = Nanos::SECOND;
const HOPELESS_TIMES: u64 = 4;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The first limit: nothing is known then, so it should only keep the worst away.
    pub initial: u32,
    /// The least, >= 1.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial: 4000, min: 1, max: 100_000 }
    }
}

/// The limit that is found out.
#[derive(Clone, Debug)]
pub struct Adaptive {
    options: Options,
    limit: u32,
    opened: Nanos,
    /// When the first of all began, and whether all is still new.
    first: Option<Nanos>,
    opening: bool,
    map: Map,
    knee: Option<Knee>,
    /// The usual time of late, in ns, but not far above that of the map's low end.
    typical: f64,
    /// How long those that are in stay, on average, in ns: all of them are others after a few such times.
    stay: f64,
    /// Nearly all take less, in ns, of those beside few.
    longest: f64,
    /// The mean time by the usual one: some take far longer than others.
    steep: f64,
    /// Samples, ever.
    known: u32,
    /// Those that wait: when they began, beside how many, how long they took.
    pending: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    /// When one was answered last; that is, when the first was seen, while there was none.
    answered: Option<Nanos>,
    /// Of so many samples one is taken.
    every: u64,
    window: Window,
    /// When the limit was moved last.
    moved_at: Nanos,
    /// The most that were in at once of late.
    peak: f64,
    /// By how much the limit grew last.
    step: f64,
    /// Beyond it the upstream refuses.
    ceiling: f64,
    probe: Option<Probe>,
}

/// A look at how long things take a little beside the knee.
#[derive(Clone, Copy, Debug)]
struct Probe {
    limit: u32,
    until: Nanos,
}

/// What a call says that was not answered in its caller's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lateness {
    /// The caller had less time than answers usually take: nothing.
    Callers,
    /// An answer takes so long at least, which is longer than usual.
    Unusual,
    /// That is far longer, or nobody is answered at all.
    Hopeless,
}

/// What came between two looks.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Nanos,
    count: u32,
    /// Those that began beside about as many as there may be.
    pressed: u32,
    /// Those that the upstream had no room for, and beside how many they were, all together.
    refused: u32,
    /// Those that were not answered in time.
    late: u32,
    refused_beside: u64,
}

impl Window {
    fn new(since: Nanos) -> Self {
        Self { since, count: 0, pressed: 0, refused: 0, late: 0, refused_beside: 0 }
    }
}

impl Adaptive {
    /// Nothing is known yet.
    pub fn new(options: Options, now: Nanos) -> Self {
        Self {
            limit: options.initial.clamp(options.min, options.max.max(options.min)),
            options,
            opened: now,
            first: None,
            opening: true,
            map: Map::default(),
            knee: None,
            typical: 0.0,
            stay: 0.0,
            longest: 0.0,
            steep: 1.0,
            known: 0,
            pending: BinaryHeap::new(),
            answered: None,
            every: 1,
            window: Window::new(now),
            moved_at: now,
            peak: 0.0,
            step: STEP.0,
            ceiling: f64::INFINITY,
            probe: None,
        }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u32 {
        self.bounded(self.probe.as_ref().map_or(self.limit, |probe| probe.limit).into())
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1]; 1 while nothing hinders.
    pub fn gradient(&self) -> f64 {
        let unhindered = self.map.base().filter(|_| self.typical > 0.0);
        unhindered.map_or(1.0, |time| (time / self.typical).min(1.0))
    }

    /// How long an answer takes unhindered; none while too little is known.
    pub fn unhindered(&self) -> Option<Nanos> {
        self.map.base().map(|time| Nanos(time as u64))
    }

    /// One has taken so long, or longer if it was given up as `late`; [`Nanos::NEVER`] if the upstream had no room for it.
    pub(super) fn learn(&mut self, now: Nanos, sample: &Sample, took: Nanos, late: bool, room: &Room) {
        let late = late.then(|| self.lateness(now, took));
        match late {
            None => self.answered = Some(now),
            Some(Lateness::Callers) => {
                self.peak = self.peak.max(f64::from(sample.beside));
                return;
            }
            Some(Lateness::Unusual | Lateness::Hopeless) => {}
        }
        self.window.count += 1;
        self.window.late += u32::from(late == Some(Lateness::Hopeless));
        if f64::from(sample.beside) >= 0.9 * f64::from(self.limit()) {
            self.window.pressed += 1;
        }
        if took == Nanos::NEVER {
            self.window.refused += 1;
            self.window.refused_beside += u64::from(sample.beside);
        } else {
            self.took(sample, took, late == Some(Lateness::Hopeless));
        }
        let first = *self.first.get_or_insert(sample.began);
        if self.opening && now - first >= BURST {
            self.opening = false;
            self.limit = self.limit.min(self.bounded((2.0 * f64::from(room.in_flight())).max(FLOOR)));
        }
        if self.known >= LEAST {
            self.take_due(now);
            let often = Nanos((self.typical / 4.0) as u64).max(Nanos::from_millis(5));
            if now - self.window.since >= often && self.window.count >= 8 {
                self.look(now, room);
            }
        }
    }

    /// What it says that a caller's time was over after this.
    fn lateness(&mut self, now: Nanos, took: Nanos) -> Lateness {
        let (answered, took_ns) = (*self.answered.get_or_insert(now - took), took.0 as f64);
        let silent = now - answered >= HOPELESS.max(Nanos(took.0.saturating_mul(HOPELESS_TIMES)));
        if silent || (self.known > 0 && took_ns >= CLAMP * self.typical) {
            Lateness::Hopeless
        } else if self.known > 0 && took_ns >= self.typical {
            Lateness::Unusual
        } else {
            Lateness::Callers
        }
    }

    fn took(&mut self, sample: &Sample, took: Nanos, hopeless: bool) {
        // Of the first only the quick ones have ended yet, except of those that began before all others.
        if self.known < LEAST && sample.beside > FIRST && !hopeless {
            return;
        }
        self.known = self.known.saturating_add(1);
        let most = match self.map.base() {
            Some(base) => 1.5 * base,
            // What comes first is quick; what comes later may have waited in a queue.
            None if self.known > LEAST => self.typical,
            None => f64::INFINITY,
        };
        let (took_ns, part) = (took.0 as f64, 1.0 / f64::from(self.known.min(LEAST)));
        self.typical += part * (took_ns.min(most) - self.typical);
        self.stay += part * (took_ns.min(LONGEST * self.typical) - self.stay);
        self.peak = self.peak.max(f64::from(sample.beside));
        let tail = 1.0 / f64::from(self.known.min(MANY));
        self.steep += tail * (took_ns.min(TAIL * self.typical) / self.typical.max(1.0) - self.steep);
        if self.known <= LEAST {
            self.longest = self.longest.max(took_ns);
        } else if f64::from(sample.beside) <= self.map.middle() {
            let by = TUNE * if took_ns > self.longest { 1.0 - OUT } else { -OUT };
            self.longest *= 1.0 + by;
        }
        // Chosen by when it began, which has nothing to do with how long it took.
        let chosen = (sample.began.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(self.every);
        if chosen && self.pending.len() < MOST_PENDING {
            self.pending.push(Reverse((sample.began, sample.beside, took.0)));
        }
    }

    /// Puts those into the map whose time has come.
    fn take_due(&mut self, now: Nanos) {
        let most = CLAMP * self.typical;
        let wait = Nanos(most.max(self.longest) as u64);
        while let Some(Reverse((began, beside, took))) = self.pending.peek().copied() {
            if now - began < wait {
                break;
            }
            self.pending.pop();
            self.map.add(f64::from(beside), (took as f64).min(most));
        }
    }

    /// Sets the limit anew.
    fn look(&mut self, now: Nanos, room: &Room) {
        let window = std::mem::replace(&mut self.window, Window::new(now));
        let passed = (now - window.since).0 as f64;
        let stay = self.stay.max(self.longest / 3.0).max(1.0);
        let pressed = window.pressed * 2 >= window.count || room.waiting() > 0;
        let kept = |(times, least): (f64, f64)| (-passed / least.max(times * stay)).exp();

        self.mind_refusals(&window, pressed, passed / stay);
        self.thin_out();
        self.peak *= kept(FORGET_BELOW);
        self.map.forget(f64::from(self.limit), kept((self.enough(FORGET_ABOVE.0), FORGET_ABOVE.1)), kept(FORGET_BELOW));
        self.knee = match (self.map.knee(CLAMP, self.steep.max(1.0), self.knee, pressed), self.knee) {
            // Nothing speaks for it any more, and nothing against it.
            (None, Some(before)) if self.known_above(before) < 1.3 * KNOWN => Some(before),
            (Some(found), Some(before)) => Some(before.towards(found)),
            (found, _) => found,
        };
        if let Some(probe) = &self.probe {
            if now < probe.until {
                return;
            }
            self.probe = None;
            self.moved_at = now;
        }
        let since = (now - self.moved_at).0 as f64 / stay;
        match self.knee {
            Some(knee) => {
                self.step = STEP.0;
                self.limit = self.bounded(self.roomy(knee));
                if pressed && since > BETWEEN {
                    self.begin_probe(now, knee);
                }
            }
            // All that is known of those is that they take too long, beside however many.
            None if window.late * 2 > window.count && since > STRIDE => {
                self.step = STEP.0;
                self.limit = self.bounded(f64::from(self.limit.min(room.in_flight())) * LOW);
                self.moved_at = now;
            }
            None if pressed && window.late * 10 <= window.count && since > STRIDE => {
                self.step = (self.step * 2.0).clamp(STEP.0, STEP.1);
                self.limit = self.bounded(f64::from(self.limit) * (1.0 + self.step));
                self.moved_at = now;
            }
            None if !pressed && now - self.opened >= OPENING => {
                self.limit = self.limit.min(self.bounded((SLACK * self.peak).max(FLOOR)));
            }
            None => {}
        }
    }

    /// So many stays, but as many as it takes for enough to begin where there are few places.
    fn enough(&self, stays: f64) -> f64 {
        stays.max(2.0 * KNOWN / f64::from(self.limit.max(1)))
    }

    /// The knee, and what may wait beyond it.
    fn roomy(&self, knee: Knee) -> f64 {
        let unhindered = self.map.base().unwrap_or(self.typical).max(1.0);
        let tolerated = if unhindered < TOLERATED { TOLERATED_OF_QUICK } else { TOLERATED };
        knee.at * (1.0 + HEADROOM + tolerated / unhindered)
    }

    fn known_above(&self, knee: Knee) -> f64 {
        let limit = self.roomy(knee);
        self.map.weight() - self.map.weight_to((limit + 1.0).max(limit + knee.at * HEADROOM))
    }

    /// Looks to one side of the knee if too little is known there.
    fn begin_probe(&mut self, now: Nanos, knee: Knee) {
        let (to, length) = if self.map.weight_to(knee.at * (LOW + 0.05)) < KNOWN {
            // Time for those to leave that are too many, and for as many to begin as it takes to know.
            (knee.at * LOW, 1.5)
        } else if self.known_above(knee) < 1.3 * KNOWN {
            (self.roomy(knee) * HIGH, 1.0)
        } else {
            return;
        };
        let limit = self.bounded(to);
        let until = now + Nanos((self.enough(length) * self.stay) as u64);
        self.probe = Some(Probe { limit, until });
    }

    /// Keeps below what the upstream refuses, and tries a little more again.
    fn mind_refusals(&mut self, window: &Window, pressed: bool, passed: f64) {
        let share = f64::from(window.refused) / f64::from(window.count);
        if share > REFUSING {
            let beside = window.refused_beside as f64 / f64::from(window.refused);
            self.ceiling = (0.97 * beside).min(self.ceiling).max(1.0);
        } else if pressed {
            self.ceiling *= 1.0 + 0.025 * passed;
        }
    }

    /// Takes fewer samples where there are many.
    fn thin_out(&mut self) {
        if self.pending.len() > MOST_PENDING / 2 {
            self.every = self.every.saturating_mul(2);
        } else if self.pending.len() < MOST_PENDING / 8 {
            self.every = (self.every / 2).max(1);
        }
    }

    fn bounded(&self, limit: f64) -> u32 {
        (limit.min(self.ceiling).ceil() as u32).clamp(self.options.min, self.options.max.max(self.options.min))
    }
}
