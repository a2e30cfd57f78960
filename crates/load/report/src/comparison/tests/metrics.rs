//! Metrics by their names, and those of streams.

use super::side;
use crate::comparison::{MetricSelector, OverallFinding, RunComparison, SavedRun, Side, text};
use crate::read::ToolResult;
use crate::tests::fixtures;
use weir_measure::compare::Settings;

#[test]
fn names_are_read_as_they_are_shown() {
    for name in
        ["rate", "errors", "goodput", "tokens", "p50", "p99.9", "mean", "max", "ttft.p99.9", "tpot.mean", "gap.max"]
    {
        let selector: MetricSelector = name.parse().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(selector.metric().name, name);
    }
    assert_eq!("median".parse::<MetricSelector>().map(|asked| asked.metric().name), Ok("p50".to_owned()));
    for name in ["ttft", "ttft.", "ttft.p101", "time.p99", "p", "ttft.rate", "first_event"] {
        let why = name.parse::<MetricSelector>().expect_err("there is none");
        assert!(why.starts_with(&format!("unknown metric '{name}'; choose rate,")), "{why}");
    }
}

/// Five runs of a language model's server; tokens per second and TTFT by a factor.
fn llm_side(name: &str, factor: f64) -> Side {
    let run = |i: usize| {
        let mut run = fixtures::language_model();
        run.manifest.started_unix_s = i as f64;
        if let Some(llm) = &mut run.llm {
            llm.output_tokens_per_s *= factor * (1.0 + 0.001 * i as f64);
        }
        SavedRun { file: format!("{name}/{i}.json"), result: ToolResult::of_run(run) }
    };
    Side { name: name.to_owned(), runs: (0..5).map(run).collect() }
}

#[test]
fn runs_of_language_models_are_compared_in_their_figures() {
    let sides = [llm_side("old", 1.0), llm_side("new", 0.8)];
    let asked = Side::default_metrics(&sides);
    let comparison = RunComparison::new(&sides, &asked, &Settings::default(), Vec::new());
    let [pair] = &comparison.pairs[..] else { panic!("{comparison:?}") };
    let found: Vec<(&str, &str)> =
        pair.verdicts.iter().map(|verdict| (verdict.metric.name.as_str(), verdict.finding.as_str())).collect();
    assert_eq!(found[0], ("tokens", "worse"));
    let times = ["ttft.p50", "ttft.p99", "tpot.p50", "tpot.p99", "errors"].map(|name| (name, "same"));
    assert_eq!(found[1..], times);
    assert_eq!(pair.finding, OverallFinding::Worse);
    assert!(text::render(&comparison, false).contains("tokens -20"), "{}", text::render(&comparison, false));
    // A side without a language model has no such figures.
    let mixed = [llm_side("old", 1.0), side("other", &[1.0], 0.0, 1.0)];
    assert_eq!(Side::default_metrics(&mixed), MetricSelector::DEFAULTS);
}
