//! How measurements went on: the load and what the variant used meanwhile, on one axis of time.

use std::collections::BTreeMap;

use super::figures::{StudyPlot, file_name, label, point_suffix};
use super::findings::{Findings, RunRange};
use super::folder::point_name;
use super::recorded::Recording;
use crate::machine::process_tree::ProcessTreeSample;
use crate::measure::Run;
use crate::measure::series::SeriesPoint as Stretch;
use crate::report::page::ValueUnit;
use crate::report::plot::{Plot, PlotPoint, PlotSeries, XAxisKind};

/// Times and values, in order.
type TimeSeries = Vec<(f64, f64)>;

/// Samples of a measurement are put together until there are no more stretches than this.
const MAX_INTERVALS: f64 = 50.0;
/// Lengths that a stretch may have, in seconds: shorter ones would show the ticks in which the system counts CPU time.
const INTERVAL_LENGTHS_S: [f64; 12] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// The courses at a point: of each load, then of what was used.
pub(super) fn all_plots(findings: &Findings<'_>, point: usize, recorded: &[Recording<'_>]) -> Vec<StudyPlot> {
    let mut figures = Vec::new();
    let mut add = |title: &str, label: String, unit: ValueUnit, of: &dyn Fn(&Recording<'_>) -> TimeSeries| {
        let plot = Plot {
            title: format!("{title} over time{}", point_suffix(findings, point)),
            note: "median of the rounds; from the lowest to the highest of them".into(),
            x_label: "since the load began (s)".into(),
            y_label: label,
            x_kind: XAxisKind::Time,
            series: series(findings, recorded, of),
            ..Plot::default()
        };
        let name = file_name(&format!("{title} over time {}", point_name(&findings.points[point])));
        figures.push(StudyPlot { name, plot, unit, metric: None, point: Some(point) });
    };
    for load in &findings.definition.loads {
        let of_run =
            |of: fn(&Run) -> TimeSeries| move |it: &Recording<'_>| it.run(&load.name).map(of).unwrap_or_default();
        let name = |what: &str| format!("{}: {what}", load.name);
        add(&name("good answers"), label("good answers", "/s"), ValueUnit::PerSecond, &of_run(rate));
        add(&name("p99"), label("p99 of the response time", "ms"), ValueUnit::Milliseconds, &of_run(p99));
    }
    let last = recorded.iter().filter_map(|it| it.samples.samples.last());
    let stretch = interval_length_s(last.map(|sample| sample.t_s).fold(0.0, f64::max));
    add("CPU", label("cores busy", ""), ValueUnit::Other("cores".into()), &|it| cpu(&it.samples.samples, stretch));
    add("memory", label("memory", "MiB"), ValueUnit::Other("MiB".into()), &|it| memory(&it.samples.samples, stretch));
    figures
}

/// A line per variant, all of its rounds together.
fn series(
    findings: &Findings<'_>,
    recorded: &[Recording<'_>],
    of: &dyn Fn(&Recording<'_>) -> TimeSeries,
) -> Vec<PlotSeries> {
    let of_variant = |variant: usize| {
        let rounds: Vec<_> = recorded.iter().filter(|it| it.variant == variant).collect();
        let untrusted = rounds.iter().filter(|it| !it.measurement.is_trusted()).count();
        // Milliseconds, as floats are no keys.
        let mut at: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (t_s, value) in rounds.iter().flat_map(|it| of(it)) {
            at.entry((t_s * 1e3).round() as i64).or_default().push(value);
        }
        let points = at.into_iter().filter_map(|(ms, mut values)| {
            values.sort_by(f64::total_cmp);
            let RunRange { median, low, high, runs, untrusted } = RunRange::of(&values, untrusted)?;
            Some(PlotPoint { x: ms as f64 / 1e3, y: median, low, high, runs, doubtful: untrusted > 0 })
        });
        PlotSeries { name: findings.variant(variant).to_owned(), points: points.collect(), colour: variant }
    };
    // A single point is no course.
    (0..findings.definition.variants.len()).map(of_variant).filter(|series| series.points.len() > 1).collect()
}

/// The stretches of a run, so many of them together that there are not more than twice [`MAX_INTERVALS`].
fn merged_intervals(run: &Run) -> impl Iterator<Item = &[Stretch]> {
    // The last stretch may be a moment, which has no rate to speak of.
    let usual = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max);
    let whole = run.series.iter().take_while(|point| point.width_s > usual / 2.0).count();
    let some = (whole as f64 / (2.0 * MAX_INTERVALS)).ceil().max(1.0);
    run.series.get(..whole).unwrap_or_default().chunks(some as usize)
}

/// Good answers per second, by when they ended.
fn rate(run: &Run) -> TimeSeries {
    let rate = |some: &[Stretch]| {
        let (ok, width_s) = some.iter().fold((0, 0.0), |(ok, width_s), it| (ok + it.ok, width_s + it.width_s));
        Some((some.first()?.t_s, ok as f64 / width_s))
    };
    merged_intervals(run).filter_map(rate).collect()
}

/// The worst second of each stretch. Where nobody got an answer there was no response time.
fn p99(run: &Run) -> TimeSeries {
    let worst = |some: &[Stretch]| {
        let answered = some.iter().filter(|it| it.max_ms > 0.0);
        Some((some.first()?.t_s, answered.map(|it| it.p99_ms).reduce(f64::max)?))
    };
    merged_intervals(run).filter_map(worst).collect()
}

/// The length of a stretch for samples up to a time.
fn interval_length_s(last_s: f64) -> f64 {
    let least = last_s / MAX_INTERVALS;
    INTERVAL_LENGTHS_S.into_iter().find(|length| *length >= least).unwrap_or(least)
}

/// Cores that were busy, stretch by stretch.
fn cpu(samples: &[ProcessTreeSample], stretch: f64) -> TimeSeries {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let stretches = (last.t_s / stretch).ceil() as u64;
    let within = |i: u64| (i as f64 * stretch, (i + 1) as f64 * stretch);
    let seen = (0..stretches).map(within).map(|(from, to)| (from, from.max(first.t_s), to.min(last.t_s)));
    let whole = seen.filter(|(_, from, to)| to - from > stretch / 2.0);
    let cores = |from, to| (cpu_until(samples, to) - cpu_until(samples, from)) / (to - from);
    // What is left of two equal times is no use of anything.
    whole.map(|(at, from, to)| (at, (cores(from, to) * 1e6).round() / 1e6)).collect()
}

/// CPU time up to a moment between two samples.
fn cpu_until(samples: &[ProcessTreeSample], t_s: f64) -> f64 {
    let next = samples.partition_point(|sample| sample.t_s < t_s);
    match (next.checked_sub(1).and_then(|before| samples.get(before)), samples.get(next)) {
        (Some(a), Some(b)) => a.cpu_s + (b.cpu_s - a.cpu_s) * (t_s - a.t_s) / (b.t_s - a.t_s),
        (a, b) => a.or(b).map_or(0.0, |sample| sample.cpu_s),
    }
}

/// The most memory in each stretch, in MiB: the proportional share, where that was ever looked at.
fn memory(samples: &[ProcessTreeSample], stretch: f64) -> TimeSeries {
    let shared = samples.iter().any(|sample| sample.pss_bytes.is_some());
    let mut most: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in samples {
        let bytes = if shared { sample.pss_bytes } else { Some(sample.rss_bytes) };
        let Some(bytes) = bytes else { continue };
        let known = most.entry((sample.t_s / stretch) as u64).or_default();
        *known = bytes.max(*known);
    }
    most.into_iter().map(|(i, bytes)| (i as f64 * stretch, bytes as f64 / f64::from(1 << 20))).collect()
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
    fn cpu_is_what_was_used_in_each_stretch() {
        let course = cpu(&samples(), 0.5);
        let times: Vec<f64> = course.iter().map(|(t_s, _)| *t_s).collect();
        assert_eq!(times, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        assert!(course[..4].iter().all(|(_, cores)| (cores - 0.5).abs() < 1e-9), "{course:?}");
        assert!(course[5..].iter().all(|(_, cores)| (cores - 2.0).abs() < 1e-9), "{course:?}");
        assert_eq!(cpu(&[], 0.5), []);
        assert_eq!(cpu(&samples()[..1], 0.5), [], "one sample says nothing");
    }

    #[test]
    fn memory_is_the_proportional_share_where_that_is_known() {
        assert_eq!(memory(&samples(), 1.0), [(0.0, 5.0), (1.0, 15.0), (2.0, 25.0), (3.0, 35.0)]);
        let resident: Vec<ProcessTreeSample> =
            samples().into_iter().map(|it| ProcessTreeSample { pss_bytes: None, ..it }).collect();
        assert_eq!(memory(&resident, 2.0), [(0.0, 1.0), (2.0, 1.0)]);
    }

    #[test]
    fn stretches_are_so_long_that_there_are_not_many() {
        assert_eq!([0.0, 1.0, 10.0, 30.0, 600.0].map(interval_length_s), [0.2, 0.2, 0.2, 1.0, 20.0]);
        assert!(1e6 / interval_length_s(1e6) <= MAX_INTERVALS + 1.0);
    }
}
