//! Rust errors -> Python exceptions; here and nowhere else. The classes themselves are Python (`weir/_errors.py`):
//!
//! ```text
//! Exception
//! └── WeirError
//!     ├── UsageError (and ValueError)   PlanError, and any value that Rust cannot take
//!     └── SetupError                    LoadError
//! KeyboardInterrupt
//! └── Interrupted                       raised by Python, from a run whose `interrupted` is true
//! ```

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::load::{LoadError, PlanError};

use crate::client::answer::AnswerHandle;

mod classes {
    pyo3::import_exception!(weir._errors, UsageError);
    pyo3::import_exception!(weir._errors, SetupError);
}

/// What was asked for cannot be done.
pub(crate) fn plan(error: &PlanError) -> PyErr {
    usage(&in_python(&error.to_string()))
}

/// The run could not start.
pub(crate) fn load(error: &LoadError) -> PyErr {
    classes::SetupError::new_err(in_python(&error.to_string()))
}

/// A service could not start.
pub(crate) fn serve(why: &str) -> PyErr {
    classes::SetupError::new_err(in_python(why))
}

/// A call has no answer to give.
pub(crate) fn call(py: Python<'_>, answer: AnswerHandle) -> PyResult<Py<PyAny>> {
    static FAILURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(FAILURE.import(py, "weir._response", "failure")?.call1((answer,))?.unbind())
}

/// A value is wrong.
pub(crate) fn usage(why: &str) -> PyErr {
    classes::UsageError::new_err(why.to_owned())
}

/// An argument cannot be converted: a wrong type stays a `TypeError`, a wrong value is a `UsageError`; both get the
/// argument's name.
pub(crate) fn argument(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
    let why = error.value(py).to_string();
    if error.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("{name}: {why}"));
    }
    // Python's own words for a number that does not fit are about integers of C.
    if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
        return usage(&format!("{name}: {value} is out of range"));
    }
    usage(&format!("{name}: {why}"))
}

/// Options as the command line writes them become arguments: `--ramp-up` is `ramp_up`, `-c` is `connections`.
fn in_python(words: &str) -> String {
    let renamed = words.split(' ').map(|word| match word {
        "-c" => "connections".to_owned(),
        "-k" => "insecure=True".to_owned(),
        _ => match word.strip_prefix("--") {
            Some(option) => option.replace('-', "_"),
            None => word.to_owned(),
        },
    });
    renamed.collect::<Vec<_>>().join(" ")
}
