//! Measurements of a script's own in the text report: checks, metrics of its own, exceptions; within 80 columns.

use super::ansi::AnsiPaint;
use super::number_format::{TERMINAL_COLUMNS, bytes, count, ms, percentage, truncate, wrap};
use weir_measure::Run;
use weir_measure::run_script::{RunScript, ScriptCheck, ScriptMetric};

/// Maximum number of checks and of metrics.
const MAX_SHOWN: usize = 40;
/// Maximum number of exceptions.
const MAX_EXCEPTIONS: usize = 5;
/// Columns of a name.
const NAME_WIDTH: usize = 20;

/// Lines on what a script has measured itself.
pub(super) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(script) = &run.script else { return Vec::new() };
    let parts =
        [exceptions(script, paint), interruptions(script, paint), checks(script, paint), metrics(script, paint)];
    let parts: Vec<String> = parts.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    if parts.is_empty() { Vec::new() } else { vec![parts.join("\n\n")] }
}

fn exceptions(script: &RunScript, paint: AnsiPaint) -> Vec<String> {
    let all: u64 = script.exceptions.iter().map(|exception| exception.count).sum();
    if all == 0 {
        return Vec::new();
    }
    let mut lines = vec![paint.red(&format!("exceptions   thrown in {} iterations", count(all)))];
    for exception in script.exceptions.iter().take(MAX_EXCEPTIONS) {
        let text = format!("{} x {}", count(exception.count), exception.message);
        lines.extend(wrap("  ", &text).into_iter().map(|line| paint.red(&line)));
    }
    lines.extend(more(script.exceptions.len(), MAX_EXCEPTIONS));
    lines
}

/// Places that computed without end.
fn interruptions(script: &RunScript, paint: AnsiPaint) -> Vec<String> {
    if script.interrupted_at.is_empty() {
        return Vec::new();
    }
    let places = script.interrupted_at.join(", ");
    let lines = wrap("interrupted  ", &format!("the script was still running at the end: {places}"));
    lines.into_iter().map(|line| paint.red(&line)).collect()
}

fn checks(script: &RunScript, paint: AnsiPaint) -> Vec<String> {
    let passed: u64 = script.checks.iter().map(|check| check.passed).sum();
    let all = passed + script.checks.iter().map(|check| check.failed).sum::<u64>();
    if all == 0 {
        return Vec::new();
    }
    let share = percentage(passed as f64 / all as f64);
    let mut lines = vec![format!("checks       {share} of {} passed", count(all))];
    // What failed comes first.
    let mut sorted: Vec<&ScriptCheck> = script.checks.iter().collect();
    sorted.sort_by_key(|check| check.failed == 0);
    lines.extend(sorted.iter().take(MAX_SHOWN).map(|check| check_line(check, paint)));
    lines.extend(more(script.checks.len(), MAX_SHOWN));
    lines
}

fn check_line(check: &ScriptCheck, paint: AnsiPaint) -> String {
    let group = check.group.trim_start_matches("::").replace("::", " / ");
    let name = if group.is_empty() { check.name.clone() } else { format!("{group}: {}", check.name) };
    match check.failed {
        0 => truncate(&format!("  {} {name}  {} passed", paint.green("✓"), count(check.passed)), TERMINAL_COLUMNS + 10),
        failed => {
            let text = format!("  ✗ {name}  {} of {} failed", count(failed), count(failed + check.passed));
            paint.red(&truncate(&text, TERMINAL_COLUMNS))
        }
    }
}

/// Whether the text shows a metric: one of the script, or one that no other part has.
fn is_shown(metric: &ScriptMetric) -> bool {
    metric.custom || ["grpc_", "ws_"].iter().any(|kind| metric.name.starts_with(kind))
}

fn metrics(script: &RunScript, paint: AnsiPaint) -> Vec<String> {
    let own: Vec<&ScriptMetric> = script.metrics.iter().filter(|metric| is_shown(metric)).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paint.dim(&format!("{:<NAME_WIDTH$}  values", "metric"))];
    lines.extend(own.iter().take(MAX_SHOWN).map(|metric| {
        let name = truncate(&metric.name, NAME_WIDTH);
        truncate(&format!("{name:<NAME_WIDTH$}  {}", values(metric)), TERMINAL_COLUMNS)
    }));
    lines.extend(more(own.len(), MAX_SHOWN));
    lines
}

/// Values of a metric in one line.
pub(super) fn values(metric: &ScriptMetric) -> String {
    let value = |name: &str| metric.values.get(name).copied().unwrap_or(0.0);
    let shown = |value: f64| match metric.unit.as_str() {
        "milliseconds" => ms(Some(value)),
        "bytes" => bytes(value),
        _ => rounded(value),
    };
    match metric.kind.as_str() {
        "counter" => format!("{}  {}/s", shown(value("count")), shown(value("rate"))),
        "rate" => {
            let all = value("passes") + value("fails");
            format!("{} of {}", percentage(value("rate")), count(all as u64))
        }
        "gauge" => format!("{}  min {}  max {}", shown(value("value")), shown(value("min")), shown(value("max"))),
        _ => {
            let ends = ["max", "min"];
            let known = ["avg", "med", "max", "min"];
            let has = |name: &&str| metric.values.contains_key(*name);
            let rest = metric.values.keys().map(String::as_str).filter(|name| !known.contains(name));
            let names = ["avg", "med"].into_iter().filter(has).chain(rest).chain(ends.into_iter().filter(has));
            let one = |name: &str| if name == "count" { count(value(name) as u64) } else { shown(value(name)) };
            names.map(|name| format!("{name} {}", one(name))).collect::<Vec<_>>().join("  ")
        }
    }
}

/// Number with at most two digits after the point.
fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Line on what is left out.
fn more(all: usize, shown: usize) -> Option<String> {
    (all > shown).then(|| format!("  and {} more", all - shown))
}
