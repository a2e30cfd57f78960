//! Locks whose poison is ignored: a panic elsewhere does not fail the threads that share a mutex.
//!
//! Holders of a lock do not panic halfway through a change, so the value is consistent even after a panic.
//! Mutexes are std's on purpose, also in the Python package: a child of a fork inherits each mutex as it is, but a
//! mutex of parking_lot also depends on a global table of parked threads, which a fork can copy while it is locked.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Guard of a locked mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard of a mutex; None if it is locked.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Guard after a notification, or without cause.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Guard after a notification, the timeout, or without cause; and whether the timeout is over.
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) = condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
    (guard, result.timed_out())
}

/// Guard once the condition no longer holds, or after the timeout.
pub fn wait_timeout_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout_while(guard, timeout, condition).unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_panic_with_the_lock_does_not_fail_other_threads() {
        let shared = Arc::new((Mutex::new(1), Condvar::new()));
        let other = Arc::clone(&shared);
        let panicked = std::thread::spawn(move || {
            let _guard = lock(&other.0);
            panic!("with the lock");
        });
        assert!(panicked.join().is_err() && shared.0.is_poisoned());

        *lock(&shared.0) += 1;
        assert_eq!(try_lock(&shared.0).as_deref(), Some(&2));
        let guard = lock(&shared.0);
        assert_eq!(try_lock(&shared.0).as_deref(), None);
        let guard = wait_timeout_while(&shared.1, guard, Duration::from_millis(1), |value| *value == 2);
        let (guard, _) = wait_timeout(&shared.1, guard, Duration::from_millis(1));
        assert_eq!(*guard, 2);
    }
}
