//! Interpreter of a user.

use std::rc::Rc;

use rquickjs::{Context, Runtime};

use super::compiled::{CompiledModules, ModuleLoader};
use super::failure::of_value;
use super::fiber::SCRIPT_STACK_BYTES;
use super::interrupt::Interruption;
use super::module_files::ModuleResolver;
use crate::host::UserState;

/// Interpreter of a user.
pub(crate) struct Interpreter {
    pub(crate) context: Context,
}

impl std::fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreter").finish_non_exhaustive()
    }
}

impl Interpreter {
    /// Interpreter with the host's functions, on the stack that calls this. `heap_bytes`: its memory.
    ///
    /// # Errors
    /// One line, if there is no memory.
    pub(crate) fn new(state: &Rc<UserState>, modules: &CompiledModules, heap_bytes: usize) -> Result<Self, String> {
        let no_memory = |error: rquickjs::Error| format!("no interpreter for a user: {error}");
        let runtime = Runtime::new().map_err(no_memory)?;
        runtime.set_memory_limit(heap_bytes);
        runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
        let watched = Rc::clone(state);
        runtime.set_interrupt_handler(Some(Box::new(move || match watched.compute.look() {
            Interruption::None => false,
            Interruption::End => true,
            Interruption::Turn => watched.give_turn(),
        })));
        let rejected = Rc::clone(state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |_, _, reason, is_handled| {
            let mut rejections = rejected.rejections.borrow_mut();
            match is_handled {
                false => rejections.push(of_value(reason)),
                true => drop(rejections.pop()),
            }
        })));
        runtime.set_loader(ModuleResolver::new(modules.files()), ModuleLoader::new(modules));
        let context = Context::full(&runtime).map_err(no_memory)?;
        context.with(|ctx| state.attach(&ctx)).map_err(no_memory)?;
        Ok(Self { context })
    }
}
