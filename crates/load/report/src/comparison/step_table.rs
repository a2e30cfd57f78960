//! Tables of verdicts in the HTML report: of the whole, and of steps.

use super::phrases::{change, finding, interval};
use super::{ComparedPair, ComparedStep, MetricVerdict};
use crate::page::{PageTable, TableCell, Tone, ValueUnit};

/// Cells of a verdict: metric, both figures, change, interval and finding.
pub(super) fn cells(judged: &MetricVerdict) -> impl Iterator<Item = TableCell> {
    let metric = &judged.metric;
    let number =
        |value: Option<f64>| value.map_or(TableCell::Empty, |value| TableCell::Number(value, ValueUnit::of(metric)));
    [
        TableCell::text(&metric.name),
        number(judged.base),
        number(judged.other),
        TableCell::unbroken(&change(metric, judged.effect)),
        TableCell::unbroken(&interval(metric, judged.verdict.interval)),
        TableCell::Toned(Tone::of(judged.verdict.finding), finding(&judged.verdict)),
    ]
    .into_iter()
}

/// Steps of a pair, a row per figure.
pub(super) fn step_table(pair: &ComparedPair, confidence: f64) -> PageTable {
    let interval_name = format!("{:.0}% interval", confidence * 100.0);
    let title = format!("Steps, {} vs {}", pair.other, pair.base);
    let columns = ["step", "", pair.base.as_str(), &pair.other, "change", &interval_name, "verdict"];
    let rows = |step: &ComparedStep| -> Vec<Vec<TableCell>> {
        if let Some(only) = &step.only {
            let mut row = vec![TableCell::text(&step.name)];
            row.resize(columns.len() - 1, TableCell::Empty);
            row.push(TableCell::text(format!("only in {only}")));
            return vec![row];
        }
        let name = |at: usize| if at == 0 { TableCell::text(&step.name) } else { TableCell::Empty };
        step.shown().enumerate().map(|(at, judged)| [name(at)].into_iter().chain(cells(judged)).collect()).collect()
    };
    PageTable {
        rows: pair.steps.iter().filter(|step| step.is_shown()).flat_map(rows).collect(),
        ..PageTable::new(&title, &columns)
    }
}
