//! The response time of late against that of a long while.
//!
//! As `Gradient2Limit` of Netflix' concurrency-limits 0.5 inside its `WindowedLimit`, as its documentation sets it up: 20
//! at first, at least 20, at most 200; once a second, if there were ten answers: limit x clamp(1.5 x long / short, 0.5, 1) +
//! 4, of which a fifth counts; long is an exponential mean over 600 windows, the plain mean of the first ten, and shrinks
//! by a twentieth while it is over twice the short one; nothing happens while less than half is used.

use super::Algorithm;
use crate::decide::Nanos;
use crate::simulate::gate::{Ended, How};

const LEAST: f64 = 20.0;
const MOST: f64 = 200.0;
const QUEUE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const TOLERANCE: f64 = 1.5;
const LONG: f64 = 600.0;
const WARM_UP: f64 = 10.0;
const WINDOW: Nanos = Nanos::SECOND;
const ENOUGH: u64 = 10;
const TOO_SHORT: Nanos = Nanos(100_000);

#[derive(Clone, Debug)]
pub(in crate::simulate) struct Gradient2 {
    limit: f64,
    long: f64,
    windows: f64,
    warm_up: f64,
    /// Of this window.
    until: Nanos,
    count: u64,
    sum: f64,
    beside: u32,
}

impl Default for Gradient2 {
    fn default() -> Self {
        let (until, count, sum) = (Nanos::ZERO, 0, 0.0);
        Self { limit: LEAST, long: 0.0, windows: 0.0, warm_up: 0.0, until, count, sum, beside: 0 }
    }
}

impl Gradient2 {
    fn measured(&mut self, short: f64) {
        if self.windows < WARM_UP {
            self.windows += 1.0;
            self.warm_up += short;
            self.long = self.warm_up / self.windows;
        } else {
            let weight = 2.0 / (LONG + 1.0);
            self.long = self.long * (1.0 - weight) + short * weight;
        }
        let long = self.long;
        if long / short > 2.0 {
            self.long *= 0.95;
        }
        if f64::from(self.beside) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
        let next = self.limit * gradient + QUEUE;
        self.limit = (self.limit * (1.0 - SMOOTHING) + next * SMOOTHING).clamp(LEAST, MOST);
    }
}

impl Algorithm for Gradient2 {
    fn ended(&mut self, now: Nanos, ended: &Ended) {
        let took = now - ended.began;
        // What was dropped says how many there were, not how long an answer takes.
        self.beside = self.beside.max(ended.beside);
        if took < TOO_SHORT || ended.how == How::Refused {
            return;
        }
        self.count += 1;
        self.sum += took.0 as f64;
        if now > self.until {
            self.until = now + WINDOW;
            if self.count >= ENOUGH {
                self.measured(self.sum / self.count as f64);
            }
            (self.count, self.sum, self.beside) = (0, 0.0, 0);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}
