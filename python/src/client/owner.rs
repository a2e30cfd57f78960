//! What a client's calls share, whichever event loop they run on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;

static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// What a client's calls share.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ClientHandle {
    pub(crate) id: u64,
    pub(crate) closed: AtomicBool,
}

#[pymethods]
impl ClientHandle {
    #[new]
    fn new() -> Self {
        Self { id: CLIENTS.fetch_add(1, Ordering::Relaxed), closed: AtomicBool::new(false) }
    }
}
