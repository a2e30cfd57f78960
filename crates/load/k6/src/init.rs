//! First run of a script's file: its options, functions and metrics.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::convert::Coerced;
use rquickjs::{Ctx, Function, Value};
use weir_machine::clock;

use crate::engine::failure::{ScriptFailure, caught};
use crate::engine::fiber::Fiber;
use crate::engine::vm::Interpreter;
use crate::host::UserState;
use crate::host::state::{INIT_TIMEOUT, Pause, Resume};
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
    let begun = clock::monotonic();
    on_own_stack(script, |state| {
        let file = &state.script.file;
        let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
        vm.context.with(|ctx| {
            let loaded = LoadedScript::load(&ctx, state)?;
            let options = match loaded.export("options") {
                Some(options) => options_json(&ctx, options)?,
                None => "null".to_owned(),
            };
            let mut functions = BTreeSet::new();
            for name in caught(&ctx, loaded.names())? {
                match loaded.export(&name) {
                    Some(value) if value.is_function() => {
                        functions.insert(name);
                    }
                    Some(_) if CALLED.contains(&name.as_str()) => {
                        return Err(ScriptFailure::of_message(format!("the export '{name}' is not a function")));
                    }
                    _ => {}
                }
            }
            Ok(Initialized { options, functions })
        })
    })
    .map_err(|failure| match &failure.place {
        Some(place) if clock::monotonic() - begun >= INIT_TIMEOUT => {
            format!("{place}: the file has not returned within {INIT_TIMEOUT}")
        }
        _ => failure.line_in(&script.file.main),
    })
}

/// Names of exports that weir calls around the load.
const CALLED: [&str; 3] = ["setup", "teardown", "handleSummary"];

/// The object `options` as JSON.
///
/// # Errors
/// What has no JSON, by its place: a number that is none would be left out in silence.
fn options_json<'js>(ctx: &Ctx<'js>, options: Value<'js>) -> Result<String, ScriptFailure> {
    let problem = |why: String| ScriptFailure::of_message(format!("options: {why}"));
    if options.is_function() || options.is_promise() {
        return Err(problem(format!("it is a {}; export an object", options.type_name())));
    }
    let found = Rc::new(RefCell::new(None));
    let place = Rc::clone(&found);
    let look = move |name: Coerced<String>, value: Value<'js>| {
        let has_no_json = value.as_number().is_some_and(|number| !number.is_finite()) || value.is_big_int();
        if has_no_json {
            let text = value.get::<Coerced<String>>().map(|text| text.0).unwrap_or_default();
            place.borrow_mut().get_or_insert(format!("invalid {} {text}; write a number", name.0));
            return Value::new_null(value.ctx().clone());
        }
        value
    };
    let look = caught(ctx, Function::new(ctx.clone(), look))?;
    let json = caught(ctx, ctx.json_stringify_replacer(options, look)).map_err(|failure| match failure.place {
        Some(_) => failure,
        None => problem(failure.message),
    })?;
    if let Some(why) = found.take() {
        return Err(problem(why));
    }
    json.map_or(Ok("null".to_owned()), |text| caught(ctx, text.to_string()))
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
