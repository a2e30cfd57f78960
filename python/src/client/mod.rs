//! `Client` and `AsyncClient`: one call engine for both.
//!
//! - [`owner`]: state shared by the calls of a client; [`policy`]: options of calls; [`request`]: prepared requests;
//!   [`upstream_plan`]: plan of the calls with one policy to one upstream
//! - [`engine`]: the core's call engine, and outcomes of its calls; [`answer`]: outcomes for Python
//! - [`event_loop`]: tokio without a thread of its own
//! - [`awaited`]: calls on asyncio's event loop; [`blocking`]: calls that block their thread
//! - [`kin`]: forks; [`thread_bound`]: values that one thread owns

pub(crate) mod answer;
pub(crate) mod awaited;
pub(crate) mod blocking;
pub(crate) mod budget_rule;
pub(crate) mod engine;
pub(crate) mod event_loop;
pub(crate) mod kin;
pub(crate) mod not_repeated;
pub(crate) mod owner;
pub(crate) mod policy;
pub(crate) mod request;
mod thread_bound;
pub(crate) mod upstream_plan;

use pyo3::prelude::*;

use crate::transport::io_thread;

/// Closes unused connections of this thread and its asyncio loops after a client was closed or dropped; other threads
/// and loops close theirs with their next call.
#[pyfunction]
pub(crate) fn release_connections(py: Python<'_>) {
    engine::request_cleanup();
    thread_bound::drop_abandoned();
    blocking::close_unused();
    awaited::close_unused(py);
    io_thread::close_unused();
}
