//! Sides of runs held against each other, as text, as Markdown for a pull request, and as plain data.
//!
//! - [`side`]: what is compared: runs, by whichever tool
//! - [`likeness`]: whether they may be compared at all
//! - [`rounds`]: whether they were made in turns
//! - [`text`], [`markdown`], [`page`](mod@page): the verdicts for people; `words`: how both say a figure, an effect, a finding
//! - [`RunComparison`]: the verdicts as data (`docs/compare.schema.json`)

pub mod likeness;
pub mod markdown;
pub mod page;
pub mod rounds;
pub mod side;
pub mod text;
pub mod words;

use serde::Serialize;

pub use self::side::{MetricSelector, SavedRun, Side};
use crate::measure::compare::{ComparisonVerdict, Finding, Metric, MetricSample, Pair, Settings, judge};

/// The version of the object's form; it grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// Sides held against the first of them.
#[derive(Clone, Debug, Serialize)]
pub struct RunComparison {
    /// The version of weir that made it.
    pub weir: String,
    /// The version of this object's form, [`SCHEMA`].
    pub schema: u32,
    /// The least effect that matters, as a share.
    pub minimum: f64,
    /// The same for differences of shares.
    pub minimum_points: f64,
    /// How sure a verdict has to be.
    pub confidence: f64,
    /// What was compared; the first side is the base.
    pub sides: Vec<ComparedSide>,
    /// What a reader should know before the verdicts, a sentence each.
    pub notes: Vec<String>,
    /// Each other side against the base.
    pub pairs: Vec<ComparedPair>,
}

/// A side, as shown.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedSide {
    /// A letter: A is the base.
    pub letter: String,
    /// The path that was given.
    pub name: String,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
    /// Whether more than one run in five is not to be trusted.
    pub doubtful: bool,
}

/// A run, as shown.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRun {
    /// Its file.
    pub file: String,
    /// The tool that made it.
    pub tool: String,
    /// What speaks against it.
    pub doubts: Vec<String>,
}

/// A side against the base.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedPair {
    /// The base's letter.
    pub base: String,
    /// The other's letter.
    pub other: String,
    /// All of it in a word.
    pub finding: OverallFinding,
    /// Whether runs were compared with those of the same round.
    pub by_round: bool,
    /// One per metric.
    pub verdicts: Vec<MetricVerdict>,
}

/// All metrics of a pair in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverallFinding {
    /// Better in some metric and worse in none.
    Better,
    /// Worse in some metric and better in none.
    Worse,
    /// Better in some and worse in others.
    Mixed,
    /// The same in all of them.
    Same,
    /// None of these can be told.
    Unclear,
}

/// A verdict on one metric.
#[derive(Clone, Debug, Serialize)]
pub struct MetricVerdict {
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// `better`, `worse`, `same` or `unclear`.
    pub finding: String,
    /// Why it is unclear.
    #[serde(rename = "why")]
    pub reason: Option<String>,
    /// The base's figure: the (geometric) mean over its runs.
    pub base: Option<f64>,
    /// The other's.
    pub other: Option<f64>,
    /// The other as a multiple of the base, or the difference of shares.
    pub effect: Option<f64>,
    /// The lower end of the effect's interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The p-value of a difference, corrected for how many there are.
    pub p: Option<f64>,
    /// How sure the finding is, in [0, 1].
    #[serde(rename = "sure")]
    pub confidence: Option<f64>,
    /// Runs of the base that were used.
    pub base_runs: usize,
    /// Runs of the other side that were used.
    pub other_runs: usize,
    /// The verdict as it was found, for the other forms.
    #[serde(skip)]
    pub verdict: ComparisonVerdict,
}

impl RunComparison {
    /// Holds all sides against the first, in these metrics.
    pub fn new(sides: &[Side], asked: &[MetricSelector], settings: &Settings, mut notes: Vec<String>) -> Self {
        let rounds = rounds::match_rounds(sides);
        if rounds.is_none() && sides.iter().all(|side| side.runs.len() > 1) {
            notes.push(rounds::advice(sides).into());
        }
        let metrics: Vec<Metric> = asked.iter().map(MetricSelector::metric).collect();
        let sample = |side: usize, asked: &MetricSelector| {
            sides[side].sample(asked, rounds.as_ref().map(|rounds| &rounds[side][..]))
        };
        let samples: Vec<Vec<MetricSample>> =
            (0..sides.len()).map(|side| asked.iter().map(|asked| sample(side, asked)).collect()).collect();
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
        let beside = |(at, verdict): (usize, ComparisonVerdict)| match asked[at % metrics.len()] {
            MetricSelector::Errors => verdict,
            _ => verdict.unless_it_fails_more(&failures[at / metrics.len()], settings),
        };
        let verdicts = judge(&pairs, settings).into_iter().enumerate().map(beside);
        let judged: Vec<MetricVerdict> =
            verdicts.zip(&cells).map(|(verdict, (i, ..))| MetricVerdict::new(&metrics[*i], verdict)).collect();
        let compared = judged.chunks(metrics.len().max(1)).zip(1..).map(|(verdicts, other)| ComparedPair {
            base: letter(0),
            other: letter(other),
            finding: OverallFinding::of(verdicts),
            by_round: verdicts.iter().any(|judged| judged.verdict.by_round),
            verdicts: verdicts.to_vec(),
        });
        let compared = compared.collect();
        Self::of(sides, settings, notes, compared)
    }

    fn of(sides: &[Side], settings: &Settings, notes: Vec<String>, pairs: Vec<ComparedPair>) -> Self {
        let shown = |(i, side): (usize, &Side)| ComparedSide {
            letter: letter(i),
            name: side.name.clone(),
            runs: side.runs.iter().map(ComparedRun::of).collect(),
            doubtful: side.is_doubtful(),
        };
        Self {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            minimum: settings.min_effect,
            minimum_points: settings.min_effect_points,
            confidence: settings.confidence,
            sides: sides.iter().enumerate().map(shown).collect(),
            notes,
            pairs,
        }
    }

    /// Whether some side is worse than the base in some metric.
    pub fn has_worse(&self) -> bool {
        self.pairs.iter().any(|pair| matches!(pair.finding, OverallFinding::Worse | OverallFinding::Mixed))
    }

    /// Whether some run of it is not to be trusted.
    pub fn has_doubts(&self) -> bool {
        self.sides.iter().any(|side| side.runs.iter().any(|run| !run.doubts.is_empty()))
    }

    /// The comparison as JSON on several lines, with a newline at its end.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a comparison serialises") + "\n"
    }
}

/// For each side but the first whether more of its requests fail than of the first's. A question of its own, which makes the
/// others no harder.
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
    fn of(kept: &SavedRun) -> Self {
        Self { file: kept.file.clone(), tool: kept.result.tool.name().into(), doubts: kept.result.doubts.clone() }
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
            low: verdict.interval.map(|(low, _)| low),
            high: verdict.interval.map(|(_, high)| high),
            p: verdict.p,
            confidence: verdict.confidence,
            base_runs: verdict.runs.0,
            other_runs: verdict.runs.1,
            verdict,
        }
    }
}

impl OverallFinding {
    fn of(verdicts: &[MetricVerdict]) -> Self {
        let any = |finding| verdicts.iter().any(|judged| judged.verdict.finding == finding);
        match (any(Finding::Better), any(Finding::Worse)) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Better,
            (false, true) => Self::Worse,
            (false, false) if verdicts.iter().all(|judged| judged.verdict.finding == Finding::Same) => Self::Same,
            (false, false) => Self::Unclear,
        }
    }
}

/// A, B, ..., Z, then numbers.
fn letter(index: usize) -> String {
    let letter = u8::try_from(index).ok().filter(|i| *i < 26).map(|i| char::from(b'A' + i));
    letter.map_or_else(|| (index + 1).to_string(), String::from)
}

#[cfg(test)]
mod tests;
