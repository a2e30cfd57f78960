//! Steps of scenarios in the results of a study: their figures by variant, over the rounds.
//!
//! Verdicts are on whole loads; these figures show which step a difference is from.

use serde_json::{Value, json};

use super::findings::{Findings, RunRange};
use super::markdown_cell::cell;
use super::measurement::{Measurement, StudyStep};
use weir_measure::compare::{Better, Metric};
use weir_report::comparison::phrases::figure;

/// Maximum number of steps that the summary for a terminal shows.
const MAX_TERMINAL_STEPS: usize = 20;

/// Figures of a step of a variant at a point, over its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSummary {
    /// Name of the load.
    pub load: String,
    /// Name of the step.
    pub step: String,
    /// Index of the point.
    pub point: usize,
    /// Index of the variant.
    pub variant: usize,
    /// Median response time of successes, in milliseconds; None without any.
    pub p50_ms: Option<RunRange>,
    /// 99th percentile of these times, in milliseconds.
    pub p99_ms: Option<RunRange>,
    /// Failed requests as a fraction of all.
    pub errors: Option<RunRange>,
    /// Evaluations of checks that hold, as a fraction of all; None without any.
    pub checks: Option<RunRange>,
}

/// Steps of all loads in order, each at all points, and there of all variants that have it.
pub fn summaries(findings: &Findings<'_>) -> Vec<StepSummary> {
    let mut all = Vec::new();
    for step in steps_of_loads(findings) {
        for point in 0..findings.points.len() {
            let variants = 0..findings.definition.variants.len();
            all.extend(variants.filter_map(|variant| StepSummary::of(findings, &step, point, variant)));
        }
    }
    all
}

/// Names of a load and of a step of it.
struct StepOfLoad {
    load: String,
    step: String,
}

/// Steps of all loads, in order.
fn steps_of_loads(findings: &Findings<'_>) -> Vec<StepOfLoad> {
    let mut all: Vec<StepOfLoad> = Vec::new();
    for load in findings.outcome.measurements.iter().flat_map(|measurement| &measurement.loads) {
        for step in &load.steps {
            if !all.iter().any(|of| of.load == load.load && of.step == step.name) {
                all.push(StepOfLoad { load: load.load.clone(), step: step.name.clone() });
            }
        }
    }
    let order = |load: &str| findings.definition.loads.iter().position(|of| of.name == load);
    all.sort_by_key(|of| order(&of.load));
    all
}

impl StepSummary {
    fn of(findings: &Findings<'_>, named: &StepOfLoad, point: usize, variant: usize) -> Option<Self> {
        let StepOfLoad { load, step } = named;
        let measured = findings.measurements(variant, point).filter(|measurement| measurement.is_measured());
        let found: Vec<(&Measurement, &StudyStep)> = measured
            .filter_map(|measurement| {
                let of = measurement.loads.iter().find(|of| of.load == *load)?;
                Some((measurement, of.steps.iter().find(|of| of.name == *step)?))
            })
            .collect();
        let untrusted = found.iter().filter(|(run, step)| step.untrusted || !run.is_trusted()).count();
        let range = |value: &dyn Fn(&StudyStep) -> Option<f64>| {
            let mut values: Vec<f64> = found.iter().filter_map(|(_, step)| value(step)).collect();
            values.sort_by(f64::total_cmp);
            RunRange::of(&values, untrusted)
        };
        let summary = Self {
            load: load.clone(),
            step: step.clone(),
            point,
            variant,
            p50_ms: range(&|step| step.p50_ms),
            p99_ms: range(&|step| step.p99_ms),
            errors: range(&|step| Some(step.failed_fraction)),
            checks: range(&|step| step.checks),
        };
        (!found.is_empty()).then_some(summary)
    }

    /// Name with that of the load, if the study has several.
    pub(super) fn name(&self, findings: &Findings<'_>) -> String {
        if findings.definition.loads.len() > 1 { format!("{}: {}", self.load, self.step) } else { self.step.clone() }
    }

    /// Whether this is the same step at the same point as the one before it.
    fn is_beside(&self, other: &Self) -> bool {
        (&self.load, &self.step, self.point) == (&other.load, &other.step, other.point)
    }

    /// `3.10ms / 9.00ms`, with errors if there are any.
    fn figures(&self) -> String {
        let (ms, errors) = (Metric::ratio("", "ms", Better::Lower), Metric::fraction("", Better::Lower));
        let time = |range: Option<RunRange>| {
            range.map_or_else(|| "\u{2013}".to_owned(), |range| figure(&ms, Some(range.median)))
        };
        let failing = self.errors.filter(|range| range.median > 0.0);
        let errors =
            failing.map_or_else(String::new, |range| format!(", {} errors", figure(&errors, Some(range.median))));
        let doubt = self.errors.filter(|range| range.untrusted > 0);
        let doubt = doubt.map_or_else(String::new, |range| format!(" \u{26a0} {}/{}", range.untrusted, range.runs));
        format!("{} / {}{errors}{doubt}", time(self.p50_ms), time(self.p99_ms))
    }
}

/// Lines for a terminal: each step at the last point, which in most sweeps has the highest load.
pub(super) fn lines(findings: &Findings<'_>) -> Vec<String> {
    let all = summaries(findings);
    let Some(last) = all.iter().map(|of| of.point).max() else { return Vec::new() };
    let here: Vec<StepSummary> = all.into_iter().filter(|of| of.point == last).collect();
    let rows: Vec<&[StepSummary]> = here.chunk_by(StepSummary::is_beside).collect();
    let row = |row: &&[StepSummary]| {
        let variant = |of: &StepSummary| format!("{} {}", findings.variant(of.variant), of.figures());
        let name = row.first().map(|of| of.name(findings)).unwrap_or_default();
        format!("{name}: {}", row.iter().map(variant).collect::<Vec<_>>().join("; "))
    };
    let at = if findings.points.len() > 1 { format!(" at {}", findings.points[last].name()) } else { String::new() };
    let mut lines = vec![format!("steps{at}, p50 / p99, medians of the rounds:")];
    lines.extend(rows.iter().take(MAX_TERMINAL_STEPS).map(row));
    let more = rows.len().saturating_sub(MAX_TERMINAL_STEPS);
    lines.extend((more > 0).then(|| format!("{more} more steps are in the report")));
    lines
}

/// Table in Markdown; empty without steps.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let all = summaries(findings);
    if all.is_empty() {
        return String::new();
    }
    let variants = 0..findings.definition.variants.len();
    let names: Vec<&str> = variants.clone().map(|variant| findings.variant(variant)).collect();
    let mut text = format!("## Steps\n\np50 / p99, medians of the rounds.\n\n| step | | {} |\n", names.join(" | "));
    text.push_str(&format!("|---|---|{}\n", "---:|".repeat(names.len())));
    for row in all.chunk_by(StepSummary::is_beside) {
        let Some(first) = row.first() else { continue };
        let figures = |variant| {
            let of = row.iter().find(|of| of.variant == variant);
            of.map_or_else(|| "\u{2013}".to_owned(), StepSummary::figures)
        };
        let (name, at) = (cell(&first.name(findings)), cell(&findings.points[first.point].name()));
        let figures: Vec<String> = variants.clone().map(figures).collect();
        text.push_str(&format!("| {name} | {at} | {} |\n", figures.join(" | ")));
    }
    text.push('\n');
    text
}

/// Steps as JSON, described by `docs/schema/study-result.schema.json`.
pub(super) fn json(findings: &Findings<'_>) -> Value {
    let of = |of: StepSummary| {
        json!({
            "load": of.load,
            "step": of.step,
            "point": findings.points[of.point].to_json(),
            "variant": findings.variant(of.variant),
            "p50_ms": of.p50_ms,
            "p99_ms": of.p99_ms,
            "errors": of.errors,
            "checks": of.checks,
        })
    };
    summaries(findings).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{STEADY_RATES_PER_S, definition, outcome};
    use crate::text;

    /// Step with a median of this time, and a longer tail.
    fn step(name: &str, p50_ms: f64) -> StudyStep {
        StudyStep {
            name: name.into(),
            requests: 100,
            checks: Some(1.0),
            p50_ms: Some(p50_ms),
            p99_ms: Some(p50_ms * 3.0),
            ..StudyStep::default()
        }
    }

    #[test]
    fn each_step_has_the_medians_of_each_variant_and_those_that_are_late_are_marked() {
        let definition = definition("");
        let (_dir, mut outcome) = outcome(STEADY_RATES_PER_S, STEADY_RATES_PER_S);
        for (at, of) in outcome.measurements.iter_mut().enumerate() {
            let slow = if of.variant == "b" { 2.0 } else { 1.0 };
            of.loads[0].steps = vec![step("log|in", 3.0), step("buy", slow * (4.0 + (at % 7) as f64))];
            of.loads[0].steps[0].untrusted = at == 0;
            of.loads[0].steps[1].failed_fraction = if slow > 1.0 { 0.02 } else { 0.0 };
        }
        let findings = Findings::new(&definition, &outcome);
        let all = summaries(&findings);
        let medians: Vec<(&str, usize, f64)> =
            all.iter().filter_map(|of| Some((of.step.as_str(), of.variant, of.p50_ms?.median))).collect();
        assert_eq!(medians, [("log|in", 0, 3.0), ("log|in", 1, 3.0), ("buy", 0, 7.0), ("buy", 1, 14.0)]);
        let shown = lines(&findings);
        assert_eq!(shown[1], "log|in: a 3ms / 9ms \u{26a0} 1/7; b 3ms / 9ms");
        assert_eq!(shown[2], "buy: a 7ms / 21ms; b 14ms / 42ms, 2.00% errors");
        assert!(text::render(&findings, "report.html").contains("buy: a 7ms"));
        let report = text::markdown(&findings, &[]);
        assert!(report.contains("| log\\|in | "), "{report}");
        assert!(report.contains(" | 7ms / 21ms | 14ms / 42ms, 2.00% errors |"), "{report}");
        assert_eq!(text::json(&findings)["steps"][3]["p99_ms"]["median"], 42.0);
        let page = weir_report::page::render(&crate::page::of_findings(&findings, &[]));
        assert!(page.contains("p99 by step") && page.contains("log|in"));
    }

    #[test]
    fn a_study_without_scenarios_says_nothing_of_steps() {
        let definition = definition("");
        let (_dir, outcome) = outcome(STEADY_RATES_PER_S, STEADY_RATES_PER_S);
        let findings = Findings::new(&definition, &outcome);
        assert_eq!((lines(&findings), markdown(&findings)), (Vec::new(), String::new()));
        assert!(!weir_report::page::render(&crate::page::of_findings(&findings, &[])).contains("p99 by step"));
    }
}
