//! Verdicts: better, worse, the same, or inconclusive with the reason.

use std::collections::BTreeMap;
use std::fmt;

use super::effect::EffectEstimate;
use super::metric::{Better, ComparisonScale, Metric};
use super::sample::MetricSample;
use weir_base::rng::SeededRng;

/// Minimum number of runs per side for a verdict: two differences have hardly a variance.
pub const MIN_RUNS: usize = 3;
/// Maximum number of runs that a verdict proposes.
const MAX_PROPOSED_RUNS: f64 = 1000.0;

/// Parameters of verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Smallest effect that matters, as a fraction: a ratio within 1 +- this is the same.
    pub min_effect: f64,
    /// Smallest effect for metrics that are compared as differences of fractions.
    pub min_effect_points: f64,
    /// Confidence level of all verdicts together, in (0, 1).
    pub confidence: f64,
    /// Number of bootstrap resamples N; the smallest p-value is 1 / (N + 1).
    pub resamples: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_effect: 0.03, min_effect_points: 0.01, confidence: 0.95, resamples: 9_999, seed: 0 }
    }
}

/// Metric of two variants to be compared.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Metric to compare.
    pub metric: &'a Metric,
    /// Figures of the baseline.
    pub base: &'a MetricSample,
    /// Figures of the other variant, the subject of the verdict.
    pub other: &'a MetricSample,
}

/// Finding about the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Significantly better, and by at least the smallest effect that matters.
    Better,
    /// Significantly worse, and by at least the smallest effect that matters.
    Worse,
    /// Difference significantly smaller than the smallest effect that matters.
    Same,
    /// Neither; shown as `inconclusive`.
    Unclear(UnclearReason),
}

/// Reason why a verdict is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnclearReason {
    /// A side has no figures of the metric.
    NoFigures,
    /// A single run on a side: the variation between runs is unknown.
    OneRun,
    /// Too few repeats for any verdict.
    TooFew,
    /// Too few repeats for the variation between runs; with an estimate of the number per side that would do, up to
    /// `MAX_PROPOSED_RUNS`.
    TooNoisy(Option<u64>),
    /// Runs on the side that would win, or be the same, are not trusted.
    Untrusted,
    /// More of the requests fail on the side that would win.
    Failures,
    /// More of the requests or checks of a step fail on the side that would win.
    StepFailures,
}

/// Interval in which an effect lies with the confidence of the verdicts; an end may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Verdict on a metric of the other side.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonVerdict {
    /// Finding about the other side.
    pub finding: Finding,
    /// Figure of the baseline: the mean over its runs, of ratios the geometric one.
    pub base: Option<f64>,
    /// Figure of the other side.
    pub other: Option<f64>,
    /// Other divided by base; for points, the difference. With rounds, over the rounds that both sides have.
    pub effect: Option<f64>,
    /// Confidence interval of the effect, for this pair alone.
    pub interval: Option<ConfidenceInterval>,
    /// Probability of such a difference without a real one; two-sided, corrected by Holm's method.
    pub p: Option<f64>,
    /// Confidence of the finding, in [0, 1]: 1 minus the probability of a false one. None if inconclusive.
    pub confidence: Option<f64>,
    /// Number of runs of the baseline that were used.
    pub base_runs: usize,
    /// Number of runs of the other side that were used.
    pub other_runs: usize,
    /// Whether runs were compared with those of the same round.
    pub by_round: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear(_) => "inconclusive",
        })
    }
}

impl fmt::Display for UnclearReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFigures => f.write_str("no figures on one side"),
            Self::OneRun => f.write_str("one run"),
            Self::TooFew => write!(f, "too few runs: at least {MIN_RUNS} per side"),
            Self::TooNoisy(Some(runs)) => write!(f, "about {runs} runs per side would tell"),
            Self::TooNoisy(None) => f.write_str("the change is about the smallest one that matters"),
            Self::Failures => f.write_str("more of its requests fail"),
            Self::StepFailures => f.write_str("more of the requests or checks of a step fail"),
            Self::Untrusted => f.write_str("too many of its runs are not trusted"),
        }
    }
}

/// Probabilities of false findings about a pair, corrected by Holm's method; `None` with too few runs.
#[derive(Clone, Copy, Debug)]
struct PValues {
    /// That there is no difference.
    difference: Option<f64>,
    /// That the difference is larger than the smallest one that matters.
    equivalence: Option<f64>,
}

/// Verdicts on all pairs together. The more pairs, the stronger the evidence for each has to be (Holm: "A simple
/// sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 1979), so that many comparisons
/// of equals hardly ever have a false positive.
pub fn judge(pairs: &[Pair<'_>], settings: &Settings) -> Vec<ComparisonVerdict> {
    let shifts: Vec<Option<EffectEstimate>> = pairs
        .iter()
        .zip(0..)
        .map(|(pair, salt)| pair.shift(settings.resamples, SeededRng::new(settings.seed, salt)))
        .collect();
    let edges = pairs.iter().map(|pair| settings.equivalence_margin(pair.metric.scale));
    let known = shifts.iter().zip(edges);
    let different = holm(known.clone().map(|(shift, _)| shift.as_ref().map(|shift| shift.p_value(0.0))));
    let alike = holm(known.map(|(shift, edge)| shift.as_ref().map(|shift| shift.p_value_outside(edge))));
    let tests = different.into_iter().zip(alike).map(|(difference, equivalence)| PValues { difference, equivalence });
    pairs.iter().zip(shifts).zip(tests).map(|((pair, shift), tests)| pair.verdict(shift, tests, settings)).collect()
}

impl ComparisonVerdict {
    /// Makes a win of a side with more failed requests inconclusive: whether the difference in errors (`failures`) is
    /// significant, or only as large as matters.
    #[must_use]
    pub fn unless_it_fails_more(self, failures: &Self, settings: &Settings) -> Self {
        self.unless(failures, UnclearReason::Failures, settings)
    }

    /// As [`unless_it_fails_more`](Self::unless_it_fails_more), for failures of a step.
    #[must_use]
    pub fn unless_a_step_fails_more(self, failures: &Self, settings: &Settings) -> Self {
        self.unless(failures, UnclearReason::StepFailures, settings)
    }

    fn unless(self, failures: &Self, why: UnclearReason, settings: &Settings) -> Self {
        let more = failures.effect.unwrap_or(0.0);
        let looks_so =
            |more: f64| matches!(failures.finding, Finding::Unclear(_)) && more >= settings.min_effect_points;
        let other_fails_more = failures.finding == Finding::Worse || looks_so(more);
        let base_fails_more = failures.finding == Finding::Better || looks_so(-more);
        match self.finding {
            Finding::Better if other_fails_more => self.unclear(why),
            Finding::Worse if base_fails_more => self.unclear(why),
            _ => self,
        }
    }

    fn unclear(self, why: UnclearReason) -> Self {
        Self { finding: Finding::Unclear(why), confidence: None, ..self }
    }
}

impl Settings {
    /// Smallest effect that matters, on the linear scale.
    fn equivalence_margin(&self, scale: ComparisonScale) -> f64 {
        match scale {
            ComparisonScale::Ratio => self.min_effect.ln_1p(),
            ComparisonScale::Points => self.min_effect_points,
        }
    }
}

impl Pair<'_> {
    fn is_by_round(&self) -> bool {
        self.base.in_rounds && self.other.in_rounds
    }

    /// The figures to compare: by round only those of rounds that both sides have.
    fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        let (base, other) = (self.base.linear_values(self.metric.scale), self.other.linear_values(self.metric.scale));
        if self.is_by_round() {
            let rounds: BTreeMap<u64, f64> = base.into_iter().collect();
            return other.into_iter().filter_map(|(round, value)| Some((*rounds.get(&round)?, value))).unzip();
        }
        let values = |side: Vec<(u64, f64)>| side.into_iter().map(|(_, value)| value).collect();
        (values(base), values(other))
    }

    fn shift(&self, resamples: usize, rng: SeededRng) -> Option<EffectEstimate> {
        let (base, other) = self.sides();
        if base.len().min(other.len()) < MIN_RUNS {
            return None;
        }
        Some(if self.is_by_round() {
            let differences: Vec<f64> = base.iter().zip(&other).map(|(base, other)| other - base).collect();
            EffectEstimate::paired(&differences, resamples, rng)
        } else {
            EffectEstimate::unpaired(&base, &other, resamples, rng)
        })
    }

    fn verdict(&self, shift: Option<EffectEstimate>, tests: PValues, settings: &Settings) -> ComparisonVerdict {
        let scale = self.metric.scale;
        let (base, other) = self.sides();
        let mean = |side: &[f64]| (!side.is_empty()).then(|| side.iter().sum::<f64>() / side.len() as f64);
        let (base_mean, other_mean) = (mean(&base), mean(&other));
        let crude = base_mean.zip(other_mean).map(|(base, other)| other - base);
        let mut verdict = ComparisonVerdict {
            finding: Finding::Unclear(match base.len().min(other.len()) {
                0 => UnclearReason::NoFigures,
                1 => UnclearReason::OneRun,
                _ => UnclearReason::TooFew,
            }),
            base: base_mean.map(|mean| scale.effect(mean)),
            other: other_mean.map(|mean| scale.effect(mean)),
            effect: crude.map(|shift| scale.effect(shift)),
            interval: None,
            p: tests.difference,
            confidence: None,
            base_runs: base.len(),
            other_runs: other.len(),
            by_round: self.is_by_round(),
        };
        let Some(shift) = shift else { return verdict };
        let half = shift.half_width(settings.confidence);
        verdict.effect = Some(scale.effect(shift.difference));
        let end = |shift: f64| scale.effect(shift);
        verdict.interval =
            Some(ConfidenceInterval { low: end(shift.difference - half), high: end(shift.difference + half) });
        let fewest = base.len().min(other.len());
        verdict.finding = self.finding(&shift, half, tests, fewest, settings);
        verdict.confidence = match verdict.finding {
            Finding::Better | Finding::Worse => tests.difference.map(|p| 1.0 - p),
            Finding::Same => tests.equivalence.map(|p| 1.0 - p),
            Finding::Unclear(_) => None,
        };
        verdict
    }

    fn finding(&self, shift: &EffectEstimate, half: f64, tests: PValues, runs: usize, settings: &Settings) -> Finding {
        let (edge, risk) = (settings.equivalence_margin(self.metric.scale), 1.0 - settings.confidence);
        let sure = |p: Option<f64>| p.is_some_and(|p| p <= risk);
        let finding = if sure(tests.difference) && shift.difference.abs() >= edge {
            if (shift.difference > 0.0) == (self.metric.better == Better::Higher) {
                Finding::Better
            } else {
                Finding::Worse
            }
        } else if sure(tests.equivalence) {
            Finding::Same
        } else {
            Finding::Unclear(UnclearReason::TooNoisy(proposed_runs(shift.difference.abs(), half, edge, runs)))
        };
        // An untrusted side neither wins nor draws.
        let (base, other) = (self.base.is_doubtful(), self.other.is_doubtful());
        match finding {
            Finding::Better if other => Finding::Unclear(UnclearReason::Untrusted),
            Finding::Worse if base => Finding::Unclear(UnclearReason::Untrusted),
            Finding::Same if base || other => Finding::Unclear(UnclearReason::Untrusted),
            finding => finding,
        }
    }
}

/// Estimated number of runs per side for a verdict, at the same variance: the interval has to shrink until it excludes
/// either 0 or the edge.
fn proposed_runs(at: f64, half: f64, edge: f64, runs: usize) -> Option<u64> {
    let room = if at >= edge { at } else { edge - at };
    let wanted = (runs as f64 * (half / room).powi(2)).ceil();
    (wanted <= MAX_PROPOSED_RUNS).then(|| (wanted as u64).max(runs as u64 + 1))
}

/// Holm's correction: the smallest p-value is multiplied by the number of tests, the next by one less, ...
fn holm(tests: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let mut tests: Vec<Option<f64>> = tests.collect();
    let mut order: Vec<usize> = (0..tests.len()).filter(|i| tests[*i].is_some()).collect();
    let p = |tests: &[Option<f64>], i: usize| tests[i].unwrap_or(1.0);
    order.sort_by(|a, b| p(&tests, *a).total_cmp(&p(&tests, *b)));
    let mut least = 0.0_f64;
    for (rank, i) in order.iter().enumerate() {
        least = least.max((p(&tests, *i) * (order.len() - rank) as f64).min(1.0));
        tests[*i] = Some(least);
    }
    tests
}
