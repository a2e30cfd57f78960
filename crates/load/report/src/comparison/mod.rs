//! Comparison of sides of runs, as text, Markdown, HTML and JSON.
//!
//! - [`side`]: side: runs of the same thing, by any tool; [`metric_selector`]: what of them is compared
//! - [`comparability`]: comparability: same machine, plan and tool
//! - [`pairing`]: pairing of runs that were made in turns
//! - [`steps`]: steps of scenarios
//! - [`text`], [`markdown`], [`page`](mod@page): reports; `words`: text of a figure, an effect and a finding
//! - [`RunComparison`]: the result as data (`docs/schema/compare.schema.json`)

pub mod markdown;
pub mod metric_selector;
pub mod page;
pub mod side;
pub mod steps;
pub mod text;

use serde::Serialize;

pub use self::metric_selector::{MetricSelector, TimeStatistic};
pub use self::side::{SavedRun, Side};
pub use self::steps::ComparedStep;
use weir_measure::compare::{ComparisonVerdict, Finding, Metric, MetricSample, Pair, Settings, judge};

/// Version of the JSON format; grows when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 2;

/// Comparison of all sides with the first. Fractions are in [0, 1].
#[derive(Clone, Debug, Serialize)]
pub struct RunComparison {
    /// Version of weir that wrote it.
    pub weir: String,
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// Smallest effect that matters, as a fraction: a ratio within 1 +- this is the same.
    pub min_effect: f64,
    /// Smallest effect for metrics that are compared as differences of fractions.
    pub min_effect_points: f64,
    /// Confidence level of all verdicts together.
    pub confidence: f64,
    /// Sides of the comparison; the first is the baseline.
    pub sides: Vec<ComparedSide>,
    /// Notes on the verdicts, a sentence each.
    pub notes: Vec<String>,
    /// Each other side against the baseline.
    pub pairs: Vec<ComparedPair>,
}

/// Runs of the same thing.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedSide {
    /// Name in the pairs; A is the baseline.
    pub letter: String,
    /// Path that was given.
    pub name: String,
    /// Runs of the side.
    pub runs: Vec<ComparedRun>,
    /// Whether more than one run in five is not trusted: then the side neither wins nor draws.
    pub untrusted: bool,
}

/// Run of a side.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRun {
    /// File of the run.
    pub file: String,
    /// Tool that wrote it.
    pub tool: String,
    /// Reasons not to trust it, a sentence each.
    pub warnings: Vec<String>,
    /// Number of its successes, if the only reason is that they are few.
    #[serde(skip)]
    pub few_successes: Option<u64>,
}

/// Side against the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedPair {
    /// Letter of the baseline.
    pub base: String,
    /// Letter of the other side.
    pub other: String,
    /// Finding over all metrics, of steps too.
    pub finding: OverallFinding,
    /// Whether runs were compared with those of the same round.
    pub by_round: bool,
    /// Verdicts, one per metric.
    pub verdicts: Vec<MetricVerdict>,
    /// Steps of scenarios, in order; empty without scenarios.
    pub steps: Vec<ComparedStep>,
}

/// Finding over all metrics of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverallFinding {
    /// Better in some metric and worse in none.
    Better,
    /// Worse in some metric and better in none.
    Worse,
    /// Better in some and worse in others.
    Mixed,
    /// The same in all of them; of steps, better or worse in none.
    Same,
    /// Neither better, worse, mixed nor the same with confidence.
    Inconclusive,
}

/// Verdict on a metric of the other side.
#[derive(Clone, Debug, Serialize)]
pub struct MetricVerdict {
    /// Metric that was compared.
    #[serde(flatten)]
    pub metric: Metric,
    /// Finding about the other side: `better`, `worse`, `same` or `inconclusive`.
    pub finding: String,
    /// Reason why it is inconclusive.
    pub reason: Option<String>,
    /// Figure of the baseline: the mean over its runs, of ratios the geometric one.
    pub base: Option<f64>,
    /// Figure of the other side.
    pub other: Option<f64>,
    /// Other divided by base; for points, the difference.
    pub effect: Option<f64>,
    /// Lower end of the confidence interval of the effect, for this verdict alone.
    pub ci_low: Option<f64>,
    /// Upper end of the confidence interval.
    pub ci_high: Option<f64>,
    /// Probability of such a difference without a real one, corrected by Holm's method for all verdicts.
    pub p_value: Option<f64>,
    /// Confidence of the finding, in [0, 1].
    pub confidence: Option<f64>,
    /// Number of runs of the baseline that were used.
    pub base_runs: usize,
    /// Number of runs of the other side that were used.
    pub other_runs: usize,
    /// Verdict behind it, for the other formats.
    #[serde(skip)]
    pub verdict: ComparisonVerdict,
}

impl RunComparison {
    /// Compares all sides with the first, in these metrics.
    pub fn new(sides: &[Side], selectors: &[MetricSelector], settings: &Settings, mut notes: Vec<String>) -> Self {
        let rounds = pairing::match_rounds(sides);
        if rounds.is_none() && sides.iter().all(|side| side.runs.len() > 1) {
            notes.push(pairing::advice(sides).into());
        }
        let metrics: Vec<Metric> = selectors.iter().map(MetricSelector::metric).collect();
        let sample = |side: usize, selector: &MetricSelector| {
            sides[side].sample(selector, rounds.as_ref().map(|rounds| &rounds[side][..]))
        };
        let samples: Vec<Vec<MetricSample>> =
            (0..sides.len()).map(|side| selectors.iter().map(|selector| sample(side, selector)).collect()).collect();
        let Some((base, others)) = samples.split_first() else { return Self::of(sides, settings, notes, Vec::new()) };
        let pair = |other: &Vec<MetricSample>, i: usize| (base[i].clone(), other[i].clone());
        let cells: Vec<(usize, MetricSample, MetricSample)> = others
            .iter()
            .flat_map(|other| (0..metrics.len()).map(move |i| (i, pair(other, i))))
            .map(|(i, (base, other))| (i, base, other))
            .collect();
        let pairs: Vec<Pair<'_>> =
            cells.iter().map(|(i, base, other)| Pair { metric: &metrics[*i], base, other }).collect();
        let failures = failures(sides, rounds.as_deref(), settings);
        let mut steps = ComparedStep::of_sides(sides, selectors, rounds.as_deref(), settings);
        for (steps, failures) in steps.iter_mut().zip(&failures) {
            steps.iter_mut().for_each(|step| step.unless_it_fails_more(failures, settings));
        }
        let step_failures: Vec<Vec<ComparisonVerdict>> =
            steps.iter().map(|steps| steps.iter().flat_map(ComparedStep::failures).collect()).collect();
        let beside = |(at, verdict): (usize, ComparisonVerdict)| match selectors[at % metrics.len()] {
            MetricSelector::Errors => verdict,
            _ => {
                let other = at / metrics.len();
                let verdict = verdict.unless_it_fails_more(&failures[other], settings);
                step_failures[other]
                    .iter()
                    .fold(verdict, |verdict, step| verdict.unless_a_step_fails_more(step, settings))
            }
        };
        let verdicts = judge(&pairs, settings).into_iter().enumerate().map(beside);
        let judged: Vec<MetricVerdict> =
            verdicts.zip(&cells).map(|(verdict, (i, ..))| MetricVerdict::new(&metrics[*i], verdict)).collect();
        let compared =
            judged.chunks(metrics.len().max(1)).zip(steps).zip(1..).map(|((verdicts, steps), other)| ComparedPair {
                base: letter(0),
                other: letter(other),
                finding: OverallFinding::of(verdicts, &steps),
                by_round: verdicts.iter().any(|judged| judged.verdict.by_round),
                verdicts: verdicts.to_vec(),
                steps,
            });
        let compared = compared.collect();
        Self::of(sides, settings, notes, compared)
    }

    fn of(sides: &[Side], settings: &Settings, notes: Vec<String>, pairs: Vec<ComparedPair>) -> Self {
        let shown = |(i, side): (usize, &Side)| ComparedSide {
            letter: letter(i),
            name: side.name.clone(),
            runs: side.runs.iter().map(ComparedRun::of).collect(),
            untrusted: side.is_doubtful(),
        };
        Self {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            min_effect: settings.min_effect,
            min_effect_points: settings.min_effect_points,
            confidence: settings.confidence,
            sides: sides.iter().enumerate().map(shown).collect(),
            notes,
            pairs,
        }
    }

    /// Whether a side is worse than the baseline in a metric.
    pub fn has_worse(&self) -> bool {
        self.pairs.iter().any(|pair| matches!(pair.finding, OverallFinding::Worse | OverallFinding::Mixed))
    }

    /// Whether it is not known that a side is not worse.
    pub fn has_inconclusive(&self) -> bool {
        self.pairs.iter().any(|pair| pair.finding == OverallFinding::Inconclusive)
    }

    /// Whether a run is not trusted.
    pub fn has_untrusted_runs(&self) -> bool {
        self.sides.iter().any(|side| side.runs.iter().any(|run| !run.warnings.is_empty()))
    }

    /// Comparison as indented JSON with a final newline.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a comparison serialises") + "\n"
    }
}

/// Verdict on errors for each side but the first. Judged apart, so that it takes no part in the correction of the
/// others.
fn failures(sides: &[Side], rounds: Option<&[Vec<u64>]>, settings: &Settings) -> Vec<ComparisonVerdict> {
    let metric = MetricSelector::Errors.metric();
    let sample =
        |(at, side): (usize, &Side)| side.sample(&MetricSelector::Errors, rounds.map(|rounds| &rounds[at][..]));
    let samples: Vec<MetricSample> = sides.iter().enumerate().map(sample).collect();
    let Some((base, others)) = samples.split_first() else { return Vec::new() };
    let pairs: Vec<Pair<'_>> = others.iter().map(|other| Pair { metric: &metric, base, other }).collect();
    judge(&pairs, settings)
}

impl ComparedRun {
    fn of(saved: &SavedRun) -> Self {
        Self {
            file: saved.file.clone(),
            tool: saved.result.tool.name().into(),
            warnings: saved.result.doubts.clone(),
            few_successes: saved.result.run.as_ref().and_then(|run| run.only_few_successes()),
        }
    }
}

impl MetricVerdict {
    fn new(metric: &Metric, verdict: ComparisonVerdict) -> Self {
        let reason = match verdict.finding {
            Finding::Unclear(why) => Some(why.to_string()),
            _ => None,
        };
        Self {
            metric: metric.clone(),
            finding: verdict.finding.to_string(),
            reason,
            base: verdict.base,
            other: verdict.other,
            effect: verdict.effect,
            ci_low: verdict.interval.map(|of| of.low),
            ci_high: verdict.interval.map(|of| of.high),
            p_value: verdict.p,
            confidence: verdict.confidence,
            base_runs: verdict.base_runs,
            other_runs: verdict.other_runs,
            verdict,
        }
    }
}

impl OverallFinding {
    fn of(verdicts: &[MetricVerdict], steps: &[ComparedStep]) -> Self {
        let of_steps = || steps.iter().flat_map(|step| &step.verdicts);
        let any = |finding| verdicts.iter().chain(of_steps()).any(|judged| judged.verdict.finding == finding);
        match (any(Finding::Better), any(Finding::Worse)) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Better,
            (false, true) => Self::Worse,
            (false, false) if verdicts.iter().all(|judged| judged.verdict.finding == Finding::Same) => Self::Same,
            (false, false) => Self::Inconclusive,
        }
    }
}

/// Letter of a side: A, B, ..., Z, then numbers.
fn letter(index: usize) -> String {
    let letter = u8::try_from(index).ok().filter(|i| *i < 26).map(|i| char::from(b'A' + i));
    letter.map_or_else(|| (index + 1).to_string(), String::from)
}

mod advice;
pub mod comparability;
mod doubts;
pub mod pairing;
pub mod phrases;
mod step_table;
#[cfg(test)]
mod tests;
