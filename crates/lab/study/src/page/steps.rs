//! Steps of scenarios in the HTML report of a study.

use crate::findings::{Findings, RunRange};
use crate::steps::{StepSummary, summaries};
use weir_report::page::{BarChart, BarRow, Block, PageTable, Section, TableCell, Tone, ValueInterval, ValueUnit};

/// Maximum number of bars; the table has the rest.
const MAX_BARS: usize = 40;
/// Maximum number of rows.
const MAX_ROWS: usize = 1_000;

pub(super) fn section(findings: &Findings<'_>) -> Section {
    let all = summaries(findings);
    if all.is_empty() {
        return Section::default();
    }
    let words =
        "Verdicts are on whole loads; these figures show which step a difference is from. Medians of the rounds.";
    let blocks = [Some(Block::Text(words.into())), bars(findings, &all), Some(Block::Table(table(findings, &all)))];
    Section::new("Steps", blocks.into_iter().flatten().collect())
}

/// 99th percentiles at the last point, which in most sweeps has the highest load.
fn bars(findings: &Findings<'_>, all: &[StepSummary]) -> Option<Block> {
    let last = all.iter().map(|of| of.point).max()?;
    let bar = |of: &StepSummary| {
        let range = of.p99_ms?;
        let name = format!("{} \u{b7} {}", of.name(findings), findings.variant(of.variant));
        let interval = (range.runs > 1).then_some(ValueInterval { low: range.low, high: range.high });
        Some(BarRow { interval, hue: of.variant, untrusted: range.untrusted > 0, ..BarRow::new(name, range.median) })
    };
    let bars: Vec<BarRow> = all.iter().filter(|of| of.point == last).filter_map(bar).take(MAX_BARS).collect();
    let at = if findings.points.len() > 1 { format!(" at {}", findings.points[last].name()) } else { String::new() };
    (!bars.is_empty()).then(|| {
        Block::Bars(BarChart {
            title: format!("p99 by step{at}"),
            note: String::new(),
            columns: ["step".into(), "p99".into()],
            unit: ValueUnit::Milliseconds,
            bars,
        })
    })
}

fn table(findings: &Findings<'_>, all: &[StepSummary]) -> PageTable {
    let columns = ["step", "at", "variant", "p50", "p99", "errors", "checks", "runs", "trust"];
    let number = |range: Option<RunRange>, unit: ValueUnit| {
        range.map_or(TableCell::Empty, |range| TableCell::Number(range.median, unit))
    };
    let row = |of: &StepSummary| {
        let (runs, untrusted) = of.errors.map_or((0, 0), |range| (range.runs, range.untrusted));
        let trust = match untrusted {
            0 => TableCell::Toned(Tone::Good, "all".into()),
            n => TableCell::Toned(Tone::Doubt, format!("{n} not trusted")),
        };
        vec![
            TableCell::text(of.name(findings)),
            TableCell::text(findings.points[of.point].name()),
            TableCell::text(findings.variant(of.variant)),
            number(of.p50_ms, ValueUnit::Milliseconds),
            number(of.p99_ms, ValueUnit::Milliseconds),
            number(of.errors, ValueUnit::Fraction),
            number(of.checks, ValueUnit::Fraction),
            TableCell::count(runs as u64),
            trust,
        ]
    };
    PageTable { rows: all.iter().take(MAX_ROWS).map(row).collect(), ..PageTable::new("Steps by variant", &columns) }
}
