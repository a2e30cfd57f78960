//! Recent mean service time, and completions per second, of the calls in flight.

use super::Slots;
use weir_base::Nanos;

/// Length of a period of service times; estimates cover the last one to two. Chosen by the simulation's scenarios.
const PERIOD: Nanos = Nanos::from_secs(2);
/// Samples below which there is no service time. Chosen: below that one slow call is the mean.
const MIN_SAMPLES: u64 = 10;
/// Interval at which completions are counted. Chosen by the simulation's scenarios.
const COUNT_INTERVAL: Nanos = Nanos::from_millis(20);
/// Maximum samples per second; beyond it one in N calls is a sample. A sample costs a lock and some hundred ns, and
/// 4,000 per second are far more than an estimate needs.
const MAX_SAMPLES_PER_S: f64 = 4000.0;
/// Shortest interval without a count that is left out: beyond it and four service times there were no calls. Chosen by
/// the simulation's scenarios.
const MAX_COUNT_GAP: Nanos = Nanos::from_millis(100);
/// Shortest time constant of the decay of counts; a longer service time is the constant itself. Chosen by the
/// simulation's scenarios.
const MIN_DECAY_TIME: Nanos = Nanos::from_millis(400);

#[derive(Clone, Copy, Debug, Default)]
struct ServiceTimeSum {
    count: u64,
    total_ns: u64,
}

/// Service times of the last one to two periods, and recent completions per second.
#[derive(Clone, Debug)]
pub(super) struct ServiceRate {
    since: Nanos,
    current: ServiceTimeSum,
    previous: ServiceTimeSum,
    counted_at: Nanos,
    /// Responses at that time.
    counted_responses: u64,
    /// Whole time: rate of responses.
    all: FlowSums,
    /// Time with calls in flight throughout: capacity of the upstream.
    busy: FlowSums,
}

/// Seconds, responses, and calls in flight times seconds, each decaying with [`MIN_DECAY_TIME`].
#[derive(Clone, Copy, Debug, Default)]
struct FlowSums {
    seconds: f64,
    responses: f64,
    in_flight: f64,
}

impl FlowSums {
    fn fade(&mut self, kept: f64) {
        self.seconds *= kept;
        self.responses *= kept;
        self.in_flight *= kept;
    }

    fn add(&mut self, seconds: f64, responses: f64, in_flight: f64) {
        self.seconds += seconds;
        self.responses += responses;
        self.in_flight += in_flight * seconds;
    }

    /// Responses per second; 0 without data.
    fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.responses / self.seconds } else { 0.0 }
    }
}

/// Estimate of an upstream's flow when a call arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceFlow {
    /// Mean service time; zero without an estimate.
    pub(super) service_time: Nanos,
    /// Completions per second with all slots taken; 0 without an estimate.
    pub(super) per_s: f64,
    /// Limit of calls in flight.
    pub(super) slots: u32,
}

impl ServiceFlow {
    /// Time until `count` calls have completed; zero without an estimate.
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

    /// Records the service time of a response.
    pub(super) fn record(&mut self, now: Nanos, service_time: Nanos) {
        if now - self.since >= PERIOD && self.current.count >= MIN_SAMPLES {
            self.previous = std::mem::take(&mut self.current);
            self.since = now;
        }
        self.current.count += 1;
        self.current.total_ns = self.current.total_ns.saturating_add(service_time.0);
    }

    /// Counts completions if an interval has passed. `now` is active time, without pauses and stalls: the rate is what
    /// the upstream can do.
    pub(super) fn update(&mut self, now: Nanos, slots: &Slots) {
        let passed = now - self.counted_at;
        if passed < COUNT_INTERVAL {
            return;
        }
        self.counted_at = now;
        let (total, idled) = (slots.responses(), slots.has_idled());
        let responses = (total - std::mem::replace(&mut self.counted_responses, total)) as f64;
        let mean = self.mean_service_time();
        let memory = MIN_DECAY_TIME.max(mean).as_secs_f64();
        let kept = (-passed.as_secs_f64() / memory).exp();
        self.busy.fade(kept);
        let several = Nanos(mean.0.saturating_mul(4));
        if passed > MAX_COUNT_GAP.max(several) {
            // No call arrived meanwhile: the calls in flight now were not, and give no rate.
            return;
        }
        self.all.fade(kept);
        let (seconds, in_flight) = (passed.as_secs_f64(), f64::from(slots.in_flight()));
        self.all.add(seconds, responses, in_flight);
        // With an idle time longer than some service times an interval is a lower bound of the capacity.
        let raises = responses * self.busy.in_flight > self.busy.responses * in_flight * seconds;
        if !idled || passed <= several || raises {
            self.busy.add(seconds, responses, in_flight);
        }
        slots.set_sample_one_in((self.all.per_s() / MAX_SAMPLES_PER_S).round().max(1.0) as u32);
    }

    /// Mean service time; zero with too few samples.
    pub(super) fn mean_service_time(&self) -> Nanos {
        let count = self.current.count + self.previous.count;
        let sum = self.current.total_ns.saturating_add(self.previous.total_ns);
        if count < MIN_SAMPLES { Nanos::ZERO } else { Nanos(sum / count) }
    }

    /// Responses per second.
    pub(super) fn responses_per_s(&self) -> f64 {
        self.all.per_s()
    }

    /// Flow with all `slots` taken.
    pub(super) fn flow(&self, slots: u32) -> ServiceFlow {
        let service_time = self.mean_service_time();
        let busy = &self.busy;
        // A weight of less than half an interval is too old.
        if service_time == Nanos::ZERO || busy.seconds < COUNT_INTERVAL.as_secs_f64() / 2.0 {
            return ServiceFlow { service_time, per_s: 0.0, slots };
        }
        // With all slots taken there would be more completions, in proportion.
        let taken = busy.in_flight / busy.seconds;
        let scale = if taken > 0.0 { (f64::from(slots) / taken).max(1.0) } else { 1.0 };
        ServiceFlow { service_time, per_s: busy.per_s() * scale, slots }
    }
}
