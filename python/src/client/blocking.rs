//! Calls that are waited for, on the thread that asks: each thread has an event loop and connections of its own, and
//! no other thread is woken for a call.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::decide::Nanos;

use super::answer::AnswerHandle;
use super::engine::{Engine, Outcome};
use super::event_loop::EventLoop;
use super::kin::Kin;
use super::request::RequestHandle;
use crate::errors;

/// How often a waiting main thread looks whether Ctrl-C was pressed.
const LOOK: Nanos = Nanos::from_millis(50);

/// A connection that was used so long ago at most is taken as it is.
const RECENT: Nanos = Nanos::from_millis(1);

thread_local! {
    /// Python owns it: when the system ends a thread, tokio is gone before a value of ours.
    static DESK: RefCell<Weak<Kin<Desk>>> = const { RefCell::new(Weak::new()) };
}

/// This thread's desk, if it has one and no fork has taken it away.
fn desk() -> Option<Rc<Kin<Desk>>> {
    DESK.with_borrow(Weak::upgrade).filter(|desk| desk.is_ours())
}

/// What Python keeps as long as the thread lives.
#[pyclass(unsendable, module = "weir._weir")]
struct DeskHandle {
    _desk: Rc<Kin<Desk>>,
}

/// A thread's event loop.
struct Desk {
    engine: Rc<Engine>,
    events: EventLoop,
    /// Whether it is time to look for signals.
    look: Rc<Cell<bool>>,
    /// The end of the last call.
    used: Cell<Nanos>,
}

/// Makes a call and waits for its end; the GIL is released.
#[pyfunction]
pub(crate) fn wait(py: Python<'_>, request: &RequestHandle) -> PyResult<AnswerHandle> {
    if desk().is_none() {
        move_in(py)?;
    }
    let (asked, planned) = (Arc::clone(&request.request), Arc::clone(&request.planned));
    let kept = Arc::clone(&asked);
    let outcome = py.detach(move || {
        let desk = desk().ok_or_else(errors::broken_off)?;
        let place = Rc::new(RefCell::new(None));
        let task = Rc::new(RefCell::new(None));
        let mut start = Some({
            let (desk, place, task) = (Rc::clone(&desk), Rc::clone(&place), Rc::clone(&task));
            move |tasks: &tokio::task::LocalSet| {
                let engine = Rc::clone(&desk.engine);
                let spawned = tasks.spawn_local(async move {
                    let mut end = End(place, None);
                    end.1 = Some(engine.call(&asked, &planned).await);
                });
                task.replace(Some(spawned.abort_handle()));
            }
        });
        loop {
            let start = start.take();
            let now = desk.events.timer().now();
            let woken = desk.events.until(
                // Nobody has listened in between: the peer may have closed a connection.
                now - desk.used.get() > RECENT,
                |tasks| {
                    if let Some(start) = start {
                        desk.engine.tidy();
                        start(tasks);
                    }
                },
                || match place.borrow_mut().take() {
                    Some(ended) => Some(Ok(ended)),
                    None => desk.look.take().then_some(Err(Signals)),
                },
            );
            match woken {
                Ok(outcome) => {
                    desk.used.set(desk.events.timer().now());
                    return outcome.ok_or_else(errors::broken_off);
                }
                // Outside of the event loop: a handler may make a call, too.
                Err(Signals) => {
                    #[expect(
                        clippy::redundant_closure_for_method_calls,
                        reason = "the method is for one lifetime only"
                    )]
                    let looked = Python::attach(|py| py.check_signals());
                    if let Err(raised) = looked {
                        if let Some(task) = task.take() {
                            task.abort();
                        }
                        desk.events.turn(|_| ());
                        return Err(raised);
                    }
                }
            }
        }
    })?;
    let answer = AnswerHandle::new(kept, outcome);
    if answer.is_answered() { Ok(answer) } else { Err(errors::call(py, answer)) }
}

/// Gives this thread a desk.
fn move_in(py: Python<'_>) -> PyResult<()> {
    static LOCAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let threading = py.import(intern!(py, "threading"))?;
    // Only the main thread runs signal handlers.
    let main = threading.call_method0(intern!(py, "main_thread"))?;
    let is_main = threading.call_method0(intern!(py, "current_thread"))?.is(&main);
    let desk = Desk::new(is_main).map_err(|error| errors::no_event_loop(&error))?;
    let desk = Rc::new(Kin::new(desk));
    DESK.set(Rc::downgrade(&desk));
    let local = LOCAL.get_or_try_init(py, || threading.call_method0(intern!(py, "local")).map(Bound::unbind))?;
    local.setattr(py, intern!(py, "desk"), Bound::new(py, DeskHandle { _desk: desk })?)
}

/// Closes connections of this thread that nobody needs.
pub(super) fn tidy() {
    if let Some(desk) = desk() {
        desk.events.turn(|_| desk.engine.tidy());
    }
}

/// It is time to look for signals.
struct Signals;

impl Desk {
    fn new(watches_signals: bool) -> io::Result<Self> {
        let events = EventLoop::new()?;
        let engine = Rc::new(Engine::new(events.timer().clone()));
        let look = Rc::new(Cell::new(false));
        if watches_signals {
            let (timer, look) = (events.timer().clone(), Rc::clone(&look));
            events.turn(|tasks| {
                tasks.spawn_local(async move {
                    loop {
                        timer.sleep(LOOK).await;
                        look.set(true);
                    }
                });
            });
        }
        let calls = engine.calls();
        events.turn(|tasks| drop(tasks.spawn_local(Engine::keep_swept(calls))));
        Ok(Self { events, engine, look, used: Cell::default() })
    }
}

/// Reports a call's end, also if its task panics.
struct End(Rc<RefCell<Option<Option<Outcome>>>>, Option<Outcome>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.replace(Some(self.1.take()));
    }
}
