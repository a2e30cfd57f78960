//! Answers each request after a delay drawn from a known distribution, and keeps the delays it really applied.
//!
//! The truth is what was measured here, from reading the request to writing the answer, not what was drawn: a server
//! that is late by its own fault must not make the generator look wrong.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::behaviour::{Answer, Behaviour, Ticket, quantile};
use crate::clock::Nanos;

/// The last part of a wait is spent awake: a sleeping thread comes back tens of microseconds late.
const AWAKE: Nanos = 60_000;

const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.50), ("p75", 0.75), ("p90", 0.90), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

pub struct Delay {
    shape: Shape,
    random: Random,
    waiting: BinaryHeap<Reverse<Waiting>>,
    applied: Vec<Nanos>,
}

/// A request to be answered; the one due first is the smallest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due: Nanos,
    arrived: Nanos,
    ticket: Ticket,
}

impl Delay {
    pub fn new(spec: &str, seed: u64) -> Result<Self, String> {
        let shape = Shape::parse(spec).ok_or_else(|| {
            format!("--delay {spec}: not constant:20ms, uniform:10ms-50ms or two:10ms*0.8,200ms*0.2 or the like")
        })?;
        let applied = Vec::with_capacity(1 << 20);
        Ok(Self { shape, random: Random(seed), waiting: BinaryHeap::new(), applied })
    }
}

impl Behaviour for Delay {
    fn arrived(&mut self, now: Nanos, ticket: Ticket) -> Answer {
        let due = now + self.shape.draw(&mut self.random);
        self.waiting.push(Reverse(Waiting { due, arrived: now, ticket }));
        Answer::Later
    }

    fn due(&mut self, now: Nanos) -> Option<Ticket> {
        if self.waiting.peek()?.0.due > now {
            return None;
        }
        let Reverse(waiting) = self.waiting.pop()?;
        self.applied.push(now - waiting.arrived);
        Some(waiting.ticket)
    }

    fn idle(&self, now: Nanos) -> Option<Nanos> {
        let Reverse(first) = self.waiting.peek()?;
        Some(first.due.saturating_sub(now + AWAKE))
    }

    fn stats(&self) -> String {
        let mut sorted = self.applied.clone();
        sorted.sort_unstable();
        let ms = |nanos: Nanos| nanos as f64 / 1e6;
        let mean = sorted.iter().sum::<Nanos>() as f64 / 1e6 / sorted.len().max(1) as f64;
        let quantiles: String =
            QUANTILES.iter().map(|(name, q)| format!(",\"{name}\":{:.4}", ms(quantile(&sorted, *q)))).collect();
        format!(",\"waiting\":{},\"delay_ms\":{{\"mean\":{mean:.4}{quantiles}}}", self.waiting.len())
    }

    fn reset(&mut self) {
        self.applied.clear();
    }
}

/// The distribution of the delays.
enum Shape {
    Constant(Nanos),
    Uniform(Nanos, Nanos), // the first <= the second
    Two { short: Nanos, long: Nanos, short_share: f64 },
}

impl Shape {
    fn parse(spec: &str) -> Option<Self> {
        let (name, values) = spec.split_once(':')?;
        match name {
            "constant" => Some(Self::Constant(span(values)?)),
            "uniform" => {
                let (low, high) = values.split_once('-')?;
                let (low, high) = (span(low)?, span(high)?);
                (low <= high).then_some(Self::Uniform(low, high))
            }
            "two" => {
                let ((short, a), (long, b)) = values.split_once(',').and_then(|(x, y)| Some((hump(x)?, hump(y)?)))?;
                ((a + b - 1.0).abs() < 1e-6).then_some(Self::Two { short, long, short_share: a })
            }
            _ => None,
        }
    }

    fn draw(&self, random: &mut Random) -> Nanos {
        match *self {
            Self::Constant(span) => span,
            Self::Uniform(low, high) => low + (random.unit() * (high - low) as f64) as Nanos,
            Self::Two { short, long, short_share } => {
                if random.unit() < short_share {
                    short
                } else {
                    long
                }
            }
        }
    }
}

/// `10ms*0.8`: a span and its share.
fn hump(text: &str) -> Option<(Nanos, f64)> {
    let (value, share) = text.split_once('*')?;
    Some((span(value)?, share.parse().ok().filter(|share| (0.0..=1.0).contains(share))?))
}

/// `20ms`, `1s` or `500us`.
fn span(text: &str) -> Option<Nanos> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|value| *value >= 0.0).map(|value| (value * factor) as Nanos)
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
