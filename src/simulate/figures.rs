//! What came of a run.

use serde::Serialize;

use super::limiter::SimulatedLimiter;
use super::record::{RecordWindow, SimulationRecord};
use super::score::HeadlineMetric;
use super::world::{Scenario, UnloadedLatency};
use crate::decide::Nanos;
use crate::decide::admit::Priority;

/// Within this part of the best number in flight a limiter has settled, ...
const SETTLED_TOLERANCE_FRACTION: f64 = 0.15;
/// ... if the mean over this length is, ...
const SMOOTHING_WINDOW: Nanos = Nanos::SECOND;
/// ... and stays there for so long.
const MIN_SETTLED_TIME: Nanos = Nanos::from_secs(2);
/// Less than this much more than capacity is no overload that a limit could be seen by.
const MIN_OVERLOAD_RATIO: f64 = 1.1;

/// A run, in figures.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationReport {
    /// The world's name.
    pub scenario: String,
    /// The limiter's.
    pub limit: String,
    /// Repeats it.
    pub seed: u64,
    /// What the scenario is about, and ...
    #[serde(rename = "about")]
    pub headline_metric: HeadlineMetric,
    /// ... that share.
    pub headline: f64,
    /// What is scored: all but the warm-up.
    pub scored: PhaseMetrics,
    /// Of the stretches that the world names.
    pub phases: Vec<PhaseMetrics>,
    /// Over time.
    pub series: Vec<SimulationInterval>,
}

/// Figures of a stretch. Shares are in [0, 1].
#[derive(Clone, Debug, Serialize)]
pub struct PhaseMetrics {
    /// In a word.
    pub name: String,
    /// Its first instant.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// First tries of callers.
    pub offered_per_s: f64,
    /// All of them.
    #[serde(rename = "tries_per_s")]
    pub attempts_per_s: f64,
    /// What the upstream can answer, on average.
    pub capacity_per_s: f64,
    /// Answers in time.
    pub goodput_per_s: f64,
    /// Answers in time as a share of what could be: of the calls, or of the capacity where that is less.
    pub goodput: f64,
    /// Half of the accepted calls have their answer in so much time, from the caller's try on.
    pub p50_ms: f64,
    /// 99 % of them; a call that meets its deadline at the upstream counts with that.
    pub p99_ms: f64,
    /// The same as a multiple of the p99 of calls that nobody is in the way of.
    #[serde(rename = "p99_stretch")]
    pub p99_slowdown: f64,
    /// Tries that the gate has refused.
    #[serde(rename = "refused")]
    pub rejected: f64,
    /// Tries that the upstream has refused.
    pub failed: f64,
    /// Tries without any answer at their deadline.
    #[serde(rename = "given_up")]
    pub deadline_exceeded: f64,
    /// How long those wait that are refused.
    #[serde(rename = "refused_wait_p99_ms")]
    pub rejected_wait_p99_ms: f64,
    /// The mean limit over all gates; none without one.
    pub limit: Option<f64>,
    /// Calls at the upstream, on average.
    pub in_flight: f64,
    /// With so many it gives all it can, and nobody waits there.
    pub best_in_flight: f64,
    /// Whether all of it is overload of an upstream that stays as it is: only then there is something to settle to.
    pub overload: bool,
    /// When the calls at the upstream are within 15 % of the best number, as means over a second, and stay there for 2 s;
    /// none: never.
    #[serde(rename = "settle_s")]
    pub settling_time_s: Option<f64>,
    /// The limit at its end against that of its beginning, less 1; of overload from a minute on.
    pub drift: Option<f64>,
    /// Of those that came, the share that got an answer in time, from the lowest priority to the highest.
    pub served: [Option<f64>; 4],
    /// Where callers are of several kinds: the share of the first one's calls that got an answer in time.
    #[serde(rename = "good")]
    pub first_kind_served: Option<f64>,
}

/// A stretch of the series.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SimulationInterval {
    /// Its end.
    pub t_s: f64,
    /// First tries.
    pub offered_per_s: f64,
    /// All tries.
    #[serde(rename = "tries_per_s")]
    pub attempts_per_s: f64,
    /// What the upstream can answer.
    pub capacity_per_s: f64,
    /// Answers in time.
    pub goodput_per_s: f64,
    /// Refusals by the gate.
    #[serde(rename = "refused_per_s")]
    pub rejected_per_s: f64,
    /// The limit of all gates.
    pub limit: Option<f64>,
    /// Calls at the upstream.
    pub in_flight: f64,
    /// The best number of them.
    pub best_in_flight: f64,
    /// Calls that wait in gates.
    pub queue: f64,
    /// Of the accepted calls that ended in it; none if there are none.
    pub p99_ms: Option<f64>,
}

impl SimulationReport {
    pub(super) fn new(
        world: &Scenario,
        limiter: &SimulatedLimiter,
        plain: UnloadedLatency,
        record: &SimulationRecord,
    ) -> Self {
        let of = |name: &str, from, to| MetricsWindow { world, unloaded: plain, record, from, to }.metrics(name);
        let phases = world.phases.iter().map(|phase| of(&phase.name, phase.from, phase.to)).collect();
        let scored = of("scored", world.warmup, world.length());
        let critical = scored.served[Priority::Critical.index()];
        Self {
            headline: match world.headline {
                HeadlineMetric::Goodput => scored.goodput,
                HeadlineMetric::Critical => critical.unwrap_or(1.0),
            },
            headline_metric: world.headline,
            scenario: world.name.clone(),
            limit: limiter.to_string(),
            seed: world.seed,
            scored,
            phases,
            series: series(world, plain, record),
        }
    }

    /// The figures of a phase.
    pub fn phase(&self, name: &str) -> Option<&PhaseMetrics> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

struct MetricsWindow<'a> {
    world: &'a Scenario,
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
        let (tries, answered) = (sum(|w| w.attempts), sum(|w| w.responses));
        let of_tries = |n: f64| if tries > 0.0 { n / tries } else { 0.0 };
        let all = |of: fn(&RecordWindow) -> &Vec<f32>| windows.iter().flat_map(of).copied().collect::<Vec<f32>>();
        let (took, stretch, waited) = (all(|w| &w.response_ms), all(|w| &w.slowdown), all(|w| &w.rejected_wait_ms));
        let mean =
            |of: &dyn Fn(&RecordWindow) -> f64| windows.iter().map(of).sum::<f64>() / windows.len().max(1) as f64;
        let limits: Option<f64> = windows.iter().map(|w| w.limit).sum();
        let overload = self.is_overload();
        let (could, capacity) = self.answerable_and_capacity();
        PhaseMetrics {
            name: name.to_owned(),
            from_s: self.from.as_secs_f64(),
            to_s: self.to.as_secs_f64(),
            offered_per_s: sum(|w| w.first_attempts) / seconds,
            attempts_per_s: tries / seconds,
            capacity_per_s: capacity / seconds,
            goodput_per_s: answered / seconds,
            goodput: if could > 0.0 { answered / could } else { 1.0 },
            p50_ms: quantile(&took, 0.5),
            p99_ms: quantile(&took, 0.99),
            p99_slowdown: quantile(&stretch, 0.99),
            rejected: of_tries(sum(|w| w.rejected)),
            failed: of_tries(sum(|w| w.failed)),
            deadline_exceeded: of_tries(sum(|w| w.deadline_exceeded)),
            rejected_wait_p99_ms: quantile(&waited, 0.99),
            limit: limits.map(|sum| sum / windows.len().max(1) as f64),
            in_flight: mean(&|w| w.in_flight),
            best_in_flight: self.best_in_flight(),
            overload,
            settling_time_s: overload.then(|| self.settling_time_s()).flatten(),
            drift: overload.then(|| self.drift()).flatten(),
            served: Priority::ALL.map(|priority| self.served(priority)),
            first_kind_served: self.first_kind_served(),
        }
    }

    /// Calls that could be answered, and the capacity, over the stretch: joint by joint, since a free minute does not make
    /// up for a full one.
    fn answerable_and_capacity(&self) -> (f64, f64) {
        let joints = self.world.breakpoints();
        let inside = joints.iter().copied().filter(|at| *at > self.from && *at < self.to);
        let mut from = self.from;
        let (mut could, mut all) = (0.0, 0.0);
        for to in inside.chain([self.to]) {
            let fresh = self.windows(from, to).iter().map(|w| w.first_attempts).sum::<u64>() as f64;
            let capacity = self.world.capacity(from, self.unloaded).per_s * (to - from).as_secs_f64();
            could += fresh.min(capacity);
            all += capacity;
            from = to;
        }
        (could, all)
    }

    fn best_in_flight(&self) -> f64 {
        f64::from(self.world.capacity(self.from, self.unloaded).slots)
    }

    /// Whether more is offered than can be answered, all the time, and the upstream stays as it is.
    fn is_overload(&self) -> bool {
        if self.world.changes.iter().any(|change| change.at > self.from && change.at < self.to) {
            return false;
        }
        let last = Nanos(self.to.0.saturating_sub(1));
        let joints = self.world.breakpoints();
        let inside = joints.iter().copied().filter(|at| *at > self.from && *at < self.to);
        let capacity = self.world.capacity(self.from, self.unloaded).per_s;
        [self.from, last]
            .into_iter()
            .chain(inside)
            .all(|at| self.world.offered_per_s(at) >= MIN_OVERLOAD_RATIO * capacity)
    }

    fn settling_time_s(&self) -> Option<f64> {
        let windows = self.windows(self.from, self.to);
        let best = self.best_in_flight();
        let smooth = (SMOOTHING_WINDOW.0 / self.record.length.0) as usize;
        let stays = (MIN_SETTLED_TIME.0 / self.record.length.0) as usize;
        let means = windows.windows(smooth.min(windows.len()).max(1));
        let near: Vec<bool> = means
            .map(|some| some.iter().map(|w| w.in_flight).sum::<f64>() / some.len() as f64)
            .map(|mean| (mean / best - 1.0).abs() <= SETTLED_TOLERANCE_FRACTION)
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
            let at = |share: f64| self.from + Nanos::from_secs_f64(length.as_secs_f64() * share);
            let windows = self.windows(at(from), at(to));
            let limits: Option<f64> = windows.iter().map(|w| w.limit).sum();
            limits.map(|sum| sum / windows.len().max(1) as f64).filter(|mean| *mean > 0.0)
        };
        Some(mean(0.9, 1.0)? / mean(0.05, 0.15)? - 1.0)
    }

    fn first_kind_served(&self) -> Option<f64> {
        let kinds = &self.world.callers.kinds;
        let patience = kinds.first()?.deadline_range.1;
        let windows = self.windows(self.from, self.to.min(self.world.length() - patience));
        let sum = |of: fn(&RecordWindow) -> u64| windows.iter().map(of).sum::<u64>() as f64;
        let came = sum(|w| w.first_kind_arrived);
        (came > 0.0).then(|| sum(|w| w.first_kind_served) / came)
    }

    /// Of those whose deadline was before the end of the run.
    fn served(&self, priority: Priority) -> Option<f64> {
        let known = self.world.length() - self.world.callers.deadline;
        let windows = self.windows(self.from, self.to.min(known));
        let sum = |of: fn(&RecordWindow) -> &[u64; 4]| windows.iter().map(|w| of(w)[priority.index()]).sum::<u64>();
        let (came, served) = (sum(|w| &w.arrived), sum(|w| &w.served));
        (came > 0).then(|| served as f64 / came as f64)
    }
}

fn series(world: &Scenario, plain: UnloadedLatency, record: &SimulationRecord) -> Vec<SimulationInterval> {
    let per_point = (world.series_step.0 / record.length.0).max(1) as usize;
    let point = |(at, windows): (usize, &[RecordWindow])| {
        let from = Nanos((at * per_point) as u64 * record.length.0);
        let length = Nanos(windows.len() as u64 * record.length.0);
        let capacity = world.capacity(from, plain);
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
            best_in_flight: f64::from(capacity.slots),
            queue: mean(|window| window.queue),
            p99_ms: (!took.is_empty()).then(|| quantile(&took, 0.99)),
        }
    };
    record.windows.chunks(per_point).enumerate().map(point).collect()
}

/// The least value that at least the share `q` of all do not exceed; 0 if there are none.
fn quantile(all: &[f32], q: f64) -> f64 {
    if all.is_empty() {
        return 0.0;
    }
    let mut all = all.to_vec();
    let at = ((all.len() as f64 * q).ceil() as usize).clamp(1, all.len()) - 1;
    let (_, value, _) = all.select_nth_unstable_by(at, f32::total_cmp);
    f64::from(*value)
}
