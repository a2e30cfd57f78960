//! What has to be read digit by digit: figures, verdicts, and what went wrong.

use crate::report::comparison::words::{change, finding, interval};
use crate::report::page::{Block, Cell, Section, Table, Tone, Unit};
use crate::study::findings::{Findings, Judged, Measure};
use crate::study::folder::name_of;
use crate::study::text;

/// Measurements that a page lists one by one.
const MOST_LISTED: usize = 300;

pub(super) fn sections(findings: &Findings<'_>) -> Vec<Section> {
    vec![failures(findings), doubts(findings), in_full(findings)]
}

fn failures(findings: &Findings<'_>) -> Section {
    let mut blocks = Vec::new();
    for (variant, words, first) in text::failing(findings) {
        blocks.push(Block::Text(format!("{variant} failed {words}")));
        let lines = first.failure.as_ref().map(|failure| failure.last_lines.join("\n")).unwrap_or_default();
        if !lines.is_empty() {
            blocks.push(Block::Text("The last that it said:".into()));
            blocks.push(Block::Command(lines));
        }
    }
    Section::new("What failed", blocks)
}

fn doubts(findings: &Findings<'_>) -> Section {
    let doubtful = findings.outcome.cells.iter().filter(|cell| cell.is_measured() && !cell.is_trusted());
    let mut table = Table::new("Measurements, and what speaks against them", &["variant", "at", "round", "doubt"]);
    table.rows = doubtful
        .map(|cell| {
            let doubt = Cell::Judged(Tone::Doubt, cell.doubts.join(" "));
            vec![Cell::text(&cell.variant), Cell::text(name_of(&cell.point)), Cell::count(cell.repeat), doubt]
        })
        .collect();
    table.folded = table.rows.len() > 12;
    Section::new("Not to be trusted", if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] })
}

fn in_full(findings: &Findings<'_>) -> Section {
    let (main, others): (Vec<usize>, Vec<usize>) =
        (0..findings.measures.len()).partition(|at| findings.measures[*at].is_main);
    let mut tables = vec![verdicts(findings, "Verdicts", &main, false)];
    tables.push(verdicts(findings, "Verdicts on everything else", &others, true));
    tables.extend(main.iter().map(|measure| figures(findings, *measure, false)));
    tables.extend(others.iter().map(|measure| figures(findings, *measure, true)));
    tables.push(measurements(findings));
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    Section::new("In full", tables.map(Block::Table).collect())
}

fn verdicts(findings: &Findings<'_>, title: &str, measures: &[usize], folded: bool) -> Table {
    let columns = ["variant", "against", "figure", "at", "change", "95 % interval", "verdict"];
    let row = |it: &Judged| {
        let (metric, verdict) = (&findings.measures[it.measure].metric, &it.verdict);
        vec![
            Cell::text(findings.variant(it.other)),
            Cell::text(findings.variant(it.base)),
            Cell::unbroken(&findings.measures[it.measure].name()),
            Cell::text(name_of(&findings.points[it.point])),
            Cell::unbroken(&change(metric, verdict.effect)),
            Cell::unbroken(&interval(metric, verdict.interval)),
            Cell::Judged(Tone::of(verdict.finding), finding(verdict)),
        ]
    };
    let rows = findings.judged.iter().filter(|it| measures.contains(&it.measure)).map(row).collect();
    Table { rows, folded, ..Table::new(title, &columns) }
}

/// A measure of all variants at all points.
fn figures(findings: &Findings<'_>, measure: usize, folded: bool) -> Table {
    let of = &findings.measures[measure];
    let mut table = Table::new(&of.name(), &["at", "variant", "median", "lowest", "highest", "runs", "trust"]);
    table.folded = folded;
    for (at, point) in findings.points.iter().enumerate() {
        for variant in 0..findings.definition.variants.len() {
            let Some(spread) = findings.spread(measure, variant, at) else { continue };
            let number = |value: f64| Cell::Number(value, Unit::of(&of.metric));
            let [median, low, high] = [spread.median, spread.low, spread.high].map(number);
            let names = [Cell::text(name_of(point)), Cell::text(findings.variant(variant))];
            let runs = Cell::count(spread.runs as u64);
            table.rows.push(names.into_iter().chain([median, low, high, runs, trust(spread.untrusted)]).collect());
        }
    }
    table
}

fn trust(untrusted: usize) -> Cell {
    match untrusted {
        0 => Cell::Judged(Tone::Good, "all".into()),
        n => Cell::Judged(Tone::Doubt, format!("{n} not to be trusted")),
    }
}

/// All measurements one by one, if they can be read.
fn measurements(findings: &Findings<'_>) -> Table {
    let cells = &findings.outcome.cells;
    let title = format!("All {} measurements", cells.len());
    let fixed = ["variant", "at", "round", "trust", "ready"].map(str::to_owned);
    let names = findings.measures.iter().map(Measure::name);
    let mut table =
        Table { columns: fixed.into_iter().chain(names).collect(), folded: true, ..Table::new(&title, &[]) };
    if cells.len() > MOST_LISTED {
        return table;
    }
    for cell in cells {
        let trust = match (cell.is_measured(), cell.is_trusted()) {
            (false, _) => Cell::Judged(Tone::Bad, "failed".into()),
            (_, false) => Cell::Judged(Tone::Doubt, "not to be trusted".into()),
            _ => Cell::Judged(Tone::Good, "sound".into()),
        };
        let ready = cell.ready_s.map_or(Cell::Empty, |s| Cell::Number(s, Unit::Seconds));
        let mut row =
            vec![Cell::text(&cell.variant), Cell::text(name_of(&cell.point)), Cell::count(cell.repeat), trust];
        row.push(ready);
        let value =
            |of: &Measure| of.value(cell).map_or(Cell::Empty, |value| Cell::Number(value, Unit::of(&of.metric)));
        row.extend(findings.measures.iter().map(value));
        table.rows.push(row);
    }
    table
}
