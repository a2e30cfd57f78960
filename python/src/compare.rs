//! Runs held against each other.

use std::ffi::OsString;

use pyo3::prelude::*;
use weir::cli::compare;
use weir::measure::Run;
use weir::report::comparison::{markdown, text};

use crate::errors;
use crate::run::RunHandle;

/// Does what `weir compare ARGS...` would do, with runs in place of the sides for which there are some: the comparison as
/// JSON, text, Markdown and a page.
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
        let asked = compare::parse(args).map_err(|why| errors::flags(&why))?;
        // A file that is no run is left out, as on the command line, which says so on stderr.
        let held = asked.compare(given, &mut |_| {}).map_err(|why| errors::usage(&why))?;
        let of = &held.comparison;
        Ok((of.to_json(), text::render(of, false), markdown::render(of), held.html(&[])))
    })
}
