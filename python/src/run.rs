//! Handle of a run, behind `weir/_run.py`.

use clap::ValueEnum;
use pyo3::prelude::*;
use weir::histogram::Histogram;
use weir::measure::Run;
use weir::measure::run_steps::RunStep;
use weir::report::{ReportFormat, page, render};

use crate::errors;

/// Result of a load test in Rust.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct RunHandle(pub(crate) Run);

#[pymethods]
impl RunHandle {
    /// Reads a run that `to_json` or `weir load --out` saved.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Run::from_json(text).map(Self).map_err(|why| errors::usage(&why))
    }

    /// Run as JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Run as a report: text, ab, wrk, jmeter or json.
    fn report(&self, format: &str) -> PyResult<String> {
        let format = ReportFormat::from_str(format, false).map_err(|_| {
            let known: Vec<_> = ReportFormat::value_variants()
                .iter()
                .filter_map(|f| Some(f.to_possible_value()?.get_name().to_owned()))
                .collect();
            errors::usage(&format!("format: unknown format '{format}'; choose {}", known.join(", ")))
        })?;
        Ok(render(&self.0, format, false))
    }

    /// Run as an HTML report.
    fn html(&self) -> String {
        page::render(&page::of_run(&self.0))
    }

    /// Percentile in [0, 100] of the response times, in milliseconds.
    fn response_percentile(&self, percentile: f64) -> PyResult<Option<f64>> {
        percentile_of(self.0.response_histogram(), percentile)
    }

    /// Percentile in [0, 100] of the response times of steps, by their indices, in milliseconds; of all responses,
    /// failures as well, without any.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
    fn percentile_of_steps(&self, percentile: f64, steps: Vec<usize>) -> PyResult<Option<f64>> {
        let all = || Ok([self.0.response_histogram()?, self.0.failed_histogram()?].into_iter().collect::<Vec<_>>());
        let of_steps =
            || steps.iter().filter_map(|index| self.0.steps.get(*index)).map(RunStep::response_histogram).collect();
        let merged = if steps.is_empty() { all() } else { of_steps() }.map(|histograms: Vec<Histogram>| {
            let mut merged = Histogram::precise();
            histograms.iter().for_each(|one| merged.add(one));
            merged
        });
        percentile_of(merged, percentile)
    }

    /// Percentile in [0, 100] of the service times, in milliseconds.
    fn service_percentile(&self, percentile: f64) -> PyResult<Option<f64>> {
        percentile_of(self.0.service_histogram(), percentile)
    }
}

fn percentile_of(histogram: Result<Histogram, String>, percentile: f64) -> PyResult<Option<f64>> {
    if !(0.0..=100.0).contains(&percentile) {
        return Err(errors::usage(&format!("invalid percentile {percentile}; write 0 to 100")));
    }
    let histogram = histogram.map_err(|why| errors::usage(&why))?;
    Ok(histogram.quantile_ms(percentile / 100.0))
}
