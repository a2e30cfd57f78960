//! Charts of streams over time: percentiles, a heat map of gaps, and events per second.

use crate::page::{AxisScale, Block, Chart, ChartAxis, ChartCells, ChartLevel, ChartLine, ChartSpan, ValueUnit};
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_measure::Run;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::run_llm::RunLlm;
use weir_measure::series::SeriesPoint;
use weir_measure::slo::TimeKind;
use weir_measure::stream_series::{LlmPoint, PointTimes, StreamPoint};

/// Number of the colour of text, which is visible on all shades of a heat map.
const INK_HUE: usize = 8;
/// Number of the colour of the 99th percentile, as in charts whose lines have the colours in order.
const P99_HUE: usize = 1;
/// Number of an inconspicuous colour.
const GREY_HUE: usize = 2;

/// Times of an interval by their kind.
type TimesOf = fn(&StreamPoint) -> Option<PointTimes>;
/// Gaps of an interval.
type GapsOf = fn(&StreamPoint) -> Option<Histogram>;

/// Title of a chart of times, and name of its y axis.
#[derive(Clone, Copy, Debug)]
struct TimeChartNames {
    title: &'static str,
    axis: &'static str,
}

const TTFT_NAMES: TimeChartNames = TimeChartNames { title: "TTFT", axis: "time to first token" };
const TPOT_NAMES: TimeChartNames = TimeChartNames { title: "TPOT", axis: "time per output token" };
const CHUNK_GAP_NAMES: TimeChartNames = TimeChartNames { title: "Chunk gaps", axis: "gap between chunks" };
const FIRST_EVENT_NAMES: TimeChartNames = TimeChartNames { title: "First event", axis: "time to the first event" };
const FIRST_MESSAGE_NAMES: TimeChartNames =
    TimeChartNames { title: "First message", axis: "time to the first message" };
const MESSAGE_GAP_NAMES: TimeChartNames = TimeChartNames { title: "Gaps", axis: "gap between messages" };
const GAP_NAMES: TimeChartNames = TimeChartNames { title: "Gaps", axis: "gap between events" };

/// Charts of streams over time; none of a run with a single interval.
pub(super) fn stream_course(run: &Run) -> Vec<Block> {
    if run.series.iter().filter(|point| point.streams.is_some()).count() < 2 {
        return Vec::new();
    }
    let has_tokens = run.llm.as_ref().is_some_and(|llm| llm.chunks > 0);
    let charts = if has_tokens {
        fn llm(point: &StreamPoint, times: fn(&LlmPoint) -> PointTimes) -> Option<PointTimes> {
            point.llm.as_ref().map(times)
        }
        vec![
            percentiles(run, TTFT_NAMES, TimeKind::Ttft, |p| llm(p, |llm| llm.ttft_ms)),
            percentiles(run, TPOT_NAMES, TimeKind::Tpot, |p| llm(p, |llm| llm.tpot_ms)),
            gaps(
                run,
                CHUNK_GAP_NAMES,
                TimeKind::ChunkGap,
                |p| llm(p, |llm| llm.chunk_gap_ms),
                |point| point.llm.as_ref()?.chunk_gaps().ok(),
            ),
            events(run),
        ]
    } else {
        let first: TimesOf = |point| Some(point.first_event_ms);
        let (first_names, gap_names) = match run.listens() {
            true => (FIRST_MESSAGE_NAMES, MESSAGE_GAP_NAMES),
            false => (FIRST_EVENT_NAMES, GAP_NAMES),
        };
        vec![
            percentiles(run, first_names, TimeKind::FirstEvent, first),
            gaps(run, gap_names, TimeKind::Gap, |point| Some(point.gap_ms), |point| point.gaps().ok()),
            events(run),
        ]
    };
    charts.into_iter().filter(|chart| !chart.is_empty()).map(Block::Chart).collect()
}

/// Percentiles of times over time, by when responses ended.
fn percentiles(run: &Run, names: TimeChartNames, kind: TimeKind, times: TimesOf) -> Chart {
    let line = |name: &str, value: fn(&PointTimes) -> Option<f64>| {
        let points = run.series.iter().map(|point| (point.t_s, times_at(point, times).and_then(|times| value(&times))));
        ChartLine::new(name, points)
    };
    let lines = [
        line("p50", |times| times.p50),
        line("p90", |times| times.p90).in_hue(3),
        line("p99", |times| times.p99).in_hue(P99_HUE),
        line("max", |times| times.max).in_hue(GREY_HUE),
    ];
    let levels = levels(run, kind);
    let values = lines.iter().flat_map(ChartLine::values).chain(levels.iter().map(|level| level.at));
    let scale = AxisScale::fitting(values);
    let mut chart = chart(run, names.title, ChartAxis::new(names.axis, ValueUnit::Milliseconds).scaled(scale));
    // Connections that listen have theirs when it comes.
    chart.note = if run.listens() { "By arrival time." } else { "By the end of the response." }.into();
    (chart.lines, chart.levels) = (lines.into(), levels);
    chart
}

/// Gaps over time: a heat map, and percentiles on it.
fn gaps(run: &Run, names: TimeChartNames, kind: TimeKind, times: TimesOf, gaps: GapsOf) -> Chart {
    // Cells are as wide as their intervals, so points are in the middle; a gap of 0 has no place on the scale.
    let line = |name: &str, value: fn(&PointTimes) -> Option<f64>| {
        let points = run.series.iter().map(|point| {
            let value = times_at(point, times).and_then(|times| value(&times)).filter(|value| *value > 0.0);
            (point.t_s + point.width_s / 2.0, value)
        });
        ChartLine::new(name, points)
    };
    let intervals = run.series.iter().filter_map(|point| {
        let gaps = gaps(point.streams.as_ref()?)?;
        Some((point.t_s, point.t_s + point.width_s, gaps))
    });
    let intervals: Vec<_> = intervals.collect();
    let has_zero = intervals.iter().any(|(_, _, gaps)| gaps.min() == Some(Nanos::ZERO));
    let y = ChartAxis::new(names.axis, ValueUnit::Milliseconds).scaled(AxisScale::Log);
    let mut chart = chart(run, names.title, y);
    chart.note = "Darker cells hold more of the interval's gaps; the palest hold less than 1%.".into();
    if has_zero {
        chart.note += " The lowest row includes gaps of 0: events that arrived together.";
    }
    chart.cells = ChartCells::of_times("gaps", &intervals).map(Box::new);
    chart.lines = vec![
        line("p50", |times| times.p50).in_hue(INK_HUE),
        line("p99", |times| times.p99).in_hue(P99_HUE),
        line("max", |times| times.max).in_hue(GREY_HUE),
    ];
    chart.levels = levels(run, kind);
    chart
}

fn events(run: &Run) -> Chart {
    // The last interval may be too short for a rate.
    let usual = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max);
    let points = run.series.iter().map(|point| {
        let events = point.streams.as_ref().map_or(0, |streams| streams.events);
        (point.t_s, (point.width_s > usual / 2.0).then(|| events as f64 / point.width_s))
    });
    let (title, name) = if run.listens() { ("Messages", "messages") } else { ("Events", "events") };
    let y = ChartAxis::new(&format!("{name} per second, by arrival time"), ValueUnit::PerSecond);
    chart(run, title, y).line(ChartLine::new(name, points))
}

fn chart(run: &Run, title: &str, y: ChartAxis) -> Chart {
    let mut chart = Chart::new(&format!("{title} over time"), ChartAxis::new("since the start", ValueUnit::Seconds), y);
    chart.group = "time".into();
    if run.warmup_s > 0.0 {
        chart.spans.push(ChartSpan { from: 0.0, to: run.warmup_s, name: "warm-up".into() });
    }
    chart
}

fn times_at(point: &SeriesPoint, times: TimesOf) -> Option<PointTimes> {
    times(point.streams.as_ref()?).filter(|times| times.count > 0)
}

/// Objectives of the run on these times, and of each request.
fn levels(run: &Run, kind: TimeKind) -> Vec<ChartLevel> {
    let of_run = run.slo.iter().filter_map(|held| ChartLevel::of_times(&held.objective, kind));
    of_run.chain(run.llm.as_ref().and_then(|llm| level_of_requests(llm, kind))).collect()
}

/// Objective of each request on these times.
fn level_of_requests(llm: &RunLlm, kind: TimeKind) -> Option<ChartLevel> {
    let objectives = GoodputObjectives::parse(&llm.objectives).ok()?;
    let limit = match kind {
        TimeKind::Ttft => objectives.ttft,
        TimeKind::Tpot => objectives.tpot,
        _ => None,
    };
    limit.map(|limit| ChartLevel { at: limit.as_millis_f64(), name: format!("{}:{limit}", kind.name()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{of_run, render};
    use crate::tests::fixtures;

    fn charts(run: &Run) -> Vec<Chart> {
        let blocks = stream_course(run).into_iter();
        blocks.filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None }).collect()
    }

    #[test]
    fn a_language_model_has_its_times_and_a_stream_its_gaps() {
        let mut run = fixtures::streamed();
        let of_llm = charts(&run);
        let titles: Vec<&str> = of_llm.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["TTFT over time", "TPOT over time", "Chunk gaps over time", "Events over time"]);
        assert_eq!(of_llm[0].levels, [ChartLevel { at: 150.0, name: "ttft:150ms".into() }]);
        let cells = of_llm[2].cells.as_ref().expect("a heat map");
        assert_eq!(cells.columns.len(), run.series.len());
        assert!(of_llm[2].note.contains("gaps of 0"), "{}", of_llm[2].note);
        run.llm = None;
        let titles: Vec<String> = charts(&run).into_iter().map(|chart| chart.title).collect();
        assert_eq!(titles, ["First event over time", "Gaps over time", "Events over time"]);
        run.series.truncate(1);
        assert!(charts(&run).is_empty() && charts(&fixtures::closed()).is_empty());
    }

    #[test]
    fn the_page_has_the_heat_map_as_picture_and_data_also_of_damaged_files() {
        let mut run = fixtures::streamed();
        let html = render(&of_run(&run));
        let (markup, data) = html.split_once("id=\"charts\">").expect("the data");
        assert!(markup.contains("<li class=\"ramp\"><i></i>gaps</li>") && markup.contains("class=\"cells s2\""));
        assert!(data.contains("\"shades\":["));
        for point in &mut run.series {
            if let Some(streams) = &mut point.streams {
                streams.gap_histogram = "AAAA".into();
                streams.llm.iter_mut().for_each(|llm| llm.chunk_gap_histogram = "?".into());
            }
        }
        assert!(!render(&of_run(&run)).contains("class=\"cells"));
    }

    #[test]
    fn a_page_of_a_long_run_is_smaller_than_a_megabyte() {
        let mut run = fixtures::streamed();
        let first = run.series[0].clone();
        run.series = (0..1200).map(|t| SeriesPoint { t_s: f64::from(t), ..first.clone() }).collect();
        let html = render(&of_run(&run));
        assert!(html.len() < 1_000_000, "{}", html.len());
    }
}
