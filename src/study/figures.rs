//! The plots of a study.

use super::courses;
use super::findings::Findings;
use super::folder::name_of;
use super::recorded::{self, Recorded};
use crate::measure::Histogram;
use crate::report::page::Unit;
use crate::report::plot::{Across, Plot, Point, Series};

/// A plot, and the name of its files.
#[derive(Debug)]
pub struct Figure {
    /// Without an ending.
    pub name: String,
    /// What is drawn.
    pub plot: Plot,
    /// The unit of its heights.
    pub unit: Unit,
    /// Index of the measure that it shows, if it shows one.
    pub measure: Option<usize>,
    /// Index of the point that it is about, if it is about one.
    pub point: Option<usize>,
}

/// Points of which more is drawn than one figure per run.
const MOST_POINTS: usize = 4;
/// Shares at which a curve is drawn.
const SHARES: [f64; 16] =
    [0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9999];

/// All plots that have something to show.
pub fn all(findings: &Findings<'_>) -> Vec<Figure> {
    let mut figures: Vec<Figure> = (0..findings.measures.len()).map(|measure| swept(findings, measure)).collect();
    let mut over_time = Vec::new();
    for point in looked_at(findings.points.len()) {
        let recorded = recorded::at(findings, point);
        let loads = findings.definition.loads.iter();
        figures.extend(loads.map(|load| curve(findings, &load.name, point, &recorded)));
        over_time.extend(courses::all(findings, point, &recorded));
    }
    figures.extend(over_time);
    figures.into_iter().filter(|figure| !figure.plot.is_empty() && !is_flat(&figure.plot)).collect()
}

/// A plot of nothing but zeros says nothing.
fn is_flat(plot: &Plot) -> bool {
    plot.series.iter().flat_map(|series| &series.points).all(|point| point.high == 0.0)
}

/// Some points of many, evenly apart. The last one is among them: it is under the most load, as most sweeps go.
fn looked_at(count: usize) -> Vec<usize> {
    let step = count.div_ceil(MOST_POINTS).max(1);
    let mut points: Vec<usize> = (0..count).rev().step_by(step).collect();
    points.reverse();
    points
}

/// A measure against the first parameter of the sweep; one line per variant and value of the others.
fn swept(findings: &Findings<'_>, measure: usize) -> Figure {
    let of = &findings.measures[measure];
    let parameter = findings.definition.sweep.first();
    let numbers: Option<Vec<f64>> = parameter
        .map(|parameter| parameter.values.iter().map(|value| value.parse().ok()).collect())
        .unwrap_or_default();
    let categories = match (parameter, &numbers) {
        (_, Some(_)) => Vec::new(),
        (Some(parameter), None) => parameter.values.clone(),
        (None, None) => {
            (0..findings.definition.variants.len()).map(|index| findings.variant(index).to_owned()).collect()
        }
    };
    let mut series: Vec<Series> = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        for (at, point) in findings.points.iter().enumerate() {
            let Some(spread) = findings.spread(measure, variant, at) else { continue };
            let x = match (&numbers, point.first()) {
                (Some(_), Some((_, value))) => value.parse().unwrap_or_default(),
                (None, Some((_, value))) => categories.iter().position(|name| name == value).unwrap_or(0) as f64,
                (_, None) => variant as f64,
            };
            let others: Vec<String> = point.iter().skip(1).map(|(name, value)| format!("{name}={value}")).collect();
            let name = [vec![findings.variant(variant).to_owned()], others].concat().join(", ");
            let point = Point {
                x,
                y: spread.median,
                low: spread.low,
                high: spread.high,
                runs: spread.runs,
                doubtful: spread.untrusted > 0,
            };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                // A variant has its colour in all plots, if only variants are told apart.
                None => {
                    let colour = if findings.definition.sweep.len() > 1 { series.len() } else { variant };
                    series.push(Series { name, points: vec![point], colour });
                }
            }
        }
    }
    if numbers.is_some() {
        // A line goes from left to right, in whatever order the file has its values.
        series.iter_mut().for_each(|series| series.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    }
    let name = of.name();
    let plot = Plot {
        title: name.clone(),
        note: "median of the runs; from the lowest to the highest of them; hollow: not to be trusted".into(),
        x_label: parameter.map_or_else(|| "variant".to_owned(), |parameter| parameter.name.clone()),
        y_label: label(&of.metric.name, &of.metric.unit),
        categories,
        across: Across::Values,
        series,
    };
    Figure { name: file_name(&name), plot, unit: Unit::of(&of.metric), measure: Some(measure), point: None }
}

/// Response times by percentile, all runs of a variant together.
fn curve(findings: &Findings<'_>, load: &str, point: usize, recorded: &[Recorded<'_>]) -> Figure {
    let mut series = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        let of_variant: Vec<_> = recorded.iter().filter(|it| it.variant == variant).collect();
        let mut merged = Histogram::precise();
        let runs = of_variant.iter().filter_map(|it| it.run(load));
        runs.filter_map(|run| run.response_histogram().ok()).for_each(|histogram| merged.add(&histogram));
        // A share that fewer than ten answers lie beyond is luck.
        let known = |share: &f64| merged.count() as f64 * (1.0 - share) >= 10.0;
        let points = SHARES.into_iter().filter(known).map(|share| {
            let y = merged.quantile(share).as_millis_f64();
            let doubtful = of_variant.iter().any(|it| !it.cell.is_trusted());
            Point { x: share, y, low: y, high: y, runs: of_variant.len(), doubtful }
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            series.push(Series { name: findings.variant(variant).to_owned(), points, colour: variant });
        }
    }
    let plot = Plot {
        title: format!("{load}: response times by percentile{}", place(findings, point)),
        note: "all runs of a variant together".into(),
        x_label: "share of requests that took no longer".into(),
        y_label: label("response time", "ms"),
        across: Across::Percentiles,
        series,
        ..Plot::default()
    };
    let name = file_name(&format!("{load} percentiles {}", name_of(&findings.points[point])));
    Figure { name, plot, unit: Unit::Milliseconds, measure: None, point: Some(point) }
}

/// ` at connections=8`; nothing if nothing is varied.
pub(super) fn place(findings: &Findings<'_>, point: usize) -> String {
    let of = &findings.points[point];
    if of.is_empty() { String::new() } else { format!(" at {}", name_of(of)) }
}

/// A name with its unit.
pub(super) fn label(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// Small letters, digits and dashes.
pub(super) fn file_name(words: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let name: String = words.chars().map(simple).collect();
    name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_points_some_are_looked_at_and_the_last_one_always() {
        assert_eq!(looked_at(1), [0]);
        assert_eq!(looked_at(4), [0, 1, 2, 3]);
        assert_eq!(looked_at(9), [2, 5, 8]);
        for count in 1..50 {
            let points = looked_at(count);
            assert!(points.len() <= MOST_POINTS && points.last() == Some(&(count - 1)), "{count}: {points:?}");
        }
    }
}
