//! Charts of the HTML report of a study, with the same numbers as the plot files.

use crate::findings::{Findings, StudyMetric};
use crate::study_plot::StudyPlot;
use weir_report::page::{BarChart, BarRow, Block, Chart, ChartAxis, ChartLine, Section, ValueInterval};
use weir_report::plot::{Plot, PlotPoint, XAxisKind};

/// Maximum number of points of all lines over time, so that the report stays small.
const MAX_CHART_POINTS: usize = 10_000;

pub(super) fn sections(findings: &Findings<'_>, figures: &[StudyPlot]) -> Vec<Section> {
    let several = findings.definition.loads.len() > 1;
    let measured = |wanted: &dyn Fn(&StudyMetric) -> bool| -> Vec<Block> {
        let of = |figure: &StudyPlot| figure.metric.and_then(|at| findings.metrics.get(at)).is_some_and(wanted);
        figures.iter().filter(|figure| of(figure)).map(block).collect()
    };
    let mut sections: Vec<Section> = Vec::new();
    for load in &findings.definition.loads {
        let title = "Throughput and response time";
        let title = if several { format!("{}: {}", load.name, title.to_lowercase()) } else { title.to_owned() };
        sections.push(Section::new(&title, measured(&|of| of.load.as_ref() == Some(&load.name))));
    }
    sections.push(Section::new("Metrics of clients", measured(&|of| of.load.is_none() && !of.is_resource_usage())));
    let curves = figures.iter().filter(|figure| figure.plot.x_kind == XAxisKind::Percentiles).map(block).collect();
    sections.push(Section::new("Response time by percentile", curves));
    sections.push(Section::new("Memory and CPU", measured(&StudyMetric::is_resource_usage)));
    sections.retain(|section| !section.blocks.is_empty());
    if let Some(first) = sections.first_mut() {
        let words = "Points and bars are the median of the runs; bands and whiskers go from the lowest to the highest. \
                     Hollow points and bars have runs that are not trusted.";
        first.blocks.insert(0, Block::Text(words.into()));
    }
    sections.push(over_time(figures));
    sections
}

/// Charts over time at the last point, which in most sweeps has the highest load.
fn over_time(figures: &[StudyPlot]) -> Section {
    let over_time = || figures.iter().filter(|figure| figure.plot.x_kind == XAxisKind::Time);
    let Some(last) = over_time().filter_map(|figure| figure.point).max() else { return Section::default() };
    let shown = || over_time().filter(|figure| figure.point == Some(last));
    let size: usize = shown().flat_map(|figure| &figure.plot.series).map(|series| series.points.len()).sum();
    // Charts of a point share their cursor.
    let charts = shown().map(|figure| Block::Chart(Chart { group: "time".into(), ..chart(figure) }));
    let charts: Vec<Block> = charts.take(if size > MAX_CHART_POINTS { 0 } else { usize::MAX }).collect();
    let words = match (charts.is_empty(), over_time().count() > charts.len()) {
        (true, _) => "The series are too many for this report; they are in plots/.".to_owned(),
        (false, more) => {
            let words = "From the start of the load, after the warm-up: the load, and the CPU and memory of the \
                         variant, all rounds of a variant together.";
            format!("{words}{}", if more { " Series at other points are in plots/." } else { "" })
        }
    };
    Section::new("Over time", [Block::Text(words)].into_iter().chain(charts).collect())
}

fn block(figure: &StudyPlot) -> Block {
    if figure.plot.categories.is_empty() { Block::Chart(chart(figure)) } else { Block::Bars(bars(figure)) }
}

fn chart(figure: &StudyPlot) -> Chart {
    let Plot { title, x, y, series, .. } = &figure.plot;
    let mut chart = Chart::new(title, x.clone(), titled(y));
    for series in series {
        let points = || series.points.iter();
        let line =
            ChartLine::new(series.name.clone(), points().map(|point| (point.x, Some(point.y)))).in_hue(series.colour);
        let untrusted = points().enumerate().filter(|(_, point)| point.untrusted).map(|(i, _)| i);
        let line = line.doubting(untrusted);
        let has_range = points().any(|point| point.low < point.high);
        let band = || points().map(|point| Some(ValueInterval { low: point.low, high: point.high }));
        chart.lines.push(if has_range { line.within(band()) } else { line });
    }
    chart
}

/// Axis named with its unit where the labels of the ticks are without.
fn titled(axis: &ChartAxis) -> ChartAxis {
    ChartAxis { name: axis.title(), ..axis.clone() }
}

/// Bars: one per variant, or one per value of a parameter and variant if its values are not numbers.
fn bars(figure: &StudyPlot) -> BarChart {
    let Plot { title, x, y, categories, series, .. } = &figure.plot;
    let alone = series.iter().all(|series| series.points.len() == 1);
    let row = |category: &str, name: &str, colour: usize, point: &PlotPoint| {
        let name = if alone || category == name { name.to_owned() } else { format!("{category} \u{b7} {name}") };
        let interval = (point.runs > 1).then_some(ValueInterval { low: point.low, high: point.high });
        BarRow { interval, hue: colour, untrusted: point.untrusted, ..BarRow::new(name, point.y) }
    };
    let mut rows = Vec::new();
    for (at, category) in categories.iter().enumerate() {
        for series in series {
            let here = series.points.iter().filter(|point| point.x as usize == at);
            rows.extend(here.map(|point| row(category, &series.name, series.colour, point)));
        }
    }
    BarChart {
        title: title.clone(),
        note: String::new(),
        columns: [x.name.clone(), y.name.clone()],
        unit: y.unit.clone(),
        bars: rows,
    }
}
