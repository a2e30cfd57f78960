//! Reports of runs to language models.

use super::*;
use crate::number_format::TERMINAL_COLUMNS;
use crate::page;
use crate::tests::fixtures;
use weir_measure::LoadModel;
use weir_measure::rate::Rate;
use weir_measure::run_steps::RunIterations;

#[test]
fn reports_are_those_of_their_golden_files() {
    let run = fixtures::language_model();
    let text = render(&run, LlmReportFormat::Text, false);
    fixtures::same(&text, include_str!("../../golden/llm.text.txt"), "llm.text.txt");
    let vllm = render(&run, LlmReportFormat::Vllm, false);
    fixtures::same(&vllm, include_str!("../../golden/llm.vllm.txt"), "llm.vllm.txt");
    fixtures::same(&sweep().text(false), include_str!("../../golden/llm.sweep.txt"), "llm.sweep.txt");
    for report in [text, sweep().text(false)] {
        assert!(report.lines().all(|line| line.chars().count() <= TERMINAL_COLUMNS), "{report}");
    }
}

#[test]
fn in_an_open_loop_conversations_are_offered_and_what_the_end_cuts_off_is_told() {
    let mut run = fixtures::language_model();
    (run.model, run.rate_per_s.offered) = (LoadModel::Open, run.rate_per_s.achieved);
    let rate_per_s = Rate { offered: 120.0, achieved: 40.0 };
    run.iterations = Some(RunIterations { unfinished: 7, rate_per_s, ..RunIterations::default() });
    let text = render(&run, LlmReportFormat::Text, false);
    assert!(text.contains("rate         99.0/s of 120/s offered · "), "{text}");
    assert!(text.contains("\n             7 cut off by the end, not counted\n"), "{text}");
    let vllm = render(&run, LlmReportFormat::Vllm, false);
    assert!(vllm.contains("Request rate configured (RPS):           120.00 "), "{vllm}");
    run.steps.push(run.steps[0].clone());
    let text = render(&run, LlmReportFormat::Text, false);
    let conversations =
        "40.0/s of 120/s conversations offered\n             7 conversations cut off by the end, not counted";
    assert!(text.contains("rate         99.0/s · ") && text.contains(conversations), "{text}");
}

fn sweep() -> LlmSweep {
    let point = |value: f64| {
        let mut run = fixtures::language_model();
        if let Some(llm) = &mut run.llm {
            llm.output_tokens_per_s = value * 20.0;
            llm.good = if value > 2.0 { 100 } else { 200 };
        }
        if value > 4.0 {
            run.trust.ok = false;
            run.trust.reasons = vec!["a reason".to_owned(), "another one".to_owned()];
        }
        LlmSweepPoint { value, run }
    };
    LlmSweep { flag: "rate".to_owned(), points: [1.0, 2.0, 4.0, 8.0].map(point).into() }
}

#[test]
fn a_run_without_usage_or_success_claims_no_tokens() {
    let mut run = fixtures::language_model();
    let llm = run.llm.as_mut().expect("of a language model");
    (llm.with_usage, llm.input_tokens, llm.output_tokens, llm.tokens_per_chunk) = (0, 0, 0, None);
    llm.tpot_ms = weir_histogram::percentiles::Percentiles::default();
    let text = render(&run, LlmReportFormat::Text, false);
    assert!(text.contains("no usage from the server") && !text.contains("tokens/s"), "{text}");
    let empty = Run { llm: None, ..fixtures::broken() };
    for format in LlmReportFormat::value_variants() {
        assert!(render(&empty, *format, false).ends_with('\n'));
    }
    assert!(render(&empty, LlmReportFormat::Text, false).contains("no times: no request succeeded"));
}

#[test]
fn a_reason_of_many_runs_of_a_sweep_is_a_line_and_few_successes_are_a_caution() {
    let mut sweep = sweep();
    let few = "too few successes: 30; below 100 the high percentiles are single requests. Run longer.".to_owned();
    for point in &mut sweep.points[..3] {
        (point.run.requests.ok, point.run.trust.ok, point.run.trust.reasons) = (30, false, vec![few.clone()]);
    }
    let text = sweep.text(false);
    assert!(text.contains("\n! rate 1, 2, 4: caution: too few successes: 30;"), "{text}");
    assert!(text.contains("\n! rate 8 is not trusted: a reason; another one\n"), "{text}");
    assert!(page::render(&sweep.page()).contains("rate 1, 2, 4: caution: too few successes"));
}

#[test]
fn the_points_of_a_curve_have_the_values_of_the_sweep_as_names() {
    let page = sweep().page();
    let charts = page.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        page::Block::Chart(chart) => Some(chart),
        _ => None,
    });
    let charts: Vec<&page::Chart> = charts.collect();
    let line = charts[0].lines.last().expect("p99");
    assert_eq!((line.name.as_str(), line.labels.join(" ").as_str()), ("p99", "1 2 4 8"));
    let by_rate = charts.iter().find(|chart| chart.title == "Requests").expect("requests by rate");
    assert_eq!(by_rate.x.marked, [1.0, 2.0, 4.0, 8.0]);
}

#[test]
fn the_verdict_of_a_sweep_is_the_load_below_the_first_that_misses() {
    let finding = |values: &[f64]| {
        let mut sweep = sweep();
        sweep.points.retain(|point| values.contains(&point.value));
        let text = sweep.text(false);
        text.lines().last().map(str::to_owned).unwrap_or_default()
    };
    let objectives = "ttft:150ms tpot:12ms for 99% of requests";
    assert_eq!(finding(&[1.0, 2.0, 4.0]), format!("{objectives}: met up to rate 2"));
    assert_eq!(finding(&[1.0, 2.0]), format!("{objectives}: met at all values, up to rate 2"));
    assert_eq!(finding(&[4.0]), format!("{objectives}: not met, even at rate 4"));
}

#[test]
fn the_page_of_a_sweep_has_the_curve_and_its_limits_and_its_json_all_runs() {
    let page = sweep().page();
    let html = page::render(&page);
    for text in ["Throughput against time", "TTFT", "objective", "rate 8 is not trusted: a reason; another one"] {
        assert!(html.contains(text), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&sweep().to_json()).expect("JSON");
    assert_eq!(json["points"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["points"][2]["run"]["llm"]["good"], 100);
}
