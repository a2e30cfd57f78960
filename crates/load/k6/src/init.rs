//! First run of a script's file: its options, functions and metrics.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::Value;
use weir_machine::clock;

use crate::engine::failure::{ScriptFailure, caught};
use crate::engine::fiber::Fiber;
use crate::engine::vm::Interpreter;
use crate::host::UserState;
use crate::host::state::{Pause, Resume};
use crate::metrics::ThreadMetrics;
use crate::program::life::LoadedScript;
use crate::script::Script;

/// What the first run of a file has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Initialized {
    /// The object `options` as JSON; `null` without one.
    pub(crate) options: String,
    /// Names of the exported functions.
    pub(crate) functions: BTreeSet<String>,
}

/// Runs a script's file for the first time.
///
/// # Errors
/// One line with its mistake.
pub(crate) fn initialize(script: &Arc<Script>) -> Result<Initialized, String> {
    on_own_stack(script, |state| {
        let file = &state.script.file;
        let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
        vm.context.with(|ctx| {
            let loaded = LoadedScript::load(&ctx, state)?;
            let options = match loaded.export("options") {
                Some(options) => loaded.json(&ctx, options)?,
                None => "null".to_owned(),
            };
            let mut functions = BTreeSet::new();
            for name in caught(&ctx, loaded.names())? {
                if loaded.export(&name).is_some_and(|value| value.is_function()) {
                    functions.insert(name);
                }
            }
            Ok(Initialized { options, functions })
        })
    })
    .map_err(|failure| failure.line())
}

/// Calls an exported function once, without a load, with a value as JSON; returns what it returns, as JSON.
///
/// # Errors
/// The exception of the function.
pub(crate) fn call_once(script: &Arc<Script>, name: &'static str, json: String) -> Result<String, ScriptFailure> {
    on_own_stack(script, move |state| {
        let file = &state.script.file;
        let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
        vm.context.with(|ctx| {
            let loaded = LoadedScript::load(&ctx, state)?;
            let function = loaded.export(name).and_then(Value::into_function);
            let function = function.ok_or_else(|| ScriptFailure::of_message(format!("no function '{name}'")))?;
            let given = caught(&ctx, ctx.json_parse(json))?;
            state.compute.set_until(clock::monotonic() + state.script.options.summary_timeout);
            let value: Value<'_> = caught(&ctx, function.call((given,)))?;
            let value = match value.as_promise() {
                Some(promise) => caught(&ctx, promise.finish())?,
                None => value,
            };
            loaded.json(&ctx, value)
        })
    })
}

/// Calls a function on a stack as those of users.
pub(crate) fn on_own_stack<T: 'static>(
    script: &Arc<Script>,
    call: impl FnOnce(&Rc<UserState>) -> Result<T, ScriptFailure> + 'static,
) -> Result<T, ScriptFailure> {
    let metrics = Rc::new(ThreadMetrics::new(Arc::clone(&script.metrics)));
    let state = Rc::new(UserState::new(Arc::clone(script), 0, metrics));
    let result = Rc::new(RefCell::new(None));
    let (own, place, pauses) = (Rc::clone(&state), Rc::clone(&result), Rc::clone(&state.pauses));
    let run = move |_: Resume, _: &_| {
        *place.borrow_mut() = Some(call(&own));
    };
    let mut fiber: Fiber<Resume, Pause> =
        Fiber::new(run, move || Rc::clone(&pauses)).map_err(ScriptFailure::of_message)?;
    // A pause has no one to wait for: the script ends.
    let mut input = Resume::Woken;
    while fiber.resume(input).is_some() {
        input = Resume::Stop;
    }
    let result = result.borrow_mut().take();
    result.unwrap_or_else(|| Err(ScriptFailure::of_message("the script has not returned")))
}
