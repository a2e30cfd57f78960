//! Capacity report for a terminal: the bounds, the reasons, then every load level.
//!
//! - [`page`](mod@page): the HTML report
//! - [`recovery`]: test of recovery; `recovery_page`: the same in the HTML report

pub mod page;
pub mod recovery;
mod recovery_page;

use super::ansi::AnsiPaint;
use super::number_format::{TERMINAL_COLUMNS, ms, percentage, rate, truncate, wrap};
use weir_measure::LoadModel;
use weir_measure::capacity::report::{Bottleneck, CapacityReport, StepReport, StepResult, UslSummary};

/// Report as text, with ANSI colours if `color`.
pub fn render(report: &CapacityReport, color: bool) -> String {
    let paint = AnsiPaint { enabled: color };
    let tested = report.recovery.as_ref();
    let mut blocks = vec![headline(report, paint)];
    if has_search(report) {
        blocks.extend([reasons(report, paint), steps(report, paint), growth(report, paint)]);
        blocks.extend(tested.map(|tested| recovery::verdict_lines(tested, paint)));
    }
    blocks.extend(
        tested.into_iter().flat_map(|tested| [recovery::reason_lines(tested), recovery::phase_lines(tested, paint)]),
    );
    let blocks: Vec<String> = blocks.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    blocks.join("\n\n") + "\n"
}

/// Whether there was a search: a test of recovery may have had its load.
fn has_search(report: &CapacityReport) -> bool {
    report.recovery.is_none() || !report.steps.is_empty()
}

/// Load with its unit: `480/s`, `12 users`.
pub fn load(model: LoadModel, load: f64) -> String {
    match model {
        LoadModel::Open => format!("{}/s", rate(load)),
        LoadModel::Closed if load == 1.0 => "1 user".into(),
        LoadModel::Closed => format!("{load:.0} users"),
    }
}

/// Outcome of a step in a line: `480/s passes (p50 12ms, p99 30ms; 5 s)`.
pub fn step(model: LoadModel, tried: &StepReport) -> String {
    let end = match tried.outcome {
        StepResult::Passes => "passes",
        StepResult::Inconclusive => "is inconclusive",
        StepResult::Fails => "fails",
        StepResult::Generator => "is beyond weir's own limit",
    };
    let times = format!("p50 {}, p99 {}; {:.0} s", time(tried.p50_ms), time(tried.p99_ms), tried.duration_s);
    format!("{} {end} ({times})", load(model, tried.load))
}

fn time(time_ms: Option<f64>) -> String {
    time_ms.map_or_else(|| "-".into(), ms)
}

/// Bounds in words: `passes at 497/s, fails at 508/s`.
fn bracket(report: &CapacityReport) -> String {
    let shown = |bound: Option<f64>| bound.map(|bound| load(report.model, bound));
    match (shown(report.passes), shown(report.fails)) {
        (Some(passes), Some(fails)) => format!("passes at {passes}{}, fails at {fails}", less_than_tried(report)),
        (Some(passes), None) => format!("passes at {passes}{}; no load failed", less_than_tried(report)),
        // A load that passes is tried once more, for longer.
        (None, Some(fails)) if report.steps.iter().any(|tried| tried.outcome == StepResult::Passes) => {
            format!("fails at {fails}; no load passed every time")
        }
        (None, Some(fails)) => format!("fails at {fails}; no load passed"),
        (None, None) if report.limited_by == Bottleneck::Service => "no load passes".into(),
        (None, None) => "no bounds were found".into(),
    }
}

/// Load whose trial gave a lower bound that is not in the table of loads.
fn less_than_tried(report: &CapacityReport) -> String {
    let tried = report.steps.iter().rev().find(|tried| tried.sustained.is_some() && tried.sustained == report.passes);
    let tried = tried.map(|tried| load(report.model, tried.load));
    let is_another = |tried: &String| report.passes.is_none_or(|passes| *tried != load(report.model, passes));
    let tried = tried.filter(is_another);
    tried.map_or_else(String::new, |tried| format!(" ({tried} less its margin of error)"))
}

fn confidence(report: &CapacityReport) -> String {
    match report.confidence {
        s if s > 0.999 => ", >99.9% confidence".into(),
        s if s > 0.0 => format!(", {:.1}% confidence", s * 100.0),
        _ => String::new(),
    }
}

fn model(report: &CapacityReport) -> &'static str {
    match report.model {
        LoadModel::Open if report.iterations => "open loop, iterations per second",
        LoadModel::Open => "open loop",
        LoadModel::Closed => "closed loop",
    }
}

fn headline(report: &CapacityReport, paint: AnsiPaint) -> Vec<String> {
    let (words, sure) = (bracket(report), confidence(report));
    let subject = format!("{} · {} · {}", report.url, model(report), report.objectives.join(", "));
    if let Some(tested) = report.recovery.as_ref().filter(|_| !has_search(report)) {
        let subject = format!("{} · {}", report.url, model(report));
        let mut lines = vec![truncate(&subject, TERMINAL_COLUMNS)];
        lines.extend(recovery::verdict_lines(tested, paint));
        return lines;
    }
    let mut lines = vec![truncate(&subject, TERMINAL_COLUMNS)];
    lines.extend(wrap("", &format!("{words}{sure}")).iter().map(|line| paint.bold(line)));
    if report.interrupted {
        lines.push(paint.red("interrupted: the bounds so far"));
    }
    if report.lost_agent.is_some() {
        lines.push(paint.red("not trusted: an agent was lost; these are the bounds so far"));
    }
    lines
}

fn reasons(report: &CapacityReport, paint: AnsiPaint) -> Vec<String> {
    let whose = match report.limited_by {
        Bottleneck::Service => "reason        ",
        Bottleneck::Generator => "not the service's limit  ",
        Bottleneck::None => "no limit      ",
    };
    let mut lines = wrap(whose, &report.reason);
    if report.limited_by == Bottleneck::Generator {
        lines = lines.iter().map(|line| paint.red(line)).collect();
    }
    lines.extend(wrap("stopped       ", &report.stop_reason));
    lines.extend(report.saturated.iter().flat_map(|words| wrap("saturated     ", words)));
    lines
}

fn steps(report: &CapacityReport, paint: AnsiPaint) -> Vec<String> {
    if report.steps.is_empty() {
        return Vec::new();
    }
    let heading = format!(
        "{:>11}{:>10}{:>8}{:>8}{:>8}{:>10}{:>6}{:>5}  outcome",
        "load", "responses", "p50", "p99", "errors", "in flight", "cores", "time"
    );
    let mut lines = vec![paint.dim(&heading)];
    lines.extend(report.steps.iter().map(|tried| {
        let end = match tried.outcome {
            StepResult::Passes => paint.green("passes"),
            StepResult::Inconclusive => "inconclusive".into(),
            StepResult::Fails => paint.red("fails"),
            StepResult::Generator => paint.red("weir's limit"),
        };
        let cores = tried.service_cores.map_or_else(|| "-".into(), |cores| format!("{cores:.2}"));
        format!(
            "{:>11}{:>10}{:>8}{:>8}{:>8}{:>10}{cores:>6}{:>5}  {end}",
            load(report.model, tried.load),
            format!("{}/s", rate(tried.achieved_per_s)),
            time(tried.p50_ms),
            time(tried.p99_ms),
            percentage(tried.errors),
            rate(tried.in_flight),
            format!("{:.0}s", tried.duration_s),
        )
    }));
    lines
}

/// Scalability law in a sentence.
fn law(growth: &UslSummary) -> String {
    let UslSummary { law, knee_users, peak_users, peak_per_s } = growth;
    let peak = match (peak_users, peak_per_s) {
        (Some(users), Some(per_s)) => format!("highest throughput at {users:.0} users: {}/s", rate(*per_s)),
        _ => "no peak within twice the highest number of users".into(),
    };
    format!(
        "one user gets {}/s; contention {}, coherency {:.6}; beyond {knee_users:.0} users, most of them wait; {peak}; \
         rms residual {}",
        rate(law.per_user),
        percentage(law.contention),
        law.coherency,
        percentage(law.rms_residual),
    )
}

/// Warning for a law that does not fit the measurements.
fn fit_warning(growth: &UslSummary) -> Option<&'static str> {
    (growth.law.rms_residual > 0.1).then_some("The fit is poor: read the table, not the curve.")
}

fn growth(report: &CapacityReport, paint: AnsiPaint) -> Vec<String> {
    let Some(growth) = &report.usl else { return Vec::new() };
    let mut lines = wrap("scalability   ", &law(growth));
    if let Some(words) = fit_warning(growth) {
        lines.extend(wrap("              ", words).iter().map(|line| paint.red(line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;
    use weir_measure::capacity::report::SCHEMA_VERSION;
    use weir_measure::capacity::usl::{Usl, UslPoint};
    use weir_measure::run::Manifest;

    fn tried(load: f64, end: StepResult, p99_ms: f64) -> StepReport {
        StepReport {
            load,
            sustained: (end == StepResult::Passes).then_some(load),
            outcome: end,
            reason: None,
            confidence: 0.991,
            duration_s: 12.0,
            achieved_per_s: load * 0.99,
            p50_ms: Some(20.4),
            p99_ms: (end != StepResult::Generator).then_some(p99_ms),
            errors: 0.0,
            in_flight: load / 49.0,
            lateness_p99_ms: Some(0.1),
            cpu_utilization: 0.05,
            service_cores: Some(0.11),
            machine_utilization: Some(0.2),
        }
    }

    fn open() -> CapacityReport {
        CapacityReport {
            weir: "0.0.0".into(),
            schema: SCHEMA_VERSION,
            model: LoadModel::Open,
            iterations: false,
            url: "http://127.0.0.1:9001/api/work\u{1b}[2J".into(),
            objectives: vec!["p99<200ms".into(), "errors<1%".into()],
            passes: Some(497.0),
            fails: Some(508.0),
            confidence: 0.983,
            limited_by: Bottleneck::Service,
            reason: "p99<200ms: p99 response time 253ms".into(),
            saturated: Some("no CPU: the service used 0.11 of 2 cores, so it waited for something else".into()),
            steps: vec![
                tried(400.0, StepResult::Passes, 35.8),
                tried(800.0, StepResult::Fails, 1490.0),
                tried(566.0, StepResult::Inconclusive, 245.0),
                tried(508.0, StepResult::Generator, 253.0),
            ],
            usl: None,
            stop_reason: "the bounds are within 3%".into(),
            interrupted: false,
            lost_agent: None,
            recovery: None,
            manifest: Manifest::default(),
        }
    }

    /// Report of a test of recovery, after a search or without one.
    pub(super) fn given(tested: weir_measure::recovery::RecoveryReport, is_searched: bool) -> CapacityReport {
        let report = CapacityReport { recovery: Some(tested), ..open() };
        if is_searched {
            return report;
        }
        CapacityReport { steps: Vec::new(), passes: None, fails: None, limited_by: Bottleneck::None, ..report }
    }

    fn closed() -> CapacityReport {
        let points =
            [1.0, 2.0, 4.0, 8.0, 16.0].map(|users: f64| UslPoint { users, rate_per_s: 50.0 * users.min(10.0) });
        let tried = |users: f64| StepReport { service_cores: None, ..tried(users, StepResult::Passes, 30.0) };
        CapacityReport {
            model: LoadModel::Closed,
            passes: Some(16.0),
            fails: None,
            limited_by: Bottleneck::None,
            reason: "interrupted before a load failed".into(),
            saturated: None,
            steps: points.map(|point| tried(point.users)).to_vec(),
            usl: Usl::fit(&points).map(UslSummary::of),
            stop_reason: "interrupted".into(),
            interrupted: true,
            ..open()
        }
    }

    #[test]
    fn the_report_is_readable_at_a_glance() {
        let shown = [open(), closed()].map(|report| render(&report, false)).join("\n=====\n\n");
        fixtures::same(&shown, include_str!("../golden/capacity.text.txt"), "capacity.text.txt");
        assert!(!shown.contains('\u{1b}'));
        for line in shown.lines() {
            assert!(line.chars().count() <= TERMINAL_COLUMNS && !line.ends_with(' '), "{line:?}");
        }
    }

    #[test]
    fn the_page_has_the_bounds_and_marks_untrusted_points() {
        use crate::page::{Block, Tone, render};
        let page = page::of_capacity(&open());
        assert_eq!(
            (page.verdict.tone, page.verdict.headline.as_str()),
            (Tone::Good, "Passes at 497/s, fails at 508/s")
        );
        let charts = page.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        });
        let response = charts.clone().next().expect("response times");
        assert_eq!(response.lines[0].x, [400.0, 508.0, 566.0, 800.0]);
        assert_eq!(response.lines[0].untrusted, [1, 2], "weir's limit, and inconclusive steps");
        assert_eq!((response.levels[0].at, response.levels.len()), (200.0, 1));
        let cut_short = page::of_capacity(&closed());
        assert_eq!(cut_short.verdict.tone, Tone::Doubt);
        assert!(cut_short.sections.iter().any(|section| section.title == "Scalability"));
        for page in [page, cut_short] {
            assert!(render(&page).ends_with("</html>\n"));
        }
    }

    #[test]
    fn the_published_schema_describes_a_report() {
        let schema =
            serde_json::from_str(include_str!("../../../../../docs/schema/capacity.schema.json")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let lost = CapacityReport { lost_agent: Some("agent 1 on n1 was lost".into()), ..open() };
        let tested = CapacityReport { recovery: Some(recovery::fixtures::metastable()), ..open() };
        for report in [open(), closed(), lost, tested] {
            let value = serde_json::from_str(&report.to_json()).expect("own JSON");
            let wrong: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
}
