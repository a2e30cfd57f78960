//! Tables of the HTML report of a study: metrics, verdicts, failures, and untrusted measurements.

use crate::findings::{Findings, PairVerdict, StudyMetric};
use crate::text;
use weir_report::comparison::phrases::{change, finding, interval};
use weir_report::page::{Block, PageTable, Section, TableCell, Tone, ValueUnit};

/// Maximum number of measurements that are listed one by one.
const MAX_LISTED_MEASUREMENTS: usize = 300;

pub(super) fn sections(findings: &Findings<'_>) -> Vec<Section> {
    vec![failures(findings), untrusted(findings), full_section(findings)]
}

fn failures(findings: &Findings<'_>) -> Section {
    let mut blocks = Vec::new();
    for (variant, words, first) in text::failing(findings) {
        blocks.push(Block::Text(format!("{variant} failed {words}")));
        let lines = first.failure.as_ref().map(|failure| failure.last_lines.join("\n")).unwrap_or_default();
        if !lines.is_empty() {
            blocks.push(Block::Text("Last lines of its output:".into()));
            blocks.push(Block::Command(lines));
        }
    }
    Section::new("Failures", blocks)
}

fn untrusted(findings: &Findings<'_>) -> Section {
    let untrusted = findings.outcome.measurements.iter().filter(|cell| cell.is_measured() && !cell.is_trusted());
    let mut table = PageTable::new("Measurements and their warnings", &["variant", "at", "round", "warnings"]);
    table.rows = untrusted
        .map(|cell| {
            let warnings = TableCell::Toned(Tone::Doubt, cell.warnings.join(" "));
            vec![
                TableCell::text(&cell.variant),
                TableCell::text(cell.point.name()),
                TableCell::count(cell.repeat),
                warnings,
            ]
        })
        .collect();
    table.folded = table.rows.len() > 12;
    Section::new("Not trusted", if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] })
}

fn full_section(findings: &Findings<'_>) -> Section {
    let (main, others): (Vec<usize>, Vec<usize>) =
        (0..findings.metrics.len()).partition(|at| findings.metrics[*at].is_primary);
    let mut tables = vec![verdicts(findings, "Verdicts", &main, false)];
    tables.push(verdicts(findings, "Verdicts on the other metrics", &others, true));
    tables.extend(main.iter().map(|measure| figures(findings, *measure, false)));
    tables.extend(others.iter().map(|measure| figures(findings, *measure, true)));
    tables.push(measurements(findings));
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    Section::new("In full", tables.map(Block::Table).collect())
}

fn verdicts(findings: &Findings<'_>, title: &str, measures: &[usize], folded: bool) -> PageTable {
    let columns = ["variant", "vs", "metric", "at", "change", "95% interval", "verdict"];
    let row = |it: &PairVerdict| {
        let (metric, verdict) = (&findings.metrics[it.metric].metric, &it.verdict);
        vec![
            TableCell::text(findings.variant(it.other)),
            TableCell::text(findings.variant(it.base)),
            TableCell::unbroken(&findings.metrics[it.metric].name()),
            TableCell::text(findings.points[it.point].name()),
            TableCell::unbroken(&change(metric, verdict.effect)),
            TableCell::unbroken(&interval(metric, verdict.interval)),
            TableCell::Toned(Tone::of(verdict.finding), finding(verdict)),
        ]
    };
    let rows = findings.verdicts.iter().filter(|it| measures.contains(&it.metric)).map(row).collect();
    PageTable { rows, folded, ..PageTable::new(title, &columns) }
}

/// Table of a metric, of all variants at all points.
fn figures(findings: &Findings<'_>, measure: usize, folded: bool) -> PageTable {
    let of = &findings.metrics[measure];
    let mut table = PageTable::new(&of.name(), &["at", "variant", "median", "lowest", "highest", "runs", "trust"]);
    table.folded = folded;
    for (at, point) in findings.points.iter().enumerate() {
        for variant in 0..findings.definition.variants.len() {
            let Some(spread) = findings.run_range(measure, variant, at) else { continue };
            let number = |value: f64| TableCell::Number(value, ValueUnit::of(&of.metric));
            let [median, low, high] = [spread.median, spread.low, spread.high].map(number);
            let names = [TableCell::text(point.name()), TableCell::text(findings.variant(variant))];
            let runs = TableCell::count(spread.runs as u64);
            table.rows.push(names.into_iter().chain([median, low, high, runs, trust_cell(spread.untrusted)]).collect());
        }
    }
    table
}

fn trust_cell(untrusted: usize) -> TableCell {
    match untrusted {
        0 => TableCell::Toned(Tone::Good, "all".into()),
        n => TableCell::Toned(Tone::Doubt, format!("{n} not trusted")),
    }
}

/// Table of all measurements, if they are few enough to list.
fn measurements(findings: &Findings<'_>) -> PageTable {
    let cells = &findings.outcome.measurements;
    let title = format!("All {} measurements", cells.len());
    let fixed = ["variant", "at", "round", "trust", "ready"].map(str::to_owned);
    let names = findings.metrics.iter().map(StudyMetric::name);
    let mut table =
        PageTable { columns: fixed.into_iter().chain(names).collect(), folded: true, ..PageTable::new(&title, &[]) };
    if cells.len() > MAX_LISTED_MEASUREMENTS {
        return table;
    }
    for cell in cells {
        let trust = match (cell.is_measured(), cell.is_trusted()) {
            (false, _) => TableCell::Toned(Tone::Bad, "failed".into()),
            (_, false) => TableCell::Toned(Tone::Doubt, "not trusted".into()),
            _ => TableCell::Toned(Tone::Good, "trusted".into()),
        };
        let ready = cell.ready_s.map_or(TableCell::Empty, |s| TableCell::Number(s, ValueUnit::Seconds));
        let mut row = vec![
            TableCell::text(&cell.variant),
            TableCell::text(cell.point.name()),
            TableCell::count(cell.repeat),
            trust,
        ];
        row.push(ready);
        let value = |of: &StudyMetric| {
            of.value(cell).map_or(TableCell::Empty, |value| TableCell::Number(value, ValueUnit::of(&of.metric)))
        };
        row.extend(findings.metrics.iter().map(value));
        table.rows.push(row);
    }
    table
}
