//! Scenarios in the text report: iterations, scenarios, steps, and the checks that failed; within 80 columns.

use super::ansi::{AnsiPaint, LABEL_WIDTH};
use super::number_format::{TERMINAL_COLUMNS, count, ms, ms_like, percentage, rate, truncate, wrap};
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::failure_text::failure_text;
use weir_measure::run_steps::{RunCheck, RunScenario, RunStep};
use weir_measure::step_counts::CheckCounts;

/// Characters of the name of a step or scenario.
const NAME_WIDTH: usize = 25;
/// Maximum number of lines of a response in a sample.
const MAX_SAMPLE_LINES: usize = 12;
/// Maximum number of steps with a sample, and of failed checks.
const MAX_SHOWN_SAMPLES: usize = 3;
const MAX_SHOWN_CHECKS: usize = 12;

/// Sentence on iterations and checks for the first lines: no iteration succeeded, or checks failed.
pub(super) fn headline(run: &Run) -> Option<String> {
    // That no request succeeded is said already.
    let iterations = run.iterations.as_ref().filter(|_| run.requests.ok > 0 || run.requests.total == 0)?;
    if iterations.total > 0 && iterations.ok == 0 {
        let reasons = reasons(run);
        let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
        return Some(format!("NONE OF {} ITERATIONS SUCCEEDED{reasons}", count(iterations.total)));
    }
    let CheckCounts { passed, failed } = checked(run);
    (failed > 0).then(|| {
        let share = percentage(failed as f64 / (passed + failed) as f64);
        format!("{share} OF CHECKS FAILED: {} of {}", count(failed), count(passed + failed))
    })
}

/// Failures by kind, with steps that were not sent.
fn reasons(run: &Run) -> String {
    let unsent: u64 = run.steps.iter().map(|step| step.unsent).sum();
    let unsent = (unsent > 0).then(|| format!("{} not sent", count(unsent)));
    let thrown = run.script.as_ref().map_or(0, |script| script.exceptions.iter().map(|it| it.count).sum());
    let thrown = (thrown > 0).then(|| format!("{} exceptions of the script", count(thrown)));
    let kinds = Some(run.failed_by_kind()).filter(|kinds| !kinds.is_empty());
    kinds.into_iter().chain(unsent).chain(thrown).collect::<Vec<_>>().join(", ")
}

/// Evaluations of the checks of all steps.
fn checked(run: &Run) -> CheckCounts {
    let all = || run.steps.iter().flat_map(|step| &step.checks);
    CheckCounts { passed: all().map(|check| check.passed).sum(), failed: all().map(|check| check.failed).sum() }
}

/// Iterations, a row for each scenario of a mix, and one for each step.
pub(super) fn table(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let mut lines = iterations(run, paint);
    if run.steps.is_empty() {
        return lines;
    }
    if run.scenarios.len() > 1 {
        let heading = format!(
            "{:<NAME_WIDTH$}{:>10}{:>9}{:>9}{:>9}{:>9}",
            "scenario", "iterations", "failed", "/s", "mean", "p95"
        );
        lines.extend([String::new(), paint.dim(&heading)]);
        lines.extend(run.scenarios.iter().map(|scenario| scenario_row(scenario, paint)));
    }
    let heading = format!(
        "{:<NAME_WIDTH$}{:>10}{:>9}{:>9}{:>9}{:>9}{:>8}",
        if run.replay.is_some() { "route" } else { "step" },
        "requests",
        "failed",
        "p50",
        "p95",
        "p99",
        "max"
    );
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(paint.dim(&heading));
    for step in &run.steps {
        lines.push(step_row(step, paint));
        lines.extend(failures(step).map(|words| paint.red(&words)));
        lines.extend(late(step).map(|words| paint.red(&words)));
    }
    if run.steps.len() > 1 {
        let (requests, failed) = (run.requests.total, run.requests.failed);
        lines.push(paint.bold(&row("all", requests, failed, (run.requests.ok > 0).then_some(&run.response_ms))));
    }
    lines
}

fn iterations(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(iterations) = &run.iterations else { return Vec::new() };
    let failed = match iterations.failed {
        0 => "0 failed".to_owned(),
        n => paint.red(&format!("{} failed", count(n))),
    };
    let mut lines = vec![paint.line(
        "iterations",
        &[format!("{} total", count(iterations.total)), format!("{} ok", count(iterations.ok)), failed],
    )];
    if iterations.dropped > 0 {
        let words = format!("{} never started: no user was free in time", count(iterations.dropped));
        lines.push(paint.line("", &[paint.red(&words)]));
    }
    if iterations.unfinished > 0 {
        lines.push(paint.line("", &[format!("{} cut off by the end, not counted", count(iterations.unfinished))]));
    }
    let rates = &iterations.rate_per_s;
    let is_short = rates.offered > rates.achieved * 1.01;
    let offered = if is_short { format!(" of {}/s offered", rate(rates.offered)) } else { String::new() };
    let mut facts = vec![format!("{}/s{offered}", rate(rates.achieved))];
    if iterations.time_ms.max.is_some() {
        let times =
            [("mean", iterations.time_ms.mean), ("p50", iterations.time_ms.p50), ("p95", iterations.time_ms.p95)];
        facts.extend(times.map(|(name, time)| format!("{} {name}", ms(time))));
    }
    lines.push(paint.line("", &facts));
    lines
}

fn scenario_row(scenario: &RunScenario, paint: AnsiPaint) -> String {
    let name = truncate(&scenario.name, NAME_WIDTH - 1);
    let times = match scenario.iterations {
        0 => format!("{:>9}{:>9}", "-", "-"),
        _ => format!("{:>9}{:>9}", ms(scenario.time_ms.mean), ms(scenario.time_ms.p95)),
    };
    let line = format!(
        "{name:<NAME_WIDTH$}{:>10}{:>9}{:>9}{times}",
        count(scenario.iterations),
        count(scenario.failed),
        rate(scenario.rate_per_s)
    );
    if scenario.failed > 0 { paint.red(&line) } else { line }
}

fn step_row(step: &RunStep, paint: AnsiPaint) -> String {
    let line = row(&step.name, step.requests, step.failed, (step.ok > 0).then_some(&step.response_ms));
    if step.failed + step.unsent > 0 { paint.red(&line) } else { line }
}

fn row(name: &str, requests: u64, failed: u64, times: Option<&Percentiles>) -> String {
    let cells = match times {
        None => format!("{:>9}{:>9}{:>9}{:>8}", "-", "-", "-", "-"),
        Some(times) => {
            let [p50, p95, p99, max] = [times.p50, times.p95, times.p99, times.max].map(|time| ms_like(time, time));
            format!("{p50:>9}{p95:>9}{p99:>9}{max:>8}")
        }
    };
    let name = shortened(name, NAME_WIDTH - 1);
    format!("{name:<NAME_WIDTH$}{:>10}{:>9}{cells}", count(requests), count(failed))
}

/// Name of a step in a column; of a method of gRPC the end is more telling than the beginning.
fn shortened(name: &str, width: usize) -> String {
    let last = name.rsplit(' ').next().unwrap_or_default();
    let is_method = !last.starts_with('/') && last.contains('.') && last.contains('/') && !last.contains("://");
    let length = name.chars().count();
    if !is_method || length <= width {
        return truncate(name, width);
    }
    truncate(&format!("…{}", name.chars().skip(length + 1 - width).collect::<String>()), width)
}

/// Reason of a failure: of a kind without a response its message, if there is one.
pub(crate) fn failure_reason<'a>(run: &'a Run, reason: &'a str) -> &'a str {
    run.target.failure_details.get(reason).map_or(reason, String::as_str)
}

/// Failures of a step of one kind: `31 x 503`.
pub(crate) fn failures_of_kind(step: &RunStep, kind: &str, n: u64) -> String {
    failure_text(count(n), kind, step.status.keys().map(String::as_str))
}

/// Failures of a step by kind, the most frequent first, on a line of its own.
fn failures(step: &RunStep) -> Option<String> {
    let mut kinds: Vec<(&str, u64)> = step.failures.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    kinds.extend((step.unsent > 0).then_some(("not sent", step.unsent)));
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let words: Vec<String> = kinds.iter().map(|(kind, n)| failures_of_kind(step, kind, *n)).collect();
    (!words.is_empty()).then(|| truncate(&format!("  {}", words.join(", ")), TERMINAL_COLUMNS))
}

/// Mark of a step whose percentiles weir's own lateness distorts, on a line of its own.
fn late(step: &RunStep) -> Option<String> {
    step.untrusted.then(|| format!("  not trusted: weir sent late, 1% by {} or more", ms(step.lateness_ms.p99)))
}

/// Checks: how many passed; each that failed, and samples.
pub(super) fn checks(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let CheckCounts { passed, failed } = checked(run);
    let mut lines = Vec::new();
    if passed + failed > 0 {
        let share = failed as f64 / (passed + failed) as f64;
        let failed = match failed {
            0 => "0 failed".to_owned(),
            n => paint.red(&format!("{} failed ({})", count(n), percentage(share))),
        };
        lines.push(paint.line("checks", &[format!("{} passed", count(passed)), failed]));
    }
    let broken = run.steps.iter().flat_map(|step| step.checks.iter().map(move |check| (step, check)));
    let broken: Vec<(&RunStep, &RunCheck)> = broken.filter(|(_, check)| check.failed > 0).collect();
    for (step, check) in broken.iter().take(MAX_SHOWN_CHECKS) {
        let of = format!("{} of {}", count(check.failed), count(check.passed + check.failed));
        let words = format!("{:<LABEL_WIDTH$}✗ {of} · {}: {}", "", step.name, check.text);
        lines.push(paint.red(&truncate(&words, TERMINAL_COLUMNS)));
    }
    let more = broken.len().saturating_sub(MAX_SHOWN_CHECKS);
    if more > 0 {
        lines.push(paint.line("", &[format!("{more} more checks failed; --out and --html have all")]));
    }
    let has_message = |kind: &str| run.target.failure_details.contains_key(kind);
    let with_samples = || run.steps.iter().filter_map(|step| Some((step, step.main_sample(has_message)?)));
    for (step, sample) in with_samples().take(MAX_SHOWN_SAMPLES) {
        lines.extend(wrap(
            &format!("{:<LABEL_WIDTH$}", "e.g."),
            &format!("{}: {}", step.name, failure_reason(run, &sample.reason)),
        ));
        let shown = sample.response.lines().take(MAX_SAMPLE_LINES);
        lines
            .extend(shown.map(|line| paint.dim(&truncate(&format!("{:<LABEL_WIDTH$}  {line}", ""), TERMINAL_COLUMNS))));
    }
    let more = with_samples().count().saturating_sub(MAX_SHOWN_SAMPLES);
    if more > 0 {
        lines.push(paint.line("", &[format!("{more} more steps failed; --out and --html have their samples")]));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;
    use crate::text::render;

    #[test]
    fn steps_scenarios_and_failed_checks_are_readable_at_a_glance() {
        fixtures::same(&render(&fixtures::shop(), false), include_str!("golden/shop.text.txt"), "shop.text.txt");
    }

    #[test]
    fn a_step_that_weir_sent_late_is_marked_below_its_row() {
        let mut run = fixtures::shop();
        (run.steps[0].untrusted, run.steps[0].lateness_ms.p99) = (true, Some(3.25));
        let table = table(&run, AnsiPaint { enabled: false });
        let at = table.iter().position(|line| line.starts_with("shop: login")).expect("its row");
        assert_eq!(table[at + 1], "  not trusted: weir sent late, 1% by 3.25ms or more");
    }

    #[test]
    fn names_that_are_long_or_hostile_and_many_steps_keep_the_table_within_80_columns() {
        let mut run = fixtures::shop();
        let long = "GET /a/very/long/path/that/goes/on/and/on?with=a&query=too\u{1b}[31m\r\n".repeat(3);
        run.steps = (0..30).map(|_| RunStep { name: long.clone(), ..run.steps[1].clone() }).collect();
        let table = table(&run, AnsiPaint { enabled: false });
        assert!(table.iter().all(|line| line.chars().count() <= 80 && !line.contains(char::is_control)), "{table:?}");
        let shown = checks(&run, AnsiPaint { enabled: false });
        assert!(shown.len() < 70 && shown.iter().all(|line| !line.contains(char::is_control)), "{shown:?}");
        assert!(shown.iter().any(|line| line.contains("27 more steps failed")), "{shown:?}");
    }

    #[test]
    fn the_first_line_says_that_checks_failed_or_that_no_iteration_succeeded() {
        let mut run = fixtures::shop();
        assert_eq!(headline(&run).as_deref(), Some("12.5% OF CHECKS FAILED: 20 of 160"));
        let iterations = run.iterations.as_mut().expect("a run of scenarios");
        (iterations.ok, iterations.failed) = (0, iterations.total);
        assert!(headline(&run).is_some_and(|words| words.starts_with("NONE OF 80 ITERATIONS SUCCEEDED: 20 check")));
        assert_eq!(headline(&fixtures::closed()), None);
    }
}
