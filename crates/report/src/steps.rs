//! Scenarios in the text report: iterations, steps, and the checks that failed.

use super::ansi::{AnsiPaint, LABEL_WIDTH};
use super::number_format::{TERMINAL_COLUMNS, count, ms, ms_like, percentage, rate, truncate, wrap};
use weir_measure::Run;
use weir_measure::run_steps::RunStep;

/// Characters of the name of a step.
const NAME_WIDTH: usize = 34;
/// Maximum number of lines of a response in a sample.
const MAX_SAMPLE_LINES: usize = 12;

/// Iterations, and a row for each step.
pub(super) fn table(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(iterations) = &run.iterations else { return Vec::new() };
    let failed = match iterations.failed {
        0 => "0 failed".to_owned(),
        n => paint.red(&format!("{} failed", count(n))),
    };
    let mut facts = vec![format!("{} total", count(iterations.total)), format!("{} ok", count(iterations.ok)), failed];
    if iterations.dropped > 0 {
        facts.push(format!("{} never started: no user was free in time", count(iterations.dropped)));
    }
    if iterations.unfinished > 0 {
        facts.push(format!("{} cut off by the end", count(iterations.unfinished)));
    }
    let rates = &iterations.rate_per_s;
    let offered =
        if rates.offered > rates.achieved * 1.01 { format!(" of {}/s", rate(rates.offered)) } else { String::new() };
    let mut lines = vec![
        paint.line("iterations", &facts),
        paint.line(
            "",
            &[
                format!("{}/s{offered}", rate(rates.achieved)),
                format!("{} mean", ms(iterations.time_ms.mean)),
                format!("{} p95", ms(iterations.time_ms.p95)),
            ],
        ),
        String::new(),
    ];
    let heading = format!(
        "{:<NAME_WIDTH$}{:>12}{:>10}{:>9}{:>9}{:>9}{:>9}",
        "step", "requests", "failed", "p50", "p95", "p99", "max"
    );
    lines.push(paint.dim(&heading));
    lines.extend(run.steps.iter().map(|step| row(step, paint)));
    lines
}

fn row(step: &RunStep, paint: AnsiPaint) -> String {
    let times = &step.response_ms;
    let cells: String = if step.ok == 0 {
        format!("{:>9}{:>9}{:>9}{:>9}", "-", "-", "-", "-")
    } else {
        [times.p50, times.p95, times.p99, times.max]
            .iter()
            .map(|time| format!("{:>9}", ms_like(*time, *time)))
            .collect()
    };
    let name = truncate(&step.name, NAME_WIDTH - 1);
    let failed = step.failed + step.unsent;
    let line = format!("{name:<NAME_WIDTH$}{:>12}{:>10}{cells}", count(step.requests), count(failed));
    if failed > 0 { paint.red(&line) } else { line }
}

/// Checks: how many passed; each that failed, and a sample.
pub(super) fn checks(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let all = || run.steps.iter().flat_map(|step| &step.checks);
    let (passed, failed): (u64, u64) = (all().map(|check| check.passed).sum(), all().map(|check| check.failed).sum());
    let mut lines = Vec::new();
    if passed + failed > 0 {
        let share = failed as f64 / (passed + failed) as f64;
        let failed = match failed {
            0 => "0 failed".to_owned(),
            n => paint.red(&format!("{} failed ({})", count(n), percentage(share))),
        };
        lines.push(paint.line("checks", &[format!("{} passed", count(passed)), failed]));
    }
    for step in &run.steps {
        for check in step.checks.iter().filter(|check| check.failed > 0) {
            let words = format!(
                "✗ {}: {} · {} of {}",
                step.name,
                check.text,
                count(check.failed),
                count(check.passed + check.failed)
            );
            lines.push(paint.red(&truncate(&format!("{:<LABEL_WIDTH$}{words}", ""), TERMINAL_COLUMNS)));
        }
    }
    for step in &run.steps {
        let Some(sample) = step.samples.first() else { continue };
        lines.extend(wrap(&format!("{:<LABEL_WIDTH$}", "e.g."), &format!("{}: {}", step.name, sample.reason)));
        let shown = sample.response.lines().take(MAX_SAMPLE_LINES);
        lines
            .extend(shown.map(|line| paint.dim(&truncate(&format!("{:<LABEL_WIDTH$}  {line}", ""), TERMINAL_COLUMNS))));
    }
    lines
}
