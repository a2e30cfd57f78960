//! Plots of a study.

use super::client_series;
use super::findings::Findings;
use super::recordings::{self, Recording};
use super::study_plot::{StudyPlot, file_name, point_suffix, select_points};
use super::study_point::StudyPoint;
use super::time_series;
use weir_histogram::Histogram;
use weir_report::axis::ChartAxis;
use weir_report::plot::{Plot, PlotPoint, PlotSeries, XAxisKind};
use weir_report::unit::ValueUnit;

/// Quantiles of the latency curves.
const CURVE_QUANTILES: [f64; 16] =
    [0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9999];

/// All plots that are not empty.
pub fn all_plots(findings: &Findings<'_>) -> Vec<StudyPlot> {
    let mut figures: Vec<StudyPlot> =
        (0..findings.metrics.len()).flat_map(|measure| sweep_plots(findings, measure)).collect();
    let loads = &findings.definition.loads;
    // A load may be applied at some points only.
    let curved: Vec<Vec<usize>> =
        loads.iter().map(|load| select_points(&points_of_load(findings, &load.name))).collect();
    let followed = select_points(&(0..findings.points.len()).collect::<Vec<_>>());
    let mut over_time = Vec::new();
    for point in 0..findings.points.len() {
        let of: Vec<_> = loads.iter().zip(&curved).filter(|(_, points)| points.contains(&point)).collect();
        if of.is_empty() && !followed.contains(&point) {
            continue;
        }
        let recorded = recordings::at(findings, point);
        figures.extend(of.into_iter().map(|(load, _)| latency_curve(findings, &load.name, point, &recorded)));
        if followed.contains(&point) {
            over_time.extend(time_series::all_plots(findings, point, &recorded));
        }
    }
    figures.extend(over_time);
    figures.extend(client_series::plots(findings));
    figures.into_iter().filter(|figure| !figure.plot.is_empty() && !is_flat(&figure.plot)).collect()
}

/// Whether all values are 0.
fn is_flat(plot: &Plot) -> bool {
    plot.series.iter().flat_map(|series| &series.points).all(|point| point.high == 0.0)
}

/// Indices of the points at which a load is applied.
fn points_of_load(findings: &Findings<'_>, load: &str) -> Vec<usize> {
    let measure = findings.metrics.iter().position(|measure| measure.load.as_deref() == Some(load));
    measure.map(|measure| findings.points_of(measure).collect()).unwrap_or_default()
}

/// Plots of a metric over the first parameter of the sweep: one for each combination of the other parameters, with a
/// line per variant. With a single variant all lines are in one plot.
fn sweep_plots(findings: &Findings<'_>, measure: usize) -> Vec<StudyPlot> {
    if findings.definition.variants.len() == 1 {
        return vec![line_plot(findings, measure, None)];
    }
    let mut facets: Vec<StudyPoint> = Vec::new();
    for point in findings.points_of(measure) {
        let others = findings.points[point].others();
        if !facets.contains(&others) {
            facets.push(others);
        }
    }
    facets.iter().map(|facet| line_plot(findings, measure, Some(facet))).collect()
}

/// Plot of one combination; of all combinations, if `facet` is None.
fn line_plot(findings: &Findings<'_>, measure: usize, facet: Option<&StudyPoint>) -> StudyPlot {
    let of = &findings.metrics[measure];
    // Without a varying parameter the x axis is the variant.
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
            let first = |point: usize| findings.points[point].first();
            let is_met =
                |value: &&String| findings.points_of(measure).any(|point| first(point) == Some(value.as_str()));
            parameter.values.iter().filter(is_met).cloned().collect()
        }
        (None, None) => {
            (0..findings.definition.variants.len()).map(|index| findings.variant(index).to_owned()).collect()
        }
    };
    let mut series: Vec<PlotSeries> = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        for (at, point) in findings.points.iter().enumerate() {
            let others = point.others();
            if facet.is_some_and(|facet| *facet != others) {
                continue;
            }
            let Some(spread) = findings.run_range(measure, variant, at) else { continue };
            let x = match (parameter.and(point.first()), &numbers) {
                (Some(value), Some(_)) => value.parse().unwrap_or_default(),
                (Some(value), None) => categories.iter().position(|name| name == value).unwrap_or(0) as f64,
                (None, _) => variant as f64,
            };
            let labelled = if facet.is_some() { StudyPoint::default() } else { others };
            let labels: Vec<String> = labelled.values().map(|(name, value)| format!("{name}={value}")).collect();
            let name = [vec![findings.variant(variant).to_owned()], labels].concat().join(", ");
            let point = PlotPoint {
                x,
                y: spread.median,
                low: spread.low,
                high: spread.high,
                runs: spread.runs,
                untrusted: spread.untrusted > 0,
            };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                // A variant has the same colour in all plots, unless lines differ by more than the variant.
                None => {
                    let colour = if facet.is_none() { series.len() } else { variant };
                    series.push(PlotSeries { name, points: vec![point], colour });
                }
            }
        }
    }
    if numbers.is_some() {
        // Lines go from left to right, also if the file's values are not sorted.
        series.iter_mut().for_each(|series| series.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    }
    let place = facet.filter(|facet| !facet.is_empty()).map(StudyPoint::name);
    // Metrics of clients have names with underscores.
    let words = of.name().replace('_', " ");
    let title = place.map_or_else(|| words.clone(), |place| format!("{words} at {place}"));
    let plot = Plot {
        title: title.clone(),
        note: "median of the runs; from the lowest to the highest of them; hollow: not trusted".into(),
        x: ChartAxis::new(parameter.map_or("variant", |parameter| &parameter.name), ValueUnit::Count),
        y: ChartAxis::new(&of.metric.name.replace('_', " "), ValueUnit::of(&of.metric)),
        categories,
        x_kind: XAxisKind::Values,
        series,
    };
    StudyPlot { name: file_name(&title), plot: plot.with_fitted_axes(), metric: Some(measure), point: None }
}

/// Response times by percentile, all runs of a variant together.
fn latency_curve(findings: &Findings<'_>, load: &str, point: usize, recorded: &[Recording<'_>]) -> StudyPlot {
    let mut series = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        let of_variant: Vec<_> = recorded.iter().filter(|it| it.variant == variant).collect();
        let mut merged = Histogram::precise();
        let runs = of_variant.iter().filter_map(|it| it.run(load));
        runs.filter_map(|run| run.response_histogram().ok()).for_each(|histogram| merged.add(&histogram));
        // A quantile with fewer than ten responses beyond it is random.
        let is_reliable = |q: &f64| merged.count() as f64 * (1.0 - q) >= 10.0;
        let points = CURVE_QUANTILES.into_iter().filter(is_reliable).filter_map(|q| {
            let y = merged.quantile_ms(q)?;
            let untrusted = of_variant.iter().any(|it| !it.measurement.is_trusted());
            Some(PlotPoint { x: q, y, low: y, high: y, runs: of_variant.len(), untrusted })
        });
        let points: Vec<PlotPoint> = points.collect();
        if !points.is_empty() {
            series.push(PlotSeries { name: findings.variant(variant).to_owned(), points, colour: variant });
        }
    }
    let plot = Plot {
        title: format!("{load}: response times by percentile{}", point_suffix(findings, point)),
        note: "all runs of a variant together".into(),
        x: ChartAxis::of_quantiles("percentile"),
        y: ChartAxis::new("response time", ValueUnit::Milliseconds),
        x_kind: XAxisKind::Percentiles,
        series,
        ..Plot::default()
    };
    let name = file_name(&format!("{load} percentiles {}", findings.points[point].name()));
    StudyPlot { name, plot: plot.with_fitted_axes(), metric: None, point: Some(point) }
}
