//! Comparisons of made-up runs, in every format.

mod metrics;
mod steps;

use super::{
    MetricSelector, OverallFinding, RunComparison, SavedRun, Side, comparability, markdown, page, pairing, text,
};
use crate::number_format::TERMINAL_COLUMNS;
use crate::page::{Block, ReportPage, Tone, render};
use crate::read::ToolResult;
use crate::tests::fixtures;
use weir_measure::Run;
use weir_measure::compare::{Finding, Settings, UnclearReason};

/// Runs of a service whose throughput is `level` times the sample's, one every `every_s` seconds from `from_s` on.
fn side(name: &str, levels: &[f64], from_s: f64, every_s: f64) -> Side {
    let run = |(i, level): (usize, &f64)| {
        let mut run = fixtures::closed();
        run.rate_per_s.achieved *= level;
        run.manifest.started_unix_s = from_s + every_s * i as f64;
        SavedRun { file: format!("{name}/{i}.json"), result: ToolResult::of_run(run) }
    };
    Side { name: name.into(), runs: levels.iter().enumerate().map(run).collect() }
}

fn compare(sides: &[Side]) -> RunComparison {
    RunComparison::new(sides, &MetricSelector::DEFAULTS, &Settings::default(), Vec::new())
}

const LEVELS: [f64; 6] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0];

fn three() -> RunComparison {
    let slower = LEVELS.map(|level| level * 0.9 + 0.001);
    compare(&[
        side("old", &LEVELS, 0.0, 100.0),
        side("new", &slower, 40.0, 100.0),
        side("one|more", &LEVELS, 70.0, 100.0),
    ])
}

#[test]
fn runs_in_turns_are_compared_by_round() {
    let comparison = three();
    assert!(comparison.has_worse() && comparison.notes.is_empty(), "{comparison:?}");
    let [worse, same] = &comparison.pairs[..] else { panic!("{comparison:?}") };
    assert_eq!((worse.finding, same.finding), (OverallFinding::Worse, OverallFinding::Same));
    assert!(worse.by_round && worse.verdicts[0].finding == "worse" && worse.verdicts[1].finding == "same");
    assert!(worse.verdicts[0].effect.is_some_and(|effect| (effect - 0.901).abs() < 0.001));
}

#[test]
fn inconclusive_rows_come_with_what_would_decide_them() {
    let told = |sides: &[Side]| super::advice::advice(&compare(sides).pairs[0], &compare(sides));
    let once = told(&[side("old", &[1.0], 0.0, 100.0), side("new", &[0.9], 40.0, 100.0)]);
    let few = "all rows: make at least 3 runs per side, in turns, each with --out into the folder of its side";
    assert_eq!(once, [few]);
    let noisy = [1.0, 1.3, 0.8, 1.2];
    let noisy =
        compare(&[side("old", &noisy, 0.0, 100.0), side("new", &noisy.map(|level| level * level), 40.0, 100.0)]);
    let words = super::advice::advice(&noisy.pairs[0], &noisy);
    let verdict = &noisy.pairs[0].verdicts[0].verdict;
    let Finding::Unclear(UnclearReason::TooNoisy(runs)) = verdict.finding else { panic!("{verdict:?}") };
    match runs {
        Some(runs) => {
            assert_eq!(words, [format!("rate: make about {runs} runs per side in place of 4, or longer ones (-d)")]);
        }
        None => assert!(words[0].starts_with("rate: the change is too near to --min-effect (3.0%)"), "{words:?}"),
    }
    assert!(text::render(&noisy, false).contains("\nto decide rate: "), "{}", text::render(&noisy, false));
    assert!(markdown::render(&noisy).contains("\nTo decide rate: "));
    assert!(three().pairs.iter().all(|pair| super::advice::advice(pair, &three()).is_empty()), "nothing is open");
}

#[test]
fn runs_one_side_after_the_other_are_compared_with_a_warning() {
    let sides = [side("old", &LEVELS, 0.0, 10.0), side("new", &LEVELS, 1000.0, 10.0)];
    assert_eq!(pairing::match_rounds(&sides), None);
    let comparison = compare(&sides);
    assert!(comparison.notes[0].contains("not made in turns"), "{:?}", comparison.notes);
    assert!(!comparison.has_worse());
}

#[test]
fn a_round_has_each_side_once_in_any_order() {
    let sides = [side("a", &[1.0, 1.0], 0.0, 100.0), side("b", &[1.0, 1.0], 10.0, 80.0)];
    assert_eq!(pairing::match_rounds(&sides), Some(vec![vec![0, 1], vec![0, 1]]), "a b, then b a");
    let sides = [side("a", &[1.0, 1.0], 0.0, 10.0), side("b", &[1.0, 1.0], 100.0, 10.0)];
    assert_eq!(pairing::match_rounds(&sides), None);
    let sides = [side("a", &[1.0, 1.0], 0.0, 100.0), side("b", &[1.0], 10.0, 80.0)];
    assert_eq!(pairing::match_rounds(&sides), None);
}

#[test]
fn one_run_a_side_shows_the_change_and_no_verdict() {
    let comparison = compare(&[side("old", &[1.0], 0.0, 1.0), side("new", &[0.5], 10.0, 1.0)]);
    let pair = &comparison.pairs[0];
    assert_eq!(pair.finding, OverallFinding::Inconclusive);
    assert!(pair.verdicts[0].effect.is_some_and(|effect| (effect - 0.5).abs() < 1e-9));
    assert!(pair.verdicts[0].reason.as_deref().is_some_and(|why| why.starts_with("one run")));
}

#[test]
fn other_machines_and_plans_are_not_compared() {
    let changed = |change: &dyn Fn(&mut Run)| {
        let mut run = fixtures::closed();
        change(&mut run);
        let other =
            Side { name: "b".into(), runs: vec![SavedRun { file: "b.json".into(), result: ToolResult::of_run(run) }] };
        comparability::obstacles(&[side("a", &[1.0], 0.0, 1.0), other])
    };
    assert!(changed(&|_| {}).is_empty());
    assert!(changed(&|run| run.target.port = 1).is_empty(), "the same service elsewhere");
    for (change, words) in [
        (
            &(|run: &mut Run| run.manifest.hostname = "other".into()) as &dyn Fn(&mut Run),
            "different machines: a/0.json",
        ),
        (&|run| run.manifest.cores += 1, "cores"),
        (&|run| run.connections.max += 1, "connections 50, b.json has 51"),
        (&|run| run.target.path = "/other".into(), "path"),
        (&|run| run.target.method = "PUT".into(), "method"),
        (&|run| run.model = weir_measure::LoadModel::Open, "loop closed"),
    ] {
        let found = changed(change);
        assert!(found.len() == 1 && found[0].contains(words), "{words}: {found:?}");
    }
    let foreign = crate::read::read(include_str!("../../read/golden/wrk.txt")).expect("wrk's");
    let foreign = Side { name: "b".into(), runs: vec![SavedRun { file: "b.txt".into(), result: foreign }] };
    assert!(comparability::obstacles(&[side("a", &[1.0], 0.0, 1.0), foreign.clone()])[0].contains("different tools"));
    assert!(comparability::unknowns(&[foreign]).is_some_and(|note| note.starts_with("wrk does not report")));
}

#[test]
fn text_and_markdown_are_as_expected() {
    let one = compare(&[side("old", &[1.0], 0.0, 1.0), side("new", &[0.5], 10.0, 1.0)]);
    let mut untrusted = fixtures::open();
    untrusted.target.server = None;
    let untrusted = Side {
        name: "overload\u{1b}[2J".into(),
        runs: vec![SavedRun { file: "overload.json".into(), result: ToolResult::of_run(untrusted) }],
    };
    let forced = compare(&[side("old", &[1.0], 0.0, 1.0), untrusted]);
    let shown = [&three(), &one, &forced].map(|comparison| text::render(comparison, false)).join("\n=====\n\n");
    fixtures::same(&shown, include_str!("../../golden/compare.text.txt"), "compare.text.txt");
    let shown = [&three(), &one, &forced].map(markdown::render).join("\n=====\n\n");
    fixtures::same(&shown, include_str!("../../golden/compare.markdown.txt"), "compare.markdown.txt");
    assert!(!shown.contains('\u{1b}'));
    for line in text::render(&forced, false).lines() {
        assert!(line.chars().count() <= TERMINAL_COLUMNS && !line.ends_with(' '), "{line:?}");
    }
}

#[test]
fn the_page_begins_with_the_verdict_and_marks_untrusted_sides() {
    let page_of = |sides: &[Side]| page::of_comparison(&compare(sides), sides, &MetricSelector::DEFAULTS, &[]);
    let slower = LEVELS.map(|level| level * 0.9);
    let sides = [side("old", &LEVELS, 0.0, 100.0), side("new", &slower, 40.0, 100.0)];
    let worse = page_of(&sides);
    assert_eq!(worse.verdict.tone, Tone::Bad);
    assert!(worse.verdict.headline.starts_with("B vs A: worse: rate -10.0%"), "{}", worse.verdict.headline);
    assert_eq!(worse.key_figures.len(), MetricSelector::DEFAULTS.len());
    let mut doubted = sides.clone();
    doubted[1].runs.iter_mut().take(3).for_each(|run| run.result.doubts.push("late".into()));
    let doubted = page_of(&doubted);
    let bars = |page: &ReportPage| -> Vec<Vec<bool>> {
        let blocks = page.sections.iter().flat_map(|section| &section.blocks);
        let bars = blocks.filter_map(|block| if let Block::Bars(bars) = block { Some(bars) } else { None });
        bars.map(|bars| bars.bars.iter().map(|bar| bar.untrusted).collect()).collect()
    };
    assert_eq!(bars(&worse)[0], [false, false]);
    assert_eq!(bars(&doubted)[0], [false, true]);
    assert!(doubted.verdict.points.iter().any(|point| point.text == "3 of 6 runs of B are not trusted."));
    let foreign = crate::read::read(include_str!("../../read/golden/wrk.txt")).expect("wrk's");
    let foreign = Side { name: "b".into(), runs: vec![SavedRun { file: "b.txt".into(), result: foreign }] };
    for sides in
        [&sides[..], &[side("old", &[1.0], 0.0, 1.0), side("new", &[], 1.0, 1.0)], &[sides[0].clone(), foreign]]
    {
        let html = render(&page_of(sides));
        assert!(html.ends_with("</html>\n") && !html.contains("NaN"), "{html}");
    }
}

#[test]
fn the_published_schema_describes_a_comparison() {
    let schema = serde_json::from_str(include_str!("../../../../../../docs/schema/compare.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for comparison in [three(), compare(&[side("old", &[1.0], 0.0, 1.0), side("new", &[], 10.0, 1.0)])] {
        let value = serde_json::from_str(&comparison.to_json()).expect("own JSON");
        let wrong: Vec<String> = validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
