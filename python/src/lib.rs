//! The compiled half of the Python package `weir`: `weir._weir`.
//!
//! It converts, releases the GIL and calls the core; it decides nothing. What a person sees (signatures, docstrings,
//! classes) is Python, in `weir/`.
//!
//! - [`form`]: what Python was asked for -> [`weir::load::Options`]
//! - [`load`]: one call of the core, during which Ctrl-C works
//! - [`run`]: a handle on its result
//! - [`compare`]: runs held against each other
//! - [`serve`]: a service that runs beside Python
//! - [`simulate`]: overload in virtual time
//! - [`client`]: calls for an answer, awaited or blocking
//! - [`send`]: jobs to deliver, awaited or waited for
//! - [`errors`]: Rust errors -> Python exceptions

mod client;
mod compare;
mod errors;
mod form;
mod load;
mod run;
mod send;
mod serve;
mod simulate;

use std::ffi::OsString;
use std::io::Write;

use pyo3::prelude::*;

/// Runs the command line (the program's name first) and returns its exit code.
#[pyfunction]
fn cli(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = weir::cli::run(args);
        // Only a Rust `main` flushes Rust's stdout on its way out.
        let _ = std::io::stdout().flush();
        code
    })
}

#[pymodule]
mod _weir {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::cli;
    #[pymodule_export]
    use super::client::answer::ResponseHandle;
    #[pymodule_export]
    use super::client::awaited::{abandon, begin};
    #[pymodule_export]
    use super::client::blocking::wait;
    #[pymodule_export]
    use super::client::kin::forked;
    #[pymodule_export]
    use super::client::owner::ClientHandle;
    #[pymodule_export]
    use super::client::policy::PolicyHandle;
    #[pymodule_export]
    use super::client::release_connections;
    #[pymodule_export]
    use super::client::request::{RequestHandle, SentRequestHandle};
    #[pymodule_export]
    use super::compare::compare_runs;
    #[pymodule_export]
    use super::load::load;
    #[pymodule_export]
    use super::run::RunHandle;
    #[pymodule_export]
    use super::send::group::GroupHandle;
    #[pymodule_export]
    use super::send::mailbox::Mailbox;
    #[pymodule_export]
    use super::send::outcome::JobResultHandle;
    #[pymodule_export]
    use super::send::sender::SenderHandle;
    #[pymodule_export]
    use super::serve::{ServiceHandle, serve};
    #[pymodule_export]
    use super::simulate::run_simulation;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
