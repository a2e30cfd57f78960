//! Python scenarios -> [`ScenarioSource`].

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::load::steps::{DataSource, ScenarioFile, ScenarioSource};
use weir::scenario::data::RowOrder;

use crate::arguments::PythonArgs;
use crate::errors;

/// Scenario as `weir/_scenario.py` passes it: a dictionary.
pub(crate) struct ScenarioArg(pub(crate) ScenarioSource);

/// Setup or teardown of a scenario.
struct ScenarioFileArg(ScenarioFile);

/// Name and content of data.
type DataArg = (String, Vec<u8>);

impl FromPyObject<'_, '_> for ScenarioArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let form = PythonArgs(value.cast::<PyDict>()?.copy()?);
        let order: String = form.take("data_order")?;
        let order: RowOrder = order.parse().map_err(|why: String| errors::usage(&format!("data_order: {why}")))?;
        let data: Option<DataArg> = form.take("data")?;
        let source = ScenarioSource {
            name: form.take("name")?,
            text: form.take("text")?,
            folder: form.take::<PathBuf>("folder")?,
            weight: form.take("weight")?,
            variables: form.take("variables")?,
            think: form.take("think")?,
            data: data.map(|(name, content)| DataSource { name, content, order }),
            pacing: form.time("pacing")?,
            setup: form.take::<Option<ScenarioFileArg>>("setup")?.map(|file| file.0),
            teardown: form.take::<Option<ScenarioFileArg>>("teardown")?.map(|file| file.0),
            continue_on_error: form.take("continue_on_error")?,
            keep_cookies: form.take("keep_cookies")?,
            max_redirects: form.take("max_redirects")?,
            ..ScenarioSource::default()
        };
        form.is_empty()?;
        Ok(Self(source))
    }
}

impl FromPyObject<'_, '_> for ScenarioFileArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let ScenarioArg(ScenarioSource { name, text, folder, .. }) = value.extract()?;
        Ok(Self(ScenarioFile { name, text, folder }))
    }
}
