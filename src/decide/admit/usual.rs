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
    /// All the time, for the rate of responses.
    all: FlowSums,
    /// The time in which requests were in flight throughout, for what the upstream can do.
    busy: FlowSums,
}

/// Seconds, responses in them, and requests in flight times seconds, each weighted by [`MEMORY`].
#[derive(Clone, Copy, Debug, Default)]
struct FlowSums {
    seconds: f64,
    left: f64,
    in_flight: f64,
}

impl FlowSums {
    fn fade(&mut self, kept: f64) {
        self.seconds *= kept;
        self.left *= kept;
        self.in_flight *= kept;
    }

    fn add(&mut self, seconds: f64, left: f64, in_flight: f64) {
        self.seconds += seconds;
        self.left += left;
        self.in_flight += in_flight * seconds;
    }

    /// Responses per second, zero while nothing is known.
    fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.left / self.seconds } else { 0.0 }
    }
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
            all: FlowSums::default(),
            busy: FlowSums::default(),
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
        let (answered, idled) = (room.answered(), room.has_idled());
        let left = (answered - std::mem::replace(&mut self.answered, answered)) as f64;
        let mean = self.mean();
        let memory = MEMORY.max(mean).as_secs_f64();
        let kept = (-passed.as_secs_f64() / memory).exp();
        self.busy.fade(kept);
        let several = Nanos(mean.0.saturating_mul(4));
        if passed > IDLE.max(several) {
            // Nobody came meanwhile: what is in now was not, and says nothing of how many could have left.
            return;
        }
        self.all.fade(kept);
        let (seconds, in_flight) = (passed.as_secs_f64(), f64::from(room.in_flight()));
        self.all.add(seconds, left, in_flight);
        // With a pause in it that is long beside a response, a period shows at least what can leave, not at most.
        let raises = left * self.busy.in_flight > self.busy.left * in_flight * seconds;
        if !idled || passed <= several || raises {
            self.busy.add(seconds, left, in_flight);
        }
        room.set_every((self.all.per_s() / ENOUGH_PER_S).round().max(1.0) as u32);
    }

    /// How long one that is in takes; zero while too little is known.
    pub(super) fn mean(&self) -> Nanos {
        let count = self.current.count + self.before.count;
        let sum = self.current.sum.saturating_add(self.before.sum);
        if count < LEAST { Nanos::ZERO } else { Nanos(sum / count) }
    }

    /// How many leave per second.
    pub(super) fn left_per_s(&self) -> f64 {
        self.all.per_s()
    }

    pub(super) fn flow(&self, places: u32) -> Flow {
        let service = self.mean();
        let busy = &self.busy;
        // What has faded to less than one period is of an upstream as it was.
        if service == Nanos::ZERO || busy.seconds < EVERY.as_secs_f64() / 2.0 {
            return Flow { service, per_s: 0.0, places };
        }
        // Where not all places are taken there would leave more if they were.
        let taken = busy.in_flight / busy.seconds;
        let share = if taken > 0.0 { (f64::from(places) / taken).max(1.0) } else { 1.0 };
        Flow { service, per_s: busy.per_s() * share, places }
    }
}
