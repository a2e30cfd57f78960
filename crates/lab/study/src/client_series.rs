//! Time series of clients: the `series.csv` that a client writes to `{out}`, and its plots.

use std::fs;

use super::findings::{Findings, RunRange};
use super::study_plot::{StudyPlot, file_name, select_points};
use weir_report::axis::ChartAxis;
use weir_report::plot::{Plot, PlotPoint, PlotSeries, XAxisKind};
use weir_report::unit::ValueUnit;

/// Name of the file.
const FILE_NAME: &str = "series.csv";
/// Maximum number of lines of a plot; longer files are thinned out.
const MAX_LINES: usize = 400;

/// File of one measurement.
#[derive(Debug, Default, PartialEq)]
struct ClientSeries {
    /// Names of the columns; the first is the x axis.
    columns: Vec<String>,
    lines: Vec<Vec<Option<f64>>>,
}

/// One plot for each column, at some points of the sweep.
pub(super) fn plots(findings: &Findings<'_>) -> Vec<StudyPlot> {
    let with: Vec<(usize, Vec<Vec<ClientSeries>>)> = (0..findings.points.len())
        .map(|point| (point, read_series(findings, point)))
        .filter(|(_, variants)| variants.iter().any(|rounds| !rounds.is_empty()))
        .collect();
    let some = select_points(&(0..with.len()).collect::<Vec<_>>());
    some.into_iter()
        .filter_map(|at| with.get(at))
        .flat_map(|(point, variants)| plots_at(findings, *point, variants))
        .collect()
}

/// Series at a point, by variant and round.
fn read_series(findings: &Findings<'_>, point: usize) -> Vec<Vec<ClientSeries>> {
    let of_variant = |variant: usize| {
        let cells = findings.measurements(variant, point).filter(|cell| cell.is_measured());
        let texts = cells.filter_map(|cell| {
            let folder = findings.outcome.folder().measurement_path(&cell.variant, &cell.point, cell.repeat);
            fs::read_to_string(folder.join(FILE_NAME)).ok()
        });
        texts.map(|text| ClientSeries::read(&text)).collect()
    };
    (0..findings.definition.variants.len()).map(of_variant).collect()
}

fn plots_at(findings: &Findings<'_>, point: usize, variants: &[Vec<ClientSeries>]) -> Vec<StudyPlot> {
    let mut names: Vec<&String> = Vec::new();
    for name in variants.iter().flatten().flat_map(|written| written.columns.iter().skip(1)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let x_label = variants.iter().flatten().find_map(|written| written.columns.first()).cloned().unwrap_or_default();
    let place = &findings.points[point];
    let place = if place.is_empty() { String::new() } else { format!(" at {}", place.name()) };
    let plot = |name: &String| Plot {
        title: format!("{name} over {x_label}{place}"),
        note: "median of the runs; the band is from the lowest to the highest of them".into(),
        x: ChartAxis::new(&x_label, ValueUnit::Other(String::new())),
        y: ChartAxis::new(name, ValueUnit::Other(String::new())),
        x_kind: XAxisKind::Time,
        series: (variants.iter().enumerate())
            .map(|(variant, rounds)| PlotSeries {
                name: findings.variant(variant).to_owned(),
                points: merge_rounds(rounds, name),
                colour: variant,
            })
            .filter(|series| !series.points.is_empty())
            .collect(),
        ..Plot::default()
    };
    let figure = |plot: Plot| StudyPlot {
        name: file_name(&plot.title),
        metric: None,
        point: Some(point),
        plot: plot.with_fitted_axes(),
    };
    names.into_iter().map(|name| figure(plot(name))).collect()
}

/// Median and range of a column over all rounds of a variant, line by line.
fn merge_rounds(rounds: &[ClientSeries], name: &str) -> Vec<PlotPoint> {
    let most = rounds.iter().map(|written| written.lines.len()).max().unwrap_or(0);
    let line = |line: usize| {
        let pairs = rounds.iter().filter_map(|written| written.pair(line, name));
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = pairs.unzip();
        xs.sort_by(f64::total_cmp);
        ys.sort_by(f64::total_cmp);
        let (x, y) = (RunRange::of(&xs, 0)?, RunRange::of(&ys, 0)?);
        Some(PlotPoint { x: x.median, y: y.median, low: y.low, high: y.high, runs: y.runs, untrusted: false })
    };
    (0..most).step_by(most.div_ceil(MAX_LINES).max(1)).filter_map(line).collect()
}

impl ClientSeries {
    /// Parses a file; values that are not numbers are missing.
    fn read(text: &str) -> Self {
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let number = |cell: &String| cell.parse::<f64>().ok().filter(|value| value.is_finite());
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let columns = lines.next().map(cells).unwrap_or_default();
        Self { columns, lines: lines.map(|line| cells(line).iter().map(number).collect()).collect() }
    }

    /// x value of a line, and its value in the column of this name.
    fn pair(&self, line: usize, name: &str) -> Option<(f64, f64)> {
        let line = self.lines.get(line)?;
        let column = self.columns.iter().skip(1).position(|of| of == name)? + 1;
        Some(((*line.first()?)?, (*line.get(column)?)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_rounds_are_merged_by_number() {
        let rounds =
            ["s,a,b\n0,1,9\n1,2,\n2,3,9\n", "s,b,a\n0.2,9,5\n1.2,x,4\n", "s,a\n0.1,3\n"].map(ClientSeries::read);
        let points = merge_rounds(&rounds, "a");
        let shown = |point: &PlotPoint| (point.x, point.y, point.low, point.high, point.runs);
        let expected = [(0.1, 3.0, 1.0, 5.0, 3), (1.1, 3.0, 2.0, 4.0, 2), (2.0, 3.0, 3.0, 3.0, 1)];
        assert_eq!(points.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(merge_rounds(&rounds, "b").iter().map(|point| point.runs).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(merge_rounds(&rounds, "s"), []);
    }

    #[test]
    fn a_long_file_is_thinned_out() {
        let text: String = (0..10_000).map(|line| format!("{line},1\n")).collect();
        let points = merge_rounds(&[ClientSeries::read(&format!("s,a\n{text}"))], "a");
        assert!((MAX_LINES / 2..=MAX_LINES).contains(&points.len()), "{}", points.len());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a0-9,.\n -]{0,80}") {
            let rounds = [ClientSeries::read(&text)];
            for name in rounds[0].columns.clone() {
                prop_assert!(merge_rounds(&rounds, &name).iter().all(|point| point.y.is_finite()));
            }
        }
    }
}
