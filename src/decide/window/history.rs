//! What a key leaves to whoever goes on with it: after a restart, a crash, or in another process.

use super::{Nanos, Windows, limit};

/// All that counts of a key's past, as ages, so that it means the same by another clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What each window remembers; empty after a crash.
    pub windows: Vec<Past>,
    /// What was sent and nothing more is known of: how long ago, and its weight. After a crash: all that was sent since
    /// the longest of the windows (twice as long for a counter).
    pub sent: Vec<(Nanos, u64)>,
    /// Nothing is to be sent for so long.
    pub held_for: Nanos,
}

/// What one window remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Which one.
    pub window: limit::Window,
    /// How much of its limit is believed.
    pub believed: u64,
    /// How long ago something had surely arrived, and how much it counted; the oldest first.
    pub arrived: Vec<(Nanos, u64)>,
    /// In how long a bucket is full.
    pub full_in: Option<Nanos>,
}

impl Windows {
    /// What counts of the past at `now`.
    pub fn history(&mut self, now: Nanos) -> History {
        let now = self.advance(now);
        History {
            windows: self.meters.iter().map(|meter| meter.past(now)).collect(),
            sent: self.road.unknown().map(|(at, weight)| (now - at, weight)).collect(),
            held_for: self.held - now,
        }
    }

    /// Goes on, `since` after the history was written; if in doubt, too short is safe. To be called first of all.
    ///
    /// What lies before the start of the clock counts as at its start: one that begins early enough loses nothing. Of
    /// what a history does not say the worst is taken: without windows, a bucket was empty when the last request
    /// arrived.
    pub fn resume(&mut self, now: Nanos, history: &History, since: Nanos) {
        let now = self.advance(now);
        self.hold_until(now + (history.held_for - since));
        let mut sent: Vec<(Nanos, u64)> =
            history.sent.iter().map(|(ago, weight)| (now - (*ago + since), *weight)).collect();
        sent.sort_unstable();
        let arrived = sent.into_iter().map(|(at, weight)| (at, self.way_in.map_or(now, |way_in| at + way_in), weight));
        let arrived: Vec<_> = arrived.collect();
        for meter in &mut self.meters {
            if let Some(past) = history.windows.iter().find(|past| past.window == meter.limit.window) {
                meter.resume(past, now, since);
                self.last_arrival = self.last_arrival.max(past.arrived.last().map(|(ago, _)| now - (*ago + since)));
            } else if let Some((_, by, _)) = arrived.last() {
                meter.forgot(*by);
            }
        }
        for (at, by, weight) in arrived {
            self.arrive(by, weight);
            // Nobody will hear its answer: the server may be at it for as long again.
            for meter in &mut self.meters {
                let amount = meter.limit.unit.amount(weight);
                meter.send(amount);
                meter.end(now + (now - at), amount);
            }
        }
    }
}
