//! Measurements as a table for data frames and spreadsheets: a row for each, and for each of its loads.

use super::findings::Findings;
use super::measurement::{LoadMetrics, Measurement};

/// File of the results folder.
pub(super) const MEASUREMENTS_FILE: &str = "measurements.csv";

/// Columns behind those of the sweep, each with its value; empty if it was not measured.
type TableColumn = (&'static str, fn(&Measurement, Option<&LoadMetrics>) -> Option<String>);

const COLUMNS: [TableColumn; 19] = [
    ("round", |cell, _| Some(cell.repeat.to_string())),
    ("load", |_, load| Some(load?.load.clone())),
    ("rate_per_s", |_, load| number(load?.rate_per_s)),
    ("errors", |_, load| number(load?.failed_fraction)),
    ("mean_ms", |_, load| number(load?.mean_ms?)),
    ("p50_ms", |_, load| number(load?.p50_ms?)),
    ("p90_ms", |_, load| number(load?.p90_ms?)),
    ("p99_ms", |_, load| number(load?.p99_ms?)),
    ("max_ms", |_, load| number(load?.max_ms?)),
    ("requests", |_, load| Some(load?.requests.to_string())),
    ("run", |_, load| Some(load?.run.clone())),
    ("trusted", |cell, _| Some(if cell.is_trusted() { "True" } else { "False" }.to_owned())),
    ("failure", |cell, _| Some(cell.failure.as_ref()?.reason.clone())),
    ("started_unix_s", |cell, _| number(cell.started_unix_s)),
    ("ready_s", |cell, _| number(cell.ready_s?)),
    ("warmup_s", |cell, _| number(cell.warmup?.duration_s)),
    ("cores", |cell, _| number(cell.usage?.cores)),
    ("cpu_us_per_response", |cell, _| number(cell.usage?.cpu_us_per_response?)),
    ("rss_peak_bytes", |cell, _| Some(cell.usage?.rss_peak_bytes.to_string())),
];

/// CSV (RFC 4180) with a header: the variant, parameters of the sweep, what was measured, and metrics of clients.
pub(super) fn measurement_table(findings: &Findings<'_>) -> String {
    let all = &findings.outcome.measurements;
    let own = |name: &&str| *name != "variant" && !COLUMNS.iter().any(|(column, _)| column == name);
    let mut parameters: Vec<&str> = Vec::new();
    let mut client_metrics: Vec<&str> = Vec::new();
    for cell in all {
        parameters.extend(cell.point.values().map(|(name, _)| name));
        client_metrics.extend(cell.client_metrics.keys().map(String::as_str));
    }
    for names in [&mut parameters, &mut client_metrics] {
        names.sort_unstable();
        names.dedup();
    }
    // A parameter that is named as a column has the prefix of a parameter.
    let shown = |prefix: &'static str| {
        move |name: &&str| if own(name) { (*name).to_owned() } else { format!("{prefix}{name}") }
    };
    let heading = std::iter::once("variant".to_owned())
        .chain(parameters.iter().map(shown("parameter_")))
        .chain(COLUMNS.iter().map(|(name, _)| (*name).to_owned()))
        .chain(client_metrics.iter().map(shown("metric_")));
    let mut text = line(heading);
    for cell in all {
        let loads: Vec<Option<&LoadMetrics>> =
            if cell.loads.is_empty() { vec![None] } else { cell.loads.iter().map(Some).collect() };
        for load in loads {
            // What was measured before a failure does not count.
            let load = load.filter(|_| cell.is_measured());
            let value = |name: &&str| cell.point.value(name).map(str::to_owned);
            let metric = |name: &&str| cell.client_metrics.get(*name).filter(|_| cell.is_measured()).copied();
            let cells = std::iter::once(cell.variant.clone())
                .chain(parameters.iter().map(|name| value(name).unwrap_or_default()))
                .chain(COLUMNS.iter().map(|(_, of)| of(cell, load).unwrap_or_default()))
                .chain(client_metrics.iter().map(|name| metric(name).and_then(number).unwrap_or_default()));
            text.push_str(&line(cells));
        }
    }
    text
}

fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",") + "\n"
}

/// Field on one line. Text that a spreadsheet would take for a formula begins with an apostrophe; a number does not.
fn quoted(field: &str) -> String {
    let field: String = field.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let field = if is_formula { format!("'{field}") } else { field };
    if field.contains(['"', ',']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn each_measurement_is_a_row_and_a_failed_one_has_no_figures() {
        let definition = fixtures::definition("");
        let (_folder, outcome) = fixtures::outcome([Some(100.0); 7], [None; 7]);
        let text = measurement_table(&Findings::new(&definition, &outcome));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 15, "{text}");
        let at = |name: &str| rows[0].iter().position(|column| *column == name).expect(name);
        for row in &rows[1..] {
            let has_failed = row[at("variant")] == "b";
            assert_eq!(row.len(), rows[0].len(), "{row:?}");
            assert_eq!((row[at("rate_per_s")], row[at("p99_ms")]), if has_failed { ("", "") } else { ("100", "1") });
            assert_eq!(row[at("mean_ms")], "", "not measured");
            assert_eq!(row[at("failure")].is_empty(), !has_failed, "{row:?}");
        }
    }

    #[test]
    fn a_field_is_on_one_line_and_no_formula() {
        assert_eq!(
            ["a,b", "say \"x\"", "=1+2", "-1.5", "a\nb"].map(quoted),
            ["\"a,b\"", "\"say \"\"x\"\"\"", "'=1+2", "-1.5", "a b"]
        );
    }
}
