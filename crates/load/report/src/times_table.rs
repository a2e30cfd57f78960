//! Tables of times in text reports: a row each, with the mean and percentiles.

use super::ansi::AnsiPaint;
use super::number_format::ms_like;
use weir_histogram::percentiles::Percentiles;

const METRIC_NAMES: [&str; 8] = ["mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"];

/// Table of times, a row each.
pub(super) fn times_table(rows: &[(&str, &Percentiles)], paint: AnsiPaint) -> Vec<String> {
    let row = |(name, times): &(&str, &Percentiles)| {
        let times = percentiles(times);
        format!("{name:<15}{}", cells(&times, &times))
    };
    [heading(paint)].into_iter().chain(rows.iter().map(row)).collect()
}

/// Names of the columns of a table of times.
pub(super) fn heading(paint: AnsiPaint) -> String {
    let names = METRIC_NAMES.iter().map(|name| format!("{name:>8}")).collect::<String>();
    format!("{:<15}{}", "", paint.dim(&names))
}

/// Cells of a row of times, with the units of the greater of it and another row.
pub(super) fn cells(own: &[Option<f64>; 8], other: &[Option<f64>; 8]) -> String {
    let greater = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b)).or(a).or(b);
    own.iter().zip(other).map(|(ms, other)| format!("{:>8}", ms_like(*ms, greater(*ms, *other)))).collect()
}

/// Percentiles in the order of [`METRIC_NAMES`].
pub(super) fn percentiles(spread: &Percentiles) -> [Option<f64>; 8] {
    let Percentiles { mean, p50, p75, p90, p95, p99, p999, max, .. } = *spread;
    [mean, p50, p75, p90, p95, p99, p999, max]
}
