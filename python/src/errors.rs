//! Rust errors -> Python exceptions, for the whole module. The classes themselves are Python (`weir/_errors.py`):
//!
//! ```text
//! Exception
//! └── WeirError
//!     ├── UsageError (and ValueError)   PlanError, TlsError, and any invalid value
//!     ├── SetupError                    LoadError
//!     ├── NoResponse                    failures of requests of tasks
//!     ├── LimiterError                  StoreTrouble
//!     ├── ClientError and below         outcomes of calls; created by Python (`weir/_response.py`)
//!     └── SendError                     NotAccepted: StoreError; SenderEnded: SendFailed; others are created by Python
//! KeyboardInterrupt
//! └── Interrupted                       raised by Python, from a run whose `interrupted` is true
//! ```

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::load::{LoadError, PlanError};
use weir::net::tls::TlsError;
use weir::request::url::UrlError;
use weir::request::url_text::UrlText;
use weir::send::store::StoreError;

pub(crate) use classes::UsageError;

mod classes {
    pyo3::import_exception!(weir._errors, UsageError);
    pyo3::import_exception!(weir._errors, SetupError);
    pyo3::import_exception!(weir._errors, LimiterError);
    pyo3::import_exception!(weir._errors, NoResponse);
    pyo3::import_exception!(weir._errors, NotAccepted);
    pyo3::import_exception!(weir._errors, SenderEnded);
}

/// Invalid or contradictory arguments of a load.
pub(crate) fn plan(error: &PlanError) -> PyErr {
    usage(&with_python_names(&error.to_string()))
}

/// An invalid URL; without its path and query, which may have secrets.
pub(crate) fn url(error: &UrlError) -> PyErr {
    let url = UrlText::of(&error.url).origin.to_owned();
    usage(&format!("url: {}", UrlError { url, problem: error.problem.clone() }))
}

/// A load that could not start.
pub(crate) fn load(error: &LoadError) -> PyErr {
    classes::SetupError::new_err(with_python_names(&error.to_string()))
}

/// Invalid arguments of agents.
pub(crate) fn agents(reason: &str) -> PyErr {
    usage(&with_python_names(reason))
}

/// A service, or a sender, that could not start.
pub(crate) fn serve(reason: &str) -> PyErr {
    classes::SetupError::new_err(with_python_names(reason))
}

/// A request of a task that got no response.
pub(crate) fn no_response(reason: &str) -> PyErr {
    classes::NoResponse::new_err(reason.to_owned())
}

/// A failed call, by its outcome: a `ResponseHandle`.
pub(crate) fn call<'py>(py: Python<'py>, response: impl IntoPyObject<'py>) -> PyErr {
    static FAILURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let error = FAILURE.import(py, "weir._call_failure", "failure").and_then(|failure| failure.call1((response,)));
    error.map_or_else(|error| error, PyErr::from_value)
}

/// A call whose task panicked.
pub(crate) fn call_panicked() -> PyErr {
    PyRuntimeError::new_err("the task of a call panicked; this is a bug of weir")
}

/// An event loop that the system did not create.
pub(crate) fn no_event_loop(error: &std::io::Error) -> PyErr {
    classes::SetupError::new_err(format!("no event loop: {error}; are there too many open files, or is /proc missing?"))
}

/// Invalid TLS options of a client or sender, whose arguments are fewer than the command line's flags.
pub(crate) fn tls(error: &TlsError) -> PyErr {
    let text = error.to_string().replace("--cacert", "verify").replace("--cert-key", "cert's key");
    usage(&text.replace("--cert", "cert").replace("--key", "cert's key").replace(" or -k", " or verify=False"))
}

/// Jobs that the store did not accept, or a store that is unreachable.
pub(crate) fn store_error(error: &StoreError) -> PyErr {
    classes::NotAccepted::new_err(error.to_string())
}

/// A sender that has ended.
pub(crate) fn sender_ended(reason: &str) -> PyErr {
    classes::SenderEnded::new_err(reason.to_owned())
}

/// A limiter whose shared place is unreachable.
pub(crate) fn limiter(reason: &str) -> PyErr {
    classes::LimiterError::new_err(format!("shared: {reason}"))
}

/// An invalid job.
pub(crate) fn job(reason: &str) -> PyErr {
    let reason = reason.replace("there is no --url", "the sender has none; give url to either");
    let reason = reason.replace("--key-host HOST", "key_hosts").replace("--key-host ", "key_hosts=");
    usage(&reason.replace("--", ""))
}

/// Invalid flags of a command that a Python function runs: `weir.serve`, `weir.simulate`, `weir.compare`.
pub(crate) fn flags(reason: &str) -> PyErr {
    usage(&with_python_names(reason))
}

/// An invalid value.
pub(crate) fn usage(reason: &str) -> PyErr {
    classes::UsageError::new_err(reason.to_owned())
}

/// An argument that cannot be converted, with its name: a wrong type is a `TypeError`, an invalid value a `UsageError`.
pub(crate) fn argument(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
    let reason = error.value(py).to_string();
    if error.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("{name}: {reason}"));
    }
    // Python's own message for a number out of range is about C integers.
    if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
        return usage(&format!("{name}: {value} is out of range"));
    }
    usage(&format!("{name}: {reason}"))
}

/// Replaces flags by arguments: `--ramp-up` by `ramp_up`, `--no-keepalive` by `keepalive=False`, `-c` by `connections`.
///
/// A flag begins after a space, quote or parenthesis, and loses its value name, as in `--delay <DELAY>`. `--help` stays:
/// it is part of a command.
fn with_python_names(text: &str) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    let mut at_start = true;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let argument = if at_start { argument_of(&rest[..length]) } else { None };
        at_start = matches!(first, ' ' | '\'' | '"' | '(');
        let Some(argument) = argument else {
            renamed.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        renamed.push_str(&argument);
        rest = &rest[length..];
        if let Some(value) = rest.strip_prefix([' ', '=']).filter(|value| value.starts_with('<')) {
            rest = value.split_once('>').map_or(rest, |(_, after)| after);
        }
    }
    renamed
}

/// Argument of Python for a flag; `None` for other words.
fn argument_of(word: &str) -> Option<String> {
    match word {
        "-c" => Some("connections".to_owned()),
        "-k" => Some("insecure=True".to_owned()),
        "--no-keepalive" => Some("keepalive=False".to_owned()),
        "--help" => None,
        _ => {
            let name = word.strip_prefix("--")?;
            name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| name.replace('-', "_"))
        }
    }
}
