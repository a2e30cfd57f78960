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

use super::answer::ResponseHandle;
use super::engine::{ClientCallOutcome, ClientEngine};
use super::event_loop::EventLoop;
use super::kin::ForkSafe;
use super::request::RequestHandle;
use crate::errors;

/// How often a waiting main thread looks whether Ctrl-C was pressed.
const SIGNAL_CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

/// A connection that was used so long ago at most is taken as it is.
const MAX_UNCHECKED_IDLE: Nanos = Nanos::from_millis(1);

thread_local! {
    /// Python owns it: when the system ends a thread, tokio is gone before a value of ours.
    static THREAD_LOOP: RefCell<Weak<ForkSafe<ThreadLoop>>> = const { RefCell::new(Weak::new()) };
}

/// This thread's desk, if it has one and no fork has taken it away.
fn thread_loop() -> Option<Rc<ForkSafe<ThreadLoop>>> {
    THREAD_LOOP.with_borrow(Weak::upgrade).filter(|desk| desk.is_ours())
}

/// What Python keeps as long as the thread lives.
#[pyclass(unsendable, module = "weir._weir")]
struct ThreadLoopHandle {
    _thread_loop: Rc<ForkSafe<ThreadLoop>>,
}

/// A thread's event loop.
struct ThreadLoop {
    engine: Rc<ClientEngine>,
    events: EventLoop,
    /// Whether it is time to look for signals.
    signal_check_due: Rc<Cell<bool>>,
    /// The end of the last call.
    last_call_ended: Cell<Nanos>,
}

/// Makes a call and waits for its end; the GIL is released.
#[pyfunction]
pub(crate) fn wait(py: Python<'_>, request: &RequestHandle) -> PyResult<ResponseHandle> {
    if thread_loop().is_none() {
        install(py)?;
    }
    let (asked, planned) = (Arc::clone(&request.request), Arc::clone(&request.planned));
    let kept = Arc::clone(&asked);
    let outcome = py.detach(move || {
        let desk = thread_loop().ok_or_else(errors::call_panicked)?;
        let place = Rc::new(RefCell::new(None));
        let task = Rc::new(RefCell::new(None));
        let mut start = Some({
            let (desk, place, task) = (Rc::clone(&desk), Rc::clone(&place), Rc::clone(&task));
            move |tasks: &tokio::task::LocalSet| {
                let engine = Rc::clone(&desk.engine);
                let spawned = tasks.spawn_local(async move {
                    let mut end = BlockingCallGuard(place, None);
                    end.1 = Some(engine.call(&asked, &planned).await);
                });
                task.replace(Some(spawned.abort_handle()));
            }
        });
        loop {
            let start = start.take();
            let now = desk.events.timer().now();
            let woken = desk.events.run_until(
                // Nobody has listened in between: the peer may have closed a connection.
                now - desk.last_call_ended.get() > MAX_UNCHECKED_IDLE,
                |tasks| {
                    if let Some(start) = start {
                        desk.engine.close_unused();
                        start(tasks);
                    }
                },
                || match place.borrow_mut().take() {
                    Some(ended) => Some(Ok(ended)),
                    None => desk.signal_check_due.take().then_some(Err(SignalCheckDue)),
                },
            );
            match woken {
                Ok(outcome) => {
                    desk.last_call_ended.set(desk.events.timer().now());
                    return outcome.ok_or_else(errors::call_panicked);
                }
                // Outside of the event loop: a handler may make a call, too.
                Err(SignalCheckDue) => {
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
    let answer = ResponseHandle::new(kept, outcome);
    if answer.has_response() { Ok(answer) } else { Err(errors::call(py, answer)) }
}

/// Gives this thread a desk.
fn install(py: Python<'_>) -> PyResult<()> {
    static LOCAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let threading = py.import(intern!(py, "threading"))?;
    // Only the main thread runs signal handlers.
    let main = threading.call_method0(intern!(py, "main_thread"))?;
    let is_main = threading.call_method0(intern!(py, "current_thread"))?.is(&main);
    let desk = ThreadLoop::new(is_main).map_err(|error| errors::no_event_loop(&error))?;
    let desk = Rc::new(ForkSafe::new(desk));
    THREAD_LOOP.set(Rc::downgrade(&desk));
    let local = LOCAL.get_or_try_init(py, || threading.call_method0(intern!(py, "local")).map(Bound::unbind))?;
    local.setattr(py, intern!(py, "desk"), Bound::new(py, ThreadLoopHandle { _thread_loop: desk })?)
}

/// Closes connections of this thread that nobody needs.
pub(super) fn close_unused() {
    if let Some(desk) = thread_loop() {
        desk.events.turn(|_| desk.engine.close_unused());
    }
}

/// It is time to look for signals.
struct SignalCheckDue;

impl ThreadLoop {
    fn new(watches_signals: bool) -> io::Result<Self> {
        let events = EventLoop::new()?;
        let engine = Rc::new(ClientEngine::new(events.timer().clone()));
        let look = Rc::new(Cell::new(false));
        if watches_signals {
            let (timer, look) = (events.timer().clone(), Rc::clone(&look));
            events.turn(|tasks| {
                tasks.spawn_local(async move {
                    loop {
                        timer.sleep(SIGNAL_CHECK_INTERVAL).await;
                        look.set(true);
                    }
                });
            });
        }
        let calls = engine.core();
        events.turn(|tasks| drop(tasks.spawn_local(ClientEngine::sweep_loop(calls))));
        Ok(Self { events, engine, signal_check_due: look, last_call_ended: Cell::default() })
    }
}

/// Reports a call's end, also if its task panics.
struct BlockingCallGuard(Rc<RefCell<Option<Option<ClientCallOutcome>>>>, Option<ClientCallOutcome>);

impl Drop for BlockingCallGuard {
    fn drop(&mut self) {
        self.0.replace(Some(self.1.take()));
    }
}
