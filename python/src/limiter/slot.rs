//! `LimiterSlotHandle`: a slot that a user has taken, until it ends.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use weir::delivery::limit_headers::RateLimitHeaders;
use weir::delivery::limiter::{ResponseReport, SlotEvent};
use weir::limiter::SlotId;
use weir::machine::clock;
use weir::machine::lock::lock;
use weir::retry::retry_after::service_clock;

use super::own::{OwnLimiter, WakesForm};

/// Slot of a limiter; without an end it counts as sent.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct LimiterSlotHandle {
    limiter: Arc<OwnLimiter>,
    slot: Mutex<Option<SlotId>>,
}

impl LimiterSlotHandle {
    pub(super) fn new(limiter: Arc<OwnLimiter>, slot: SlotId) -> Self {
        Self { limiter, slot: Mutex::new(Some(slot)) }
    }

    fn end(&self, py: Python<'_>, event: SlotEvent) -> PyResult<WakesForm> {
        let Some(slot) = lock(&self.slot).take() else { return Ok(WakesForm::default()) };
        if self.limiter.ours().is_none() {
            return Ok(WakesForm::default());
        }
        self.limiter.call(py, |limiter| limiter.end(&slot, event)).map(|wakes| self.limiter.wakes_form(wakes))
    }
}

#[pymethods]
impl LimiterSlotHandle {
    /// Whether it has not ended.
    fn is_open(&self) -> bool {
        lock(&self.slot).is_some()
    }

    /// A response has come.
    fn done(&self, py: Python<'_>) -> PyResult<WakesForm> {
        self.end(py, SlotEvent::Responded(None))
    }

    /// A response with this status and these headers has come.
    #[expect(clippy::needless_pass_by_value, reason = "an argument from Python is owned")]
    fn responded(&self, py: Python<'_>, status: u16, headers: Vec<(String, String)>) -> PyResult<WakesForm> {
        let date = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("date")).map(|(_, value)| value.as_str());
        let now = service_clock(date, clock::wall());
        let all = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let headers = RateLimitHeaders::read(all, now);
        self.end(py, SlotEvent::Responded(Some(ResponseReport { status, headers })))
    }

    /// Whether something was sent, and came to an end, is unknown.
    fn abandoned(&self, py: Python<'_>) -> PyResult<WakesForm> {
        self.end(py, SlotEvent::Abandoned)
    }

    /// Nothing was sent.
    fn unsent(&self, py: Python<'_>) -> PyResult<WakesForm> {
        self.end(py, SlotEvent::Unsent)
    }
}

impl Drop for LimiterSlotHandle {
    fn drop(&mut self) {
        let slot = lock(&self.slot).take();
        match (slot, self.limiter.ours()) {
            (Some(slot), Some(limiter)) => _ = limiter.end(&slot, SlotEvent::Forgotten),
            (_, None) => std::mem::forget(Arc::clone(&self.limiter)),
            _ => {}
        }
    }
}
