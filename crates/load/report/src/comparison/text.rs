//! Comparison as text, within 80 columns.

use super::advice::advice;
use super::doubts::{CAUTION, doubts};
use super::phrases::{change, figure, finding, interval, overall, rule};
use super::{ComparedPair, ComparedSide, ComparedStep, MetricVerdict, OverallFinding, RunComparison};
use crate::ansi::AnsiPaint;
use crate::number_format::{TERMINAL_COLUMNS, truncate, wrap};
use weir_measure::compare::Finding;

/// Comparison as text, with ANSI colours if `color`.
pub fn render(comparison: &RunComparison, color: bool) -> String {
    let paint = AnsiPaint { enabled: color };
    let sides = comparison.sides.iter().map(|side| shown(side, paint));
    let doubts = doubts(&comparison.sides).into_iter().flat_map(|(grade, doubt)| {
        let painted = move |line: &String| if grade == CAUTION { paint.yellow(line) } else { paint.red(line) };
        wrap(&format!("{grade}: "), &doubt).iter().map(painted).collect::<Vec<_>>()
    });
    let mut blocks = vec![sides.chain(doubts).collect::<Vec<_>>()];
    blocks.push(comparison.notes.iter().flat_map(|note| wrap("note: ", note)).collect());
    for pair in &comparison.pairs {
        blocks.push(table(pair, comparison.confidence, paint));
        blocks.push(steps(pair, comparison.confidence, paint));
        blocks.push(advice(pair, comparison).iter().flat_map(|words| wrap("to decide ", words)).collect());
    }
    blocks.push(wrap("", &rule(comparison)).iter().map(|line| paint.dim(line)).collect());
    let blocks: Vec<String> = blocks.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    blocks.join("\n\n") + "\n"
}

fn shown(side: &ComparedSide, paint: AnsiPaint) -> String {
    let runs = side.runs.len();
    let tool = side.runs.first().map_or("", |run| run.tool.as_str());
    let head = format!("{}  {} ({runs} run{} of {tool})", side.letter, side.name, if runs == 1 { "" } else { "s" });
    paint.bold(&truncate(&head, TERMINAL_COLUMNS))
}

fn table(pair: &ComparedPair, confidence: f64, paint: AnsiPaint) -> Vec<String> {
    let head = format!("{} vs {}: {}", pair.other, pair.base, overall(pair));
    let head = truncate(&head, TERMINAL_COLUMNS);
    let mut lines = vec![match pair.finding {
        OverallFinding::Worse | OverallFinding::Mixed => paint.red(&head),
        OverallFinding::Better => paint.green(&head),
        OverallFinding::Same | OverallFinding::Inconclusive => paint.bold(&head),
    }];
    lines.push(paint.dim(&columns("", pair, confidence)));
    lines.extend(pair.verdicts.iter().flat_map(|judged| row(judged, "", paint)));
    if pair.by_round {
        lines.push(paint.dim("runs of the same round were compared with each other"));
    }
    lines
}

fn columns(name: &str, pair: &ComparedPair, confidence: f64) -> String {
    let heading = format!("{:.0}% interval", confidence * 100.0);
    format!("{name:<8}{:>10}{:>10}{:>9}  {heading:<18}  verdict, confidence", pair.base, pair.other, "change")
}

/// Steps of a pair, each with its figures.
fn steps(pair: &ComparedPair, confidence: f64, paint: AnsiPaint) -> Vec<String> {
    if !pair.steps.iter().any(ComparedStep::is_shown) {
        return Vec::new();
    }
    let of = |step: &ComparedStep| {
        let only = step.only.as_ref().map_or_else(String::new, |only| format!(": only in {only}"));
        let name = paint.bold(&truncate(&format!("{}{only}", step.name), TERMINAL_COLUMNS));
        std::iter::once(name).chain(step.shown().flat_map(|judged| row(judged, "  ", paint))).collect::<Vec<_>>()
    };
    let columns = paint.dim(&columns("steps", pair, confidence));
    std::iter::once(columns).chain(pair.steps.iter().filter(|step| step.is_shown()).flat_map(of)).collect()
}

fn row(judged: &MetricVerdict, indent: &str, paint: AnsiPaint) -> Vec<String> {
    let metric = &judged.metric;
    let first = format!(
        "{:<8}{:>10}{:>10}{:>9}  {:<18}  ",
        truncate(&format!("{indent}{}", metric.name), 8),
        figure(metric, judged.base),
        figure(metric, judged.other),
        change(metric, judged.effect),
        interval(metric, judged.verdict.interval),
    );
    let finding = finding(&judged.verdict);
    let lines = wrap(&first, finding.strip_suffix(" confidence").unwrap_or(&finding));
    let painted = |line: String| match judged.verdict.finding {
        Finding::Worse => paint.red(&line),
        Finding::Better => paint.green(&line),
        Finding::Same | Finding::Unclear(_) => line,
    };
    lines.into_iter().map(painted).collect()
}
