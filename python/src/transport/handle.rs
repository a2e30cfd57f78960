//! A call with streamed bodies, for Python.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use weir::base::Nanos;
use weir::machine::lock::lock;

use super::io_thread;
use super::streamed_call::{NextChunk, StreamedCall};
use super::task::StreamedCallStart;
use crate::client::answer::ResponseHandle;
use crate::client::awaited;
use crate::client::engine::ClientCallOutcome;
use crate::client::event_loop::clock;
use crate::client::request::{ClientRequest, pairs};
use crate::errors;

/// Interval at which a blocked thread checks for signals.
const SIGNAL_CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

/// A call in flight.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct StreamedCallHandle {
    streamed: Arc<StreamedCall>,
    request: Arc<ClientRequest>,
    read_timeout: Nanos,
    deadline: Nanos,
    /// Time of its begin.
    began: OnceLock<Nanos>,
    /// Until it begins.
    start: Mutex<Option<StreamedCallStart>>,
    /// Makes futures of the asyncio loop that the call runs on.
    create_future: Mutex<Option<Py<PyAny>>>,
}

impl StreamedCallHandle {
    pub(super) fn new(start: StreamedCallStart, read_timeout: Nanos) -> Self {
        let (streamed, request) = (Arc::clone(&start.streamed), Arc::clone(&start.request));
        Self {
            streamed,
            request,
            read_timeout,
            deadline: start.planned.plan.policy.deadline,
            began: OnceLock::new(),
            start: Mutex::new(Some(start)),
            create_future: Mutex::new(None),
        }
    }

    fn take_start(&self) -> PyResult<StreamedCallStart> {
        let _ = self.began.set(clock().now());
        lock(&self.start).take().ok_or_else(|| errors::usage("the call has begun already"))
    }

    /// Whether the state may be looked at: a child of a fork must not.
    fn check_process(&self) -> PyResult<()> {
        if self.streamed.is_ours() {
            return Ok(());
        }
        Err(errors::usage("the response belongs to the process before the fork; make a call of this process"))
    }
}

impl Drop for StreamedCallHandle {
    fn drop(&mut self) {
        self.streamed.close();
    }
}

#[pymethods]
impl StreamedCallHandle {
    /// Begins the call on the running asyncio loop; a `RuntimeError` without one.
    fn begin_on_loop(&self, py: Python<'_>) -> PyResult<()> {
        let create_future = awaited::begin_streamed(py, || self.take_start())?;
        lock(&self.create_future).replace(create_future);
        Ok(())
    }

    /// Begins the call on a thread of its own, for blocking waits.
    fn begin_on_thread(&self) -> PyResult<()> {
        io_thread::begin(self.take_start()?)
    }

    /// Marks that Python will wait for a change, before it looks at several things that may be there. What it then looks
    /// at must not arm again: a change in between would be lost.
    fn arm(&self) -> PyResult<()> {
        self.check_process()?;
        self.streamed.state().await_change();
        Ok(())
    }

    /// Outcome of the call, but for what is left of the body; None if it is not there yet.
    #[pyo3(signature = (arm=true))]
    fn outcome(&self, arm: bool) -> PyResult<Option<ResponseHandle>> {
        self.check_process()?;
        let mut state = self.streamed.state();
        if let Some(outcome) = state.outcome.take() {
            return Ok(Some(ResponseHandle::new(Arc::clone(&self.request), outcome)));
        }
        if state.end.is_some() {
            return Err(errors::call_panicked());
        }
        if arm {
            state.await_change();
        }
        Ok(None)
    }

    /// Whether the rest of the request is of use: the call has not ended, nor has an error responded to it.
    fn wants_body(&self) -> PyResult<bool> {
        self.check_process()?;
        let state = self.streamed.state();
        let is_error = |outcome: &ClientCallOutcome| {
            outcome.response.as_ref().is_none_or(|response| !response.status.is_success())
        };
        Ok(state.end.is_none() && !state.outcome.as_ref().is_some_and(is_error))
    }

    /// The next piece of the body; empty at its end, None if it is not there yet, and kind, point and cause of a failure.
    #[pyo3(signature = (arm=true))]
    fn chunk<'py>(&self, py: Python<'py>, arm: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.check_process()?;
        Ok(match self.streamed.next_chunk(arm) {
            NextChunk::Data(pieces) => Some(joined(py, &pieces)?.into_any()),
            NextChunk::End => Some(PyBytes::new(py, &[]).into_any()),
            NextChunk::Failed(failure) => {
                Some((failure.kind, failure.point.name(), failure.text).into_pyobject(py)?.into_any())
            }
            NextChunk::Pending => None,
        })
    }

    /// Trailers, once the body has ended.
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.check_process()?;
        let state = self.streamed.state();
        state.trailers().map_or_else(|| Ok(PyList::empty(py)), |trailers| pairs(py, trailers))
    }

    /// Adds a piece of the request's body, unless too much waits to be sent: then returns false.
    fn send(&self, chunk: &[u8]) -> PyResult<bool> {
        self.check_process()?;
        let mut state = self.streamed.state();
        if !state.upload.has_room() && state.end.is_none() {
            return Ok(false);
        }
        let waker = state.upload.push(Bytes::copy_from_slice(chunk));
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(true)
    }

    /// Ends the request's body; `error` is why it breaks off.
    #[pyo3(signature = (error=None))]
    fn end_body(&self, error: Option<String>) -> PyResult<()> {
        self.check_process()?;
        let waker = self.streamed.state().upload.finish(error.map_or(Ok(()), Err));
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Future that is set when something has changed.
    fn changed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_process()?;
        let create = lock(&self.create_future).as_ref().map(|create| create.clone_ref(py));
        let future = create.ok_or_else(|| errors::usage("the call runs on no asyncio loop"))?.bind(py).call0()?;
        let mut state = self.streamed.state();
        if state.is_awaited() {
            state.set_future(future.clone().unbind());
        } else {
            drop(state);
            future.call_method1("set_result", (py.None(),))?;
        }
        Ok(future)
    }

    /// Blocks until something has changed, with the GIL released; false after `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.check_process()?;
        let until =
            timeout.map_or(Nanos::NEVER, |seconds| clock().now() + Nanos::from_secs_f64(seconds.clamp(0.0, 3e9)));
        loop {
            let left = (until - clock().now()).min(SIGNAL_CHECK_INTERVAL);
            if py.detach(|| self.streamed.wait(Duration::from_nanos(left.0))) {
                return Ok(true);
            }
            py.check_signals()?;
            if clock().now() >= until {
                return Ok(false);
            }
        }
    }

    /// Longest wait for a piece of the response in seconds; None for no limit.
    #[getter]
    fn read_timeout(&self) -> Option<f64> {
        (self.read_timeout != Nanos::NEVER).then(|| self.read_timeout.as_secs_f64())
    }

    /// Whether the call waits for its request, and not for its response: more of it was sent since the last call, or
    /// the response is whole.
    fn is_sending(&self) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.streamed.is_sending())
    }

    /// Seconds until the deadline; None without one.
    fn time_left(&self) -> Option<f64> {
        let began = self.began.get().copied().unwrap_or_else(|| clock().now());
        (self.deadline != Nanos::NEVER).then(|| (began + self.deadline - clock().now()).as_secs_f64())
    }

    /// Closes the call, whatever is left of it.
    fn close(&self) {
        self.streamed.close();
    }
}

/// Pieces in one object, which costs less than one for each.
fn joined<'py>(py: Python<'py>, pieces: &[Bytes]) -> PyResult<Bound<'py, PyBytes>> {
    if let [piece] = pieces {
        return Ok(PyBytes::new(py, piece));
    }
    PyBytes::new_with(py, pieces.iter().map(Bytes::len).sum(), |room| {
        let mut rest = room;
        for piece in pieces {
            let (begin, end) = rest.split_at_mut(piece.len());
            begin.copy_from_slice(piece);
            rest = end;
        }
        Ok(())
    })
}
