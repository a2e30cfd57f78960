//! `weir.compare`.

use std::ffi::OsString;

use pyo3::prelude::*;
use weir::cli::compare;
use weir::measure::Run;
use weir::report::comparison::{markdown, text};

use crate::errors;
use crate::run::RunHandle;

/// Runs `weir compare ARGS...`, with the runs of `given` in place of sides: the comparison as JSON, text, Markdown and
/// HTML.
#[pyfunction]
#[pyo3(name = "compare")]
pub(crate) fn compare_runs(
    py: Python<'_>,
    args: Vec<OsString>,
    given: Vec<Option<Vec<Py<RunHandle>>>>,
) -> PyResult<(String, String, String, String)> {
    let runs = |side: Vec<Py<RunHandle>>| -> Vec<Run> { side.iter().map(|run| run.get().0.clone()).collect() };
    let given: Vec<Option<Vec<Run>>> = given.into_iter().map(|side| side.map(runs)).collect();
    py.detach(|| {
        let comparison = compare::parse(args).map_err(|why| errors::flags(&why))?;
        // Files that are not runs are ignored, as on the command line, which logs them on stderr.
        let compared = comparison.compare(given, &mut |_| {}).map_err(|why| errors::usage(&why))?;
        let of = &compared.comparison;
        Ok((of.to_json(), text::render(of, false), markdown::render(of), compared.html(&[])))
    })
}
