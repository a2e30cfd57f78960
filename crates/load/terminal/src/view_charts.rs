//! Charts of the last minutes: throughput and response times.

use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

use super::run_view::RunView;
use super::view_head::{dim, three_digits};
use weir_base::Nanos;

/// Values of a chart: name, style and points.
pub(crate) struct ChartSeries {
    name: &'static str,
    color: Color,
    points: Vec<(f64, f64)>,
}

/// Throughput, and the rate that is set.
pub(crate) fn throughput(view: &RunView) -> Vec<ChartSeries> {
    let series = |name, color, points| ChartSeries { name, color, points };
    let set = view.history.values(|point| point.target_per_s);
    let name = if view.steps.is_empty() { "requests/s" } else { "iterations/s" };
    let rates = view.history.values(|point| Some(point.rate_per_s));
    let set = (!set.is_empty()).then(|| series("set", Color::DarkGray, set));
    set.into_iter().chain([series(name, Color::Cyan, rates)]).collect()
}

/// Response times.
pub(crate) fn response_times(view: &RunView) -> Vec<ChartSeries> {
    let series = |name, color, points| ChartSeries { name, color, points };
    vec![
        series("p99", Color::Yellow, view.history.values(|point| point.p99_ms)),
        series("p50", Color::Cyan, view.history.values(|point| point.p50_ms)),
    ]
}

/// Connections of WebSocket that are held, and those upgraded per second; empty without WebSocket.
pub(crate) fn connections(view: &RunView) -> Vec<ChartSeries> {
    let series = |name, color, points| ChartSeries { name, color, points };
    let held = view.history.values(|point| point.held);
    if held.is_empty() {
        return Vec::new();
    }
    let upgraded = view.history.values(|point| point.upgraded_per_s);
    vec![series("held", Color::Cyan, held), series("upgraded/s", Color::DarkGray, upgraded)]
}

/// Chart of series, whose values are shown by `label`.
pub(crate) fn chart<'a>(view: &RunView, title: &'a str, all: &'a [ChartSeries], label: fn(f64) -> String) -> Chart<'a> {
    let top = all.iter().flat_map(|series| &series.points).map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.1 } else { 1.0 };
    let [from, to] = view.history.span_s();
    let datasets = all.iter().map(|series| {
        Dataset::default()
            .name(series.name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(series.color))
            .data(&series.points)
    });
    let names: Vec<&str> = all.iter().map(|series| series.name).collect();
    let seconds = |at: f64| Line::from(format!("{at:.0}s"));
    Chart::new(datasets.collect())
        .block(Block::new().title(Line::from(format!(" {title}: {}", names.join(", ")))))
        // The names are in the title: a legend would hide a part of a small chart.
        .legend_position(None)
        .x_axis(Axis::default().style(dim()).bounds([from, to]).labels([seconds(from), seconds(to)]))
        .y_axis(Axis::default().style(dim()).bounds([0.0, top]).labels([Line::from("0"), Line::from(label(top))]))
}

/// Label of a rate.
pub(crate) fn rate_label(rate: f64) -> String {
    three_digits(rate)
}

/// Label of a time in milliseconds, with two digits.
pub(crate) fn time_label(ms: f64) -> String {
    let unit = 10_f64.powf((ms.max(1e-6)).log10().floor() - 1.0);
    Nanos(((ms / unit).round() * unit * 1e6) as u64).to_string()
}
