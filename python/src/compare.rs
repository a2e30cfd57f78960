//! `weir.compare`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use weir::base::units;
use weir::history::CompareOptions;
use weir::measure::Run;
use weir::report::comparison::{MetricSelector, markdown, text};

use crate::errors;
use crate::flag_form::FlagForm;
use crate::run::RunHandle;

/// Compares sides, with the runs of `given` in place of some: the comparison as JSON, text, Markdown and HTML.
#[pyfunction]
#[pyo3(name = "compare")]
pub(crate) fn compare_runs(
    py: Python<'_>,
    sides: Vec<PathBuf>,
    flags: BTreeMap<String, Vec<String>>,
    given: Vec<Option<Vec<Py<RunHandle>>>>,
) -> PyResult<(String, String, String, String)> {
    let runs = |side: Vec<Py<RunHandle>>| -> Vec<Run> { side.iter().map(|run| run.get().0.clone()).collect() };
    let given: Vec<Option<Vec<Run>>> = given.into_iter().map(|side| side.map(runs)).collect();
    let comparison = options(sides, FlagForm::new(flags))?;
    py.detach(|| {
        // Files that are not runs are ignored, as on the command line, which logs them on stderr.
        let compared = comparison.compare(given, &mut |_| {}).map_err(|why| errors::usage(&why))?;
        let of = &compared.comparison;
        Ok((of.to_json(), text::render(of, false), markdown::render(of), compared.html(&[])))
    })
}

fn options(sides: Vec<PathBuf>, mut form: FlagForm) -> PyResult<CompareOptions> {
    let default = CompareOptions::default();
    // Several in one text, as on the command line.
    let metrics = |text: &str| text.split(',').map(str::parse::<MetricSelector>).collect::<Result<Vec<_>, _>>();
    let options = CompareOptions {
        sides,
        metrics: form.many("metric", metrics)?.into_iter().flatten().collect(),
        min_effect: form.one("min_effect", units::fraction)?.unwrap_or(default.min_effect),
        confidence: form.one("confidence", units::fraction)?.unwrap_or(default.confidence),
        force: form.switch("force")?,
        seed: form.one("seed", str::parse::<u64>)?.unwrap_or(default.seed),
    };
    form.end()?;
    Ok(options)
}
