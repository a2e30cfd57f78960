//! `Client` and `AsyncClient`: one Rust call under both.
//!
//! - [`owner`]: what a client's calls share; [`policy`]: what they may do; [`request`]: what they ask
//! - [`engine`]: the core's engine, and how its calls end; [`answer`]: that, as Python reads it
//! - [`event_loop`]: tokio, turned by whoever has the time
//! - [`awaited`]: a guest of asyncio's event loop; [`blocking`]: a thread that waits
//! - [`kin`]: what a fork must not share

pub(crate) mod answer;
pub(crate) mod awaited;
pub(crate) mod blocking;
mod engine;
mod event_loop;
pub(crate) mod kin;
pub(crate) mod owner;
pub(crate) mod policy;
pub(crate) mod request;

use pyo3::prelude::*;

/// A client was closed, or its last reference has gone: what this thread and its asyncio loops have open for it is closed
/// now, and elsewhere with the next call.
#[pyfunction]
pub(crate) fn release_connections(py: Python<'_>) {
    engine::request_cleanup();
    blocking::close_unused();
    awaited::close_unused(py);
}
