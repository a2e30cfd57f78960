//! Report in the format of JMeter's Summary Report.
//!
//! One row for the request, under its path, or one for each step of scenarios; and the TOTAL row. Times are response times in whole milliseconds, their
//! standard deviation is the population's, KB are 1024 bytes, and the throughput's unit is the first of second,
//! minute and hour in which it is at least 1, as in JMeter.
//!
//! As in JMeter, failed samples are in the times, with the time until they failed; weir's own report has the times of
//! successes, and those of failures beside them. It differs from JMeter in this: requests that were dropped, never
//! sent, count as samples and as errors, but have no time; and the throughput is weir's rate, responses within the
//! measured window.

use super::number_format::{self, zero_if_not_measured};
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::run_steps::RunStep;

const HEADINGS: [&str; 11] = [
    "Label",
    "# Samples",
    "Average",
    "Min",
    "Max",
    "Std. Dev.",
    "Error %",
    "Throughput",
    "Received KB/sec",
    "Sent KB/sec",
    "Avg. Bytes",
];

/// Table with labels to the left, figures to the right, and two blanks between columns.
pub fn render(run: &Run) -> String {
    let mut table = vec![HEADINGS.map(str::to_owned).to_vec()];
    let label = |name: &str| number_format::truncate(name, number_format::TERMINAL_COLUMNS / 2);
    if run.steps.is_empty() {
        table.push([vec![label(&run.target.path)], figures(run)].concat());
    }
    table.extend(run.steps.iter().map(|step| [vec![label(&step.name)], step_figures(run, step)].concat()));
    table.push([vec!["TOTAL".into()], figures(run)].concat());
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(i, text): (usize, &String)| match i {
            0 => format!("{text:<0$}", widths[0]),
            _ => format!("  {text:>0$}", widths[i]),
        };
        row.iter().enumerate().map(cell).collect::<String>() + "\n"
    };
    table.iter().map(line).collect()
}

fn figures(run: &Run) -> Vec<String> {
    let samples = run.requests.total;
    let times = times(run);
    let [read_kb_per_s, written_kb_per_s] = run.traffic_per_s().map(|rate| rate / 1024.0);
    vec![
        samples.to_string(),
        format!("{:.0}", zero_if_not_measured(times.mean)),
        format!("{:.0}", zero_if_not_measured(times.min)),
        format!("{:.0}", zero_if_not_measured(times.max)),
        format!("{:.2}", zero_if_not_measured(times.sd)),
        format!("{:.3}%", run.error_fraction() * 100.0),
        throughput(run.rate_per_s.achieved),
        format!("{read_kb_per_s:.2}"),
        format!("{written_kb_per_s:.2}"),
        format!("{:.1}", run.bytes.read as f64 / samples.max(1) as f64),
    ]
}

/// Figures of a step. Times of successes and failures are combined from their means and extremes, since a step has no
/// histogram in the result.
fn step_figures(run: &Run, step: &RunStep) -> Vec<String> {
    let (ok, failed) = (step.ok as f64, step.failed as f64);
    let (a, b) = (&step.response_ms, &step.failed_ms);
    let all = (ok + failed).max(1.0);
    let sum = |times: &Percentiles, n: f64| zero_if_not_measured(times.mean) * n;
    let mean = (sum(a, ok) + sum(b, failed)) / all;
    let spread = |times: &Percentiles, n: f64| {
        let squares = times.sd.zip(times.mean).map(|(sd, own)| n * (sd.powi(2) + (own - mean).powi(2)));
        zero_if_not_measured(squares)
    };
    let extreme = |a: Option<f64>, b: Option<f64>, of: fn(f64, f64) -> f64| {
        zero_if_not_measured(a.into_iter().chain(b).reduce(of))
    };
    let min = extreme(a.min, b.min, f64::min);
    let kb_per_s = |bytes: u64| if run.duration_s > 0.0 { bytes as f64 / 1024.0 / run.duration_s } else { 0.0 };
    vec![
        step.requests.to_string(),
        format!("{mean:.0}"),
        format!("{min:.0}"),
        format!("{:.0}", extreme(a.max, b.max, f64::max)),
        format!("{:.2}", ((spread(a, ok) + spread(b, failed)) / all).sqrt()),
        format!("{:.3}%", step.error_fraction() * 100.0),
        throughput(step.rate_per_s),
        format!("{:.2}", kb_per_s(step.bytes_in)),
        format!("{:.2}", kb_per_s(step.bytes_out)),
        format!("{:.1}", step.bytes_in as f64 / step.requests.max(1) as f64),
    ]
}

/// Response times of all requests that were sent; those of failures end with the failure.
fn times(run: &Run) -> Percentiles {
    let (Ok(mut all), Ok(failed)) = (run.response_histogram(), run.failed_histogram()) else {
        return run.response_ms; // a damaged histogram was rejected when the run was read
    };
    all.add(&failed);
    all.percentiles()
}

fn throughput(per_s: f64) -> String {
    let units = [(1.0, "sec"), (60.0, "min"), (3600.0, "hour")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| per_s * scale >= 1.0).unwrap_or(units[2]);
    format!("{:.1}/{unit}", per_s * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn the_table_has_a_row_for_the_path_and_one_for_all() {
        fixtures::same(&render(&fixtures::closed()), include_str!("golden/closed.jmeter.txt"), "closed.jmeter.txt");
        fixtures::same(&render(&fixtures::open()), include_str!("golden/open.jmeter.txt"), "open.jmeter.txt");
        fixtures::same(&render(&fixtures::empty()), include_str!("golden/empty.jmeter.txt"), "empty.jmeter.txt");
        fixtures::same(&render(&fixtures::shop()), include_str!("golden/shop.jmeter.txt"), "shop.jmeter.txt");
    }

    #[test]
    fn the_unit_of_throughput_is_the_first_that_gives_at_least_one() {
        assert_eq!(
            [34.24, 1.0, 0.5, 0.000_8, 0.000_1, 0.0].map(throughput),
            ["34.2/sec", "1.0/sec", "30.0/min", "2.9/hour", "0.4/hour", "0.0/hour"]
        );
    }
}
