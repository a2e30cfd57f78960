//! Metrics of a run, computed from its record.

use serde::Serialize;

use super::limiter::SimulatedLimiter;
use super::record::{RecordWindow, SimulationRecord};
use super::world::{HeadlineMetric, Scenario, UnloadedLatency};
use weir_base::Nanos;
use weir_resilience::admission::Priority;

/// Tolerance around the optimal number in flight within which a limiter has settled.
const SETTLED_TOLERANCE_FRACTION: f64 = 0.15;
/// Length of the moving mean that has to be within the tolerance.
const SMOOTHING_WINDOW: Nanos = Nanos::SECOND;
/// Time for which the mean has to stay within the tolerance.
const MIN_SETTLED_TIME: Nanos = Nanos::from_secs(2);
/// Minimum ratio of offered load to capacity that counts as overload; below, a limit has too little effect to judge.
const MIN_OVERLOAD_RATIO: f64 = 1.1;

/// Metrics of one run: a scenario with a limiter.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationReport {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the limiter.
    pub limiter: String,
    /// Seed of the run.
    pub seed: u64,
    /// Headline metric of the scenario.
    pub headline_metric: HeadlineMetric,
    /// Value of the headline metric, as a fraction of what is possible; none without calls.
    pub headline: Option<f64>,
    /// Metrics of the run without the warm-up.
    pub scored: PhaseMetrics,
    /// Metrics of each phase that the scenario names.
    pub phases: Vec<PhaseMetrics>,
    /// Time series, warm-up included.
    pub series: Vec<SimulationInterval>,
}

/// Metrics of a phase of a run. Fractions are in [0, 1], except for a goodput above 1.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseMetrics {
    /// Name of the phase.
    pub name: String,
    /// Start of the phase, in seconds.
    pub start_s: f64,
    /// End, in seconds.
    pub end_s: f64,
    /// First attempts of callers, per second.
    pub offered_per_s: f64,
    /// All attempts of callers, per second.
    pub attempts_per_s: f64,
    /// Mean capacity of the upstream, per second.
    pub capacity_per_s: f64,
    /// Responses in time, per second.
    pub goodput_per_s: f64,
    /// Responses in time as a fraction of the calls, or of the capacity where that is less; none without calls.
    pub goodput: Option<f64>,
    /// Median response time of accepted calls, from the caller's attempt, in milliseconds; none without any.
    pub p50_ms: Option<f64>,
    /// 99th percentile of response times of accepted calls, in milliseconds; a call that reaches its deadline at the
    /// upstream counts with that; none without any.
    pub p99_ms: Option<f64>,
    /// p99 divided by the unloaded p99; none without accepted calls.
    pub p99_ratio: Option<f64>,
    /// Fraction of attempts that the gate rejected; none without attempts.
    pub rejected: Option<f64>,
    /// Fraction of attempts that the upstream rejected; none without attempts.
    pub upstream_rejected: Option<f64>,
    /// Fraction of attempts without a response at their deadline; none without attempts.
    pub timed_out: Option<f64>,
    /// 99th percentile of the wait of rejected calls, in milliseconds; none without any.
    pub rejected_wait_p99_ms: Option<f64>,
    /// Mean limit over all gates; none without one.
    pub limit: Option<f64>,
    /// Mean number of calls at the upstream.
    pub in_flight: f64,
    /// Optimal number of calls at the upstream: full throughput without a queue.
    pub optimal_in_flight: f64,
    /// Whether the phase is constant overload of an unchanged upstream: only then the limit can settle.
    pub overload: bool,
    /// Time until the calls at the upstream are within 15% of the optimum and stay there for 2 s, in seconds; none if
    /// never.
    #[serde(rename = "settle_s")]
    pub settling_time_s: Option<f64>,
    /// Limit at the end divided by that at the beginning, less 1; of overload of a minute and more.
    pub drift: Option<f64>,
    /// Fraction of calls with a response in time, by priority from low to critical.
    pub goodput_by_priority: [Option<f64>; 4],
    /// Fraction of the first kind's calls with a response in time; none with one kind of callers.
    pub first_kind_goodput: Option<f64>,
}

/// Interval of the time series.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SimulationInterval {
    /// End, in seconds.
    pub t_s: f64,
    /// First attempts of callers, per second.
    pub offered_per_s: f64,
    /// All attempts of callers, per second.
    pub attempts_per_s: f64,
    /// Capacity of the upstream, per second.
    pub capacity_per_s: f64,
    /// Responses in time, per second.
    pub goodput_per_s: f64,
    /// Rejections by the gates, per second.
    pub rejected_per_s: f64,
    /// Sum of the gates' limits at the end of the interval; none without one.
    pub limit: Option<f64>,
    /// Mean number of calls at the upstream.
    pub in_flight: f64,
    /// Optimal number of calls at the upstream.
    pub optimal_in_flight: f64,
    /// Mean number of queued calls in the gates.
    pub queue: f64,
    /// 99th percentile of accepted calls that ended in the interval, in milliseconds; none without any.
    pub p99_ms: Option<f64>,
}

impl SimulationReport {
    pub(super) fn new(
        scenario: &Scenario,
        limiter: &SimulatedLimiter,
        unloaded: UnloadedLatency,
        record: &SimulationRecord,
    ) -> Self {
        let of = |name: &str, from, to| MetricsWindow { scenario, unloaded, record, from, to }.metrics(name);
        let phases = scenario.phases.iter().map(|phase| of(&phase.name, phase.from, phase.to)).collect();
        let scored = of("scored", scenario.warmup, scenario.length());
        let critical = scored.goodput_by_priority[Priority::Critical.index()];
        Self {
            headline: match scenario.headline {
                HeadlineMetric::Goodput => scored.goodput,
                HeadlineMetric::Critical => critical,
            },
            headline_metric: scenario.headline,
            scenario: scenario.name.clone(),
            limiter: limiter.to_string(),
            seed: scenario.seed,
            scored,
            phases,
            series: series(scenario, unloaded, record),
        }
    }

    /// Metrics of a phase by its name.
    pub fn phase(&self, name: &str) -> Option<&PhaseMetrics> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// Phase of a run, with all that its metrics are computed from.
struct MetricsWindow<'a> {
    scenario: &'a Scenario,
    unloaded: UnloadedLatency,
    record: &'a SimulationRecord,
    from: Nanos,
    to: Nanos,
}

impl MetricsWindow<'_> {
    fn windows(&self, from: Nanos, to: Nanos) -> &[RecordWindow] {
        let at = |time: Nanos| ((time.0 / self.record.length.0) as usize).min(self.record.windows.len());
        &self.record.windows[at(from)..at(to).max(at(from))]
    }

    fn metrics(&self, name: &str) -> PhaseMetrics {
        let windows = self.windows(self.from, self.to);
        let seconds = (self.to - self.from).as_secs_f64();
        let sum = |of: fn(&RecordWindow) -> u64| windows.iter().map(of).sum::<u64>() as f64;
        let (attempts, responses) = (sum(|w| w.attempts), sum(|w| w.responses));
        let fraction = |n: f64| (attempts > 0.0).then(|| n / attempts);
        let all = |of: fn(&RecordWindow) -> &Vec<f32>| windows.iter().flat_map(of).copied().collect::<Vec<f32>>();
        let (took, ratio, waited) = (all(|w| &w.response_ms), all(|w| &w.slowdown), all(|w| &w.rejected_wait_ms));
        let mean =
            |of: &dyn Fn(&RecordWindow) -> f64| windows.iter().map(of).sum::<f64>() / windows.len().max(1) as f64;
        let limits: Option<f64> = windows.iter().map(|w| w.limit).sum();
        let overload = self.is_overload();
        let (servable, capacity) = self.servable_and_capacity();
        PhaseMetrics {
            name: name.to_owned(),
            start_s: self.from.as_secs_f64(),
            end_s: self.to.as_secs_f64(),
            offered_per_s: sum(|w| w.first_attempts) / seconds,
            attempts_per_s: attempts / seconds,
            capacity_per_s: capacity / seconds,
            goodput_per_s: responses / seconds,
            goodput: (servable > 0.0).then(|| responses / servable),
            p50_ms: quantile(&took, 0.5),
            p99_ms: quantile(&took, 0.99),
            p99_ratio: quantile(&ratio, 0.99),
            rejected: fraction(sum(|w| w.rejected)),
            upstream_rejected: fraction(sum(|w| w.upstream_rejected)),
            timed_out: fraction(sum(|w| w.timed_out)),
            rejected_wait_p99_ms: quantile(&waited, 0.99),
            limit: limits.map(|sum| sum / windows.len().max(1) as f64),
            in_flight: mean(&|w| w.in_flight),
            optimal_in_flight: self.optimal_in_flight(),
            overload,
            settling_time_s: overload.then(|| self.settling_time_s()).flatten(),
            drift: overload.then(|| self.drift()).flatten(),
            goodput_by_priority: Priority::ALL.map(|priority| self.goodput_of(priority)),
            first_kind_goodput: self.first_kind_goodput(),
        }
    }

    /// Calls that could be served, and the capacity: summed between breakpoints, since an idle minute does not make up
    /// for an overloaded one.
    fn servable_and_capacity(&self) -> (f64, f64) {
        let breakpoints = self.scenario.breakpoints();
        let inside = breakpoints.iter().copied().filter(|at| *at > self.from && *at < self.to);
        let mut from = self.from;
        let (mut servable, mut all) = (0.0, 0.0);
        for to in inside.chain([self.to]) {
            let calls = self.windows(from, to).iter().map(|w| w.first_attempts).sum::<u64>() as f64;
            let capacity = self.scenario.capacity(from, self.unloaded).per_s * (to - from).as_secs_f64();
            servable += calls.min(capacity);
            all += capacity;
            from = to;
        }
        (servable, all)
    }

    fn optimal_in_flight(&self) -> f64 {
        f64::from(self.scenario.capacity(self.from, self.unloaded).slots)
    }

    /// Whether the offered load exceeds the capacity all the time, and the upstream does not change.
    fn is_overload(&self) -> bool {
        if self.scenario.changes.iter().any(|change| change.at > self.from && change.at < self.to) {
            return false;
        }
        let last = Nanos(self.to.0.saturating_sub(1));
        let breakpoints = self.scenario.breakpoints();
        let inside = breakpoints.iter().copied().filter(|at| *at > self.from && *at < self.to);
        let capacity = self.scenario.capacity(self.from, self.unloaded).per_s;
        [self.from, last]
            .into_iter()
            .chain(inside)
            .all(|at| self.scenario.offered_per_s(at) >= MIN_OVERLOAD_RATIO * capacity)
    }

    fn settling_time_s(&self) -> Option<f64> {
        let windows = self.windows(self.from, self.to);
        let optimum = self.optimal_in_flight();
        let smooth = (SMOOTHING_WINDOW.0 / self.record.length.0) as usize;
        let stays = (MIN_SETTLED_TIME.0 / self.record.length.0) as usize;
        let means = windows.windows(smooth.min(windows.len()).max(1));
        let near: Vec<bool> = means
            .map(|some| some.iter().map(|w| w.in_flight).sum::<f64>() / some.len() as f64)
            .map(|mean| (mean / optimum - 1.0).abs() <= SETTLED_TOLERANCE_FRACTION)
            .collect();
        let settled = |at: &usize| near[*at..].iter().take(stays).all(|near| *near);
        let first = (0..near.len()).find(settled)?;
        Some(first as f64 * self.record.length.as_secs_f64())
    }

    fn drift(&self) -> Option<f64> {
        let length = self.to - self.from;
        if length < Nanos::from_secs(60) {
            return None;
        }
        let mean = |from: f64, to: f64| {
            let at = |fraction: f64| self.from + Nanos::from_secs_f64(length.as_secs_f64() * fraction);
            let windows = self.windows(at(from), at(to));
            let limits: Option<f64> = windows.iter().map(|w| w.limit).sum();
            limits.map(|sum| sum / windows.len().max(1) as f64).filter(|mean| *mean > 0.0)
        };
        Some(mean(0.9, 1.0)? / mean(0.05, 0.15)? - 1.0)
    }

    fn first_kind_goodput(&self) -> Option<f64> {
        let kinds = &self.scenario.callers.kinds;
        let deadline = kinds.first()?.deadline_range.longest;
        let windows = self.windows(self.from, self.to.min(self.scenario.length() - deadline));
        let sum = |of: fn(&RecordWindow) -> u64| windows.iter().map(of).sum::<u64>() as f64;
        let arrived = sum(|w| w.first_kind_arrived);
        (arrived > 0.0).then(|| sum(|w| w.first_kind_served) / arrived)
    }

    /// Fraction of a priority's calls with a response in time, of those whose deadline is before the end of the run.
    fn goodput_of(&self, priority: Priority) -> Option<f64> {
        let complete_until = self.scenario.length() - self.scenario.callers.deadline;
        let windows = self.windows(self.from, self.to.min(complete_until));
        let sum = |of: fn(&RecordWindow) -> &[u64; 4]| windows.iter().map(|w| of(w)[priority.index()]).sum::<u64>();
        let (arrived, served) = (sum(|w| &w.arrived), sum(|w| &w.served));
        (arrived > 0).then(|| served as f64 / arrived as f64)
    }
}

fn series(scenario: &Scenario, unloaded: UnloadedLatency, record: &SimulationRecord) -> Vec<SimulationInterval> {
    let per_interval = (scenario.series_step.0 / record.length.0).max(1) as usize;
    let interval = |(at, windows): (usize, &[RecordWindow])| {
        let from = Nanos((at * per_interval) as u64 * record.length.0);
        let length = Nanos(windows.len() as u64 * record.length.0);
        let capacity = scenario.capacity(from, unloaded);
        let per_s = |of: fn(&RecordWindow) -> u64| windows.iter().map(of).sum::<u64>() as f64 / length.as_secs_f64();
        let mean = |of: fn(&RecordWindow) -> f64| windows.iter().map(of).sum::<f64>() / windows.len() as f64;
        let took: Vec<f32> = windows.iter().flat_map(|window| &window.response_ms).copied().collect();
        SimulationInterval {
            t_s: (from + length).as_secs_f64(),
            offered_per_s: per_s(|window| window.first_attempts),
            attempts_per_s: per_s(|window| window.attempts),
            capacity_per_s: capacity.per_s,
            goodput_per_s: per_s(|window| window.responses),
            rejected_per_s: per_s(|window| window.rejected),
            limit: windows.last().and_then(|window| window.limit),
            in_flight: mean(|window| window.in_flight),
            optimal_in_flight: f64::from(capacity.slots),
            queue: mean(|window| window.queue),
            p99_ms: quantile(&took, 0.99),
        }
    };
    record.windows.chunks(per_interval).enumerate().map(interval).collect()
}

/// Lowest value that at least the fraction `q` of all do not exceed; none without any.
fn quantile(all: &[f32], q: f64) -> Option<f64> {
    if all.is_empty() {
        return None;
    }
    let mut all = all.to_vec();
    let at = ((all.len() as f64 * q).ceil() as usize).clamp(1, all.len()) - 1;
    let (_, value, _) = all.select_nth_unstable_by(at, f32::total_cmp);
    Some(f64::from(*value))
}
