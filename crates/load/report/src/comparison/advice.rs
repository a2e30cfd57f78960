//! What would decide the inconclusive rows of a comparison.

use super::{ComparedPair, ComparedStep, MetricVerdict, RunComparison};
use weir_measure::compare::{ComparisonScale, Finding, MIN_RUNS, UnclearReason};

/// Maximum number of rows that are named.
const MAX_NAMED_ROWS: usize = 4;

/// What makes rows inconclusive, of which the same advice holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    TooFewRuns,
    TooNoisy,
    NearMinEffect(ComparisonScale),
    Failures,
    Untrusted,
    NoFigures,
}

impl Obstacle {
    fn of(reason: UnclearReason, scale: ComparisonScale) -> Self {
        match reason {
            UnclearReason::OneRun | UnclearReason::TooFew => Self::TooFewRuns,
            UnclearReason::TooNoisy(Some(_)) => Self::TooNoisy,
            UnclearReason::TooNoisy(None) => Self::NearMinEffect(scale),
            UnclearReason::Failures | UnclearReason::StepFailures => Self::Failures,
            UnclearReason::Untrusted => Self::Untrusted,
            UnclearReason::NoFigures => Self::NoFigures,
        }
    }
}

/// Advice on the inconclusive rows of a pair, a sentence for each obstacle: `rate, p99: about 12 runs per side ...`.
pub(super) fn advice(pair: &ComparedPair, comparison: &RunComparison) -> Vec<String> {
    let whole = pair.verdicts.iter().map(|judged| (judged.metric.name.clone(), judged));
    let rows: Vec<(String, &MetricVerdict)> = whole.chain(pair.steps.iter().flat_map(rows_of)).collect();
    let mut groups: Vec<(Obstacle, Vec<&(String, &MetricVerdict)>)> = Vec::new();
    for row in &rows {
        let Finding::Unclear(reason) = row.1.verdict.finding else { continue };
        let obstacle = Obstacle::of(reason, row.1.metric.scale);
        match groups.iter_mut().find(|(known, _)| *known == obstacle) {
            Some((_, found)) => found.push(row),
            None => groups.push((obstacle, vec![row])),
        }
    }
    let sentence = |(obstacle, found): &(Obstacle, Vec<&(String, &MetricVerdict)>)| {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let more = names.len().saturating_sub(MAX_NAMED_ROWS);
        let named = names[..names.len().min(MAX_NAMED_ROWS)].join(", ");
        let names = match (names.len() == rows.len() && names.len() > 1, more) {
            (true, _) => "all rows".to_owned(),
            (false, 0) => named,
            (false, more) => format!("{named} and {more} more"),
        };
        format!("{names}: {}", remedy(*obstacle, found, comparison))
    };
    groups.iter().map(sentence).collect()
}

/// Rows of a step, with their names: `shop: order p99`.
fn rows_of(step: &ComparedStep) -> impl Iterator<Item = (String, &MetricVerdict)> {
    step.shown().map(|judged| (format!("{} {}", step.name, judged.metric.name), judged))
}

fn remedy(obstacle: Obstacle, found: &[&(String, &MetricVerdict)], comparison: &RunComparison) -> String {
    match obstacle {
        Obstacle::TooFewRuns => {
            format!("make at least {MIN_RUNS} runs per side, in turns, each with --out into the folder of its side")
        }
        Obstacle::TooNoisy => {
            let wanted = found.iter().filter_map(|(_, judged)| match judged.verdict.finding {
                Finding::Unclear(UnclearReason::TooNoisy(runs)) => runs,
                _ => None,
            });
            let wanted = wanted.max().unwrap_or_default();
            let now = found.iter().map(|(_, judged)| judged.base_runs.min(judged.other_runs)).min().unwrap_or_default();
            format!("make about {wanted} runs per side in place of {now}, or longer ones (-d)")
        }
        Obstacle::NearMinEffect(ComparisonScale::Ratio) => format!(
            "the change is too near to --min-effect ({:.1}%) for any number of runs; choose a lower or a higher one",
            comparison.min_effect * 100.0
        ),
        Obstacle::NearMinEffect(ComparisonScale::Points) => format!(
            "the change is too near to {:.1} pp, where it begins to matter, for any number of runs",
            comparison.min_effect_points * 100.0
        ),
        Obstacle::Failures => "better only while more requests fail; find out first why they do".to_owned(),
        Obstacle::Untrusted => "repeat the runs that are not trusted, for the reasons above".to_owned(),
        Obstacle::NoFigures => "one side has no such figure; choose others with --metric".to_owned(),
    }
}
