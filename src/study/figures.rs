//! The plots of a study.

use std::fs;

use super::findings::Findings;
use super::folder::name_of;
use super::series;
use crate::measure::{Histogram, Run};
use crate::report::plot::{Plot, Point, Series};

/// A plot, and the name of its files.
#[derive(Debug)]
pub struct Figure {
    /// Without an ending.
    pub name: String,
    /// Index of the measure that it shows; None of what is drawn in another way.
    pub measure: Option<usize>,
    /// What is drawn.
    pub plot: Plot,
}

/// Points of the sweep of which there are plots that show no measure.
pub(super) const MOST_CURVES: usize = 4;
/// Shares at which a curve is drawn.
const SHARES: [f64; 16] =
    [0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9999];

/// All plots that have something to show.
pub fn all(findings: &Findings<'_>) -> Vec<Figure> {
    let swept = (0..findings.measures.len()).flat_map(|measure| swept(findings, measure));
    let curves = findings.definition.loads.iter().flat_map(|load| curves(findings, &load.name));
    swept
        .chain(curves)
        .chain(series::plots(findings))
        .filter(|figure| !figure.plot.is_empty() && !is_flat(&figure.plot))
        .collect()
}

/// A plot of nothing but zeros says nothing.
fn is_flat(plot: &Plot) -> bool {
    plot.series.iter().flat_map(|series| &series.points).all(|point| point.high == 0.0)
}

/// A measure against the first parameter of the sweep: a plot for each combination of the others, with a line per variant.
/// A variant that stands alone has all its lines in one plot.
fn swept(findings: &Findings<'_>, measure: usize) -> Vec<Figure> {
    if findings.definition.variants.len() == 1 {
        return vec![lines(findings, measure, None)];
    }
    let mut facets: Vec<&[(String, String)]> = Vec::new();
    for point in findings.points_of(measure) {
        let others = findings.points[point].get(1..).unwrap_or_default();
        if !facets.contains(&others) {
            facets.push(others);
        }
    }
    facets.into_iter().map(|facet| lines(findings, measure, Some(facet))).collect()
}

/// One such plot; None has all combinations in it.
fn lines(findings: &Findings<'_>, measure: usize, facet: Option<&[(String, String)]>) -> Figure {
    let of = &findings.measures[measure];
    // Where it does not vary, variants stand side by side.
    let parameter = findings.definition.sweep.first().filter(|_| {
        let mut values = findings.points_of(measure).map(|point| findings.points[point].first());
        let first = values.next();
        values.any(|value| Some(value) != first)
    });
    let numbers: Option<Vec<f64>> = parameter
        .map(|parameter| parameter.values.iter().map(|value| value.parse().ok()).collect())
        .unwrap_or_default();
    let categories = match (parameter, &numbers) {
        (_, Some(_)) => Vec::new(),
        (Some(parameter), None) => {
            let first = |point: usize| findings.points[point].first().map(|(_, value)| value);
            let is_met = |value: &&String| findings.points_of(measure).any(|point| first(point) == Some(*value));
            parameter.values.iter().filter(is_met).cloned().collect()
        }
        (None, None) => {
            (0..findings.definition.variants.len()).map(|index| findings.variant(index).to_owned()).collect()
        }
    };
    let mut series: Vec<Series> = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        for (at, point) in findings.points.iter().enumerate() {
            let others = point.get(1..).unwrap_or_default();
            if facet.is_some_and(|facet| facet != others) {
                continue;
            }
            let Some(spread) = findings.spread(measure, variant, at) else { continue };
            let x = match (parameter.and(point.first()), &numbers) {
                (Some((_, value)), Some(_)) => value.parse().unwrap_or_default(),
                (Some((_, value)), None) => categories.iter().position(|name| name == value).unwrap_or(0) as f64,
                (None, _) => variant as f64,
            };
            let told = if facet.is_some() { &[] } else { others };
            let told: Vec<String> = told.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let name = [vec![findings.variant(variant).to_owned()], told].concat().join(", ");
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
                    let colour = if facet.is_none() { series.len() } else { variant };
                    series.push(Series { name, points: vec![point], colour });
                }
            }
        }
    }
    let unit = if of.metric.unit.is_empty() { String::new() } else { format!(" ({})", of.metric.unit) };
    let place = facet.filter(|facet| !facet.is_empty()).map(name_of);
    // Figures of clients are named as programs name them.
    let words = of.name().replace('_', " ");
    let title = place.map_or_else(|| words.clone(), |place| format!("{words} at {place}"));
    let plot = Plot {
        title: title.clone(),
        note: "median of the runs; from the lowest to the highest of them; hollow: not to be trusted".into(),
        x_label: parameter.map_or_else(|| "variant".to_owned(), |parameter| parameter.name.clone()),
        y_label: format!("{}{unit}", of.metric.name.replace('_', " ")),
        categories,
        percentiles: false,
        series,
    };
    Figure { name: file_name(&title), measure: Some(measure), plot }
}

/// Response times by percentile, all runs of a variant together; at some points of the sweep.
fn curves(findings: &Findings<'_>, load: &str) -> Vec<Figure> {
    let Some(measure) = findings.measures.iter().position(|measure| measure.load.as_deref() == Some(load)) else {
        return Vec::new();
    };
    let points: Vec<usize> = findings.points_of(measure).collect();
    let step = points.len().div_ceil(MOST_CURVES).max(1);
    // The last point is the one under the most load, as most sweeps go.
    let mut some: Vec<usize> = points.into_iter().rev().step_by(step).collect();
    some.reverse();
    some.into_iter().map(|point| curve(findings, load, point)).collect()
}

fn curve(findings: &Findings<'_>, load: &str, point: usize) -> Figure {
    let mut series = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        let cells: Vec<_> = findings.cells(variant, point).filter(|cell| cell.is_measured()).collect();
        let mut merged = Histogram::precise();
        for cell in &cells {
            let path = findings.outcome.folder().path();
            let file = cell.loads.iter().find(|of| of.load == load).map(|of| path.join(&of.run));
            let text = file.and_then(|file| fs::read_to_string(file).ok());
            let run = text.and_then(|text| Run::from_json(&text).ok());
            if let Some(histogram) = run.and_then(|run| run.response_histogram().ok()) {
                merged.add(&histogram);
            }
        }
        // A share that fewer than ten answers lie beyond is luck.
        let known = |share: &f64| merged.count() as f64 * (1.0 - share) >= 10.0;
        let points = SHARES.into_iter().filter(known).map(|share| {
            let y = merged.quantile(share).as_millis_f64();
            Point {
                x: share,
                y,
                low: y,
                high: y,
                runs: cells.len(),
                doubtful: cells.iter().any(|cell| !cell.is_trusted()),
            }
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            series.push(Series { name: findings.variant(variant).to_owned(), points, colour: variant });
        }
    }
    let at = name_of(&findings.points[point]);
    let place = if findings.points[point].is_empty() { String::new() } else { format!(" at {at}") };
    let plot = Plot {
        title: format!("{load}: response times by percentile{place}"),
        note: "all runs of a variant together".into(),
        x_label: "share of requests that took no longer".into(),
        y_label: "response time (ms)".into(),
        categories: Vec::new(),
        percentiles: true,
        series,
    };
    Figure { name: file_name(&format!("{load} percentiles {at}")), measure: None, plot }
}

/// Small letters, digits and dashes.
pub(super) fn file_name(words: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let name: String = words.chars().map(simple).collect();
    name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}
