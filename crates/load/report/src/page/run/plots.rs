//! Charts of a run: distribution of response times, and time series.

use super::step_plots::step_times;
use crate::page::{
    AxisScale, BarChart, BarRow, Block, Chart, ChartAxis, ChartLevel, ChartLine, ChartSpan, Section, Tone, ValueUnit,
};
use crate::text::clocks_agree;
use crate::{bars, number_format};
use weir_histogram::Histogram;
use weir_measure::series::SeriesPoint;
use weir_measure::{LoadModel, Run};

pub(super) fn times(run: &Run) -> Section {
    let (Ok(response), Ok(service)) = (run.response_histogram(), run.service_histogram()) else {
        return Section::default(); // a damaged histogram was rejected when the run was read
    };
    if response.count() == 0 {
        return Section::default();
    }
    let same = clocks_agree(run);
    let both = [("response time", &response), ("service time", &service)];
    let mut tails = percentiles(&both[..if same { 1 } else { 2 }]);
    tails.levels = objectives(run, &ValueUnit::Milliseconds);
    tails.y.scale = fitting(&tails.lines, &tails.levels);
    if same {
        tails.note += " Service time is the same, within 1%.";
    }
    let all = response.count().max(1) as f64;
    let bar = |row: bars::HistogramRow| {
        let percentage = number_format::percent(row.count as f64 / all);
        BarRow { note: percentage, ..BarRow::new(spaced(&row.label), row.count as f64) }
    };
    let distribution = BarChart {
        title: "Distribution".into(),
        note: "Each row counts the successes that are slower than the row above, up to its own bound.".into(),
        columns: ["response time".into(), "successes".into()],
        unit: ValueUnit::Count,
        bars: bars::rows(&response).into_iter().map(bar).collect(),
    };
    let blocks = vec![Block::Text(clocks(run)), Block::Chart(tails), Block::Bars(distribution)];
    Section::new("Response time", blocks)
}

/// Explanation of the two clocks, and of their difference.
fn clocks(run: &Run) -> String {
    let both = match run.model {
        LoadModel::Open => "Response time counts from the intended start of a request, service time from its send.",
        LoadModel::Closed => {
            "Response time counts from when a connection was free for the next request, service time from its send."
        }
    };
    let apart = match (run.model, run.requests.waited) {
        (LoadModel::Open, 1) => " They differ for 1 request that waited for a free connection.".to_owned(),
        (LoadModel::Open, n @ 1..) => {
            format!(" They differ for {} requests that waited for a free connection.", number_format::count(n))
        }
        _ => String::new(),
    };
    let whose = if run.requests.failed > 0 { " Both are those of successes." } else { "" };
    format!("{both}{apart}{whose}")
}

/// Objectives as levels on an axis of this unit.
fn objectives(run: &Run, unit: &ValueUnit) -> Vec<ChartLevel> {
    run.slo.iter().filter_map(|held| ChartLevel::of_objective(&held.objective, unit)).collect()
}

/// Scale that fits all lines and levels.
fn fitting(lines: &[ChartLine], levels: &[ChartLevel]) -> AxisScale {
    AxisScale::fitting(lines.iter().flat_map(ChartLine::values).chain(levels.iter().map(|level| level.at)))
}

/// Number of an inconspicuous colour.
const GREY_HUE: usize = 2;

/// Arrivals per second: requests that ended, plus the growth of those in flight and waiting.
fn offered(run: &Run, least_width_s: f64) -> ChartLine {
    let inside = |point: &SeriesPoint| (point.in_flight + point.backlog) as f64;
    let mut before = 0.0;
    let points = run.series.iter().map(|point| {
        let ended = (point.ok + point.failed) as f64;
        let arrived = (ended + inside(point) - std::mem::replace(&mut before, inside(point))).max(0.0);
        (point.t_s, (point.width_s > least_width_s).then(|| arrived / point.width_s))
    });
    ChartLine::new("offered", points.collect::<Vec<_>>())
}

/// `≤ 2ms` with a no-break space before the unit, as all times of the HTML report.
fn spaced(label: &str) -> String {
    match label.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) if at > 0 => format!("{}\u{a0}{}", &label[..at], &label[at..]),
        _ => label.to_owned(),
    }
}

/// Distributions as curves over percentiles, as HdrHistogram plots them.
pub fn percentiles(named: &[(&str, &Histogram)]) -> Chart {
    let lines: Vec<ChartLine> = named.iter().map(|(name, times)| ChartLine::new(*name, tail(times))).collect();
    let scale = AxisScale::fitting(lines.iter().flat_map(ChartLine::values));
    let x = ChartAxis::new("fraction of responses at least as fast", ValueUnit::Quantile).scaled(AxisScale::Tail);
    let mut chart = Chart::new("Percentiles", x, ChartAxis::new("time", ValueUnit::Milliseconds).scaled(scale));
    chart.note = "Each step to the right is ten times rarer.".into();
    chart.lines = lines;
    chart
}

/// Quantiles at equal steps of rarity, up to the slowest response.
fn tail(histogram: &Histogram) -> Vec<(f64, Option<f64>)> {
    const PER_DECADE: f64 = 40.0;
    let end = (2.0 * histogram.count() as f64).log10();
    let steps = (end * PER_DECADE).ceil().max(1.0);
    let quantiles = (0..=steps as u64).map(|i| 1.0 - 10_f64.powf(-end * i as f64 / steps));
    quantiles.map(|q| (q, histogram.quantile_ms(q))).collect()
}

pub(super) fn course(run: &Run) -> Section {
    if run.series.len() < 2 {
        return Section::default();
    }
    let line = |name: &str, value: fn(&SeriesPoint) -> f64| {
        ChartLine::new(name, run.series.iter().map(|point| (point.t_s, Some(value(point)))))
    };
    // The last interval may be too short for a rate, and for percentiles like those of the others.
    let least_width_s = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max) / 2.0;
    let is_whole = |point: &SeriesPoint| point.width_s > least_width_s;
    let time = |name: &str, value: fn(&SeriesPoint) -> Option<f64>| {
        ChartLine::new(name, run.series.iter().map(|p| (p.t_s, value(p).filter(|_| is_whole(p)))))
    };
    let per_s = |n: u64, point: &SeriesPoint| is_whole(point).then(|| n as f64 / point.width_s);
    let chart = |title: &str, y: ChartAxis, lines: Vec<ChartLine>, levels: Vec<ChartLevel>| {
        let mut chart = Chart::new(title, ChartAxis::new("since the start", ValueUnit::Seconds), y);
        (chart.lines, chart.levels) = (lines, levels);
        chart.group = "time".into();
        if run.warmup_s > 0.0 {
            chart.spans.push(ChartSpan { from: 0.0, to: run.warmup_s, name: "warm-up".into() });
        }
        Block::Chart(chart)
    };
    let good = ChartLine::new("ok", run.series.iter().map(|p| (p.t_s, per_s(p.ok, p))));
    let failed = ChartLine::new("failed", run.series.iter().map(|p| (p.t_s, per_s(p.failed, p)))).in_tone(Tone::Bad);
    let any_failed = run.series.iter().any(|point| point.failed > 0);
    let times = vec![time("p50", |p| p.p50_ms), time("p99", |p| p.p99_ms), time("max", |p| p.max_ms)];
    let limits = objectives(run, &ValueUnit::Milliseconds);
    let scale = fitting(&times, &limits);
    let mut inside = vec![line("in flight", |p| p.max_in_flight as f64)];
    if run.series.iter().any(|point| point.backlog > 0) {
        inside.push(line("waiting for a connection", |p| p.backlog as f64));
    }
    let per_second = || ChartAxis::new("requests per second, by end time", ValueUnit::PerSecond);
    let mut throughput = vec![good];
    if run.model == LoadModel::Open {
        // Beneath, so that both lines are visible where they are equal.
        throughput.push(offered(run, least_width_s).in_hue(GREY_HUE).beneath());
    }
    let mut blocks = vec![
        chart("Throughput", per_second(), throughput, objectives(run, &ValueUnit::PerSecond)),
        chart("Response time", ChartAxis::new("response time", ValueUnit::Milliseconds).scaled(scale), times, limits),
    ];
    blocks.extend(step_times(run));
    if any_failed {
        blocks.push(chart("Failures", per_second(), vec![failed], Vec::new()));
    } else {
        blocks.insert(0, Block::Text("No request failed at any time.".into()));
    }
    let held = ChartAxis::new("requests; in flight: the maximum of each interval", ValueUnit::Count);
    blocks.push(chart("In the system", held, inside, Vec::new()));
    Section::new("Over time", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Nanos;

    #[test]
    fn a_curve_goes_from_the_fastest_to_the_slowest_response() {
        let mut histogram = Histogram::precise();
        (1..=1000).for_each(|ms| histogram.record(Nanos::from_millis(ms)));
        let points = tail(&histogram);
        assert_eq!((points[0].0, points[0].1), (0.0, histogram.min().map(Nanos::as_millis_f64)));
        assert_eq!(points.last().and_then(|point| point.1), histogram.max_ms());
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        let of_nothing = percentiles(&[("nothing", &Histogram::precise())]);
        assert!(of_nothing.lines[0].values().all(f64::is_finite));
    }
}
