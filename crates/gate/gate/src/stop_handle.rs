//! Stops of a running gateway.

use std::time::Duration;

use weir_base::Nanos;
use weir_server::StopHandle;
use weir_telemetry::ExporterCloseHandle;

/// Handle that stops a gateway from another thread; see [`Gate::stop_handle`](super::Gate::stop_handle).
#[derive(Clone, Debug)]
pub struct GateStopHandle {
    pub(super) server: StopHandle,
    pub(super) traces: Option<ExporterCloseHandle>,
}

impl GateStopHandle {
    /// Stops accepting connections; requests in flight have `grace` from now, in place of the grace of an earlier call.
    /// Returns at once.
    pub fn stop(&self, grace: Duration) {
        self.server.stop(grace);
    }

    /// Sets whether health checks say that nothing more is to be sent here. Calls are served all the same.
    pub fn set_draining(&self, is_draining: bool) {
        self.server.set_draining(is_draining);
    }

    /// Has each HTTP/1 connection end after its next response; see [`StopHandle`].
    pub fn close_connections_after_responses(&self) {
        self.server.close_connections_after_responses();
    }

    /// Ends the gateway without waiting for requests in flight or the last traces.
    pub fn stop_now(&self) {
        self.server.stop(Duration::ZERO);
        if let Some(traces) = &self.traces {
            traces.close_within(Nanos::ZERO);
        }
    }
}
