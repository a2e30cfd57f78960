//! Charts of the steps of scenarios over time.

use crate::page::{AxisScale, Block, Chart, ChartAxis, ChartLine, ChartSpan, ValueUnit};
use weir_measure::Run;
use weir_measure::run_steps::RunStep;
use weir_measure::step_series::StepPoint;

/// Maximum number of steps with a line.
const MAX_LINES: usize = 60;
/// Number of steps that are visible before a reader chooses others: the slowest ones.
const VISIBLE_LINES: usize = 6;

/// Response time of each step over time: the median, and the 99th percentile; none for a single step, which is the
/// whole run.
pub(super) fn step_times(run: &Run) -> Vec<Block> {
    let has_course = |step: &&RunStep| step.series.iter().filter(|point| point.ok > 0).count() > 1;
    if run.steps.len() < 2 || !run.steps.iter().any(|step| has_course(&step)) {
        return Vec::new();
    }
    let order = line_order(&run.steps);
    let is_hidden = |place: usize| order.len() > VISIBLE_LINES && place >= VISIBLE_LINES;
    let left_out = run.steps.len().saturating_sub(MAX_LINES);
    let chart = |title: &str, value: fn(&StepPoint) -> Option<f64>| {
        let line = |(place, index): (usize, &usize)| {
            let step = &run.steps[*index];
            let points = step.series.iter().map(|point| (point.t_s, value(point)));
            let line = ChartLine::new(step.name.as_str(), points).in_hue(place);
            if is_hidden(place) { line.hidden() } else { line }
        };
        let lines: Vec<ChartLine> = order.iter().enumerate().map(line).collect();
        let shown = lines.iter().filter(|line| !line.hidden).flat_map(ChartLine::values);
        let y = ChartAxis::new("response time", ValueUnit::Milliseconds).scaled(AxisScale::fitting(shown));
        let mut chart = Chart::new(title, ChartAxis::new("since the start", ValueUnit::Seconds), y);
        if is_hidden(order.len() - 1) {
            chart.note = format!("The {VISIBLE_LINES} slowest steps; a name shows or hides a line.");
        }
        if left_out > 0 {
            chart.note += &format!(" {left_out} more steps are in the JSON of the run.");
        }
        if run.warmup_s > 0.0 {
            chart.spans.push(ChartSpan { from: 0.0, to: run.warmup_s, name: "warm-up".into() });
        }
        (chart.lines, chart.group, chart.choice) = (lines, "time".into(), "steps".into());
        Block::Chart(chart)
    };
    vec![chart("Median by step", |point| point.p50_ms), chart("99th percentile by step", |point| point.p99_ms)]
}

/// Indices of the steps with a line: in their order, or the slowest ones first if not all are visible.
fn line_order(steps: &[RunStep]) -> Vec<usize> {
    let all: Vec<usize> = (0..steps.len().min(MAX_LINES)).collect();
    if all.len() <= VISIBLE_LINES {
        return all;
    }
    let mut slowest = all.clone();
    let p99 = |index: &usize| steps[*index].response_ms.p99.unwrap_or(f64::NEG_INFINITY);
    slowest.sort_by(|a, b| p99(b).total_cmp(&p99(a)));
    slowest.truncate(VISIBLE_LINES);
    let others = all.into_iter().filter(|index| !slowest.contains(index)).collect::<Vec<_>>();
    [slowest, others].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{of_run, render};
    use crate::tests::fixtures;

    /// Run of a number of steps over a minute, the later ones slower.
    fn run_of(steps: usize) -> Run {
        let mut run = fixtures::shop();
        let template = run.steps[0].clone();
        let step = |index: usize| {
            let ms = 1.0 + index as f64;
            let point = |t: u32| StepPoint {
                t_s: f64::from(t),
                width_s: 1.0,
                ok: u64::from(t % 7),
                failed: 0,
                p50_ms: (!t.is_multiple_of(7)).then_some(ms + f64::from(t % 5)),
                p99_ms: (!t.is_multiple_of(7)).then_some(3.0 * ms + f64::from(t % 11)),
            };
            let mut step = RunStep { name: format!("step <{index}>"), ..template.clone() };
            step.response_ms.p99 = Some(3.0 * ms);
            step.series = (0..60).map(point).collect();
            step
        };
        run.steps = (0..steps).map(step).collect();
        run.series.push(run.series[0].clone());
        run
    }

    fn charts(run: &Run) -> Vec<Chart> {
        let blocks = step_times(run).into_iter();
        blocks.filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None }).collect()
    }

    #[test]
    fn few_steps_are_all_visible_and_of_many_the_slowest() {
        for (steps, visible, first) in [(3, 3, 0), (40, 6, 39)] {
            let charts = charts(&run_of(steps));
            assert_eq!(charts.len(), 2);
            for chart in charts {
                let shown: Vec<&str> =
                    chart.lines.iter().filter(|line| !line.hidden).map(|line| line.name.as_str()).collect();
                assert_eq!((chart.lines.len(), shown.len()), (steps, visible));
                assert_eq!(shown.first(), Some(&format!("step <{first}>").as_str()));
            }
        }
        assert!(charts(&run_of(1)).is_empty() && charts(&fixtures::shop()).is_empty());
        let many = charts(&run_of(80));
        assert_eq!(many[0].lines.len(), 60);
        assert!(many[0].note.contains("20 more steps"), "{}", many[0].note);
    }

    #[test]
    fn hidden_lines_are_in_the_data_and_not_in_the_picture() {
        let html = render(&of_run(&run_of(40)));
        let (markup, data) = html.split_once("id=\"charts\">").expect("the data");
        let of_chart = markup.split("<h3>Median by step</h3>").nth(1).expect("the chart");
        let picture = of_chart.split("</figure>").next().expect("its end");
        assert_eq!(picture.matches("class=\"line ").count(), 6);
        assert_eq!(picture.matches("<li class=\"off ").count(), 34);
        assert!(!markup.contains("step <") && data.contains("step \\u003c39>"));
        assert_eq!(data.matches("\"hidden\":true").count(), 2 * 34);
    }
}
