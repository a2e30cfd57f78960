//! Cells behind the lines of a chart: a heat map of distributions over time.

use serde_json::{Value, json};

use weir_histogram::Histogram;

/// Maximum number of columns; neighbours are merged beyond it.
const MAX_COLUMNS: usize = 160;
/// Maximum number of rows.
const MAX_ROWS: usize = 36;
/// Minimum ratio of the bounds of a row: histograms of two digits are exact to one percent.
const MIN_ROW_RATIO: f64 = 1.04;
/// Maximum ratio of the highest bound to the lowest one; shorter times are in the lowest row.
const MAX_RATIO: f64 = 1e7;
/// Lowest fraction of a column's times in a cell, by shade from the second one; the first shade is any time at all.
const SHADE_FRACTIONS: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 0.6];
/// Number of shades.
pub(super) const SHADES: u8 = SHADE_FRACTIONS.len() as u8 + 1;

/// Heat map: columns are intervals of the x axis, rows ranges of the y axis, and shades fractions of a column's times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartCells {
    /// Name in the legend.
    pub name: String,
    /// Columns with times, from left to right.
    pub columns: Vec<CellColumn>,
    /// Bounds of the rows from the bottom to the top, in the unit of the y axis: one more than rows.
    pub bounds: Vec<f64>,
}

/// Column of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct CellColumn {
    /// Start, in the unit of the x axis.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Shade of each row, from the bottom to the top: 0 without times, up to `SHADES`.
    pub shades: Vec<u8>,
}

impl ChartCells {
    /// Heat map of the times of intervals, each with its start and end, in milliseconds; `None` without any time.
    pub fn of_times(name: &str, intervals: &[(f64, f64, Histogram)]) -> Option<Self> {
        let merged = merged(intervals);
        let bounds = bounds(merged.iter().map(|(_, _, times)| times))?;
        let column = |(from, to, times): &(f64, f64, Histogram)| {
            let total = times.count();
            let shades = counts(times, &bounds).into_iter().map(|count| shade(count, total)).collect();
            CellColumn { from: *from, to: *to, shades }
        };
        let columns = merged.iter().filter(|(_, _, times)| times.count() > 0).map(column).collect();
        Some(Self { name: name.to_owned(), columns, bounds })
    }

    /// Values of the x axis that it covers.
    pub(super) fn x_values(&self) -> impl Iterator<Item = f64> + '_ {
        self.columns.iter().flat_map(|column| [column.from, column.to])
    }

    /// Cells of a shade, as bounds `[left, right, bottom, top]`; neighbours above each other are one.
    pub(super) fn of_shade(&self, shade: u8) -> impl Iterator<Item = [f64; 4]> + '_ {
        self.columns.iter().flat_map(move |column| {
            let mut cells: Vec<[f64; 4]> = Vec::new();
            let mut before = false;
            for (own, bounds) in column.shades.iter().zip(self.bounds.windows(2)) {
                match (cells.last_mut().filter(|_| before), *own == shade) {
                    (Some(below), true) => below[3] = bounds[1],
                    (None, true) => cells.push([column.from, column.to, bounds[0], bounds[1]]),
                    (_, false) => {}
                }
                before = *own == shade;
            }
            cells
        })
    }

    /// JSON for the script: shades are a digit for each row.
    pub(super) fn to_json(&self, number: fn(f64) -> Value) -> Value {
        let digits = |column: &CellColumn| column.shades.iter().map(|shade| char::from(b'0' + shade % 10)).collect();
        json!({
            "name": self.name,
            "x": self.x_values().map(number).collect::<Vec<_>>(),
            "y": self.bounds.iter().copied().map(number).collect::<Vec<_>>(),
            "shades": self.columns.iter().map(digits).collect::<Vec<String>>(),
        })
    }
}

/// Intervals, of which neighbours are merged until there are no more than fit.
fn merged(intervals: &[(f64, f64, Histogram)]) -> Vec<(f64, f64, Histogram)> {
    let per_column = intervals.len().div_ceil(MAX_COLUMNS).max(1);
    let join = |chunk: &[(f64, f64, Histogram)]| {
        let mut sum = Histogram::coarse();
        chunk.iter().for_each(|(_, _, times)| sum.add(times));
        Some((chunk.first()?.0, chunk.last()?.1, sum))
    };
    intervals.chunks(per_column).filter_map(join).collect()
}

/// Bounds of rows of equal ratio, from below the shortest time above 0 to above the longest; `None` without any time.
fn bounds<'a>(all: impl Iterator<Item = &'a Histogram>) -> Option<Vec<f64>> {
    let times = all.flat_map(|times| times.recorded().map(|(time, _)| time.as_millis_f64()).collect::<Vec<_>>());
    let (mut low, mut high, mut is_any) = (f64::INFINITY, 0.0_f64, false);
    for ms in times {
        is_any = true;
        if ms > 0.0 {
            (low, high) = (low.min(ms), high.max(ms));
        }
    }
    if !is_any {
        return None;
    }
    let high = if high > 0.0 { high } else { 1e-6 };
    let (low, high) = (low.min(high).max(high / MAX_RATIO) / 1.02, high * 1.02);
    let span = (high / low).ln();
    let rows = ((span / MIN_ROW_RATIO.ln()).floor() as usize).clamp(1, MAX_ROWS);
    Some((0..=rows).map(|row| low * (span * row as f64 / rows as f64).exp()).collect())
}

/// Number of times in each row. Times below the lowest bound, 0 among them, are in the lowest row.
fn counts(times: &Histogram, bounds: &[f64]) -> Vec<u64> {
    let rows = bounds.len().saturating_sub(1);
    let mut counts = vec![0; rows];
    for (time, count) in times.recorded() {
        let above = bounds.partition_point(|bound| *bound <= time.as_millis_f64());
        if let Some(row) = counts.get_mut(above.clamp(1, rows.max(1)) - 1) {
            *row += count;
        }
    }
    counts
}

fn shade(count: u64, total: u64) -> u8 {
    if count == 0 {
        return 0;
    }
    let fraction = count as f64 / total.max(1) as f64;
    1 + SHADE_FRACTIONS.iter().filter(|from| fraction >= **from).count() as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use weir_base::Nanos;

    fn interval(at: usize, times_ns: &[u64]) -> (f64, f64, Histogram) {
        let mut times = Histogram::coarse();
        times_ns.iter().for_each(|time| times.record(Nanos(*time)));
        (at as f64, at as f64 + 1.0, times)
    }

    #[test]
    fn a_shade_is_the_fraction_of_a_column_and_a_single_outlier_is_seen() {
        let mut times = vec![10_000_000; 999];
        times.push(900_000_000);
        let cells = ChartCells::of_times("gaps", &[interval(0, &times), interval(1, &[]), interval(2, &[10_000_000])]);
        let cells = cells.expect("times");
        assert_eq!(cells.columns.iter().map(|column| column.from).collect::<Vec<_>>(), [0.0, 2.0]);
        let first = &cells.columns[0].shades;
        assert_eq!(
            (first[0], first.last().copied(), first.iter().filter(|shade| **shade > 0).count()),
            (6, Some(1), 2)
        );
        assert_eq!(cells.of_shade(6).count(), 2);
        let [left, right, low, high] = cells.of_shade(1).next().expect("the outlier");
        assert!((left, right) == (0.0, 1.0) && (low..high).contains(&900.0), "{low} to {high}");
        assert_eq!(ChartCells::of_times("gaps", &[interval(0, &[])]), None);
        let zeros = ChartCells::of_times("gaps", &[interval(0, &[0, 0])]).expect("times");
        assert_eq!(zeros.columns[0].shades, [6]);
    }

    #[test]
    fn equal_neighbours_above_each_other_are_one_shape() {
        let bounds = vec![1.0, 2.0, 4.0, 8.0, 16.0];
        let columns = vec![CellColumn { from: 0.0, to: 1.0, shades: vec![2, 2, 1, 2] }];
        let cells = ChartCells { name: String::new(), columns, bounds };
        assert_eq!(cells.of_shade(2).collect::<Vec<_>>(), [[0.0, 1.0, 1.0, 4.0], [0.0, 1.0, 8.0, 16.0]]);
        assert_eq!(cells.of_shade(1).collect::<Vec<_>>(), [[0.0, 1.0, 4.0, 8.0]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Oracle: each time is in the row whose bounds are around it, or in the lowest one.
        #[test]
        fn each_time_is_in_the_row_around_it_and_the_size_is_bounded(
            all in prop::collection::vec(prop::collection::vec(0..3_600_000_000_000_u64, 0..20), 1..400)
        ) {
            let intervals: Vec<_> = all.iter().enumerate().map(|(at, times)| interval(at, times)).collect();
            let Some(cells) = ChartCells::of_times("gaps", &intervals) else {
                prop_assert!(all.iter().all(Vec::is_empty));
                return Ok(());
            };
            let rows = cells.bounds.len() - 1;
            prop_assert!(cells.columns.len() <= MAX_COLUMNS && (1..=MAX_ROWS).contains(&rows));
            prop_assert!(cells.bounds.is_sorted_by(|a, b| a < b));
            for (from, to, times) in merged(&intervals) {
                let counts = counts(&times, &cells.bounds);
                prop_assert_eq!(counts.iter().sum::<u64>(), times.count());
                let recorded: Vec<(f64, u64)> = times.recorded().map(|(time, n)| (time.as_millis_f64(), n)).collect();
                for (row, bounds) in cells.bounds.windows(2).enumerate() {
                    let is_in = |ms: f64| (row == 0 || ms >= bounds[0]) && (row + 1 == rows || ms < bounds[1]);
                    let naive: u64 = recorded.iter().filter(|(ms, _)| is_in(*ms)).map(|(_, count)| count).sum();
                    prop_assert_eq!(counts[row], naive);
                }
                let column = cells.columns.iter().find(|column| column.from == from);
                prop_assert_eq!(column.is_some(), times.count() > 0);
                if let Some(column) = column {
                    prop_assert_eq!(column.to, to);
                    prop_assert!(column.shades.iter().zip(&counts).all(|(shade, n)| (*shade > 0) == (*n > 0)));
                    prop_assert!(column.shades.iter().all(|shade| *shade <= SHADES));
                }
            }
        }
    }
}
