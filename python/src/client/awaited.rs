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

use super::answer::AnswerHandle;
use super::engine::{Engine, Outcome, Planned};
use super::event_loop::EventLoop;
use super::kin::Kin;
use super::request::{Request, RequestHandle};
use crate::errors;

/// The guest of each asyncio loop. Only touched with the GIL held, so that a fork finds it free.
static GUESTS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// An event loop inside an asyncio loop.
#[pyclass(unsendable, weakref, module = "weir._weir")]
pub(crate) struct Guest {
    asyncio: Py<PyAny>,
    create_future: Py<PyAny>,
    inside: Kin<Inside>,
    /// Calls that wait for the next turn.
    begun: RefCell<Vec<Begun>>,
    calls: RefCell<Slab<Call>>,
    numbers: Cell<u64>,
    turn_asked: Cell<bool>,
}

/// What a child of a fork must not touch.
struct Inside {
    engine: Rc<Engine>,
    events: EventLoop,
    ended: Ends,
}

/// Calls that have ended since they were looked for; without an outcome, the task broke off.
type Ends = Rc<RefCell<Vec<(Key, Option<Outcome>)>>>;

/// A call's place, and its number: another call may have the place by the time an abandoned one ends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    place: usize,
    number: u64,
}

struct Begun {
    key: Key,
    request: Arc<Request>,
    planned: Arc<Planned>,
}

struct Call {
    number: u64,
    future: Py<PyAny>,
    request: Arc<Request>,
    task: Option<AbortHandle>,
}

/// An asyncio loop's guest, as clients know it.
struct Known {
    /// The loop's address. A guest keeps its loop alive, so that no other has it.
    address: usize,
    thread: ThreadId,
    epoll: RawFd,
    guest: Py<PyWeakrefReference>,
}

/// The running asyncio loop's guest, if it has one.
fn find<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Guest>>> {
    let py = asyncio.py();
    let address = asyncio.as_ptr() as usize;
    let mut guests = GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = guests.iter().position(|known| known.address == address) else { return Ok(None) };
    let known = &guests[at];
    if let Some(guest) = known.guest.bind(py).upgrade() {
        let moved = known.thread != thread::current().id();
        let epoll = known.epoll;
        if !moved {
            let guest = guest.cast_into::<Guest>()?;
            if guest.borrow().inside.is_ours() {
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
fn guest(py: Python<'_>) -> PyResult<Bound<'_, Guest>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    if let Some(guest) = find(&asyncio)? {
        return Ok(guest);
    }
    let address = asyncio.as_ptr() as usize;
    let guest = Guest::move_in(&asyncio)?;
    let epoll = guest.borrow().inside.events.epoll();
    let weak = PyWeakrefReference::new(&guest)?.unbind();
    let mut guests = GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    guests.retain(|known| known.guest.bind(py).upgrade().is_some());
    guests.push(Known { address, thread: thread::current().id(), epoll, guest: weak });
    Ok(guest)
}

/// The running asyncio loop's guest, if there are both.
fn guest_if_any(py: Python<'_>) -> PyResult<Option<Bound<'_, Guest>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    if asyncio.is_none() { Ok(None) } else { find(&asyncio) }
}

/// Begins a call; its future is one of the running asyncio loop's.
#[pyfunction]
pub(crate) fn begin<'py>(py: Python<'py>, request: &Bound<'py, RequestHandle>) -> PyResult<Bound<'py, PyAny>> {
    Guest::begin(&guest(py)?, request.get())
}

/// Cancels the call that has this future, if it still runs.
#[pyfunction]
pub(crate) fn abandon(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    // A coroutine may be thrown away when its loop has gone.
    if let Some(guest) = guest_if_any(py)? {
        guest.borrow().abandon(future);
    }
    Ok(())
}

impl Guest {
    fn move_in<'py>(asyncio: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = asyncio.py();
        let events = EventLoop::new().map_err(|error| errors::no_event_loop(&error))?;
        let epoll = events.epoll();
        let engine = Rc::new(Engine::new(events.timer().clone()));
        let guest = Self {
            create_future: asyncio.getattr(intern!(py, "create_future"))?.unbind(),
            asyncio: asyncio.clone().unbind(),
            inside: Kin::new(Inside { engine, events, ended: Rc::default() }),
            begun: RefCell::default(),
            calls: RefCell::default(),
            numbers: Cell::new(0),
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
        let number = guest.numbers.replace(guest.numbers.get() + 1);
        let call = Call { number, future: future.clone().unbind(), request: Arc::clone(&request), task: None };
        let key = Key { place: guest.calls.borrow_mut().insert(call), number };
        guest.begun.borrow_mut().push(Begun { key, request, planned });
        guest.ask_for_turn(this)?;
        Ok(future)
    }

    fn abandon(&self, future: &Bound<'_, PyAny>) {
        let mut calls = self.calls.borrow_mut();
        let Some(place) = calls.iter().find(|(_, call)| call.future.is(future)).map(|(place, _)| place) else { return };
        let call = calls.remove(place);
        drop(calls);
        self.begun.borrow_mut().retain(|begun| begun.key.number != call.number);
        if let Some(task) = &call.task {
            // Wakes the event loop, whose next turn drops the call.
            task.abort();
        }
    }

    /// A call that has ended; none if it was abandoned.
    fn take(&self, key: Key) -> Option<Call> {
        let mut calls = self.calls.borrow_mut();
        calls.get(key.place).is_some_and(|call| call.number == key.number).then(|| calls.remove(key.place))
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
        self.inside.engine.tidy();
        let mut calls = self.calls.borrow_mut();
        for Begun { key, request, planned } in self.begun.borrow_mut().drain(..) {
            let engine = Rc::clone(&self.inside.engine);
            let end = End { key, ended: Rc::clone(&self.inside.ended), outcome: None };
            let task = tasks.spawn_local(async move {
                let mut end = end;
                end.outcome = Some(engine.call(&request, &planned).await);
            });
            if let Some(call) = calls.get_mut(key.place) {
                call.task = Some(task.abort_handle());
            }
        }
    }

    /// Sets the futures of the calls that have ended.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let mut ended = std::mem::take(&mut *self.inside.ended.borrow_mut());
        for (key, outcome) in ended.drain(..) {
            let Some(call) = self.take(key) else { continue };
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

/// Closes connections of this thread's asyncio loops that nobody needs.
pub(super) fn tidy(py: Python<'_>) {
    // A client may be let go of anywhere; where the guests are being looked through, they are tidied with their next turn.
    let Ok(guests) = GUESTS.try_lock() else { return };
    let here = guests.iter().filter(|known| known.thread == thread::current().id());
    let found: Vec<_> = here.filter_map(|known| known.guest.bind(py).upgrade()).collect();
    drop(guests);
    for guest in found {
        if let Ok(guest) = guest.cast_into::<Guest>()
            && let Ok(guest) = guest.try_borrow()
            && guest.inside.is_ours()
        {
            guest.inside.engine.tidy();
        }
    }
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
    key: Key,
    ended: Ends,
    outcome: Option<Outcome>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.ended.borrow_mut().push((self.key, self.outcome.take()));
    }
}
