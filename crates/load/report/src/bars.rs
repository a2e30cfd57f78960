//! Histogram of a distribution in about a dozen lines.
//!
//! Response times span anything from a factor of 1.01 to one of a million, and either must show its modes. So the
//! bounds of the rows are round numbers, evenly apart on a logarithmic scale where that gives enough rows, and on a
//! linear one where all times are close together. They run from the 0.1st to the 99.9th percentile: the first row
//! takes what is below, a last one what is above.

use super::ansi::AnsiPaint;
use super::axis::round_step;
use super::number_format;
use weir_base::Nanos;
use weir_histogram::Histogram;

/// Maximum number of rows between the 0.1st and the 99.9th percentile.
const MAX_ROWS: usize = 14;
/// Minimum number of rows of a logarithmic scale; with fewer the scale is linear.
const MIN_LOG_ROWS: usize = 6;
/// Length of the longest bar, in columns.
const MAX_BAR_COLUMNS: usize = 40;
/// Round numbers per decade, evenly apart on a logarithmic scale, from the finest to the coarsest.
const DECADES: [&[u64]; 5] = [
    &[100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820],
    &[100, 150, 220, 330, 470, 680],
    &[100, 200, 500],
    &[100, 300],
    &[100],
];

/// Row of the histogram: the count of times above the bound of the row before, up to its own.
pub(super) struct HistogramRow {
    pub(super) label: String,
    pub(super) count: u64,
}

/// Lines of the histogram; none if it is empty.
pub(super) fn lines(histogram: &Histogram, paint: AnsiPaint) -> Vec<String> {
    let rows = rows(histogram);
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0).max(1) as f64;
    let all = histogram.count().max(1) as f64;
    let line = |row: &HistogramRow| {
        let fraction = row.count as f64 / all;
        let bar = paint.cyan(&bar(row.count as f64 / most));
        format!(
            "{:>10}  {:>13}  {:>7}  {bar}",
            row.label,
            number_format::count(row.count),
            number_format::percent(fraction)
        )
        .trim_end()
        .into()
    };
    let heading = format!("{:>10}  {:>13}  {:>7}", "response", "successes", "percent");
    let heading = (!rows.is_empty()).then(|| paint.dim(&heading));
    heading.into_iter().chain(rows.iter().map(line)).collect()
}

/// Rows of the histogram; none if it is empty.
pub(super) fn rows(histogram: &Histogram) -> Vec<HistogramRow> {
    let Some((low, high)) = histogram.quantile(0.001).zip(histogram.quantile(0.999)) else { return Vec::new() };
    let all = histogram.count();
    // Differences of counts up to a bound: a value is then in exactly one row, whatever the histogram's precision.
    let up_to = |bound: &Nanos| (histogram.fraction_up_to(*bound) * all as f64).round() as u64;
    let bounds = bounds(low, high);
    let mut below = 0;
    let mut rows = Vec::with_capacity(bounds.len() + 1);
    for bound in &bounds {
        let count = up_to(bound);
        rows.push(HistogramRow {
            label: format!("≤ {}", number_format::round_time(*bound)),
            count: count.saturating_sub(below),
        });
        below = count;
    }
    if below < all {
        rows.push(HistogramRow { label: "above".into(), count: all - below });
    }
    rows
}

/// Round bounds, the first at or above `low` and the last at or above `high`.
fn bounds(low: Nanos, high: Nanos) -> Vec<Nanos> {
    // Times within one bucket of the histogram count as equal: a constant 7 ms is one row.
    let [low, high] = [low, high].map(|time| Nanos((time.0 as f64 * 0.999) as u64).max(Nanos(1)));
    let fits = |bounds: &Vec<Nanos>| (MIN_LOG_ROWS..=MAX_ROWS).contains(&bounds.len());
    let coarser = DECADES.iter().map(|decade| logarithmic(decade, low, high));
    coarser.into_iter().find(fits).unwrap_or_else(|| linear(low, high))
}

fn logarithmic(decade: &[u64], low: Nanos, high: Nanos) -> Vec<Nanos> {
    let mut bounds = Vec::new();
    for power in 0..14 {
        for mantissa in decade {
            let bound = mantissa * 10_u64.pow(power) / 100;
            if bound < low.0 {
                continue;
            }
            bounds.push(Nanos(bound));
            if bound >= high.0 {
                return bounds;
            }
        }
    }
    bounds
}

fn linear(low: Nanos, high: Nanos) -> Vec<Nanos> {
    // Steps much finer than a hundredth are below the resolution of a histogram of three digits.
    let raw = ((high - low).0 as f64 / 10.0).max(low.0 as f64 / 200.0).max(1.0);
    let step = round_step(raw);
    let first = (low.0 as f64 / step).ceil();
    let mut bounds = Vec::new();
    for i in 0..MAX_ROWS {
        let bound = Nanos(((first + i as f64) * step).round() as u64);
        bounds.push(bound);
        if bound >= high {
            break;
        }
    }
    bounds
}

/// A bar for a share of the longest, in eighths of a column; a positive one is at least an eighth, so that it can be
/// seen.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let mut eighths = (share * (MAX_BAR_COLUMNS * 8) as f64).round() as usize;
    if share > 0.0 {
        eighths = eighths.max(1);
    }
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(low: u64, high: u64) -> Vec<String> {
        bounds(Nanos(low), Nanos(high)).into_iter().map(number_format::round_time).collect()
    }

    #[test]
    fn bounds_are_round_and_few() {
        assert_eq!(labels(1_900_000, 6_000_000).join(" "), "2.2ms 2.7ms 3.3ms 3.9ms 4.7ms 5.6ms 6.8ms");
        assert_eq!(
            labels(20_000, 30_000_000_000).join(" "),
            "30us 100us 300us 1ms 3ms 10ms 30ms 100ms 300ms 1s 3s 10s 30s"
        );
        assert_eq!(
            labels(100_000_000, 104_000_000).join(" "),
            "100ms 100.5ms 101ms 101.5ms 102ms 102.5ms 103ms 103.5ms 104ms"
        );
    }

    #[test]
    fn a_single_value_is_a_single_full_bar() {
        let mut histogram = Histogram::precise();
        histogram.record(Nanos::from_millis(7));
        let lines = lines(&histogram, AnsiPaint { enabled: false });
        assert_eq!(lines[1..], [format!("{:>10}  {:>13}  {:>7}  {}", "≤ 7ms", 1, "100.0%", "█".repeat(40))]);
    }

    #[test]
    fn the_least_count_can_be_seen() {
        assert_eq!((bar(1e-9), bar(0.0), bar(1.0 / 40.0)), ("▏".into(), String::new(), "█".into()));
    }

    proptest! {
        #[test]
        fn every_value_is_in_exactly_one_of_a_few_rows(
            values in prop::collection::vec(0..3_600_000_000_000_u64, 1..300),
            narrow in 0..40_u32,
        ) {
            let mut histogram = Histogram::precise();
            values.iter().for_each(|v| histogram.record(Nanos(1_000_000 + (v >> narrow))));
            let rows = rows(&histogram);
            prop_assert_eq!(rows.iter().map(|r| r.count).sum::<u64>(), values.len() as u64);
            prop_assert!(rows.len() <= MAX_ROWS + 1);
        }
    }
}
