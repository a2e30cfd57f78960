//! Program of a load that Python drives.

use std::fmt;
use std::sync::atomic::AtomicU64;

use pyo3::prelude::*;
use weir::load::program::{StepNames, UserShape};
use weir::scenario::plan::RequestOrigin;

/// Common part of a Python load's users: names of scenarios and steps, and their factory.
pub(crate) struct PythonProgram {
    /// Python object that makes users: `user(number)` returns generator or greenlet, its `resume` and the index of its
    /// scenario; `stop()` is called at the end.
    pub(super) factory: Py<PyAny>,
    pub(super) scenarios: Vec<String>,
    pub(super) names: StepNames,
    pub(super) shape: UserShape,
    /// Whether tasks begin at set times, whether or not users are free: waits between tasks are then left out.
    pub(super) is_open: bool,
    /// Whether requests are calls of gRPC.
    pub(super) makes_calls: bool,
    /// Destination of requests to paths.
    pub(super) target: RequestOrigin,
    /// Number of its thread, as `threading.get_ident()` gives it; 0 before the first call.
    pub(super) thread_ident: AtomicU64,
}

impl fmt::Debug for PythonProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonProgram").field("scenarios", &self.scenarios).finish_non_exhaustive()
    }
}

impl PythonProgram {
    pub(super) fn new(
        factory: Py<PyAny>,
        scenarios: Vec<String>,
        shape: UserShape,
        (is_open, makes_calls): (bool, bool),
        target: RequestOrigin,
    ) -> Self {
        let (names, thread_ident) = (StepNames::default(), AtomicU64::new(0));
        Self { factory, scenarios, names, shape, is_open, makes_calls, target, thread_ident }
    }

    /// Name of a scenario.
    pub(super) fn scenario(&self, index: u32) -> &str {
        self.scenarios.get(index as usize).map_or("", String::as_str)
    }
}
