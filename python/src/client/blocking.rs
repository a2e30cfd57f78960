//! Blocking calls, on the calling thread: each thread has its own event loop and connections, and a call wakes no other
//! thread.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::base::Nanos;

use super::answer::ResponseHandle;
use super::engine::{ClientCallOutcome, ClientEngine};
use super::event_loop::EventLoop;
use super::kin;
use super::request::RequestHandle;
use super::thread_bound::ThreadBound;
use crate::errors;

/// Interval at which a blocked main thread checks for signals.
const SIGNAL_CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

/// Maximum idle time of a connection that is reused without a check for closure.
const MAX_UNCHECKED_IDLE: Nanos = Nanos::from_millis(1);

thread_local! {
    /// Weak, for Python's handle decides on its end: at the end of a thread, tokio's thread-locals are destroyed before
    /// ours.
    static THREAD_LOOP: RefCell<Weak<ThreadLoop>> = const { RefCell::new(Weak::new()) };
}

/// Event loop of this thread, if it has one that this process created.
fn thread_loop() -> Option<Rc<ThreadLoop>> {
    THREAD_LOOP.with_borrow(Weak::upgrade).filter(|thread| thread.generation == kin::generation())
}

/// Handle of a thread's event loop, in a `threading.local` of Python: it ends with the thread.
#[pyclass(frozen, module = "weir._weir")]
struct ThreadLoopHandle {
    _thread_loop: ThreadBound<ThreadLoop>,
}

/// Event loop of a thread, with its call engine.
struct ThreadLoop {
    /// Process that created it.
    generation: u64,
    engine: Rc<ClientEngine>,
    events: EventLoop,
    /// Whether the next check for signals is due.
    signal_check_due: Rc<Cell<bool>>,
    /// Time of the last call's end.
    last_call_ended: Cell<Nanos>,
}

/// Makes a call and blocks until its outcome; the GIL is released.
#[pyfunction]
pub(crate) fn wait(py: Python<'_>, handle: &RequestHandle) -> PyResult<ResponseHandle> {
    if thread_loop().is_none() {
        install(py)?;
    }
    let (sent, planned) = (Arc::clone(&handle.request), Arc::clone(&handle.planned));
    let request = Arc::clone(&sent);
    let outcome = py.detach(move || {
        let thread = thread_loop().ok_or_else(errors::call_panicked)?;
        let ended = Rc::new(RefCell::new(None));
        let task = Rc::new(RefCell::new(None));
        let mut start = Some({
            let (thread, ended, task) = (Rc::clone(&thread), Rc::clone(&ended), Rc::clone(&task));
            move |tasks: &tokio::task::LocalSet| {
                let engine = Rc::clone(&thread.engine);
                let spawned = tasks.spawn_local(async move {
                    let mut guard = BlockingCallGuard(ended, None);
                    guard.1 = Some(engine.call(&sent, &planned).await);
                });
                task.replace(Some(spawned.abort_handle()));
            }
        });
        loop {
            let start = start.take();
            let now = thread.events.timer().now();
            let woken = thread.events.run_until(
                // The loop has not run in between: the peer may have closed a connection.
                now - thread.last_call_ended.get() > MAX_UNCHECKED_IDLE,
                |tasks| {
                    if let Some(start) = start {
                        thread.engine.close_unused();
                        start(tasks);
                    }
                },
                || match ended.borrow_mut().take() {
                    Some(outcome) => Some(Ok(outcome)),
                    None => thread.signal_check_due.take().then_some(Err(SignalCheckDue)),
                },
            );
            match woken {
                Ok(outcome) => {
                    thread.last_call_ended.set(thread.events.timer().now());
                    return outcome.ok_or_else(errors::call_panicked);
                }
                // Outside of the event loop, since a signal handler may make a call, too.
                Err(SignalCheckDue) => {
                    #[expect(
                        clippy::redundant_closure_for_method_calls,
                        reason = "the method is for one lifetime only"
                    )]
                    let checked = Python::attach(|py| py.check_signals());
                    if let Err(raised) = checked {
                        if let Some(task) = task.take() {
                            task.abort();
                        }
                        thread.events.turn(|_| ());
                        return Err(raised);
                    }
                }
            }
        }
    })?;
    let response = ResponseHandle::new(request, outcome);
    if response.has_response() { Ok(response) } else { Err(errors::call(py, response)) }
}

/// Creates the event loop of this thread.
fn install(py: Python<'_>) -> PyResult<()> {
    static LOCAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let threading = py.import(intern!(py, "threading"))?;
    // Only the main thread runs signal handlers.
    let main = threading.call_method0(intern!(py, "main_thread"))?;
    let is_main = threading.call_method0(intern!(py, "current_thread"))?.is(&main);
    let thread = ThreadLoop::new(is_main).map_err(|error| errors::no_event_loop(&error))?;
    let thread = Rc::new(thread);
    THREAD_LOOP.set(Rc::downgrade(&thread));
    let local = LOCAL.get_or_try_init(py, || threading.call_method0(intern!(py, "local")).map(Bound::unbind))?;
    let handle = ThreadLoopHandle { _thread_loop: ThreadBound::new(thread) };
    local.setattr(py, intern!(py, "event_loop"), Bound::new(py, handle)?)
}

/// Closes unused connections of this thread.
pub(super) fn close_unused() {
    if let Some(thread) = thread_loop() {
        thread.events.turn(|_| thread.engine.close_unused());
    }
}

/// Marker: the next check for signals is due.
struct SignalCheckDue;

impl ThreadLoop {
    fn new(watches_signals: bool) -> io::Result<Self> {
        let events = EventLoop::new()?;
        let engine = Rc::new(ClientEngine::new(events.timer().clone()));
        let due = Rc::new(Cell::new(false));
        if watches_signals {
            let (timer, due) = (events.timer().clone(), Rc::clone(&due));
            events.turn(|tasks| {
                tasks.spawn_local(async move {
                    loop {
                        timer.sleep(SIGNAL_CHECK_INTERVAL).await;
                        due.set(true);
                    }
                });
            });
        }
        let calls = engine.core();
        events.turn(|tasks| drop(tasks.spawn_local(ClientEngine::sweep_loop(calls))));
        Ok(Self {
            generation: kin::generation(),
            events,
            engine,
            signal_check_due: due,
            last_call_ended: Cell::default(),
        })
    }
}

/// Reports the outcome of a call; `None` if its task panicked.
struct BlockingCallGuard(Rc<RefCell<Option<Option<ClientCallOutcome>>>>, Option<ClientCallOutcome>);

impl Drop for BlockingCallGuard {
    fn drop(&mut self) {
        self.0.replace(Some(self.1.take()));
    }
}
