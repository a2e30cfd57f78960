//! HTML report of a study: verdict, plots, tables, failures, method.

mod method;
mod plots;
mod steps;
mod tables;
mod verdict;

use self::method::{manifest, method};
use super::findings::Findings;
use super::study_plot::{StudyPlot, point_suffix};
use super::text;
use weir_report::page::{KeyFigure as Shown, ReportPage, Section, Tone, ValueUnit, date};

/// Maximum number of key figures; the first primary metric is always shown for all variants.
const MAX_KEY_FIGURES: usize = 8;

/// HTML report with these plots.
pub fn of_findings(findings: &Findings<'_>, figures: &[StudyPlot]) -> ReportPage {
    let mut sections = plots::sections(findings, figures);
    sections.push(steps::section(findings));
    sections.extend(tables::sections(findings));
    sections.extend([method(findings), manifest(findings)]);
    ReportPage {
        title: text::question(findings),
        about: about(findings),
        verdict: verdict::of(findings),
        key_figures: at_a_glance(findings),
        sections: sections.into_iter().filter(|section: &Section| !section.blocks.is_empty()).collect(),
    }
}

fn about(findings: &Findings<'_>) -> Vec<String> {
    let definition = findings.definition;
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let mut about = vec![count(definition.variants.len(), "variant")];
    if findings.points.len() > 1 {
        about.push(count(findings.points.len(), "point"));
    }
    about.push(count(definition.repeats as usize, "round"));
    let began = findings.outcome.measurements.iter().map(|cell| cell.started_unix_s).fold(f64::INFINITY, f64::min);
    about.extend(date(began));
    about
}

/// Primary metrics of each variant at the last point, which in most sweeps has the highest load.
fn at_a_glance(findings: &Findings<'_>) -> Vec<Shown> {
    let Some(point) = findings.points.len().checked_sub(1) else { return Vec::new() };
    let mut shown = Vec::new();
    for (at, measure) in findings.metrics.iter().enumerate().filter(|(_, measure)| measure.is_primary) {
        if !shown.is_empty() && shown.len() + findings.definition.variants.len() > MAX_KEY_FIGURES {
            break;
        }
        let unit = ValueUnit::of(&measure.metric);
        for variant in 0..findings.definition.variants.len() {
            let Some(spread) = findings.run_range(at, variant, point) else { continue };
            let figure = Shown::new(findings.variant(variant), spread.median, unit.clone());
            let figure = figure.with_note(format!("{}{}", measure.name(), point_suffix(findings, point)));
            let tone = if spread.untrusted > 0 { Tone::Doubt } else { Tone::Plain };
            shown.push(figure.in_tone(tone));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{STEADY_RATES_PER_S, definition, outcome};
    use weir_report::page::{Block, ChartAxis, render};
    use weir_report::plot::{Plot, PlotPoint, PlotSeries, XAxisKind};

    #[test]
    fn the_verdict_names_the_winner_and_a_failure_has_its_last_lines() {
        let definition = definition("");
        let mut twice = STEADY_RATES_PER_S.map(|rate| rate.map(|rate| rate * 2.0));
        let page = |b| {
            let (_folder, outcome) = outcome(STEADY_RATES_PER_S, b);
            let findings = Findings::new(&definition, &outcome);
            of_findings(&findings, &crate::plotting::all_plots(&findings))
        };
        let better = page(twice);
        assert_eq!((better.verdict.tone, better.verdict.headline.as_str()), (Tone::Good, "b is better than a"));
        assert_eq!(better.verdict.sentence, "Judged by main: successes, over 14 measurements.");
        assert_eq!(better.key_figures.iter().map(|figure| figure.value).collect::<Vec<_>>(), [100.0, 200.0]);
        assert!(!better.sections.iter().any(|section| section.title == "Failures"));
        twice[6] = None;
        let failing = page(twice);
        let failed = failing.sections.iter().find(|section| section.title == "Failures").expect("a section");
        assert!(failed.blocks.contains(&Block::Command("out of luck".into())), "{failed:?}");
        assert!(failing.verdict.points.iter().any(|point| point.tone == Tone::Bad));
        let nothing = page([None; 7]);
        assert_eq!(nothing.verdict.headline, "There is nothing to compare");
        assert!(render(&nothing).ends_with("</html>\n"));
    }

    #[test]
    fn the_report_of_a_large_study_is_smaller_than_a_megabyte() {
        let definition = definition("");
        let (_folder, outcome) = outcome(STEADY_RATES_PER_S, STEADY_RATES_PER_S);
        let findings = Findings::new(&definition, &outcome);
        let series_plot = |variants: usize, n: usize| {
            let point = |i: u32| {
                let y = 1000.0 + f64::from(i * 7919 % 997) / 7.0;
                PlotPoint { x: f64::from(i) / 5.0, y, low: y * 0.97, high: y * 1.03, runs: 7, untrusted: false }
            };
            let line = |colour: usize| PlotSeries {
                name: format!("variant {colour}"),
                points: (0..50).map(point).collect(),
                colour,
            };
            let series = (0..variants).map(line).collect();
            let (title, y) = (format!("series {n}"), ChartAxis::new("rate", ValueUnit::PerSecond));
            let plot = Plot { title, y, x_kind: XAxisKind::Time, series, ..Plot::default() };
            StudyPlot { name: n.to_string(), plot, metric: None, point: Some(n / 6) }
        };
        let over_time = |variants: usize| {
            let all: Vec<StudyPlot> = (0..24).map(|n| series_plot(variants, n)).collect();
            let page = of_findings(&findings, &all);
            let section = page.sections.iter().find(|section| section.title == "Over time").expect("a section").clone();
            (section.blocks, render(&page).len())
        };
        let (blocks, size) = over_time(33);
        assert_eq!(blocks.len(), 7, "six charts with 9,900 points of lines, those of the last point");
        assert!(matches!(&blocks[1], Block::Chart(chart) if chart.title == "series 18"));
        assert!(matches!(&blocks[0], Block::Text(words) if words.ends_with("are in plots/.")));
        assert!(size < 1_000_000, "{size}");
        let (blocks, size) = over_time(40);
        assert!(blocks.len() == 1 && size < 200_000, "{size}");
    }
}
