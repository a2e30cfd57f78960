//! Calls that are awaited: a guest of an asyncio event loop, on its thread.
//!
//! `begin` hands out a future of that loop and leaves the call for the next turn, so that calls which begin together cost
//! one turn. A turn's finished calls set their futures after it, outside of tokio. The loop owns its guest through the
//! reader that it holds; clients only know it weakly. So a loop that is closed, with calls in flight or without, takes
//! all of it along.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use slab::Slab;
use tokio::task::{AbortHandle, LocalSet};

use super::answer::ResponseHandle;
use super::engine::{ClientCallOutcome, ClientEngine, UpstreamPlan};
use super::event_loop::EventLoop;
use super::kin::ForkSafe;
use super::request::{ClientRequest, RequestHandle};
use crate::errors;

/// The guest of each asyncio loop. Only touched with the GIL held, so that a fork finds it free.
static ASYNCIO_LOOPS: Mutex<Vec<LoopEntry>> = Mutex::new(Vec::new());

/// An event loop inside an asyncio loop.
#[pyclass(unsendable, weakref, module = "weir._weir")]
pub(crate) struct AsyncioLoop {
    asyncio: Py<PyAny>,
    create_future: Py<PyAny>,
    fork_owned: ForkSafe<LoopForkOwned>,
    /// Calls that wait for the next turn.
    unspawned: RefCell<Vec<UnspawnedCall>>,
    calls: RefCell<Slab<PendingCall>>,
    next_number: Cell<u64>,
    turn_scheduled: Cell<bool>,
}

/// What a child of a fork must not touch.
struct LoopForkOwned {
    engine: Rc<ClientEngine>,
    events: EventLoop,
    ended_calls: EndedCalls,
}

/// Calls that have ended since they were looked for; without an outcome, the task broke off.
type EndedCalls = Rc<RefCell<Vec<(CallKey, Option<ClientCallOutcome>)>>>;

/// A call's place, and its number: another call may have the place by the time an abandoned one ends.
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

/// An asyncio loop's guest, as clients know it.
struct LoopEntry {
    /// The loop's address. A guest keeps its loop alive, so that no other has it.
    address: usize,
    thread: ThreadId,
    epoll: RawFd,
    asyncio_loop: Py<PyWeakrefReference>,
}

/// The running asyncio loop's guest, if it has one.
fn find_loop<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, AsyncioLoop>>> {
    let py = asyncio.py();
    let address = asyncio.as_ptr() as usize;
    let mut guests = ASYNCIO_LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = guests.iter().position(|known| known.address == address) else { return Ok(None) };
    let known = &guests[at];
    if let Some(guest) = known.asyncio_loop.bind(py).upgrade() {
        let moved = known.thread != thread::current().id();
        let epoll = known.epoll;
        if !moved {
            let guest = guest.cast_into::<AsyncioLoop>()?;
            if guest.borrow().fork_owned.is_ours() {
                return Ok(Some(guest));
            }
        }
        guests.swap_remove(at);
        drop(guests);
        if moved {
            // The loop runs on another thread now, where its guest cannot be touched.
            asyncio.call_method1(intern!(py, "remove_reader"), (epoll,))?;
        }
        return Ok(None);
    }
    guests.swap_remove(at);
    Ok(None)
}

/// The running asyncio loop's guest; it moves in when there is none.
fn current_loop(py: Python<'_>) -> PyResult<Bound<'_, AsyncioLoop>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    if let Some(guest) = find_loop(&asyncio)? {
        return Ok(guest);
    }
    let address = asyncio.as_ptr() as usize;
    let guest = AsyncioLoop::install(&asyncio)?;
    let epoll = guest.borrow().fork_owned.events.epoll();
    let weak = PyWeakrefReference::new(&guest)?.unbind();
    let mut guests = ASYNCIO_LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
    guests.retain(|known| known.asyncio_loop.bind(py).upgrade().is_some());
    guests.push(LoopEntry { address, thread: thread::current().id(), epoll, asyncio_loop: weak });
    Ok(guest)
}

/// The running asyncio loop's guest, if there are both.
fn current_loop_if_any(py: Python<'_>) -> PyResult<Option<Bound<'_, AsyncioLoop>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    if asyncio.is_none() { Ok(None) } else { find_loop(&asyncio) }
}

/// Begins a call; its future is one of the running asyncio loop's.
#[pyfunction]
pub(crate) fn begin<'py>(py: Python<'py>, request: &Bound<'py, RequestHandle>) -> PyResult<Bound<'py, PyAny>> {
    AsyncioLoop::begin(&current_loop(py)?, request.get())
}

/// Cancels the call that has this future, if it still runs.
#[pyfunction]
pub(crate) fn abandon(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    // A coroutine may be thrown away when its loop has gone.
    if let Some(guest) = current_loop_if_any(py)? {
        guest.borrow().abandon(future);
    }
    Ok(())
}

impl AsyncioLoop {
    fn install<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = asyncio.py();
        let events = EventLoop::new().map_err(|error| errors::no_event_loop(&error))?;
        let epoll = events.epoll();
        let engine = Rc::new(ClientEngine::new(events.timer().clone()));
        let guest = Self {
            create_future: asyncio.getattr(intern!(py, "create_future"))?.unbind(),
            asyncio: asyncio.clone().unbind(),
            fork_owned: ForkSafe::new(LoopForkOwned { engine, events, ended_calls: Rc::default() }),
            unspawned: RefCell::default(),
            calls: RefCell::default(),
            next_number: Cell::new(0),
            turn_scheduled: Cell::new(false),
        };
        let guest = Bound::new(py, guest)?;
        asyncio.call_method1(intern!(py, "add_reader"), (epoll, guest.getattr(intern!(py, "on_readable"))?))?;
        let this = guest.borrow();
        let calls = this.fork_owned.engine.core();
        this.fork_owned.events.turn(|tasks| {
            tasks.spawn_local(ClientEngine::sweep_loop(calls));
        });
        drop(this);
        Ok(guest)
    }

    fn begin<'py>(this: &Bound<'py, Self>, request: &RequestHandle) -> PyResult<Bound<'py, PyAny>> {
        let guest = this.borrow();
        let future = guest.create_future.bind(this.py()).call0()?;
        let (request, planned) = (Arc::clone(&request.request), Arc::clone(&request.planned));
        let number = guest.next_number.replace(guest.next_number.get() + 1);
        let call = PendingCall { number, future: future.clone().unbind(), request: Arc::clone(&request), task: None };
        let key = CallKey { slot: guest.calls.borrow_mut().insert(call), number };
        guest.unspawned.borrow_mut().push(UnspawnedCall { key, request, planned });
        guest.schedule_turn(this)?;
        Ok(future)
    }

    fn abandon(&self, future: &Bound<'_, PyAny>) {
        let mut calls = self.calls.borrow_mut();
        let Some(place) = calls.iter().find(|(_, call)| call.future.is(future)).map(|(place, _)| place) else { return };
        let call = calls.remove(place);
        drop(calls);
        self.unspawned.borrow_mut().retain(|begun| begun.key.number != call.number);
        if let Some(task) = &call.task {
            // Wakes the event loop, whose next turn drops the call.
            task.abort();
        }
    }

    /// A call that has ended; none if it was abandoned.
    fn take(&self, key: CallKey) -> Option<PendingCall> {
        let mut calls = self.calls.borrow_mut();
        calls.get(key.slot).is_some_and(|call| call.number == key.number).then(|| calls.remove(key.slot))
    }

    fn schedule_turn(&self, this: &Bound<'_, Self>) -> PyResult<()> {
        if !self.turn_scheduled.replace(true) {
            let py = this.py();
            let turn = this.getattr(intern!(py, "turn"))?;
            self.asyncio.call_method1(py, intern!(py, "call_soon"), (turn,))?;
        }
        Ok(())
    }

    fn run_turn(this: &Bound<'_, Self>) -> PyResult<()> {
        let guest = this.borrow();
        if !guest.fork_owned.is_ours() {
            return Ok(());
        }
        let again = guest.fork_owned.events.turn(|tasks| guest.spawn_calls(tasks));
        guest.resolve_futures(this.py())?;
        if again {
            guest.schedule_turn(this)?;
        }
        Ok(())
    }

    /// Spawns what has begun since the last turn.
    fn spawn_calls(&self, tasks: &LocalSet) {
        self.fork_owned.engine.close_unused();
        let mut calls = self.calls.borrow_mut();
        for UnspawnedCall { key, request, planned } in self.unspawned.borrow_mut().drain(..) {
            let engine = Rc::clone(&self.fork_owned.engine);
            let end = AwaitedCallGuard { key, ended: Rc::clone(&self.fork_owned.ended_calls), outcome: None };
            let task = tasks.spawn_local(async move {
                let mut end = end;
                end.outcome = Some(engine.call(&request, &planned).await);
            });
            if let Some(call) = calls.get_mut(key.slot) {
                call.task = Some(task.abort_handle());
            }
        }
    }

    /// Sets the futures of the calls that have ended.
    fn resolve_futures(&self, py: Python<'_>) -> PyResult<()> {
        let mut ended = std::mem::take(&mut *self.fork_owned.ended_calls.borrow_mut());
        for (key, outcome) in ended.drain(..) {
            let Some(call) = self.take(key) else { continue };
            let future = call.future.bind(py);
            let answer = outcome.map(|outcome| ResponseHandle::new(call.request, outcome));
            let set = match answer {
                Some(answer) if answer.has_response() => future.call_method1(intern!(py, "set_result"), (answer,)),
                other => {
                    let error = other.map_or_else(errors::call_panicked, |answer| errors::call(py, answer));
                    future.call_method1(intern!(py, "set_exception"), (error.into_value(py),))
                }
            };
            // Somebody else has cancelled it, and does not await it any more.
            if let Err(error) = set
                && !future.call_method0(intern!(py, "done"))?.is_truthy()?
            {
                return Err(error);
            }
        }
        let mut buffer = self.fork_owned.ended_calls.borrow_mut();
        if buffer.is_empty() {
            *buffer = ended;
        }
        Ok(())
    }
}

/// Closes connections of this thread's asyncio loops that nobody needs.
pub(super) fn close_unused(py: Python<'_>) {
    // A client may be let go of anywhere; where the guests are being looked through, they are tidied with their next turn.
    let Ok(guests) = ASYNCIO_LOOPS.try_lock() else { return };
    let here = guests.iter().filter(|known| known.thread == thread::current().id());
    let found: Vec<_> = here.filter_map(|known| known.asyncio_loop.bind(py).upgrade()).collect();
    drop(guests);
    for guest in found {
        if let Ok(guest) = guest.cast_into::<AsyncioLoop>()
            && let Ok(guest) = guest.try_borrow()
            && guest.fork_owned.is_ours()
        {
            guest.fork_owned.engine.close_unused();
        }
    }
}

#[pymethods]
impl AsyncioLoop {
    /// Something has come: asyncio's reader.
    fn on_readable(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::run_turn(this)
    }

    /// There is something to begin, or more to do.
    fn turn(this: &Bound<'_, Self>) -> PyResult<()> {
        this.borrow().turn_scheduled.set(false);
        Self::run_turn(this)
    }
}

/// Reports a call's end, also if its task panics.
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
