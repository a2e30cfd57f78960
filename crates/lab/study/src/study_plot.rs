//! One plot of a study: its name, and the points of the sweep that have one.

use super::findings::Findings;
use weir_report::plot::Plot;

/// Plot, and the name of its files.
#[derive(Debug)]
pub struct StudyPlot {
    /// Name of the files, without extension.
    pub name: String,
    /// Series and axes.
    pub plot: Plot,
    /// Index of the metric over the sweep that this plot shows, if it shows one.
    pub metric: Option<usize>,
    /// Index of the point of the sweep that this plot shows, if it shows one.
    pub point: Option<usize>,
}

/// Maximum number of points of the sweep with plots of their own (by percentile, over time).
const MAX_PLOTTED_POINTS: usize = 4;

/// Some of many points, evenly apart, always with the last one: in most sweeps it has the highest load.
pub(super) fn select_points(points: &[usize]) -> Vec<usize> {
    let step = points.len().div_ceil(MAX_PLOTTED_POINTS).max(1);
    let mut some: Vec<usize> = points.iter().rev().step_by(step).copied().collect();
    some.reverse();
    some
}

/// ` at connections=8`; empty without a sweep.
pub(super) fn point_suffix(findings: &Findings<'_>, point: usize) -> String {
    let of = &findings.points[point];
    if of.is_empty() { String::new() } else { format!(" at {}", of.name()) }
}

/// File name of lower-case letters, digits, dots and dashes.
pub(super) fn file_name(words: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let name: String = words.chars().map(simple).collect();
    name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_points_some_are_plotted_and_the_last_one_always() {
        let looked_at = |count: usize| select_points(&(0..count).collect::<Vec<_>>());
        assert!(looked_at(0).is_empty());
        assert_eq!(looked_at(1), [0]);
        assert_eq!(looked_at(4), [0, 1, 2, 3]);
        assert_eq!(looked_at(9), [2, 5, 8]);
        for count in 1..50 {
            let points = looked_at(count);
            assert!(points.len() <= MAX_PLOTTED_POINTS && points.last() == Some(&(count - 1)), "{count}: {points:?}");
        }
    }
}
