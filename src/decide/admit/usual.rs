//! How long those take that are in, usually, and how many leave.

use super::Slots;
use crate::decide::Nanos;

/// The length of a period; what is known is of the last one to two.
const PERIOD: Nanos = Nanos::from_secs(2);
/// As many are needed to know something.
const MIN_SAMPLES: u64 = 10;
/// How often those that leave are counted.
const COUNT_INTERVAL: Nanos = Nanos::from_millis(20);
/// So many per second are enough to know what there is to know.
const MAX_SAMPLES_PER_S: f64 = 4000.0;
/// Longer than this, and than four answers take, nobody counts only where nobody comes.
const MAX_COUNT_GAP: Nanos = Nanos::from_millis(100);
/// For about so long a count counts, at least.
const MIN_DECAY_TIME: Nanos = Nanos::from_millis(400);

#[derive(Clone, Copy, Debug, Default)]
struct ServiceTimeSum {
    count: u64,
    total_ns: u64,
}

/// Times of the last one to two periods, and the flow of late.
#[derive(Clone, Debug)]
pub(super) struct ServiceRate {
    since: Nanos,
    current: ServiceTimeSum,
    previous: ServiceTimeSum,
    counted_at: Nanos,
    /// Those that had left by then.
    counted_responses: u64,
    /// All the time, for the rate of responses.
    all: FlowSums,
    /// The time in which requests were in flight throughout, for what the upstream can do.
    busy: FlowSums,
}

/// Seconds, responses in them, and requests in flight times seconds, each weighted by [`MIN_DECAY_TIME`].
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
pub(super) struct ServiceFlow {
    /// The usual time of one that is in; zero while nothing is known.
    pub(super) service_time: Nanos,
    /// How many leave per second when all places are taken; zero while nothing is known.
    pub(super) per_s: f64,
    /// How many may be in.
    pub(super) slots: u32,
}

impl ServiceFlow {
    /// How long it takes until so many have left.
    pub(super) fn wait_for(&self, count: u64) -> Nanos {
        if self.per_s > 0.0 { Nanos((count as f64 / self.per_s * 1e9) as u64) } else { Nanos::ZERO }
    }
}

impl ServiceRate {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            since: now,
            current: ServiceTimeSum::default(),
            previous: ServiceTimeSum::default(),
            counted_at: now,
            counted_responses: 0,
            all: FlowSums::default(),
            busy: FlowSums::default(),
        }
    }

    /// One was answered after so long.
    pub(super) fn record(&mut self, now: Nanos, took: Nanos) {
        if now - self.since >= PERIOD && self.current.count >= MIN_SAMPLES {
            self.previous = std::mem::take(&mut self.current);
            self.since = now;
        }
        self.current.count += 1;
        self.current.total_ns = self.current.total_ns.saturating_add(took.0);
    }

    /// Counts those that have left, if it is time. In own time: what leaves per second is what the upstream can do, not what
    /// a stall has left of it.
    pub(super) fn update(&mut self, own: Nanos, room: &Slots) {
        let passed = own - self.counted_at;
        if passed < COUNT_INTERVAL {
            return;
        }
        self.counted_at = own;
        let (answered, idled) = (room.responses(), room.has_idled());
        let left = (answered - std::mem::replace(&mut self.counted_responses, answered)) as f64;
        let mean = self.mean_service_time();
        let memory = MIN_DECAY_TIME.max(mean).as_secs_f64();
        let kept = (-passed.as_secs_f64() / memory).exp();
        self.busy.fade(kept);
        let several = Nanos(mean.0.saturating_mul(4));
        if passed > MAX_COUNT_GAP.max(several) {
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
        room.set_sample_one_in((self.all.per_s() / MAX_SAMPLES_PER_S).round().max(1.0) as u32);
    }

    /// How long one that is in takes; zero while too little is known.
    pub(super) fn mean_service_time(&self) -> Nanos {
        let count = self.current.count + self.previous.count;
        let sum = self.current.total_ns.saturating_add(self.previous.total_ns);
        if count < MIN_SAMPLES { Nanos::ZERO } else { Nanos(sum / count) }
    }

    /// How many leave per second.
    pub(super) fn responses_per_s(&self) -> f64 {
        self.all.per_s()
    }

    pub(super) fn flow(&self, places: u32) -> ServiceFlow {
        let service = self.mean_service_time();
        let busy = &self.busy;
        // What has faded to less than one period is of an upstream as it was.
        if service == Nanos::ZERO || busy.seconds < COUNT_INTERVAL.as_secs_f64() / 2.0 {
            return ServiceFlow { service_time: service, per_s: 0.0, slots: places };
        }
        // Where not all places are taken there would leave more if they were.
        let taken = busy.in_flight / busy.seconds;
        let share = if taken > 0.0 { (f64::from(places) / taken).max(1.0) } else { 1.0 };
        ServiceFlow { service_time: service, per_s: busy.per_s() * share, slots: places }
    }
}
