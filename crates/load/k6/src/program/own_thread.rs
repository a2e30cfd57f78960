//! Values that do not leave the thread that has made them.
#![allow(unsafe_code, reason = "the thread of a value is checked when it is used")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::thread::{self, ThreadId};

/// Value that its thread alone uses. It is made there, and may be moved before.
pub(crate) struct OwnThread<T>(Option<(ThreadId, ManuallyDrop<T>)>);

// SAFETY: the value is reached on the thread alone that has made it, and dropped there or not at all.
unsafe impl<T> Send for OwnThread<T> {}

impl<T> fmt::Debug for OwnThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnThread").field(&self.0.as_ref().map(|(thread, _)| thread)).finish()
    }
}

impl<T> OwnThread<T> {
    /// Place of a value that is to be made.
    pub(crate) fn empty() -> Self {
        Self(None)
    }

    /// The value, made by the first call; `None` on another thread than that of the first call.
    pub(crate) fn get_or_make(&mut self, make: impl FnOnce() -> T) -> Option<&mut T> {
        let own = thread::current().id();
        let (made_on, value) = self.0.get_or_insert_with(|| (own, ManuallyDrop::new(make())));
        (*made_on == own).then_some(&mut **value)
    }

    /// The value, if it was made on this thread.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref().filter(|(made_on, _)| *made_on == thread::current().id()).map(|(_, value)| &**value)
    }
}

impl<T> Drop for OwnThread<T> {
    fn drop(&mut self) {
        if let Some((made_on, value)) = &mut self.0
            && *made_on == thread::current().id()
        {
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_value_is_there_on_its_thread_alone() {
        let counter = Rc::new(());
        let mut own = OwnThread::empty();
        let shared = Rc::clone(&counter);
        assert!(own.get_or_make(move || shared).is_some());
        let mut own = thread::spawn(move || {
            assert!(own.get().is_none() && own.get_or_make(|| unreachable!()).is_none());
            own
        })
        .join()
        .expect("no panic");
        assert!(own.get_or_make(|| unreachable!()).is_some());
        drop(own);
        assert_eq!(Rc::strong_count(&counter), 1);
    }
}
