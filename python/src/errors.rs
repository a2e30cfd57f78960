//! Rust errors -> Python exceptions; here and nowhere else. The classes themselves are Python (`weir/_errors.py`):
//!
//! ```text
//! Exception
//! └── WeirError
//!     ├── UsageError (and ValueError)   PlanError, TlsError, and any value that Rust cannot take
//!     ├── SetupError                    LoadError
//!     ├── ClientError and below         a call's outcome; made by Python (`weir/_response.py`)
//!     └── SendError                     NotAccepted: StoreError; SenderEnded: SendFailed; others are made by Python
//! KeyboardInterrupt
//! └── Interrupted                       raised by Python, from a run whose `interrupted` is true
//! ```

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::http::tls::TlsError;
use weir::load::{LoadError, PlanError};
use weir::send::store::StoreError;

use crate::client::answer::ResponseHandle;

mod classes {
    pyo3::import_exception!(weir._errors, UsageError);
    pyo3::import_exception!(weir._errors, SetupError);
    pyo3::import_exception!(weir._errors, NotAccepted);
    pyo3::import_exception!(weir._errors, SenderEnded);
}

/// What was asked for cannot be done.
pub(crate) fn plan(error: &PlanError) -> PyErr {
    usage(&with_python_names(&error.to_string()))
}

/// The run could not start.
pub(crate) fn load(error: &LoadError) -> PyErr {
    classes::SetupError::new_err(with_python_names(&error.to_string()))
}

/// Agents cannot be as they were asked for.
pub(crate) fn agents(why: &str) -> PyErr {
    usage(&with_python_names(why))
}

/// A service could not start.
pub(crate) fn serve(why: &str) -> PyErr {
    classes::SetupError::new_err(with_python_names(why))
}

/// A call has no answer to give.
pub(crate) fn call(py: Python<'_>, answer: ResponseHandle) -> PyErr {
    static FAILURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = FAILURE.import(py, "weir._response", "failure").and_then(|failure| failure.call1((answer,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A call ended without saying how: its task panicked.
pub(crate) fn call_panicked() -> PyErr {
    PyRuntimeError::new_err("a call broke off; this is a mistake of weir's")
}

/// The system has no event loop for us.
pub(crate) fn no_event_loop(error: &std::io::Error) -> PyErr {
    classes::SetupError::new_err(format!("no event loop: {error}; are there too many open files, or is /proc missing?"))
}

/// What was said about TLS cannot be done. A client says it with fewer words than the command line.
pub(crate) fn tls(error: &TlsError) -> PyErr {
    let words =
        error.to_string().replace("--cacert", "verify").replace("--cert", "cert").replace("--key", "cert's key");
    usage(&words.replace(" or -k", " or verify=False"))
}

/// The store did not take jobs, or cannot be asked.
pub(crate) fn store_error(error: &StoreError) -> PyErr {
    classes::NotAccepted::new_err(error.to_string())
}

/// The sender is there no more.
pub(crate) fn sender_ended(why: &str) -> PyErr {
    classes::SenderEnded::new_err(why.to_owned())
}

/// A job makes no sense.
pub(crate) fn job(why: &str) -> PyErr {
    usage(&why.replace("there is no --url", "the sender has none; give url to either"))
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
fn with_python_names(words: &str) -> String {
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
