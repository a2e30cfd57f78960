//! Calls that are awaited: a guest of an asyncio event loop, on its thread.
//!
//! `begin` hands out a future of that loop and leaves the call for the next turn, so that calls which begin together cost
//! one turn. A turn's finished calls set their futures after it, outside of tokio. The loop owns its guest through the
//! reader that it holds; clients only know it weakly. So a loop that is closed, with calls in flight or without, takes
//! all of it along.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use slab::Slab;
use std::sync::{Mutex, PoisonError};
use tokio::task::{AbortHandle, LocalSet};

use super::answer::AnswerHandle;
use super::engine::{Engine, Outcome, Planned};
use super::event_loop::EventLoop;
use super::kin::Kin;
use super::request::{Request, RequestHandle};
use crate::errors;

/// The guest of each asyncio loop, by the loop's address: a guest keeps its loop alive, so that no other has it.
static GUESTS: Mutex<Vec<(usize, Py<PyWeakrefReference>)>> = Mutex::new(Vec::new());

/// An event loop inside an asyncio loop.
#[pyclass(unsendable, weakref, module = "weir._weir")]
pub(crate) struct Guest {
    asyncio: Py<PyAny>,
    create_future: Py<PyAny>,
    inside: Kin<Inside>,
    /// Calls that wait for the next turn.
    begun: RefCell<Vec<Begun>>,
    calls: RefCell<Slab<Call>>,
    turn_asked: Cell<bool>,
}

/// What a child of a fork must not touch.
struct Inside {
    engine: Rc<Engine>,
    events: EventLoop,
    ended: Ends,
}

/// Calls that have ended since they were looked for, by key; without an outcome, the task broke off.
type Ends = Rc<RefCell<Vec<(usize, Option<Outcome>)>>>;

struct Begun {
    key: usize,
    request: Arc<Request>,
    planned: Arc<Planned>,
}

struct Call {
    future: Py<PyAny>,
    request: Arc<Request>,
    task: Option<AbortHandle>,
}

/// The running asyncio loop's guest; it moves in when there is none.
fn guest(py: Python<'_>) -> PyResult<Bound<'_, Guest>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    let address = running.as_ptr() as usize;
    let known = GUESTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .find(|(at, _)| *at == address)
        .map(|(_, guest)| guest.clone_ref(py));
    if let Some(guest) = known.and_then(|guest| guest.bind(py).upgrade()) {
        let guest = guest.cast_into::<Guest>()?;
        if guest.borrow().inside.is_ours() {
            return Ok(guest);
        }
    }
    let guest = Guest::move_in(py, running)?;
    let mut guests = GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    guests.retain(|(at, guest)| *at != address && guest.bind(py).upgrade().is_some());
    guests.push((address, PyWeakrefReference::new(&guest)?.unbind()));
    Ok(guest)
}

/// Begins a call; its future is one of the running asyncio loop's.
#[pyfunction]
pub(crate) fn begin<'py>(py: Python<'py>, request: &Bound<'py, RequestHandle>) -> PyResult<Bound<'py, PyAny>> {
    Guest::begin(&guest(py)?, request.get())
}

/// Cancels the call that has this future, if it still runs.
#[pyfunction]
pub(crate) fn abandon(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    guest(py)?.borrow().abandon(future);
    Ok(())
}

impl Guest {
    fn move_in<'py>(py: Python<'py>, asyncio: Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let events = EventLoop::new().map_err(|error| errors::no_event_loop(&error))?;
        let epoll = events.epoll();
        let engine = Rc::new(Engine::new(events.timer().clone()));
        let guest = Self {
            create_future: asyncio.getattr(intern!(py, "create_future"))?.unbind(),
            asyncio: asyncio.clone().unbind(),
            inside: Kin::new(Inside { engine, events, ended: Rc::default() }),
            begun: RefCell::default(),
            calls: RefCell::default(),
            turn_asked: Cell::new(false),
        };
        let guest = Bound::new(py, guest)?;
        asyncio.call_method1(intern!(py, "add_reader"), (epoll, guest.getattr(intern!(py, "look"))?))?;
        let this = guest.borrow();
        let calls = this.inside.engine.calls();
        this.inside.events.turn(|tasks| {
            tasks.spawn_local(Engine::keep_swept(calls));
        });
        drop(this);
        Ok(guest)
    }

    fn begin<'py>(this: &Bound<'py, Self>, request: &RequestHandle) -> PyResult<Bound<'py, PyAny>> {
        let guest = this.borrow();
        let future = guest.create_future.bind(this.py()).call0()?;
        let (request, planned) = (Arc::clone(&request.request), Arc::clone(&request.planned));
        let call = Call { future: future.clone().unbind(), request: Arc::clone(&request), task: None };
        let key = guest.calls.borrow_mut().insert(call);
        guest.begun.borrow_mut().push(Begun { key, request, planned });
        guest.ask_for_turn(this)?;
        Ok(future)
    }

    fn abandon(&self, future: &Bound<'_, PyAny>) {
        let mut calls = self.calls.borrow_mut();
        let Some(key) = calls.iter().find(|(_, call)| call.future.is(future)).map(|(key, _)| key) else { return };
        let call = calls.remove(key);
        drop(calls);
        self.begun.borrow_mut().retain(|begun| begun.key != key);
        if let Some(task) = &call.task {
            // Wakes the event loop, whose next turn drops the call.
            task.abort();
        }
    }

    fn ask_for_turn(&self, this: &Bound<'_, Self>) -> PyResult<()> {
        if !self.turn_asked.replace(true) {
            let py = this.py();
            let turn = this.getattr(intern!(py, "turn"))?;
            self.asyncio.call_method1(py, intern!(py, "call_soon"), (turn,))?;
        }
        Ok(())
    }

    fn take_turn(this: &Bound<'_, Self>) -> PyResult<()> {
        let guest = this.borrow();
        if !guest.inside.is_ours() {
            return Ok(());
        }
        let again = guest.inside.events.turn(|tasks| guest.start(tasks));
        guest.settle(this.py())?;
        if again {
            guest.ask_for_turn(this)?;
        }
        Ok(())
    }

    /// Spawns what has begun since the last turn.
    fn start(&self, tasks: &LocalSet) {
        let mut calls = self.calls.borrow_mut();
        for Begun { key, request, planned } in self.begun.borrow_mut().drain(..) {
            let engine = Rc::clone(&self.inside.engine);
            let end = End { key, ended: Rc::clone(&self.inside.ended), outcome: None };
            let task = tasks.spawn_local(async move {
                let mut end = end;
                end.outcome = Some(engine.call(&request, &planned).await);
            });
            if let Some(call) = calls.get_mut(key) {
                call.task = Some(task.abort_handle());
            }
        }
    }

    /// Sets the futures of the calls that have ended.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let mut ended = std::mem::take(&mut *self.inside.ended.borrow_mut());
        for (key, outcome) in ended.drain(..) {
            let Some(call) = self.calls.borrow_mut().try_remove(key) else { continue };
            let future = call.future.bind(py);
            let answer = outcome.map(|outcome| AnswerHandle::new(call.request, outcome));
            let set = match answer {
                Some(answer) if answer.is_answered() => future.call_method1(intern!(py, "set_result"), (answer,)),
                other => {
                    let error = other.map_or_else(errors::broken_off, |answer| errors::call(py, answer));
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
        let mut buffer = self.inside.ended.borrow_mut();
        if buffer.is_empty() {
            *buffer = ended;
        }
        Ok(())
    }
}

/// Closes connections of the running asyncio loop that nobody needs, if it has any.
#[pyfunction]
pub(crate) fn sweep_guest(py: Python<'_>) -> PyResult<()> {
    guest(py)?.borrow().inside.engine.sweep();
    Ok(())
}

#[pymethods]
impl Guest {
    /// Something has come: asyncio's reader.
    fn look(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::take_turn(this)
    }

    /// There is something to begin, or more to do.
    fn turn(this: &Bound<'_, Self>) -> PyResult<()> {
        this.borrow().turn_asked.set(false);
        Self::take_turn(this)
    }
}

/// Reports a call's end, also if its task panics.
struct End {
    key: usize,
    ended: Ends,
    outcome: Option<Outcome>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.ended.borrow_mut().push((self.key, self.outcome.take()));
    }
}
