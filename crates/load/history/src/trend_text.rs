//! Trends as text.

use super::start_time::started;
use super::trend_report::TrendReport;
use super::{StoredRun, Trend};
use weir_measure::change_points::ChangePoint;
use weir_report::page::ValueUnit;
use weir_report::summary::blocks;

/// Width of a course in characters.
const COURSE_COLUMNS: usize = 60;
/// Number of runs below which a change can hardly be distinguished from chance.
const MIN_RUNS: usize = 8;

/// All groups, each with its trends.
pub fn trend_text(reports: &[TrendReport]) -> String {
    let all: Vec<String> = reports.iter().map(|report| group(report).join("\n") + "\n").collect();
    all.join("\n")
}

fn group(report: &TrendReport) -> Vec<String> {
    let mut lines = heading(report);
    for trend in &report.trends {
        lines.extend(course(trend, &report.group.runs));
    }
    lines
}

/// Lines that identify a group: its load, number and period of runs, and machine.
pub(super) fn heading(report: &TrendReport) -> Vec<String> {
    let runs = &report.group.runs;
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return vec![format!("{} runs that are not trusted or were interrupted", report.group.left_out)];
    };
    let rate = last.offered_per_s.map_or_else(String::new, |rate| format!(", {}", ValueUnit::PerSecond.format(rate)));
    let left_out = match report.group.left_out {
        0 => String::new(),
        count => format!(" · {count} left out: not trusted, or interrupted"),
    };
    let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    let (from, to) = (started(first.started_unix_s), started(last.started_unix_s));
    let mut lines =
        vec![format!("{}{rate}", last.plan), format!("{} · {count}, {from} to {to}{left_out}", last.machine)];
    if runs.len() < MIN_RUNS {
        lines.push(format!("with fewer than {MIN_RUNS} runs, hardly any change can be told from chance"));
    }
    lines
}

fn course(trend: &Trend, runs: &[StoredRun]) -> Vec<String> {
    let unit = ValueUnit::of(&trend.metric);
    let shown = |value: f64| unit.format(value).replace('\u{a0}', "");
    let values: Vec<f64> = trend.points.iter().map(|(_, value)| *value).collect();
    let last = values.last().copied().map_or_else(String::new, shown);
    let quiet = if trend.changes.is_empty() { "  no change" } else { "" };
    let mut lines =
        vec![String::new(), format!("{:<12}{}  {last}{quiet}", trend.metric.name, blocks(&values, COURSE_COLUMNS))];
    lines.extend(changes(trend, runs).into_iter().map(|line| format!("  {line}")));
    lines
}

/// Changes of a level, a sentence each.
pub(super) fn changes(trend: &Trend, runs: &[StoredRun]) -> Vec<String> {
    let unit = ValueUnit::of(&trend.metric);
    let shown = |value: f64| unit.format(value).replace('\u{a0}', "");
    let mut lines = Vec::new();
    for change in &trend.changes {
        let of = trend.runs_of(change);
        let (run, before) = (&runs[of.first], &runs[of.last_before]);
        let commit = |run: &StoredRun| match run.note.commit.as_str() {
            "" => format!("#{}", run.id),
            commit => format!("#{} ({commit})", run.id),
        };
        lines.push(format!(
            "{} with {} of {}: {} to {}{}; before it {}",
            if trend.is_worse(change) { "worse" } else { "better" },
            commit(run),
            started(run.started_unix_s),
            shown(change.before),
            shown(change.after),
            effect(trend, change),
            commit(before),
        ));
    }
    lines
}

/// Size of a change, for what is compared as a ratio.
fn effect(trend: &Trend, change: &ChangePoint) -> String {
    let is_ratio = trend.metric.scale == weir_measure::compare::ComparisonScale::Ratio;
    if is_ratio && change.effect().is_finite() { format!(", {:+.1}%", change.effect() * 100.0) } else { String::new() }
}
