//! How long those take that are in, usually, and how many leave.

use super::Room;
use crate::decide::Nanos;

/// The length of a period; what is known is of the last one to two.
const PERIOD: Nanos = Nanos::from_secs(2);
/// As many are needed to know something.
const LEAST: u64 = 10;
/// How often those that leave are counted.
const EVERY: Nanos = Nanos::from_millis(20);
/// So many per second are enough to know what there is to know.
const ENOUGH_PER_S: f64 = 4000.0;
/// Longer than this, and than four answers take, nobody counts only where nobody comes.
const IDLE: Nanos = Nanos::from_millis(100);
/// For about so long a count counts, at least.
const MEMORY: Nanos = Nanos::from_millis(400);

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    count: u64,
    sum: u64,
}

/// Times of the last one to two periods, and the flow of late.
#[derive(Clone, Debug)]
pub(super) struct Usual {
    since: Nanos,
    current: Period,
    before: Period,
    counted_at: Nanos,
    /// Those that had left by then.
    answered: u64,
    /// Seconds, those that left in them, and those that were in, as far as they still count.
    seconds: f64,
    left: f64,
    in_flight: f64,
}

/// What is known of an upstream when somebody comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// The usual time of one that is in; zero while nothing is known.
    pub(super) service: Nanos,
    /// How many leave per second when all places are taken; zero while nothing is known.
    pub(super) per_s: f64,
    /// How many may be in.
    pub(super) places: u32,
}

impl Flow {
    /// How long it takes until so many have left.
    pub(super) fn wait_for(&self, count: u64) -> Nanos {
        if self.per_s > 0.0 { Nanos((count as f64 / self.per_s * 1e9) as u64) } else { Nanos::ZERO }
    }
}

impl Usual {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            since: now,
            current: Period::default(),
            before: Period::default(),
            counted_at: now,
            answered: 0,
            seconds: 0.0,
            left: 0.0,
            in_flight: 0.0,
        }
    }

    /// One was answered after so long.
    pub(super) fn took(&mut self, now: Nanos, took: Nanos) {
        if now - self.since >= PERIOD && self.current.count >= LEAST {
            self.before = std::mem::take(&mut self.current);
            self.since = now;
        }
        self.current.count += 1;
        self.current.sum = self.current.sum.saturating_add(took.0);
    }

    /// Counts those that have left, if it is time. In own time: what leaves per second is what the upstream can do, not what
    /// a stall has left of it.
    pub(super) fn count(&mut self, own: Nanos, room: &Room) {
        let passed = own - self.counted_at;
        if passed < EVERY {
            return;
        }
        self.counted_at = own;
        if passed > IDLE.max(Nanos(self.mean().0.saturating_mul(4))) {
            // Nobody came meanwhile: what is in now was not, and says nothing of how many could have left.
            self.answered = room.answered();
            return;
        }
        let answered = room.answered();
        let memory = MEMORY.max(self.mean()).as_secs_f64();
        let kept = (-passed.as_secs_f64() / memory).exp();
        let (seconds, in_flight) = (passed.as_secs_f64(), f64::from(room.in_flight()));
        self.seconds = self.seconds * kept + seconds;
        self.left = self.left * kept + (answered - self.answered) as f64;
        self.in_flight = self.in_flight * kept + in_flight * seconds;
        self.answered = answered;
        room.set_every((self.left / self.seconds / ENOUGH_PER_S).round().max(1.0) as u32);
    }

    /// How long one that is in takes; zero while too little is known.
    pub(super) fn mean(&self) -> Nanos {
        let count = self.current.count + self.before.count;
        let sum = self.current.sum.saturating_add(self.before.sum);
        if count < LEAST { Nanos::ZERO } else { Nanos(sum / count) }
    }

    /// How many leave per second.
    pub(super) fn left_per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.left / self.seconds } else { 0.0 }
    }

    pub(super) fn flow(&self, places: u32) -> Flow {
        let service = self.mean();
        // Where not all places are taken there would leave more if they were.
        let taken = if self.seconds > 0.0 { self.in_flight / self.seconds } else { 0.0 };
        let share = if taken > 0.0 { (f64::from(places) / taken).max(1.0) } else { 1.0 };
        let per_s = if service > Nanos::ZERO && self.seconds > 0.0 { self.left / self.seconds * share } else { 0.0 };
        Flow { service, per_s, places }
    }
}
