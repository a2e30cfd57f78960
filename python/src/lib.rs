//! Native module of the Python package `weir`: `weir._weir`.
//!
//! It converts values, releases the GIL and calls the core. Signatures, docstrings and public classes are Python, in
//! `weir/`.
//!
//! - [`arguments`]: arguments by name
//! - [`form`]: arguments of `weir.load` -> [`weir::load::Options`]
//! - [`load`]: load generation, interrupted by Ctrl-C
//! - [`started_load`]: a load that goes on beside the program, and is changed
//! - [`llm`]: the same for a language model's server
//! - [`script`]: users of a load that Python drives
//! - [`run`]: results of loads
//! - [`compare`]: comparison of runs
//! - [`serve`]: test servers on threads of their own; [`serve_form`]: their arguments
//! - [`simulate`]: simulation of overload protection
//! - [`client`]: HTTP calls, awaited or blocking
//! - [`decisions`]: decisions of calls whose attempts Python makes
//! - [`transport`]: the same calls with streamed bodies, under other libraries
//! - [`send`]: delivery of jobs, awaited or blocking
//! - [`limiter`]: rate limits of any code, awaited or blocking
//! - [`secret_names`]: the core's rules of secrets
//! - [`errors`]: Rust errors -> Python exceptions

mod arguments;
mod body_arg;
mod client;
mod compare;
mod decisions;
mod errors;
mod flag_form;
mod form;
mod json;
mod k6_script;
mod limiter;
mod llm;
mod load;
mod run;
mod scenario_args;
mod script;
mod secrets;
mod send;
mod serve;
mod serve_form;
mod signals;
mod simulate;
mod started_load;
mod stream_args;
mod transport;
mod websocket_args;

use pyo3::prelude::*;

#[pymodule]
mod _weir {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;
    use weir::base::grpc_status::GRPC_STATUS_NAMES;

    #[pymodule_export]
    use super::client::answer::ResponseHandle;
    #[pymodule_export]
    use super::client::awaited::{abandon, begin};
    #[pymodule_export]
    use super::client::blocking::wait;
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
    use super::decisions::budget::{BudgetHandle, now_ns};
    #[pymodule_export]
    use super::decisions::hedged::{CallDecisionHandle, CallRulesHandle};
    #[pymodule_export]
    use super::decisions::retried::{RetryCallHandle, RetryRulesHandle};
    #[pymodule_export]
    use super::limiter::handle::LimiterHandle;
    #[pymodule_export]
    use super::limiter::slot::LimiterSlotHandle;
    #[pymodule_export]
    use super::llm::run_llm;
    #[pymodule_export]
    use super::load::load;
    #[pymodule_export]
    use super::run::RunHandle;
    #[pymodule_export]
    use super::script::call_schemas::{CallRoute, CallSchemas};
    #[pymodule_export]
    use super::script::command::run_script;
    #[pymodule_export]
    use super::script::quick_request::{json_body, quick_request};
    #[pymodule_export]
    use super::script::request::ScriptRequest;
    #[pymodule_export]
    use super::script::response::ScriptResponse;
    #[pymodule_export]
    use super::script::session::ScriptSession;
    #[pymodule_export]
    use super::script::task_socket::{SocketOpen, SocketStep};
    #[pymodule_export]
    use super::script::task_stream::{ScriptEvent, StreamStep};
    #[pymodule_export]
    use super::secrets::{is_secret_name, shares_credentials, split_url, without_secrets};
    #[pymodule_export]
    use super::send::group_handle::GroupHandle;
    #[pymodule_export]
    use super::send::mailbox::Mailbox;
    #[pymodule_export]
    use super::send::outcome::JobResultHandle;
    #[pymodule_export]
    use super::send::sender::SenderHandle;
    #[pymodule_export]
    use super::serve::{ServiceHandle, start_service};
    #[pymodule_export]
    use super::simulate::run_simulation;
    #[pymodule_export]
    use super::started_load::{StartedLoadHandle, start_load};
    #[pymodule_export]
    use super::transport::handle::StreamedCallHandle;
    #[pymodule_export]
    use super::transport::owner::TransportHandle;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::client::kin::count_forks();
        module.add("GRPC_STATUS_NAMES", PyTuple::new(module.py(), GRPC_STATUS_NAMES)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
