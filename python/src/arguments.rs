//! Arguments of Python calls.

use std::str::FromStr;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict, PyString};
use weir::base::units;

use crate::errors;

/// Python arguments by name.
pub(crate) struct PythonArgs<'py>(pub(crate) Bound<'py, PyDict>);

impl<'py> PythonArgs<'py> {
    pub(crate) fn take<T>(&self, name: &str) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let value = self.0.as_any().get_item(name)?;
        self.0.del_item(name)?;
        value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
            let error: PyErr = error.into();
            errors::argument(value.py(), name, &value, &error)
        })
    }

    pub(crate) fn time(&self, name: &str) -> PyResult<Option<Duration>> {
        Ok(self.take::<Option<TimeArg>>(name)?.map(|time| time.0))
    }

    pub(crate) fn is_empty(&self) -> PyResult<()> {
        if self.0.is_empty() { Ok(()) } else { Err(PyTypeError::new_err(format!("not taken: {}", self.0.keys()))) }
    }
}

/// Duration: seconds, a timedelta, or text such as `300ms`.
pub(crate) struct TimeArg(pub(crate) Duration);

impl FromPyObject<'_, '_> for TimeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return units::time(&text.to_cow()?).map(Self).map_err(|why| errors::usage(&why));
        }
        if value.is_instance_of::<PyDelta>() {
            return value.extract().map(Self);
        }
        let seconds: f64 = value.extract().map_err(|_| {
            let kind = value.get_type();
            PyTypeError::new_err(format!("a time is seconds, a timedelta or text such as '300ms', not {kind}"))
        })?;
        // The maximum is a century, as on the command line.
        if !(0.0..=3e9).contains(&seconds) {
            return Err(errors::usage(&format!("invalid time {seconds}; write seconds from 0 on")));
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

/// Text or number, in the notation of a type.
pub(crate) struct NotationArg<T>(pub(crate) T);

impl<T: FromStr<Err = String>> FromPyObject<'_, '_> for NotationArg<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let text = value.str()?;
        text.to_cow()?.parse().map(Self).map_err(|why: String| errors::usage(&why))
    }
}

/// Reads an attribute; errors begin with its name.
pub(crate) fn attribute<'py, T>(value: Borrowed<'_, 'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let found = value.getattr(name)?;
    found.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
        let error: PyErr = error.into();
        errors::argument(value.py(), name, &found, &error)
    })
}
