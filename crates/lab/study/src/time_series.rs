//! Plots over time: the load, and the use of resources by the variant, on the same axis.

use std::collections::BTreeMap;

use super::findings::{Findings, RunRange};
use super::recordings::Recording;
use super::study_plot::{StudyPlot, file_name, point_suffix};
use weir_machine::process_tree::ProcessTreeSample;
use weir_measure::Run;
use weir_measure::series::SeriesPoint;
use weir_report::axis::ChartAxis;
use weir_report::plot::{Plot, PlotPoint, PlotSeries, XAxisKind};
use weir_report::unit::ValueUnit;

/// Times in seconds and values, in order.
type TimeSeries = Vec<(f64, f64)>;

/// Maximum number of intervals that the samples of a measurement are merged into.
const MAX_INTERVALS: f64 = 50.0;
/// Possible lengths of an interval, in seconds. Shorter ones would show the ticks of the system's CPU accounting.
const INTERVAL_LENGTHS_S: [f64; 12] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// Plots at a point: those of each load, then CPU and memory.
pub(super) fn all_plots(findings: &Findings<'_>, point: usize, recorded: &[Recording<'_>]) -> Vec<StudyPlot> {
    let mut figures = Vec::new();
    let mut add = |title: &str, y_name: &str, unit: ValueUnit, of: &dyn Fn(&Recording<'_>) -> TimeSeries| {
        let plot = Plot {
            title: format!("{title} over time{}", point_suffix(findings, point)),
            note: "median of the rounds; from the lowest to the highest of them".into(),
            x: ChartAxis::new("time since the load began", ValueUnit::Seconds),
            y: ChartAxis::new(y_name, unit),
            x_kind: XAxisKind::Time,
            series: series(findings, recorded, of),
            ..Plot::default()
        };
        let name = file_name(&format!("{title} over time {}", findings.points[point].name()));
        figures.push(StudyPlot { name, plot: plot.with_fitted_axes(), metric: None, point: Some(point) });
    };
    for load in &findings.definition.loads {
        let of_run =
            |of: fn(&Run) -> TimeSeries| move |it: &Recording<'_>| it.run(&load.name).map(of).unwrap_or_default();
        let name = |what: &str| format!("{}: {what}", load.name);
        add(&name("successes"), "successes", ValueUnit::PerSecond, &of_run(rate));
        add(&name("p99"), "p99 of the response time", ValueUnit::Milliseconds, &of_run(p99));
    }
    let last = recorded.iter().filter_map(|it| it.samples.samples.last());
    let interval_s = interval_length_s(last.map(|sample| sample.t_s).fold(0.0, f64::max));
    add("CPU", "CPU", ValueUnit::Other("cores".into()), &|it| cpu(&it.samples.samples, interval_s));
    add("memory", "memory", ValueUnit::Other("MiB".into()), &|it| memory(&it.samples.samples, interval_s));
    figures
}

/// One line per variant, over all its rounds.
fn series(
    findings: &Findings<'_>,
    recorded: &[Recording<'_>],
    of: &dyn Fn(&Recording<'_>) -> TimeSeries,
) -> Vec<PlotSeries> {
    let of_variant = |variant: usize| {
        let rounds: Vec<_> = recorded.iter().filter(|it| it.variant == variant).collect();
        let untrusted = rounds.iter().filter(|it| !it.measurement.is_trusted()).count();
        // Keys in milliseconds: floats cannot be keys.
        let mut at: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (t_s, value) in rounds.iter().flat_map(|it| of(it)) {
            at.entry((t_s * 1e3).round() as i64).or_default().push(value);
        }
        let points = at.into_iter().filter_map(|(ms, mut values)| {
            values.sort_by(f64::total_cmp);
            let RunRange { median, low, high, runs, untrusted } = RunRange::of(&values, untrusted)?;
            Some(PlotPoint { x: ms as f64 / 1e3, y: median, low, high, runs, untrusted: untrusted > 0 })
        });
        PlotSeries { name: findings.variant(variant).to_owned(), points: points.collect(), colour: variant }
    };
    // A single point is not a line.
    (0..findings.definition.variants.len()).map(of_variant).filter(|series| series.points.len() > 1).collect()
}

/// Intervals of a run, in groups, at most twice [`MAX_INTERVALS`].
fn merged_intervals(run: &Run) -> impl Iterator<Item = &[SeriesPoint]> {
    // The last interval may be too short for a rate.
    let usual = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max);
    let whole = run.series.iter().take_while(|point| point.width_s > usual / 2.0).count();
    let some = (whole as f64 / (2.0 * MAX_INTERVALS)).ceil().max(1.0);
    run.series.get(..whole).unwrap_or_default().chunks(some as usize)
}

/// Successes per second, by end of the response.
fn rate(run: &Run) -> TimeSeries {
    let rate = |some: &[SeriesPoint]| {
        let (ok, width_s) = some.iter().fold((0, 0.0), |(ok, width_s), it| (ok + it.ok, width_s + it.width_s));
        Some((some.first()?.t_s, ok as f64 / width_s))
    };
    merged_intervals(run).filter_map(rate).collect()
}

/// Highest p99 of each interval; intervals without a response are omitted.
fn p99(run: &Run) -> TimeSeries {
    let worst =
        |some: &[SeriesPoint]| Some((some.first()?.t_s, some.iter().filter_map(|it| it.p99_ms).reduce(f64::max)?));
    merged_intervals(run).filter_map(worst).collect()
}

/// Length of an interval, in seconds, for samples up to `last_s`.
fn interval_length_s(last_s: f64) -> f64 {
    let least = last_s / MAX_INTERVALS;
    INTERVAL_LENGTHS_S.into_iter().find(|length| *length >= least).unwrap_or(least)
}

/// Busy cores in each interval.
fn cpu(samples: &[ProcessTreeSample], interval_s: f64) -> TimeSeries {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let intervals = (last.t_s / interval_s).ceil() as u64;
    let within = |i: u64| (i as f64 * interval_s, (i + 1) as f64 * interval_s);
    let seen = (0..intervals).map(within).map(|(from, to)| (from, from.max(first.t_s), to.min(last.t_s)));
    let whole = seen.filter(|(_, from, to)| to - from > interval_s / 2.0);
    let cores = |from, to| (cpu_until(samples, to) - cpu_until(samples, from)) / (to - from);
    // Rounded: the difference of two equal times may not be exactly 0.
    whole.map(|(at, from, to)| (at, (cores(from, to) * 1e6).round() / 1e6)).collect()
}

/// CPU time up to `t_s`, interpolated between samples.
fn cpu_until(samples: &[ProcessTreeSample], t_s: f64) -> f64 {
    let next = samples.partition_point(|sample| sample.t_s < t_s);
    match (next.checked_sub(1).and_then(|before| samples.get(before)), samples.get(next)) {
        (Some(a), Some(b)) => a.cpu_s + (b.cpu_s - a.cpu_s) * (t_s - a.t_s) / (b.t_s - a.t_s),
        (a, b) => a.or(b).map_or(0.0, |sample| sample.cpu_s),
    }
}

/// Peak memory in each interval, in MiB: proportional set size if any sample has it, else resident.
fn memory(samples: &[ProcessTreeSample], interval_s: f64) -> TimeSeries {
    let shared = samples.iter().any(|sample| sample.pss_bytes.is_some());
    let mut most: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in samples {
        let bytes = if shared { sample.pss_bytes } else { Some(sample.rss_bytes) };
        let Some(bytes) = bytes else { continue };
        let known = most.entry((sample.t_s / interval_s) as u64).or_default();
        *known = bytes.max(*known);
    }
    most.into_iter().map(|(i, bytes)| (i as f64 * interval_s, bytes as f64 / f64::from(1 << 20))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<ProcessTreeSample> {
        let sample = |i: u32| ProcessTreeSample {
            t_s: 0.05 + f64::from(i) / 10.0,
            // Half a core for two seconds, then two cores.
            cpu_s: if i <= 20 { f64::from(i) * 0.05 } else { 1.0 + f64::from(i - 20) * 0.2 },
            rss_bytes: 1 << 20,
            pss_bytes: i.is_multiple_of(5).then_some(u64::from(i) << 20),
            ..ProcessTreeSample::default()
        };
        (0..40).map(sample).collect()
    }

    #[test]
    fn cpu_is_the_use_in_each_interval() {
        let course = cpu(&samples(), 0.5);
        let times: Vec<f64> = course.iter().map(|(t_s, _)| *t_s).collect();
        assert_eq!(times, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        assert!(course[..4].iter().all(|(_, cores)| (cores - 0.5).abs() < 1e-9), "{course:?}");
        assert!(course[5..].iter().all(|(_, cores)| (cores - 2.0).abs() < 1e-9), "{course:?}");
        assert_eq!(cpu(&[], 0.5), []);
        assert_eq!(cpu(&samples()[..1], 0.5), [], "one sample has no difference");
    }

    #[test]
    fn memory_is_the_proportional_set_size_where_it_is_sampled() {
        assert_eq!(memory(&samples(), 1.0), [(0.0, 5.0), (1.0, 15.0), (2.0, 25.0), (3.0, 35.0)]);
        let resident: Vec<ProcessTreeSample> =
            samples().into_iter().map(|it| ProcessTreeSample { pss_bytes: None, ..it }).collect();
        assert_eq!(memory(&resident, 2.0), [(0.0, 1.0), (2.0, 1.0)]);
    }

    #[test]
    fn intervals_are_long_enough_to_be_few() {
        assert_eq!([0.0, 1.0, 10.0, 30.0, 600.0].map(interval_length_s), [0.2, 0.2, 0.2, 1.0, 20.0]);
        assert!(1e6 / interval_length_s(1e6) <= MAX_INTERVALS + 1.0);
    }
}
