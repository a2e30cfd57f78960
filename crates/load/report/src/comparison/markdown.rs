//! Comparison as Markdown, for a comment on a pull request.

use super::advice::advice;
use super::doubts::doubts;
use super::phrases::{change, figure, finding, interval, overall, rule};
use super::{ComparedPair, MetricVerdict, OverallFinding, RunComparison};
use crate::summary::{cell, code};

/// Comparison as GitHub's Markdown.
pub fn render(comparison: &RunComparison) -> String {
    let mut lines = Vec::new();
    for pair in &comparison.pairs {
        let sign = match pair.finding {
            OverallFinding::Worse | OverallFinding::Mixed => "🔴",
            OverallFinding::Better => "🟢",
            OverallFinding::Same => "⚪",
            OverallFinding::Inconclusive => "❔",
        };
        let words = cell(&overall(pair));
        lines.push(format!("### {sign} {} vs {}: {words}\n", pair.other, pair.base));
        let interval_name = format!("{:.0}% interval", comparison.confidence * 100.0);
        lines.push(format!("| | {} | {} | change | {interval_name} | verdict |", pair.base, pair.other));
        lines.push("|---|---:|---:|---:|---|---|".into());
        for judged in &pair.verdicts {
            lines.push(format!("| {} |", cells(judged)));
        }
        lines.extend(steps(pair, &interval_name));
        lines.push(String::new());
        let advice = advice(pair, comparison);
        lines.extend(advice.iter().map(|words| format!("To decide {}.\n", cell(words))));
    }
    for side in &comparison.sides {
        let (runs, tool) = (side.runs.len(), side.runs.first().map_or("", |run| run.tool.as_str()));
        let plural = if runs == 1 { "" } else { "s" };
        lines.push(format!("- {}: `{}`, {runs} run{plural} of {tool}", side.letter, code(&side.name)));
    }
    let doubts = doubts(&comparison.sides);
    lines.extend(doubts.iter().map(|(grade, doubt)| format!("- **{grade}**: {}", cell(doubt))));
    lines.extend(comparison.notes.iter().map(|note| format!("- {}", cell(note))));
    lines.push(format!("- {}", rule(comparison)));
    lines.join("\n") + "\n"
}

/// Table of the steps of a pair; none without any.
fn steps(pair: &ComparedPair, interval_name: &str) -> Vec<String> {
    if !pair.steps.iter().any(super::ComparedStep::is_shown) {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.push(format!("| step | | {} | {} | change | {interval_name} | verdict |", pair.base, pair.other));
    lines.push("|---|---|---:|---:|---:|---|---|".into());
    for step in pair.steps.iter().filter(|step| step.is_shown()) {
        let name = cell(&step.name);
        lines.extend(step.only.as_ref().map(|only| format!("| {name} | | | | | | only in {only} |")));
        lines.extend(step.shown().map(|judged| format!("| {name} | {} |", cells(judged))));
    }
    lines
}

/// Cells of a verdict.
fn cells(judged: &MetricVerdict) -> String {
    let metric = &judged.metric;
    let cells = [
        cell(&metric.name),
        figure(metric, judged.base),
        figure(metric, judged.other),
        change(metric, judged.effect),
        interval(metric, judged.verdict.interval),
        cell(&finding(&judged.verdict)),
    ];
    cells.join(" | ")
}
