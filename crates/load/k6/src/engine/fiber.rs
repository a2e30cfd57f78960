//! Stack of a user, on which its script runs and waits.
#![allow(unsafe_code, reason = "a stack is made and left as its library demands")]

use std::cell::Cell;
use std::fmt;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Address space of a stack. What was never touched takes no memory.
const STACK_BYTES: usize = 1024 * 1024;
/// Part of it that the interpreter may fill; the rest is for functions of the host that it calls.
pub(crate) const SCRIPT_STACK_BYTES: usize = 832 * 1024;

/// Stack of a user: it is resumed with an input, and pauses with an output.
pub(crate) struct Fiber<I, O>(Option<Coroutine<I, O, (), DefaultStack>>);

impl<I, O> fmt::Debug for Fiber<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fiber").finish_non_exhaustive()
    }
}

/// Way back from the stack: a pause in the middle of any function that runs on it.
pub(crate) struct Pauses<I, O>(Cell<*const Yielder<I, O>>);

impl<I, O> fmt::Debug for Pauses<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pauses").finish_non_exhaustive()
    }
}

impl<I, O> Default for Pauses<I, O> {
    fn default() -> Self {
        Self(Cell::new(std::ptr::null()))
    }
}

impl<I, O> Pauses<I, O> {
    /// Pauses with an output until the next input. `None` if the caller is on no stack of its own.
    pub(crate) fn pause(&self, output: O) -> Option<I> {
        let yielder = self.0.get();
        if yielder.is_null() {
            return None;
        }
        // SAFETY: it is set for as long as the function of the stack runs, whose callee the caller is: nothing else has
        // this value, which cannot leave its thread.
        Some(unsafe { (*yielder).suspend(output) })
    }
}

impl<I: 'static, O: 'static> Fiber<I, O> {
    /// Stack that will run a function, with the way back that the function's callees use.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn new(
        run: impl FnOnce(I, &Pauses<I, O>) + 'static,
        pauses: impl Fn() -> std::rc::Rc<Pauses<I, O>> + 'static,
    ) -> Result<Self, String> {
        let stack = DefaultStack::new(STACK_BYTES).map_err(|error| format!("no memory for a user: {error}"))?;
        Ok(Self(Some(Coroutine::with_stack(stack, move |yielder, first| {
            let pauses = pauses();
            pauses.0.set(std::ptr::from_ref(yielder));
            run(first, &pauses);
            pauses.0.set(std::ptr::null());
        }))))
    }

    /// Continues it with an input until it pauses; `None` if its function has returned.
    pub(crate) fn resume(&mut self, input: I) -> Option<O> {
        let coroutine = self.0.as_mut()?;
        if coroutine.done() {
            return None;
        }
        match coroutine.resume(input) {
            CoroutineResult::Yield(output) => Some(output),
            CoroutineResult::Return(()) => {
                self.0 = None;
                None
            }
        }
    }

    /// Whether its function has returned.
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_none()
    }
}

impl<I, O> Drop for Fiber<I, O> {
    fn drop(&mut self) {
        // Unwinding would go through the interpreter's own frames, in C: a stack that was not run to its end is left.
        if let Some(coroutine) = self.0.take().filter(|coroutine| coroutine.started() && !coroutine.done()) {
            std::mem::forget(coroutine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_function_pauses_in_the_middle_and_goes_on_with_its_input() {
        let pauses: Rc<Pauses<u32, u32>> = Rc::default();
        let shared = Rc::clone(&pauses);
        let mut fiber = Fiber::new(
            |first, pauses| {
                let second = pauses.pause(first * 2).unwrap_or(0);
                let third = pauses.pause(second * 3).unwrap_or(0);
                assert_eq!(third, 7);
            },
            move || Rc::clone(&shared),
        )
        .expect("memory");
        assert_eq!(fiber.resume(1), Some(2));
        assert_eq!(fiber.resume(5), Some(15));
        assert!(!fiber.is_done());
        assert_eq!(fiber.resume(7), None);
        assert!(fiber.is_done() && fiber.resume(8).is_none());
        assert_eq!(pauses.pause(1), None, "nothing runs on the stack");
    }

    #[test]
    fn a_fiber_that_is_left_in_the_middle_does_not_unwind() {
        let pauses: Rc<Pauses<(), ()>> = Rc::default();
        let shared = Rc::clone(&pauses);
        let mut fiber = Fiber::new(
            |(), pauses| {
                let _ = pauses.pause(());
                unreachable!("it is not resumed");
            },
            move || Rc::clone(&shared),
        )
        .expect("memory");
        assert_eq!(fiber.resume(()), Some(()));
        drop(fiber);
    }
}
