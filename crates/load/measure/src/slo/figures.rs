//! Figures that objectives judge: of a whole run, of its iterations, of a scenario, or of a step.

use super::time_kind::TimeKind;
use crate::recorder::Interval;
use crate::run::Run;
use crate::run_steps::RunStep;
use crate::step_counts::CheckCounts;
use weir_histogram::Histogram;

/// Part of a run that an objective is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum SloScope {
    /// All requests.
    #[default]
    Run,
    /// Iterations of scenarios.
    Iterations,
    /// Scenario or step of this name.
    Named(String),
}

/// Figures that objectives judge. Times are in milliseconds, over successes.
#[derive(Clone, Debug, Default)]
pub(super) struct SloFigures {
    pub(super) total: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// Successes per second.
    pub(super) rate_per_s: f64,
    pub(super) response: TimeFigures,
    pub(super) service: TimeFigures,
    /// Evaluations of all checks.
    pub(super) checks: CheckCounts,
    pub(super) first_event: TimeFigures,
    pub(super) gap: TimeFigures,
    pub(super) ttft: TimeFigures,
    pub(super) tpot: TimeFigures,
    pub(super) chunk_gap: TimeFigures,
    pub(super) e2e: TimeFigures,
    /// Requests to a language model that met the objectives of each.
    pub(super) good: u64,
    /// All of these requests that ended.
    pub(super) ended: u64,
}

/// Times over successes, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct TimeFigures {
    pub(super) mean: f64,
    pub(super) max: f64,
    /// `None` without times, and for a damaged histogram, in a run from a file.
    histogram: Option<Histogram>,
}

/// Figures without times.
impl Default for TimeFigures {
    fn default() -> Self {
        Self::of(None)
    }
}

impl TimeFigures {
    /// Quantile in ms.
    pub(super) fn quantile(&self, q: f64) -> f64 {
        Self::in_time(self.histogram.as_ref().and_then(|histogram| histogram.quantile_ms(q)))
    }

    /// Figure that objectives compare: infinite without times, since nothing was shown to be in time.
    fn in_time(ms: Option<f64>) -> f64 {
        ms.unwrap_or(f64::INFINITY)
    }

    fn of(histogram: Option<Histogram>) -> Self {
        let of = |figure: fn(&Histogram) -> Option<f64>| Self::in_time(histogram.as_ref().and_then(figure));
        Self { mean: of(Histogram::mean_ms), max: of(Histogram::max_ms), histogram }
    }
}

impl SloScope {
    /// Whether this part of a run has such times.
    pub(super) fn has(&self, kind: TimeKind) -> bool {
        match kind {
            TimeKind::Iteration => *self == Self::Iterations,
            TimeKind::Response | TimeKind::Service => *self != Self::Iterations,
            _ => *self == Self::Run,
        }
    }
}

impl SloFigures {
    /// Figures of times of a kind.
    pub(super) fn times(&self, kind: TimeKind) -> &TimeFigures {
        match kind {
            TimeKind::Response | TimeKind::Iteration => &self.response,
            TimeKind::Service => &self.service,
            TimeKind::FirstEvent => &self.first_event,
            TimeKind::Gap => &self.gap,
            TimeKind::Ttft => &self.ttft,
            TimeKind::Tpot => &self.tpot,
            TimeKind::ChunkGap => &self.chunk_gap,
            TimeKind::EndToEnd => &self.e2e,
        }
    }

    /// Figures of a part of a run.
    pub(super) fn of(run: &Run, scope: &SloScope) -> Self {
        match scope {
            SloScope::Run => Self::of_run(run),
            SloScope::Iterations => Self::of_iterations(run),
            SloScope::Named(name) => {
                let steps = run.steps.iter().filter(|step| step.is_named(name));
                Self::of_steps(&steps.collect::<Vec<_>>())
            }
        }
    }

    /// Figures of an interval of a length in seconds.
    pub(super) fn of_interval(interval: &Interval, length_s: f64) -> Self {
        let response = TimeFigures::of(Some(interval.response.clone()));
        Self {
            good: interval.good_llm_requests(),
            ended: interval.ok + interval.failed,
            total: interval.ok + interval.failed,
            ok: interval.ok,
            failed: interval.failed,
            rate_per_s: interval.ok as f64 / length_s,
            service: response.clone(),
            response,
            ..Self::of_stream_times(|kind| kind.times_in(interval).cloned())
        }
    }

    /// Figures of the times of streams alone.
    fn of_stream_times(times: impl Fn(TimeKind) -> Option<Histogram>) -> Self {
        let figures = |kind: TimeKind| TimeFigures::of(times(kind));
        Self {
            first_event: figures(TimeKind::FirstEvent),
            gap: figures(TimeKind::Gap),
            ttft: figures(TimeKind::Ttft),
            tpot: figures(TimeKind::Tpot),
            chunk_gap: figures(TimeKind::ChunkGap),
            e2e: figures(TimeKind::EndToEnd),
            ..Self::default()
        }
    }

    fn of_run(run: &Run) -> Self {
        let successes = run.requests.ok as f64 / run.response_count().max(1) as f64;
        Self {
            total: run.requests.total,
            ok: run.requests.ok,
            failed: run.requests.failed,
            rate_per_s: run.rate_per_s.achieved * successes,
            response: TimeFigures::of(run.response_histogram().ok()),
            service: TimeFigures::of(run.service_histogram().ok()),
            checks: checks(run.steps.iter()),
            ..Self::of_streams(run)
        }
    }

    fn of_streams(run: &Run) -> Self {
        // A request that failed met no objective.
        let good = run.llm.as_ref().map_or(0, |llm| llm.good);
        Self { good, ended: run.requests.total, ..Self::of_stream_times(|kind| kind.times_of(run)) }
    }

    fn of_iterations(run: &Run) -> Self {
        let Some(iterations) = &run.iterations else { return Self::default() };
        let successes = iterations.ok as f64 / (iterations.ok + iterations.failed - iterations.dropped).max(1) as f64;
        let times = TimeFigures::of(iterations.time_histogram().ok());
        Self {
            total: iterations.total,
            ok: iterations.ok,
            failed: iterations.failed,
            rate_per_s: iterations.rate_per_s.achieved * successes,
            response: times.clone(),
            service: times,
            checks: checks(run.steps.iter()),
            ..Self::default()
        }
    }

    fn of_steps(steps: &[&RunStep]) -> Self {
        let sum = |count: fn(&RunStep) -> u64| steps.iter().map(|step| count(step)).sum::<u64>();
        let merged = |of: fn(&RunStep) -> Result<Histogram, String>| {
            let mut all = Histogram::precise();
            for step in steps {
                all.add(&of(step).ok()?);
            }
            Some(all)
        };
        let rate = |step: &&RunStep| {
            let responses: u64 = step.status.values().sum();
            step.rate_per_s * step.ok as f64 / responses.max(1) as f64
        };
        Self {
            total: sum(|step| step.requests + step.unsent),
            ok: sum(|step| step.ok),
            failed: sum(|step| step.failed + step.unsent),
            rate_per_s: steps.iter().map(rate).sum(),
            response: TimeFigures::of(merged(RunStep::response_histogram)),
            service: TimeFigures::of(merged(RunStep::service_histogram)),
            checks: checks(steps.iter().copied()),
            ..Self::default()
        }
    }
}

/// Evaluations of the checks of steps.
fn checks<'s>(steps: impl Iterator<Item = &'s RunStep>) -> CheckCounts {
    steps.flat_map(|step| &step.checks).fold(CheckCounts::default(), |sum, check| CheckCounts {
        passed: sum.passed + check.passed,
        failed: sum.failed + check.failed,
    })
}
