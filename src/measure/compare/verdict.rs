//! Better, worse, the same, or unclear and why.

use std::collections::BTreeMap;
use std::fmt;

use super::metric::{Better, ComparisonScale, Metric};
use super::sample::MetricSample;
use super::shift::EffectEstimate;
use crate::decide::dice::Dice;

/// Runs a side below which nothing is concluded: two differences have no spread to speak of.
const MIN_RUNS: usize = 3;
/// More runs than this are not proposed to anybody.
const MAX_PROPOSED_RUNS: f64 = 1000.0;

/// What a verdict rests on, beside the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The least effect that matters, as a share: a ratio within 1 +- this is "the same".
    pub min_effect: f64,
    /// The same for metrics that are compared as differences of shares.
    pub min_effect_points: f64,
    /// How sure a verdict has to be, over all pairs that are judged together; in (0, 1).
    pub confidence: f64,
    /// How often runs are drawn anew; the least p-value is 1 in so many.
    pub resamples: usize,
    /// Repeats the resampling.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_effect: 0.03, min_effect_points: 0.01, confidence: 0.95, resamples: 9_999, seed: 0 }
    }
}

/// Two variants of which one is held against the other.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// What is compared.
    pub metric: &'a Metric,
    /// What it is held against.
    pub base: &'a MetricSample,
    /// What the verdict is about.
    pub other: &'a MetricSample,
}

/// What was found about the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is better by what matters, for sure.
    Better,
    /// It is worse by what matters, for sure.
    Worse,
    /// It differs by less than what matters, for sure.
    Same,
    /// None of these can be told.
    Unclear(UnclearReason),
}

/// Why nothing can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnclearReason {
    /// A side has no figures for it.
    NoFigures,
    /// One run on a side: how much runs differ by themselves is not known.
    OneRun,
    /// Too few repeats for any verdict.
    TooFew,
    /// Not enough repeats for how much runs differ by themselves; about so many a side would do, if that is a number that
    /// anybody would make.
    TooNoisy(Option<u64>),
    /// Runs on the side that would win, or be the same, are not to be trusted.
    Untrusted,
    /// More of the requests fail on the side that would win.
    Failures,
}

/// What is found about one side held against another.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonVerdict {
    /// The finding, on the other side.
    pub finding: Finding,
    /// The mean of the figures of the base (of a ratio, the geometric one), if there are any; ...
    pub base: Option<f64>,
    /// ... and of the other side.
    pub other: Option<f64>,
    /// The other as a multiple of the base; for metrics compared in points, the difference. Of the rounds that
    /// both sides have, where there are rounds.
    pub effect: Option<f64>,
    /// The interval that holds the true effect with the confidence that was asked for, for this pair alone.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference this large would be if there were none; two-sided, after Holm's correction.
    pub p: Option<f64>,
    /// How sure the finding is, in [0, 1]: 1 less the chance of finding it where it is not. None for what is unclear.
    pub confidence: Option<f64>,
    /// Runs on both sides that were used.
    pub runs: (usize, usize),
    /// Whether runs were compared with those of the same round.
    pub by_round: bool,
    /// Which sides have too many runs that are not to be trusted.
    pub doubtful: (bool, bool),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear(_) => "unclear",
        })
    }
}

impl fmt::Display for UnclearReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFigures => f.write_str("no figures on one side"),
            Self::OneRun => f.write_str("one run cannot tell"),
            Self::TooFew => write!(f, "not enough repeats to tell: {MIN_RUNS} a side at least"),
            Self::TooNoisy(Some(runs)) => write!(f, "not enough repeats to tell: about {runs} a side would"),
            Self::TooNoisy(None) => {
                f.write_str("not enough repeats to tell: the effect is at the edge of what matters")
            }
            Self::Failures => f.write_str("more of its requests fail, so it is not called better"),
            Self::Untrusted => f.write_str("not to be trusted: too many of its runs are not"),
        }
    }
}

/// Judges all pairs together: the more of them, the stronger each has to be (Holm: "A simple sequentially rejective
/// multiple test procedure", Scandinavian Journal of Statistics 1979), so that of many comparisons of equals hardly ever
/// one comes out as a difference.
pub fn judge(pairs: &[Pair<'_>], settings: &Settings) -> Vec<ComparisonVerdict> {
    let shifts: Vec<Option<EffectEstimate>> = pairs
        .iter()
        .zip(0..)
        .map(|(pair, salt)| pair.shift(settings.resamples, Dice::new(settings.seed, salt)))
        .collect();
    let edges = pairs.iter().map(|pair| settings.equivalence_margin(pair.metric.scale));
    let known = shifts.iter().zip(edges);
    let different = holm(known.clone().map(|(shift, _)| shift.as_ref().map(|shift| shift.p_value(0.0))));
    let alike = holm(known.map(|(shift, edge)| shift.as_ref().map(|shift| shift.p_value_outside(edge))));
    let tests = different.into_iter().zip(alike);
    pairs.iter().zip(shifts).zip(tests).map(|((pair, shift), tests)| pair.verdict(shift, tests, settings)).collect()
}

impl ComparisonVerdict {
    /// Takes a win back that failures may have paid for; `failures` is the verdict on the same sides' share of failed requests.
    /// Who fails more does not win: neither for sure, nor where it only looks so by as much as matters.
    #[must_use]
    pub fn unless_it_fails_more(self, failures: &Self, settings: &Settings) -> Self {
        let more = failures.effect.unwrap_or(0.0);
        let looks_so =
            |more: f64| matches!(failures.finding, Finding::Unclear(_)) && more >= settings.min_effect_points;
        let other_fails_more = failures.finding == Finding::Worse || looks_so(more);
        let base_fails_more = failures.finding == Finding::Better || looks_so(-more);
        match self.finding {
            Finding::Better if other_fails_more => self.unclear(UnclearReason::Failures),
            Finding::Worse if base_fails_more => self.unclear(UnclearReason::Failures),
            _ => self,
        }
    }

    fn unclear(self, why: UnclearReason) -> Self {
        Self { finding: Finding::Unclear(why), confidence: None, ..self }
    }
}

impl Settings {
    /// The least effect that matters, on the flat scale.
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

    fn shift(&self, resamples: usize, dice: Dice) -> Option<EffectEstimate> {
        let (base, other) = self.sides();
        if base.len().min(other.len()) < MIN_RUNS {
            return None;
        }
        Some(if self.is_by_round() {
            let differences: Vec<f64> = base.iter().zip(&other).map(|(base, other)| other - base).collect();
            EffectEstimate::paired(&differences, resamples, dice)
        } else {
            EffectEstimate::unpaired(&base, &other, resamples, dice)
        })
    }

    fn verdict(
        &self,
        shift: Option<EffectEstimate>,
        tests: (Option<f64>, Option<f64>),
        settings: &Settings,
    ) -> ComparisonVerdict {
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
            p: tests.0,
            confidence: None,
            runs: (base.len(), other.len()),
            by_round: self.is_by_round(),
            doubtful: (self.base.is_doubtful(), self.other.is_doubtful()),
        };
        let Some(shift) = shift else { return verdict };
        let half = shift.half_width(settings.confidence);
        verdict.effect = Some(scale.effect(shift.difference));
        verdict.interval = Some((scale.effect(shift.difference - half), scale.effect(shift.difference + half)));
        let fewest = base.len().min(other.len());
        verdict.finding = self.finding(&shift, half, tests, fewest, settings);
        verdict.confidence = match verdict.finding {
            Finding::Better | Finding::Worse => tests.0.map(|p| 1.0 - p),
            Finding::Same => tests.1.map(|p| 1.0 - p),
            Finding::Unclear(_) => None,
        };
        verdict
    }

    fn finding(
        &self,
        shift: &EffectEstimate,
        half: f64,
        tests: (Option<f64>, Option<f64>),
        runs: usize,
        settings: &Settings,
    ) -> Finding {
        let (edge, risk) = (settings.equivalence_margin(self.metric.scale), 1.0 - settings.confidence);
        let sure = |p: Option<f64>| p.is_some_and(|p| p <= risk);
        let finding = if sure(tests.0) && shift.difference.abs() >= edge {
            if (shift.difference > 0.0) == (self.metric.better == Better::Higher) {
                Finding::Better
            } else {
                Finding::Worse
            }
        } else if sure(tests.1) {
            Finding::Same
        } else {
            Finding::Unclear(UnclearReason::TooNoisy(proposed_runs(shift.difference.abs(), half, edge, runs)))
        };
        // Who is in doubt neither wins nor draws.
        let (base, other) = (self.base.is_doubtful(), self.other.is_doubtful());
        match finding {
            Finding::Better if other => Finding::Unclear(UnclearReason::Untrusted),
            Finding::Worse if base => Finding::Unclear(UnclearReason::Untrusted),
            Finding::Same if base || other => Finding::Unclear(UnclearReason::Untrusted),
            finding => finding,
        }
    }
}

/// How many runs a side would tell, if they came out like these: the interval has to shrink until it is clear either of 0
/// or of the edge.
fn proposed_runs(at: f64, half: f64, edge: f64, runs: usize) -> Option<u64> {
    let room = if at >= edge { at } else { edge - at };
    let wanted = (runs as f64 * (half / room).powi(2)).ceil();
    (wanted <= MAX_PROPOSED_RUNS).then(|| (wanted as u64).max(runs as u64 + 1))
}

/// Holm's correction: the smallest p-value counts as often as there are tests, the next once less, ...
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
