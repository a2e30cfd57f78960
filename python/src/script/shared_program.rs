//! Program of a load that Python drives, as the load has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use weir::load::program::{ProgramCalls, ProgramThread, ThreadProgram, UserProgram};
use weir::measure::run_steps::StepFacts;
use weir::scenario::plan::OriginTable;

use super::blocked::place_of;
use super::program::PythonProgram;
use super::task_socket::MAX_SOCKETS;
use super::thread::PythonThread;

/// Program of a load that Python drives, shared by the load and its thread.
#[derive(Clone, Debug)]
pub(crate) struct SharedProgram(pub(crate) Arc<PythonProgram>);

impl UserProgram for SharedProgram {
    fn scenarios(&self) -> Vec<String> {
        self.0.scenarios.clone()
    }

    fn steps(&self) -> Vec<StepFacts> {
        self.0.names.facts()
    }

    fn may_read_events(&self) -> bool {
        true
    }

    fn calls(&self) -> ProgramCalls {
        if self.0.makes_calls { ProgramCalls::Always } else { ProgramCalls::Never }
    }

    fn sockets_per_user(&self) -> u64 {
        MAX_SOCKETS as u64
    }

    fn may_block(&self) -> bool {
        true
    }

    fn blocked_in(&self, _: u32) -> String {
        let place = place_of(self.0.thread_ident.load(Ordering::Relaxed));
        place.unwrap_or_else(|| format!("a call by {}, which keeps Python's lock,", self.0.scenarios.join(" or ")))
    }

    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        if thread.count > 1 {
            return Err("Python runs on one thread; write --processes N in place of --threads".to_owned());
        }
        let factory = Python::attach(|py| self.0.factory.clone_ref(py));
        let mut origins = OriginTable::default();
        let target = &self.0.target;
        origins.intern(target.is_tls, &target.host, target.port);
        Ok(Box::new(PythonThread::new(self.0.clone(), factory, origins, thread.users)))
    }
}
