//! Comparisons of runs of scenarios.

use super::*;
use crate::comparison::ComparedStep;
use weir_histogram::Histogram;
use weir_measure::run_steps::RunStep;

/// Runs of a shop, in turns with those of other sides; `change` makes the one of a number from the sample.
fn shops(name: &str, turn: f64, change: impl Fn(usize, &mut Run)) -> Side {
    let run = |i: usize| {
        let mut run = fixtures::shop();
        run.manifest.started_unix_s = 100.0 * i as f64 + turn;
        run.trust.ok = true;
        run.trust.reasons.clear();
        change(i, &mut run);
        SavedRun { file: format!("{name}/{i}.json"), result: ToolResult::of_run(run) }
    };
    Side { name: name.into(), runs: (0..6).map(run).collect() }
}

/// Makes the response times of a step longer.
fn slow_down(step: &mut RunStep, factor: f64) {
    let times = step.response_histogram().expect("own histogram");
    let mut slower = Histogram::precise();
    for rank in 0..times.count() {
        let time = times.quantile(rank as f64 / times.count() as f64).expect("times");
        slower.record(weir_base::Nanos((time.0 as f64 * factor) as u64));
    }
    (step.histogram, step.response_ms) = (slower.to_base64(), slower.percentiles());
}

/// Comparison with as many resamples as a verdict needs.
fn quickly(sides: &[Side]) -> RunComparison {
    let settings = Settings { resamples: 999, ..Settings::default() };
    RunComparison::new(sides, &MetricSelector::DEFAULTS, &settings, Vec::new())
}

fn compared(other: impl Fn(usize, &mut Run)) -> RunComparison {
    quickly(&[shops("old", 0.0, |_, _| {}), shops("new", 40.0, other)])
}

fn step<'c>(comparison: &'c RunComparison, name: &str) -> &'c ComparedStep {
    comparison.pairs[0].steps.iter().find(|step| step.name == name).expect("a step of both")
}

fn finding<'c>(step: &'c ComparedStep, metric: &str) -> &'c str {
    &step.verdicts.iter().find(|judged| judged.metric.name == metric).expect("a metric of steps").finding
}

#[test]
fn a_slower_step_is_found_where_the_whole_is_the_same() {
    let comparison = compared(|_, run| slow_down(&mut run.steps[1], 1.5));
    let pair = &comparison.pairs[0];
    assert_eq!(pair.finding, OverallFinding::Worse);
    assert!(pair.verdicts.iter().all(|judged| judged.finding == "same"), "{pair:?}");
    assert_eq!(finding(step(&comparison, "shop: order"), "p50"), "worse");
    assert_eq!(finding(step(&comparison, "shop: login"), "p50"), "same");
    let text = text::render(&comparison, false);
    assert!(text.contains("B vs A: worse: shop: order p50 +49.8%"), "{text}");
    fixtures::same(&text, include_str!("../../golden/compare.steps.txt"), "compare.steps.txt");
    let shown = markdown::render(&comparison);
    fixtures::same(&shown, include_str!("../../golden/compare.steps.md.txt"), "compare.steps.md.txt");
}

#[test]
fn a_side_is_not_faster_if_more_of_a_step_fails() {
    let faster = |run: &mut Run| run.rate_per_s.achieved *= 2.0;
    let won = compared(|_, run| faster(run));
    assert_eq!((won.pairs[0].finding, won.pairs[0].verdicts[0].finding.as_str()), (OverallFinding::Better, "better"));
    let failing = compared(|i, run| {
        faster(run);
        let step = &mut run.steps[0];
        // 2.5 to 7.5% of one step in three: below the smallest effect of the whole if few requests are its own.
        step.ok -= 1 + i as u64 % 3;
        step.failed += 1 + i as u64 % 3;
    });
    let rate = &failing.pairs[0].verdicts[0];
    assert_eq!(rate.reason.as_deref(), Some("more of the requests or checks of a step fail"));
    assert_ne!(failing.pairs[0].finding, OverallFinding::Better);
    let unchecked = compared(|_, run| {
        faster(run);
        run.steps[2].checks[0].failed += 4;
    });
    assert_eq!(unchecked.pairs[0].verdicts[0].reason, rate.reason);
    assert_eq!(finding(step(&unchecked, "browse: GET /items"), "checks"), "worse");
}

#[test]
fn a_step_is_not_faster_if_more_of_it_or_of_the_whole_fails() {
    let own = compared(|_, run| {
        slow_down(&mut run.steps[1], 0.5);
        run.steps[1].checks[0].failed += 10;
    });
    assert_eq!(finding(step(&own, "shop: order"), "p50"), "inconclusive");
    let whole = compared(|_, run| {
        slow_down(&mut run.steps[1], 0.5);
        run.requests.failed += 40;
    });
    assert_eq!(finding(step(&whole, "shop: order"), "p50"), "inconclusive");
}

#[test]
fn a_step_of_one_side_only_is_named_and_has_no_verdict() {
    let comparison = compared(|_, run| run.steps[0].name = "shop: log in".into());
    let only: Vec<(&str, Option<&str>)> =
        comparison.pairs[0].steps.iter().map(|step| (step.name.as_str(), step.only.as_deref())).collect();
    let expected =
        [("shop: login", Some("A")), ("shop: order", None), ("browse: GET /items", None), ("shop: log in", Some("B"))];
    assert_eq!(only, expected);
    assert!(step(&comparison, "shop: login").verdicts.is_empty());
    let text = text::render(&comparison, false);
    assert!(text.contains("\nshop: login: only in A\n") && text.contains("shop: log in: only in B"), "{text}");
    let plain = quickly(&[shops("old", 0.0, |_, _| {}), shops("new", 40.0, |_, run| run.steps.clear())]);
    assert!(plain.pairs[0].steps.iter().all(|step| step.only.as_deref() == Some("A")));
}

#[test]
fn names_of_steps_are_text_in_every_report_and_the_schema_describes_them() {
    let hostile = |_: usize, run: &mut Run| run.steps[0].name = "<b>|`x`\u{1b}[2J".into();
    let sides = [shops("old", 0.0, hostile), shops("new", 40.0, hostile)];
    let comparison = quickly(&sides);
    let html = render(&page::of_comparison(&comparison, &sides, &MetricSelector::DEFAULTS, &[]));
    assert!(html.contains("Steps, B vs A") && !html.contains("<b>"));
    for shown in [text::render(&comparison, false), markdown::render(&comparison)] {
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    let schema = serde_json::from_str(include_str!("../../../../../../docs/schema/compare.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let value = serde_json::from_str(&comparison.to_json()).expect("own JSON");
    let wrong: Vec<String> = validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
