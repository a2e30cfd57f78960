//! Table of medians for a terminal: variants and points of the sweep.

use super::findings::Findings;
use weir_report::comparison::phrases::figure;
use weir_report::sanitize;

/// Medians of the first metric that decides; points are rows if they are more than the variants, since a terminal is not
/// wide. Empty without such a metric.
pub(super) fn median_table(findings: &Findings<'_>) -> String {
    let Some(measure) = findings.metrics.iter().position(|of| of.is_primary) else { return String::new() };
    let metric = &findings.metrics[measure].metric;
    let name = format!("median {}", findings.metrics[measure].name());
    let points: Vec<usize> = findings.points_of(measure).collect();
    let variants: Vec<usize> = (0..findings.definition.variants.len()).collect();
    let median = |variant, point| figure(metric, findings.run_range(measure, variant, point).map(|range| range.median));
    let variant_name = |variant: &usize| findings.variant(*variant).to_owned();
    let point_names = points.iter().map(|point| findings.points[*point].name());
    let mut rows: Vec<Vec<String>> = Vec::new();
    if points.len() > variants.len() {
        rows.push(std::iter::once(name).chain(variants.iter().map(variant_name)).collect());
        rows.extend(points.iter().zip(point_names).map(|(point, name)| {
            std::iter::once(name).chain(variants.iter().map(|variant| median(*variant, *point))).collect()
        }));
    } else {
        rows.push(std::iter::once(name).chain(point_names).collect());
        rows.extend(variants.iter().map(|variant| {
            std::iter::once(variant_name(variant)).chain(points.iter().map(|point| median(*variant, *point))).collect()
        }));
    }
    aligned(&rows)
}

/// Rows with the first column to the left and figures to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, cell)| (at, sanitize(cell), width(at)));
        let cells = cells.map(|(at, cell, width)| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    std::iter::once("\n".to_owned()).chain(rows.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;
    use crate::text;

    #[test]
    fn a_trial_run_is_one_table_and_no_verdict() {
        let mut definition = fixtures::definition("");
        definition.quick = true;
        let (_folder, outcome) = fixtures::outcome([Some(100.0); 7], [Some(200.0); 7]);
        let text = text::render(&Findings::new(&definition, &outcome), "report.html");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "Which?",
                "",
                "works: 14 measurements, 0 failed; not a result",
                "",
                "median main: successes    all",
                "a                       100/s",
                "b                       200/s",
                "",
                "report.html"
            ]
        );
        let (_folder, outcome) = fixtures::outcome([Some(100.0); 7], [None; 7]);
        let text = text::render(&Findings::new(&definition, &outcome), "report.html");
        assert!(text.contains("works: 14 measurements, 7 failed; not a result\n"), "{text}");
        assert!(
            text.contains("b fails in 7 of 7 measurements") && text.contains("last lines of b:\n    out of luck"),
            "{text}"
        );
    }
}
