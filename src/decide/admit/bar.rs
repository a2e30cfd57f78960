//! Below which rank calls are refused at once.
//!
//! Under overload a refusal has to cost next to nothing, or refusing becomes the load. The bar is a number that every
//! call is compared with before it touches anything else. It is set so that those at or above it are a little more
//! than there is capacity for: the line behind it then always has somebody to take.

use super::Room;
use super::usual::Flow;
use crate::decide::Nanos;

/// How often it is set anew.
const EVERY: Nanos = Nanos::from_millis(50);
/// Ranks are counted by this many at a time.
const STEP: u32 = 16;
/// Priorities, by spread.
const BINS: usize = 4 * 256 / STEP as usize;
/// What is let through, in capacities.
const FEED: f64 = 1.2;
/// How much of what was counted before still counts.
const MEMORY: f64 = 0.8;

/// Arrivals by rank, and what follows.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    since: Nanos,
    bins: [f64; BINS],
    /// For so long it was counted, as far as it still counts.
    seconds: f64,
}

impl Bar {
    pub(super) fn new(now: Nanos) -> Self {
        Self { since: now, bins: [0.0; BINS], seconds: 0.0 }
    }

    /// One has come that did not get in at once.
    pub(super) fn arrived(&mut self, now: Nanos, rank: u32, room: &Room, flow: &Flow) {
        if let Some(bin) = self.bins.get_mut((rank / STEP) as usize) {
            *bin += 1.0;
        }
        let length = now - self.since;
        if length < EVERY {
            return;
        }
        self.since = now;
        self.seconds += length.as_secs_f64();
        room.set_bar(self.height(room, flow));
        self.seconds *= MEMORY;
        for bin in &mut self.bins {
            *bin *= MEMORY;
        }
    }

    fn height(&self, room: &Room, flow: &Flow) -> u32 {
        if flow.service == Nanos::ZERO || room.in_flight() < room.limit() {
            return 0;
        }
        let mut left = FEED * self.seconds * f64::from(flow.places) / flow.service.as_secs_f64();
        for (at, count) in self.bins.iter().enumerate().rev() {
            left -= count;
            if left < 0.0 {
                // This one still comes through: it has a part of those that there is room for.
                return at as u32 * STEP;
            }
        }
        0
    }
}
