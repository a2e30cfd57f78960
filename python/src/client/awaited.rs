//! Awaited calls: tokio on the thread of an asyncio event loop.
//!
//! `begin` returns a future of that loop and leaves the call for the next turn, so that calls which begin together cost
//! one turn. Futures of completed calls are set after the turn, outside of tokio. The asyncio loop owns its
//! [`AsyncioLoop`] through the reader that it holds; clients have weak references only. So a loop that is closed, with
//! calls in flight or without, drops everything.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use slab::Slab;
use tokio::task::{AbortHandle, LocalSet};

use super::answer::ResponseHandle;
use super::engine::{ClientCallOutcome, ClientEngine};
use super::event_loop::EventLoop;
use super::request::{ClientRequest, RequestHandle};
use super::thread_bound::ThreadBound;
use super::upstream_plan::UpstreamPlan;
use crate::errors;
use crate::transport::change_notice::{ChangeNotice, ChangedCalls};
use crate::transport::task::{self, StreamedCallStart};
use weir::machine::lock::lock;

/// Entries of all asyncio loops with calls. Only locked with the GIL held, so that it is unlocked after a fork.
static ASYNCIO_LOOPS: Mutex<Vec<LoopEntry>> = Mutex::new(Vec::new());

/// Event loop inside an asyncio loop.
#[pyclass(frozen, weakref, module = "weir._weir")]
pub(crate) struct AsyncioLoop {
    asyncio: Py<PyAny>,
    create_future: Py<PyAny>,
    state: ThreadBound<LoopState>,
}

/// State of the thread that runs the asyncio loop.
struct LoopState {
    engine: Rc<ClientEngine>,
    events: EventLoop,
    ended_calls: EndedCalls,
    /// Calls that start with the next turn.
    unspawned: RefCell<Vec<UnspawnedCall>>,
    /// Calls with streamed bodies that start with the next turn, and those that have changed since the last.
    unspawned_streamed: RefCell<Vec<StreamedCallStart>>,
    changed_streamed: ChangedCalls,
    calls: RefCell<Slab<PendingCall>>,
    next_number: Cell<u64>,
    turn_scheduled: Cell<bool>,
}

/// Calls that have ended since the last turn; without an outcome, the task panicked.
type EndedCalls = Rc<RefCell<Vec<(CallKey, Option<ClientCallOutcome>)>>>;

/// Slot of a call, and its number: by the time an abandoned call ends, another one may have its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CallKey {
    slot: usize,
    number: u64,
}

struct UnspawnedCall {
    key: CallKey,
    request: Arc<ClientRequest>,
    planned: Arc<UpstreamPlan>,
}

struct PendingCall {
    number: u64,
    future: Py<PyAny>,
    request: Arc<ClientRequest>,
    task: Option<AbortHandle>,
}

/// Weak reference to the event loop inside an asyncio loop.
struct LoopEntry {
    /// Address of the asyncio loop; unique, since an [`AsyncioLoop`] keeps its loop alive.
    address: usize,
    thread: ThreadId,
    epoll: RawFd,
    asyncio_loop: Py<PyWeakrefReference>,
}

/// Event loop inside this asyncio loop, if it has one.
fn find_loop<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, AsyncioLoop>>> {
    let py = asyncio.py();
    let address = asyncio.as_ptr() as usize;
    let mut entries = lock(&ASYNCIO_LOOPS);
    let Some(at) = entries.iter().position(|entry| entry.address == address) else { return Ok(None) };
    let entry = &entries[at];
    if let Some(found) = entry.asyncio_loop.bind(py).upgrade() {
        let moved = entry.thread != thread::current().id();
        let epoll = entry.epoll;
        if !moved {
            let found = found.cast_into::<AsyncioLoop>()?;
            if found.get().state.get().is_some() {
                return Ok(Some(found));
            }
        }
        entries.swap_remove(at);
        drop(entries);
        if moved {
            // The asyncio loop now runs on another thread, which cannot use the event loop of this one.
            asyncio.call_method1(intern!(py, "remove_reader"), (epoll,))?;
        }
        return Ok(None);
    }
    entries.swap_remove(at);
    Ok(None)
}

/// Event loop inside the running asyncio loop; created if there is none.
fn current_loop(py: Python<'_>) -> PyResult<Bound<'_, AsyncioLoop>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    if let Some(found) = find_loop(&asyncio)? {
        return Ok(found);
    }
    let address = asyncio.as_ptr() as usize;
    let (created, epoll) = AsyncioLoop::install(&asyncio)?;
    let weak = PyWeakrefReference::new(&created)?.unbind();
    let mut entries = lock(&ASYNCIO_LOOPS);
    entries.retain(|entry| entry.asyncio_loop.bind(py).upgrade().is_some());
    entries.push(LoopEntry { address, thread: thread::current().id(), epoll, asyncio_loop: weak });
    Ok(created)
}

/// Event loop inside the running asyncio loop, if there are both.
fn current_loop_if_any(py: Python<'_>) -> PyResult<Option<Bound<'_, AsyncioLoop>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    if asyncio.is_none() { Ok(None) } else { find_loop(&asyncio) }
}

/// Begins a call; its future belongs to the running asyncio loop.
#[pyfunction]
pub(crate) fn begin<'py>(py: Python<'py>, request: &Bound<'py, RequestHandle>) -> PyResult<Bound<'py, PyAny>> {
    AsyncioLoop::begin(&current_loop(py)?, request.get())
}

/// Begins a call with streamed bodies on the running asyncio loop; returns what creates futures of that loop.
pub(crate) fn begin_streamed(
    py: Python<'_>,
    start: impl FnOnce() -> PyResult<StreamedCallStart>,
) -> PyResult<Py<PyAny>> {
    let this = current_loop(py)?;
    let start = start()?;
    let own = this.get();
    let state = own.state.get().ok_or_else(errors::call_panicked)?;
    state.unspawned_streamed.borrow_mut().push(start);
    own.schedule_turn(&state, &this)?;
    Ok(own.create_future.clone_ref(py))
}

/// Cancels the call with this future, if it still runs.
#[pyfunction]
pub(crate) fn abandon(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    // A coroutine may be dropped after its loop.
    if let Some(current) = current_loop_if_any(py)?
        && let Some(state) = current.get().state.get()
    {
        state.abandon(future);
    }
    Ok(())
}

impl AsyncioLoop {
    /// Creates it, and makes it a reader of the asyncio loop; returns it with the file descriptor that is read.
    fn install<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, Self>, RawFd)> {
        let py = asyncio.py();
        let events = EventLoop::new().map_err(|error| errors::no_event_loop(&error))?;
        let epoll = events.epoll();
        let state = Rc::new(LoopState {
            engine: Rc::new(ClientEngine::new(events.timer().clone())),
            events,
            ended_calls: Rc::default(),
            unspawned: RefCell::default(),
            unspawned_streamed: RefCell::default(),
            changed_streamed: Rc::default(),
            calls: RefCell::default(),
            next_number: Cell::new(0),
            turn_scheduled: Cell::new(false),
        });
        let created = Self {
            create_future: asyncio.getattr(intern!(py, "create_future"))?.unbind(),
            asyncio: asyncio.clone().unbind(),
            state: ThreadBound::new(Rc::clone(&state)),
        };
        let created = Bound::new(py, created)?;
        asyncio.call_method1(intern!(py, "add_reader"), (epoll, created.getattr(intern!(py, "on_readable"))?))?;
        let calls = state.engine.core();
        state.events.turn(|tasks| {
            tasks.spawn_local(ClientEngine::sweep_loop(calls));
        });
        Ok((created, epoll))
    }

    fn begin<'py>(this: &Bound<'py, Self>, request: &RequestHandle) -> PyResult<Bound<'py, PyAny>> {
        let own = this.get();
        let state = own.state.get().ok_or_else(errors::call_panicked)?;
        let future = own.create_future.bind(this.py()).call0()?;
        let (request, planned) = (Arc::clone(&request.request), Arc::clone(&request.planned));
        let number = state.next_number.replace(state.next_number.get() + 1);
        let call = PendingCall { number, future: future.clone().unbind(), request: Arc::clone(&request), task: None };
        let key = CallKey { slot: state.calls.borrow_mut().insert(call), number };
        state.unspawned.borrow_mut().push(UnspawnedCall { key, request, planned });
        own.schedule_turn(&state, this)?;
        Ok(future)
    }

    fn schedule_turn(&self, state: &LoopState, this: &Bound<'_, Self>) -> PyResult<()> {
        if !state.turn_scheduled.replace(true) {
            let py = this.py();
            let turn = this.getattr(intern!(py, "turn"))?;
            self.asyncio.call_method1(py, intern!(py, "call_soon"), (turn,))?;
        }
        Ok(())
    }

    /// Runs a turn; in a child of a fork, and on other threads, nothing.
    fn run_turn(this: &Bound<'_, Self>, is_scheduled: bool) -> PyResult<()> {
        let own = this.get();
        let Some(state) = own.state.get() else { return Ok(()) };
        if is_scheduled {
            state.turn_scheduled.set(false);
        }
        let again = state.events.turn(|tasks| state.spawn_calls(tasks));
        state.resolve_futures(this.py())?;
        state.resolve_streamed(this.py())?;
        if again {
            own.schedule_turn(&state, this)?;
        }
        Ok(())
    }
}

impl LoopState {
    fn abandon(&self, future: &Bound<'_, PyAny>) {
        let mut calls = self.calls.borrow_mut();
        let Some(slot) = calls.iter().find(|(_, call)| call.future.is(future)).map(|(slot, _)| slot) else { return };
        let call = calls.remove(slot);
        drop(calls);
        self.unspawned.borrow_mut().retain(|unspawned| unspawned.key.number != call.number);
        if let Some(task) = &call.task {
            // This wakes the event loop, whose next turn drops the call.
            task.abort();
        }
    }

    /// Removes a call that has ended; `None` if it was abandoned.
    fn take(&self, key: CallKey) -> Option<PendingCall> {
        let mut calls = self.calls.borrow_mut();
        calls.get(key.slot).is_some_and(|call| call.number == key.number).then(|| calls.remove(key.slot))
    }

    /// Spawns the calls that have begun since the last turn.
    fn spawn_calls(&self, tasks: &LocalSet) {
        self.engine.close_unused();
        let mut calls = self.calls.borrow_mut();
        for UnspawnedCall { key, request, planned } in self.unspawned.borrow_mut().drain(..) {
            let engine = Rc::clone(&self.engine);
            let guard = AwaitedCallGuard { key, ended: Rc::clone(&self.ended_calls), outcome: None };
            let task = tasks.spawn_local(async move {
                let mut guard = guard;
                guard.outcome = Some(engine.call(&request, &planned).await);
            });
            if let Some(call) = calls.get_mut(key.slot) {
                call.task = Some(task.abort_handle());
            }
        }
        for start in self.unspawned_streamed.borrow_mut().drain(..) {
            let streamed = Arc::clone(&start.streamed);
            if streamed.is_closed() {
                continue;
            }
            let notice = ChangeNotice::by(Rc::clone(&self.changed_streamed));
            let running = task::run(Rc::clone(&self.engine), start, notice);
            streamed.set_task(tasks.spawn_local(running).abort_handle());
        }
    }

    /// Sets the futures by which Python waits for calls with streamed bodies.
    fn resolve_streamed(&self, py: Python<'_>) -> PyResult<()> {
        let mut changed = std::mem::take(&mut *self.changed_streamed.borrow_mut());
        for streamed in changed.drain(..) {
            let Some(future) = streamed.state().take_future() else { continue };
            set_future(future.bind(py), "set_result", py.None())?;
        }
        let mut buffer = self.changed_streamed.borrow_mut();
        if buffer.is_empty() {
            *buffer = changed;
        }
        Ok(())
    }

    /// Sets the futures of the calls that have ended.
    fn resolve_futures(&self, py: Python<'_>) -> PyResult<()> {
        let mut ended = std::mem::take(&mut *self.ended_calls.borrow_mut());
        for (key, outcome) in ended.drain(..) {
            let Some(call) = self.take(key) else { continue };
            let future = call.future.bind(py);
            let response = outcome.map(|outcome| ResponseHandle::new(call.request, outcome));
            let set = match response {
                Some(response) if response.has_response() => {
                    future.call_method1(intern!(py, "set_result"), (response,))
                }
                other => {
                    let error = other.map_or_else(errors::call_panicked, |response| errors::call(py, response));
                    future.call_method1(intern!(py, "set_exception"), (error.into_value(py),))
                }
            };
            // A future that was cancelled elsewhere is done, and cannot be set.
            if let Err(error) = set
                && !future.call_method0(intern!(py, "done"))?.is_truthy()?
            {
                return Err(error);
            }
        }
        let mut buffer = self.ended_calls.borrow_mut();
        if buffer.is_empty() {
            *buffer = ended;
        }
        Ok(())
    }
}

/// Sets a future, unless it was cancelled elsewhere.
fn set_future(future: &Bound<'_, PyAny>, method: &str, value: Py<PyAny>) -> PyResult<()> {
    if let Err(error) = future.call_method1(method, (value,))
        && !future.call_method0(intern!(future.py(), "done"))?.is_truthy()?
    {
        return Err(error);
    }
    Ok(())
}

/// Closes unused connections of this thread's asyncio loops.
pub(super) fn close_unused(py: Python<'_>) {
    // A client may be dropped while the entries are locked; then its connections are closed with the next turn.
    let Ok(entries) = ASYNCIO_LOOPS.try_lock() else { return };
    let here = entries.iter().filter(|entry| entry.thread == thread::current().id());
    let found: Vec<_> = here.filter_map(|entry| entry.asyncio_loop.bind(py).upgrade()).collect();
    drop(entries);
    for found in found {
        if let Ok(found) = found.cast_into::<AsyncioLoop>()
            && let Some(state) = found.get().state.get()
        {
            state.engine.close_unused();
        }
    }
}

#[pymethods]
impl AsyncioLoop {
    /// Reader of asyncio for the epoll instance.
    fn on_readable(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::run_turn(this, false)
    }

    /// Callback of asyncio for a scheduled turn.
    fn turn(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::run_turn(this, true)
    }
}

/// Reports the outcome of a call; `None` if its task panicked.
struct AwaitedCallGuard {
    key: CallKey,
    ended: EndedCalls,
    outcome: Option<ClientCallOutcome>,
}

impl Drop for AwaitedCallGuard {
    fn drop(&mut self) {
        self.ended.borrow_mut().push((self.key, self.outcome.take()));
    }
}
