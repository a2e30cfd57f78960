//! How many may be in flight, from how long things take.

#[path = "limit/map.rs"]
mod map;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::map::{Knee, Map};
use super::{Room, Sample};
use crate::decide::Nanos;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The first limit: nothing is known then, so it should only keep the worst away.
    pub initial: u32,
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial: 1000, min: 1, max: 100_000 }
    }
}

/// While nothing speaks for a limit there is room for so many times those that were in of late, and for so many at least.
const SLACK: f64 = 4.0;
const FLOOR: u32 = 100;
/// Those that wait in the upstream, as a share of the knee: it must not run dry between an answer and the next call.
const HEADROOM: f64 = 0.06;
/// As many are needed to know something.
const LEAST: u32 = 64;
/// Samples that wait for their time.
const MOST_PENDING: usize = 1024;
/// A time counts up to so many typical ones.
const CLAMP: f64 = 2.0;

/// The limit that is found out.
#[derive(Clone, Debug)]
pub struct Adaptive {
    options: Options,
    limit: u32,
    map: Map,
    /// The typical time below the knee, in ns; 0 while none is known.
    typical: f64,
    /// By when they began.
    pending: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    /// Samples.
    known: u32,
    /// Of so many samples one is kept.
    stride: u64,
    /// Those for which the upstream had no room: how many, and beside how many all together.
    refused: (f64, f64),
    /// Beyond it the upstream refuses.
    ceiling: f64,
    looked_at: Nanos,
    moved_at: Nanos,
    /// Samples since the last look, and those of them that began beside about as many as there may be.
    fresh: u32,
    pressed: u32,
    /// The most that were in at once of late.
    peak: f64,
    knee: Option<Knee>,
    /// Whether there ever was one.
    bent: bool,
    /// By how much the limit has grown last.
    step: f64,
    probe: Option<Probe>,
}

/// A look at how long things take below the knee.
#[derive(Clone, Copy, Debug)]
struct Probe {
    until: Nanos,
}

impl Adaptive {
    /// Nothing is known yet.
    pub fn new(options: Options, now: Nanos) -> Self {
        Self {
            limit: options.initial.clamp(options.min, options.max),
            options,
            map: Map::default(),
            typical: 0.0,
            pending: BinaryHeap::new(),
            known: 0,
            stride: 1,
            refused: (0.0, 0.0),
            ceiling: f64::INFINITY,
            looked_at: now,
            moved_at: now,
            fresh: 0,
            pressed: 0,
            peak: 0.0,
            knee: None,
            bent: false,
            step: 0.0,
            probe: None,
        }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u32 {
        match (&self.probe, &self.knee) {
            (Some(_), Some(knee)) => self.bounded(knee.at * 0.75).min(self.limit),
            _ => self.bounded(self.limit.into()),
        }
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1].
    pub fn gradient(&self) -> f64 {
        1.0
    }

    pub fn told(&self) -> String {
        format!("typ {:.3} peak {:.0} knee {:?} low {:.0} step {:.2}", self.typical / 1e9, self.peak, self.knee.map(|k| (k.at.round(), (k.time / 1e6).round(), k.sure.round())), self.knee.map_or(0.0, |k| self.map.weight_to(k.at * 0.8)), self.step)
    }

    /// One has taken so long; [`Nanos::NEVER`] if the upstream had no room for it.
    pub(super) fn learn(&mut self, now: Nanos, sample: &Sample, took: Nanos, room: &Room) {
        self.fresh += 1;
        if f64::from(sample.beside) >= 0.9 * f64::from(self.limit()) {
            self.pressed += 1;
        }
        if took == Nanos::NEVER {
            self.refused.0 += 1.0;
            self.refused.1 += f64::from(sample.beside);
        } else {
            self.known = self.known.saturating_add(1);
            let part = 1.0 / f64::from(self.known.min(LEAST));
            let most = match self.map.base() {
                Some(base) => 1.5 * base,
                None if self.known > LEAST => self.typical,
                None => f64::INFINITY,
            };
            self.typical += part * ((took.0 as f64).min(most) - self.typical);
            self.peak = self.peak.max(f64::from(sample.beside));
            // By when it began, which has nothing to do with how long it took.
            if (sample.began.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.stride == 0 && self.pending.len() < MOST_PENDING {
                self.pending.push(Reverse((sample.began, sample.beside, took.0)));
            }
        }
        if self.known < LEAST {
            return;
        }
        // Those that began together are looked at together: the quick ones are there first, and say nothing alone.
        let delay = Nanos((CLAMP * self.typical) as u64);
        while let Some(Reverse((began, beside, took))) = self.pending.peek().copied() {
            if now - began < delay {
                break;
            }
            self.pending.pop();
            self.map.add(f64::from(beside), (took as f64).min(delay.0 as f64));
        }
        if now - self.looked_at >= Nanos((self.typical / 4.0) as u64).max(Nanos::from_millis(5)) && self.fresh >= 8 {
            self.look(now, room);
        }
    }

    fn look(&mut self, now: Nanos, room: &Room) {
        let passed = (now - self.looked_at).0 as f64;
        self.looked_at = now;
        let pressed = self.pressed * 2 >= self.fresh || room.waiting() > 0;
        let (count, sum) = std::mem::take(&mut self.refused);
        let share = count / f64::from(self.fresh);
        if share > 0.02 {
            self.ceiling = (sum / count * (1.0 - share)).min(self.ceiling).max(1.0);
        } else if pressed {
            self.ceiling += self.ceiling * 0.05 * passed / (2.0 * self.typical.max(1.0));
        }
        (self.fresh, self.pressed) = (0, 0);
        if self.pending.len() > MOST_PENDING / 2 {
            self.stride *= 2;
        } else if self.pending.len() < MOST_PENDING / 8 {
            self.stride = (self.stride / 2).max(1);
        }
        let typical = self.typical.max(1.0);
        self.peak *= (-passed / 10e9_f64.max(20.0 * typical)).exp();
        self.map.decay(
            (-passed / 0.5e9_f64.max(3.0 * typical)).exp(),
            (-passed / 10e9_f64.max(60.0 * typical)).exp(),
            f64::from(self.limit),
        );
        self.knee = self.map.knee(CLAMP, self.knee.map(|knee| knee.at));
        if let Some(probe) = self.probe {
            if now < probe.until {
                return;
            }
            self.probe = None;
            self.moved_at = now;
        }
        let since = (now - self.moved_at).0 as f64;
        match self.knee {
            Some(knee) => {
                self.step = 0.0;
                self.bent = true;
                let target = self.bounded(knee.at * (1.0 + HEADROOM) + 1.0);
                self.limit = target;
                if self.map.weight_to(knee.at * 0.8) < 30.0 && pressed && since > 4.0 * typical {
                    // Time for those to leave that are too many, and for as many to begin as it takes to know.
                    self.probe = Some(Probe { until: now + Nanos((1.5 * typical) as u64) });
                    self.moved_at = now;
                }
            }
            None if pressed && since > 2.2 * typical => {
                let first = if self.bent { 0.08 } else { 0.5 };
                self.step = (self.step * 2.0).clamp(first, 1.0);
                self.limit = self.bounded(f64::from(self.limit) * (1.0 + self.step) + 1.0);
                self.moved_at = now;
            }
            None if !pressed && now >= Nanos::from_secs(10) => {
                let most = self.bounded((SLACK * self.peak).max(f64::from(FLOOR)));
                self.limit = self.limit.min(most);
            }
            None => {}
        }
    }

    fn bounded(&self, limit: f64) -> u32 {
        (limit.min(self.ceiling) as u32).clamp(self.options.min, self.options.max)
    }
}
