//! Steps of scenarios in a comparison, matched by their names.

use serde::Serialize;

use super::metric_selector::MetricSelector;
use super::side::Side;
use super::{MetricVerdict, letter};
use weir_measure::compare::{
    Better, ComparisonScale, ComparisonVerdict, Finding, Metric, MetricSample, Pair, Settings, judge,
};
use weir_measure::run_steps::RunStep;
use weir_measure::slo::TimeKind;

/// Step of a side and of the baseline, or of one of them.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedStep {
    /// Name of the step, as in the runs.
    pub name: String,
    /// Letter of the only side that has the step; `None` if both have it.
    pub only: Option<String>,
    /// Verdicts, one per metric; empty if only one side has the step.
    pub verdicts: Vec<MetricVerdict>,
}

/// Metric by which a step of two runs is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StepMetric {
    /// Response time of successes, as of the whole run.
    Time(MetricSelector),
    /// Requests that failed or were never sent, as a fraction of all.
    Errors,
    /// Evaluations of checks that hold, as a fraction of all.
    Checks,
}

impl ComparedStep {
    /// Steps of each side but the first, compared with the first. The rows of all steps are judged together, and apart
    /// from those of whole runs: more steps do not weaken the verdicts on the whole.
    pub(super) fn of_sides(
        sides: &[Side],
        selectors: &[MetricSelector],
        rounds: Option<&[Vec<u64>]>,
        settings: &Settings,
    ) -> Vec<Vec<Self>> {
        let is_time = |selector: &&MetricSelector| matches!(selector, MetricSelector::Time(TimeKind::Response, _));
        let times = selectors.iter().filter(is_time).map(|selector| StepMetric::Time(*selector));
        let metrics: Vec<StepMetric> = times.chain([StepMetric::Errors, StepMetric::Checks]).collect();
        let Some((base, others)) = sides.split_first() else { return Vec::new() };
        let base_names = base.step_names();
        let names: Vec<Vec<(&str, Option<usize>)>> = others
            .iter()
            .zip(1..)
            .map(|(other, index)| {
                let other_names = other.step_names();
                let of_base = |name: &&'_ str| if other_names.contains(name) { None } else { Some(0) };
                let shared = base_names.iter().map(|name| (*name, of_base(name)));
                let only =
                    other_names.iter().filter(|name| !base_names.contains(name)).map(|name| (*name, Some(index)));
                shared.chain(only).collect()
            })
            .collect();
        let sample = |side: usize, name: &str, metric: StepMetric| {
            let value = |step: &RunStep| metric.value(step);
            sides[side].step_sample(name, rounds.map(|rounds| &rounds[side][..]), metric.quantile(), value)
        };
        let both = names.iter().zip(1..).flat_map(|(names, other)| {
            names.iter().filter(|(_, only)| only.is_none()).map(move |(name, _)| (*name, other))
        });
        let cells: Vec<(Metric, MetricSample, MetricSample)> = both
            .flat_map(|(name, other)| metrics.iter().map(move |metric| (name, other, *metric)))
            .map(|(name, other, metric)| (metric.metric(), sample(0, name, metric), sample(other, name, metric)))
            .collect();
        let pairs: Vec<Pair<'_>> = cells.iter().map(|(metric, base, other)| Pair { metric, base, other }).collect();
        let mut judged = judge(&pairs, settings).into_iter().zip(cells.iter().map(|(metric, ..)| metric));
        let mut step = |(name, only): (&str, Option<usize>)| {
            let rows = if only.is_none() { metrics.len() } else { 0 };
            let verdicts: Vec<(ComparisonVerdict, &Metric)> = judged.by_ref().take(rows).collect();
            Self { name: name.to_owned(), only: only.map(letter), verdicts: gated(verdicts, settings) }
        };
        names.into_iter().map(|names| names.into_iter().map(&mut step).collect()).collect()
    }

    /// Verdicts on failed requests and on checks that do not hold: what grows if the other side is worse.
    pub(super) fn failures(&self) -> impl Iterator<Item = ComparisonVerdict> {
        let is_failure = |judged: &&MetricVerdict| judged.metric.scale == ComparisonScale::Points;
        self.verdicts.iter().filter(is_failure).map(|judged| growth(&judged.verdict, &judged.metric))
    }

    /// Makes wins on times inconclusive, if more requests fail on the side that would win.
    pub(super) fn unless_it_fails_more(&mut self, failures: &ComparisonVerdict, settings: &Settings) {
        for judged in self.verdicts.iter_mut().filter(|judged| judged.metric.scale == ComparisonScale::Ratio) {
            let verdict = judged.verdict.clone().unless_it_fails_more(failures, settings);
            *judged = MetricVerdict::new(&judged.metric, verdict);
        }
    }

    /// Verdicts that a reader looks for: without those on failures and checks where nothing fails.
    pub fn shown(&self) -> impl Iterator<Item = &MetricVerdict> {
        self.verdicts.iter().filter(|judged| {
            let perfect = match (judged.metric.scale, judged.metric.better) {
                (ComparisonScale::Ratio, _) => return true,
                (ComparisonScale::Points, Better::Lower) => 0.0,
                (ComparisonScale::Points, Better::Higher) => 1.0,
            };
            [judged.base, judged.other].into_iter().flatten().any(|value| value != perfect)
        })
    }

    /// Whether the step has a row: a verdict is shown, or one side alone has the step.
    pub fn is_shown(&self) -> bool {
        self.only.is_some() || self.shown().next().is_some()
    }

    /// Names of the findings of a kind, `buy p99`, with their verdicts.
    pub(super) fn named(&self, wanted: Finding) -> impl Iterator<Item = (String, &MetricVerdict)> {
        let found = self.verdicts.iter().filter(move |judged| judged.verdict.finding == wanted);
        found.map(|judged| (format!("{} {}", self.name, judged.metric.name), judged))
    }
}

/// Verdicts of a step: times do not win where more of its requests fail.
fn gated(verdicts: Vec<(ComparisonVerdict, &Metric)>, settings: &Settings) -> Vec<MetricVerdict> {
    let is_failure = |metric: &Metric| metric.scale == ComparisonScale::Points;
    let failures: Vec<ComparisonVerdict> = verdicts
        .iter()
        .filter(|(_, metric)| is_failure(metric))
        .map(|(verdict, metric)| growth(verdict, metric))
        .collect();
    let gated = |verdict: ComparisonVerdict, metric: &Metric| match is_failure(metric) {
        true => verdict,
        false => failures.iter().fold(verdict, |verdict, failure| verdict.unless_it_fails_more(failure, settings)),
    };
    verdicts.into_iter().map(|(verdict, metric)| MetricVerdict::new(metric, gated(verdict, metric))).collect()
}

/// Verdict with an effect that is above 0 if the other side is worse.
fn growth(verdict: &ComparisonVerdict, metric: &Metric) -> ComparisonVerdict {
    let sign = if metric.better == Better::Higher { -1.0 } else { 1.0 };
    ComparisonVerdict { effect: verdict.effect.map(|effect| sign * effect), ..verdict.clone() }
}

impl StepMetric {
    /// Quantile that it is, in [0, 1].
    fn quantile(self) -> Option<f64> {
        match self {
            Self::Time(selector) => selector.quantile(),
            Self::Errors | Self::Checks => None,
        }
    }

    fn metric(self) -> Metric {
        match self {
            Self::Time(selector) => selector.metric(),
            Self::Errors => MetricSelector::Errors.metric(),
            Self::Checks => Metric::fraction("checks", Better::Higher),
        }
    }

    fn value(self, step: &RunStep) -> Option<f64> {
        match self {
            Self::Time(selector) => selector.step_value(step),
            Self::Errors => {
                let all = step.requests + step.unsent;
                (all > 0).then(|| (step.failed + step.unsent) as f64 / all as f64)
            }
            Self::Checks => {
                let (passed, failed) = step
                    .checks
                    .iter()
                    .fold((0, 0), |(passed, failed), check| (passed + check.passed, failed + check.failed));
                (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64)
            }
        }
    }
}
