//! Values of one thread, behind handles that any thread may drop.
//!
//! An event loop belongs to the thread that created it, but Python drops objects where it pleases: a loop of asyncio that
//! another thread closes, daemon threads at the end of the program, and at a fork all other threads' objects in the
//! child. So a thread keeps its values, and a handle only names one.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use weir::machine::lock::lock;

use super::kin;

/// Values of a thread by number; `None` before the first one.
type ThreadValues = Option<HashMap<u64, Rc<dyn Any>>>;

thread_local! {
    /// Never dropped with the thread: by then tokio's thread-locals may be gone.
    static VALUES: RefCell<ManuallyDrop<ThreadValues>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Values whose handles another thread has dropped, by process, thread and number. Only locked with the GIL held, so that
/// it is unlocked after a fork.
static ABANDONED: Mutex<Vec<(u64, ThreadId, u64)>> = Mutex::new(Vec::new());

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Handle of a value of one thread, which owns it.
///
/// A child of a fork never drops a value of its parent: both share the epoll instance, so a socket that the child removed
/// would be removed for the parent.
pub(crate) struct ThreadBound<T> {
    number: u64,
    thread: ThreadId,
    generation: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T: 'static> ThreadBound<T> {
    /// Gives a value to this thread; drops those of this thread that were abandoned.
    pub(crate) fn new(value: Rc<T>) -> Self {
        drop_abandoned();
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        VALUES.with_borrow_mut(|values| values.get_or_insert_default().insert(number, value));
        Self { number, thread: thread::current().id(), generation: kin::generation(), kind: PhantomData }
    }

    /// The value, on its own thread of its own process.
    pub(crate) fn get(&self) -> Option<Rc<T>> {
        if self.generation != kin::generation() || self.thread != thread::current().id() {
            return None;
        }
        let value = VALUES.with_borrow(|values| values.as_ref()?.get(&self.number).map(Rc::clone))?;
        value.downcast().ok()
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        if self.generation != kin::generation() {
            return;
        }
        if self.thread == thread::current().id() {
            drop(take(self.number));
        } else {
            lock(&ABANDONED).push((self.generation, self.thread, self.number));
        }
    }
}

/// Drops values of this thread whose handles another thread has dropped.
pub(crate) fn drop_abandoned() {
    let here = (kin::generation(), thread::current().id());
    let mut abandoned = lock(&ABANDONED);
    let is_own = |entry: &(u64, ThreadId, u64)| (entry.0, entry.1) == here;
    let own: Vec<_> = abandoned.iter().filter(|entry| is_own(entry)).map(|entry| entry.2).collect();
    abandoned.retain(|entry| !is_own(entry));
    drop(abandoned);
    for number in own {
        drop(take(number));
    }
}

/// Removes a value; it is dropped by the caller, since what it holds may come back here.
fn take(number: u64) -> Option<Rc<dyn Any>> {
    VALUES.with_borrow_mut(|values| values.as_mut()?.remove(&number))
}
