//! Record of a run: counts and samples in short windows.

use super::call::{GateState, SimulatedAttempt};
use weir_base::Nanos;

/// Counts and samples of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordWindow {
    /// First attempts of calls.
    pub(super) first_attempts: u64,
    /// All attempts.
    pub(super) attempts: u64,
    /// Responses in time.
    pub(super) responses: u64,
    /// Rejections by gates.
    pub(super) rejected: u64,
    /// Rejections by the upstream.
    pub(super) upstream_rejected: u64,
    /// Attempts without a response at their deadline.
    pub(super) timed_out: u64,
    /// Attempts that arrived in the window, by priority, ...
    pub(super) arrived: [u64; 4],
    /// ... and those of them with a response in time.
    pub(super) served: [u64; 4],
    /// Attempts of callers of the first kind that arrived, and those of them with a response in time.
    pub(super) first_kind_arrived: u64,
    pub(super) first_kind_served: u64,
    /// Response times of accepted attempts, in ms, and as multiples of the unloaded p99.
    pub(super) response_ms: Vec<f32>,
    pub(super) slowdown: Vec<f32>,
    /// Waits of attempts that gates rejected in the window, in ms.
    pub(super) rejected_wait_ms: Vec<f32>,
    /// Means over the window.
    pub(super) in_flight: f64,
    pub(super) queue: f64,
    /// Sum of limits at the end of the window; none without one.
    pub(super) limit: Option<f64>,
}

#[derive(Debug)]
pub(super) struct SimulationRecord {
    pub(super) length: Nanos,
    pub(super) windows: Vec<RecordWindow>,
    pub(super) current: RecordWindow,
    window_start: Nanos,
    updated_at: Nanos,
}

impl SimulationRecord {
    pub(super) fn new(length: Nanos) -> Self {
        Self {
            length,
            windows: Vec::new(),
            current: RecordWindow::default(),
            window_start: Nanos::ZERO,
            updated_at: Nanos::ZERO,
        }
    }

    /// End of the current window.
    pub(super) fn window_end(&self) -> Nanos {
        self.window_start + self.length
    }

    /// Accounts for the numbers in flight and queued since the last call.
    pub(super) fn advance_to(&mut self, now: Nanos, in_flight: u32, queue: u32) {
        let length = (now - self.updated_at).as_secs_f64();
        self.current.in_flight += length * f64::from(in_flight);
        self.current.queue += length * f64::from(queue);
        self.updated_at = now;
    }

    /// Ends the current window.
    pub(super) fn close_window(&mut self, limit: Option<f64>) {
        let length = self.length.as_secs_f64();
        self.current.in_flight /= length;
        self.current.queue /= length;
        self.current.limit = limit;
        self.windows.push(std::mem::take(&mut self.current));
        self.window_start = self.window_end();
    }

    pub(super) fn add_arrival(&mut self, call: &SimulatedAttempt) {
        self.current.attempts += 1;
        self.current.first_attempts += u64::from(call.retry == 0);
        self.current.arrived[call.priority.index()] += 1;
        self.current.first_kind_arrived += u64::from(call.kind == 0);
    }

    pub(super) fn add_response(&mut self, now: Nanos, call: &SimulatedAttempt) {
        self.current.responses += 1;
        self.add_response_time(now, call);
        let window = (call.start.0 / self.length.0) as usize;
        let then = if window < self.windows.len() { &mut self.windows[window] } else { &mut self.current };
        then.served[call.priority.index()] += 1;
        then.first_kind_served += u64::from(call.kind == 0);
    }

    pub(super) fn add_timeout(&mut self, now: Nanos, call: &SimulatedAttempt) {
        self.current.timed_out += 1;
        if call.gate_state == GateState::Running {
            self.add_response_time(now, call);
        }
    }

    pub(super) fn add_rejection(&mut self, now: Nanos, call: &SimulatedAttempt) {
        self.current.rejected += 1;
        self.current.rejected_wait_ms.push((now - call.start).as_millis_f64() as f32);
    }

    fn add_response_time(&mut self, now: Nanos, call: &SimulatedAttempt) {
        let took = now - call.start;
        self.current.response_ms.push(took.as_millis_f64() as f32);
        self.current.slowdown.push((took.as_secs_f64() / call.unloaded_p99.as_secs_f64()) as f32);
    }
}
