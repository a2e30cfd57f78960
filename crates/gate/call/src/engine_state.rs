//! State of an engine of calls, shared by its clones.

use std::cell::{Cell, RefCell};

use super::headers::AttemptHeaders;
use weir_machine::timer::Timer;
use weir_net::client::Client;
use weir_resilience::hedge::HedgeAction;

/// Connections, timer and reused memory of the calls on one event loop.
#[derive(Debug)]
pub(super) struct EngineState {
    pub(super) client: Client,
    pub(super) timer: Timer,
    /// Seed of backoff jitter.
    pub(super) seed: u64,
    pub(super) headers: AttemptHeaders,
    /// Number of calls so far.
    pub(super) call_count: Cell<u64>,
    /// Buffers for reuse by later calls.
    pub(super) action_buffers: RefCell<Vec<Vec<HedgeAction>>>,
}

impl EngineState {
    /// Number of the next call, which is then that of a call.
    pub(super) fn next_number(&self) -> u64 {
        self.call_count.replace(self.call_count.get().wrapping_add(1))
    }

    /// An empty list of actions.
    pub(super) fn action_buffer(&self) -> Vec<HedgeAction> {
        self.action_buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(super) fn recycle_actions(&self, actions: Vec<HedgeAction>) {
        self.action_buffers.borrow_mut().push(actions);
    }
}
