//! Event loop of blocking calls: one thread of the process, so that threads share connections, and any thread may read a
//! response that another one began.

use std::io;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::sync::Notify;
use weir::machine::lock::lock;

use super::change_notice::ChangeNotice;
use super::task::{self, StreamedCallStart};
use crate::client::engine::ClientEngine;
use crate::client::event_loop::EventLoop;
use crate::client::kin;
use crate::errors;

use pyo3::prelude::*;

/// The thread of this process. Only locked with the GIL held, so that it is unlocked after a fork.
static IO_THREAD: Mutex<Option<Arc<IoThread>>> = Mutex::new(None);

/// Calls that the thread is to begin.
struct IoThread {
    generation: u64,
    waiting: Mutex<Vec<StreamedCallStart>>,
    arrived: Notify,
}

/// Begins a call on the thread.
pub(super) fn begin(start: StreamedCallStart) -> PyResult<()> {
    let thread = current()?;
    lock(&thread.waiting).push(start);
    thread.arrived.notify_one();
    Ok(())
}

/// Wakes the thread, if there is one, to close connections without an owner.
pub(crate) fn close_unused() {
    let Ok(thread) = IO_THREAD.try_lock() else { return };
    if let Some(thread) = thread.as_ref().filter(|thread| thread.generation == kin::generation()) {
        thread.arrived.notify_one();
    }
}

/// The thread; started if there is none in this process.
fn current() -> PyResult<Arc<IoThread>> {
    let mut slot = lock(&IO_THREAD);
    if let Some(thread) = slot.as_ref().filter(|thread| thread.generation == kin::generation()) {
        return Ok(Arc::clone(thread));
    }
    let created =
        Arc::new(IoThread { generation: kin::generation(), waiting: Mutex::default(), arrived: Notify::new() });
    let (inside, (ready, is_ready)) = (Arc::clone(&created), sync_channel(1));
    let spawned = thread::Builder::new().name("weir-io".to_owned()).spawn(move || match EventLoop::new() {
        Ok(events) => {
            let _ = ready.send(Ok(()));
            run(&events, &inside);
        }
        Err(error) => drop(ready.send(Err(error))),
    });
    let started = spawned.and_then(|_| is_ready.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())));
    started.map_err(|error| errors::no_event_loop(&error))?;
    // What a parent's thread holds is never dropped in a child.
    std::mem::forget(slot.replace(Arc::clone(&created)));
    Ok(created)
}

/// Runs calls, without end.
fn run(events: &EventLoop, thread: &Arc<IoThread>) {
    let engine = Rc::new(ClientEngine::new(events.timer().clone()));
    let intake = {
        let (engine, thread) = (Rc::clone(&engine), Arc::clone(thread));
        async move {
            loop {
                thread.arrived.notified().await;
                engine.close_unused();
                let starts = std::mem::take(&mut *lock(&thread.waiting));
                for start in starts {
                    let streamed = Arc::clone(&start.streamed);
                    let running = task::run(Rc::clone(&engine), start, ChangeNotice::default());
                    streamed.set_task(tokio::task::spawn_local(running).abort_handle());
                }
            }
        }
    };
    let sweeps = ClientEngine::sweep_loop(engine.core());
    events.run_until::<()>(
        false,
        |tasks| {
            tasks.spawn_local(intake);
            tasks.spawn_local(sweeps);
        },
        || None,
    );
}
