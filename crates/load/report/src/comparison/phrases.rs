//! Text of a figure, an effect and a finding.

use super::{ComparedPair, MetricVerdict, OverallFinding, RunComparison};
use crate::number_format::{ms, percent, percentage, rate};
use weir_measure::compare::{ComparisonScale, ComparisonVerdict, ConfidenceInterval, Finding, Metric};

/// Figure with its unit: `9,843/s`, `12.3ms`, `0.25%`.
pub fn figure(metric: &Metric, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".into() };
    match (metric.scale, metric.unit.as_str()) {
        (ComparisonScale::Points, _) => percentage(value),
        (_, "ms") => ms(value),
        (_, "/s") => format!("{}/s", rate(value)),
        (_, "") => rate(value),
        (_, unit) => format!("{} {unit}", rate(value)),
    }
}

/// Effect as a change: `-5.0%`, or `+1.2 pp` (percentage points).
pub fn change(metric: &Metric, effect: Option<f64>) -> String {
    let Some(effect) = effect else { return "-".into() };
    match metric.scale {
        // A doubling and more is shown as a multiple.
        ComparisonScale::Ratio if effect >= 10.0 => format!("x {effect:.0}"),
        ComparisonScale::Ratio if effect >= 2.0 => format!("x {effect:.1}"),
        ComparisonScale::Ratio => format!("{:+.1}%", (effect - 1.0) * 100.0),
        ComparisonScale::Points => format!("{:+.1} pp", effect * 100.0),
    }
}

/// Interval of an effect: `-6.1% to -3.9%`.
pub fn interval(metric: &Metric, interval: Option<ConfidenceInterval>) -> String {
    interval.map_or_else(
        || "-".into(),
        |ConfidenceInterval { low, high }| {
            if high.is_finite() && high < 1000.0 {
                format!("{} to {}", change(metric, Some(low)), change(metric, Some(high)))
            } else {
                "unbounded".into()
            }
        },
    )
}

/// Finding with its confidence, or with the reason: `worse, 99.8% confidence`.
pub fn finding(verdict: &ComparisonVerdict) -> String {
    let confidence = verdict.confidence.map_or_else(String::new, |confidence| match confidence {
        c if c > 0.999 => ", >99.9% confidence".into(),
        c => format!(", {} confidence", percent(c)),
    });
    match verdict.finding {
        Finding::Unclear(why) => format!("inconclusive: {why}"),
        finding => format!("{finding}{confidence}"),
    }
}

/// Verdict in a sentence: `B is worse than A: rate -5.0% (-6.1% to -3.9%), 99.8% confidence`.
pub fn sentence(base: &str, other: &str, metric: &Metric, verdict: &ComparisonVerdict) -> String {
    let name = &metric.name;
    let by = format!("{name} {} ({})", change(metric, verdict.effect), interval(metric, verdict.interval));
    let confidence = verdict.confidence.map(|confidence| format!(", {} confidence", percent(confidence.min(0.999))));
    let confidence = confidence.unwrap_or_default();
    match verdict.finding {
        Finding::Better => format!("{other} is better than {base}: {by}{confidence}"),
        Finding::Worse => format!("{other} is worse than {base}: {by}{confidence}"),
        Finding::Same => format!("{other} is the same as {base}: {by}{confidence}"),
        Finding::Unclear(why) => match verdict.effect {
            Some(effect) => format!("{other} vs {base}: {name} {}, {why}", change(metric, Some(effect))),
            None => format!("{other} vs {base}: {name}: {why}"),
        },
    }
}

/// Smallest effects and confidence level of a comparison.
pub(super) fn rule(comparison: &RunComparison) -> String {
    let has_steps = comparison.pairs.iter().any(|pair| pair.steps.iter().any(super::ComparedStep::is_shown));
    format!(
        "The same: within {:.1}% ({:.1} pp of errors). Confidence: {:.1}% over all rows together{}.",
        comparison.min_effect * 100.0,
        comparison.min_effect_points * 100.0,
        comparison.confidence * 100.0,
        if has_steps { ", and over those of steps" } else { "" },
    )
}

/// Maximum number of findings on steps that are named in a headline.
const MAX_NAMED_STEPS: usize = 3;

/// Finding over all metrics of a pair, in a few words.
pub(super) fn overall(pair: &ComparedPair) -> String {
    let named = |wanted: Finding| {
        let words = |name: &str, judged: &MetricVerdict| format!("{name} {}", change(&judged.metric, judged.effect));
        let found = pair.verdicts.iter().filter(|judged| judged.verdict.finding == wanted);
        let mut all: Vec<String> = found.map(|judged| words(&judged.metric.name, judged)).collect();
        let of_steps: Vec<String> =
            pair.steps.iter().flat_map(|step| step.named(wanted)).map(|(name, judged)| words(&name, judged)).collect();
        let more = of_steps.len().saturating_sub(MAX_NAMED_STEPS);
        all.extend(of_steps.into_iter().take(MAX_NAMED_STEPS));
        all.extend((more > 0).then(|| format!("{more} more of steps")));
        all.join(", ")
    };
    match pair.finding {
        OverallFinding::Better => format!("better: {}", named(Finding::Better)),
        OverallFinding::Worse => format!("worse: {}", named(Finding::Worse)),
        OverallFinding::Mixed => format!("worse: {}; and better: {}", named(Finding::Worse), named(Finding::Better)),
        OverallFinding::Same => "the same".into(),
        OverallFinding::Inconclusive => "inconclusive".into(),
    }
}
