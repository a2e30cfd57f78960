//! What runs on the stack of a user: the script's file, then iterations.

use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Module, Object, Value};
use weir_base::Nanos;

use crate::engine::failure::{ScriptFailure, caught, later_place};
use crate::engine::vm::Interpreter;
use crate::host::UserState;
use crate::host::globals::{define_globals, json_text, set_numbers};
use crate::host::state::{IterationEnd, Pause, Phase, Resume};
use crate::modules;

/// Number of jobs of promises after which others may have their turn.
const JOBS_BETWEEN_LOOKS: u32 = 256;

/// Runs a user: its interpreter, the script's file, and iterations until it stops.
pub(crate) fn run_user(state: &Rc<UserState>) {
    let ended = |why: String| {
        state.pauses.pause(Pause::End(IterationEnd::Aborted(why)));
    };
    let file = &state.script.file;
    let vm = match Interpreter::new(state, &file.modules, file.heap_bytes) {
        Ok(vm) => vm,
        Err(why) => return ended(why),
    };
    vm.context.with(|ctx| {
        let loaded = match LoadedScript::load(&ctx, state) {
            Ok(loaded) => loaded,
            Err(failure) => return ended(failure.line()),
        };
        let mut input = state.pauses.pause(Pause::Loaded);
        while let Some(Resume::Begin(facts)) = input {
            state.iteration.set(facts);
            state.is_cut.set(false);
            if !state.script.options.keeps_cookies {
                state.jars.borrow_mut().truncate(1);
                state.jars.borrow_mut()[0].clear();
            }
            state.group.borrow_mut().clone_from(&state.script.group);
            let exec = state.script.scenario(facts.scenario).exec.clone();
            let end = loaded.iterate(&ctx, state, &exec);
            input = state.pauses.pause(Pause::End(end));
        }
    });
}

/// A script whose file has run in an interpreter.
pub(crate) struct LoadedScript<'js> {
    /// Exports of the file.
    exports: Object<'js>,
    /// Functions of iterations, by their names.
    functions: HashMap<String, Function<'js>>,
    /// Value that `setup` has returned.
    setup_data: Value<'js>,
}

impl<'js> LoadedScript<'js> {
    /// Runs the file.
    ///
    /// # Errors
    /// The exception of the file.
    pub(crate) fn load(ctx: &Ctx<'js>, state: &UserState) -> Result<Self, ScriptFailure> {
        caught(ctx, define_globals(ctx))?;
        caught(ctx, set_numbers(ctx, 0, 0))?;
        let mut exports = Self::import(ctx, &state.script.file.main)?;
        if exports.get::<_, Option<bool>>("__commonJs").ok().flatten() == Some(true) {
            exports = caught(ctx, exports.get("default"))?;
        }
        let setup_data = match state.script.setup_data.get() {
            Some(json) => caught(ctx, ctx.json_parse(json.as_str()))?,
            None => Value::new_undefined(ctx.clone()),
        };
        state.phase.set(Phase::Run);
        state.compute.set_until(Nanos::NEVER);
        let mut functions = HashMap::new();
        let names = state.script.scenarios.iter().map(|scenario| &scenario.exec);
        for name in names {
            if let Ok(Some(function)) = exports.get::<_, Option<Function<'js>>>(name.as_str()) {
                functions.insert(name.clone(), function);
            }
        }
        Ok(Self { exports, functions, setup_data })
    }

    fn import(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>, ScriptFailure> {
        let promise = caught(ctx, Module::import(ctx, name))?;
        match promise.finish() {
            // Nothing settles it: there are no timers and no requests before the load.
            Err(rquickjs::Error::WouldBlock) => Err(ScriptFailure::of_message(
                "the file awaits a promise of a timer or a request; await it in a function, e.g. in setup()",
            )),
            result => caught(ctx, result),
        }
    }

    /// Export of the file; `None` if there is none of this name.
    pub(crate) fn export(&self, name: &str) -> Option<Value<'js>> {
        self.exports.get(name).ok().filter(|value: &Value<'js>| !value.is_undefined())
    }

    /// Names of the exports of the file.
    ///
    /// # Errors
    /// That of a name that is a symbol.
    pub(crate) fn names(&self) -> rquickjs::Result<Vec<String>> {
        self.exports.keys::<String>().collect()
    }

    /// Text of a value as JSON.
    ///
    /// # Errors
    /// The exception of a method that it has for this.
    pub(crate) fn json(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<String, ScriptFailure> {
        caught(ctx, json_text(ctx, value))
    }

    /// Calls the function of an iteration to its end.
    pub(crate) fn iterate(&self, ctx: &Ctx<'js>, state: &UserState, exec: &str) -> IterationEnd {
        let result = self.call(ctx, state, exec);
        if let Some(reason) = state.abort.borrow_mut().take() {
            return IterationEnd::Aborted(reason);
        }
        let unhandled = state.rejections.take().into_iter().next();
        match result {
            _ if state.is_cut.get() || state.compute.is_ending() => {
                let place = later_place(result.err().and_then(|failure| failure.place), state.interrupted_at.take());
                state.cut_place.replace(place.filter(|_| state.was_computing.take()));
                IterationEnd::Cut
            }
            Ok(_) if unhandled.is_some() => {
                let failure = unhandled.unwrap_or_default();
                IterationEnd::Threw(ScriptFailure { message: format!("{} (in a promise)", failure.message), ..failure })
            }
            Ok(value) => {
                if state.keeps_result.get() {
                    match self.json(ctx, value) {
                        Ok(json) => *state.result.borrow_mut() = Some(json),
                        Err(failure) => return IterationEnd::Threw(failure),
                    }
                }
                IterationEnd::Returned
            }
            Err(failure) => IterationEnd::Threw(failure),
        }
    }

    /// Calls a function, and waits for its promise and its timers.
    fn call(&self, ctx: &Ctx<'js>, state: &UserState, exec: &str) -> Result<Value<'js>, ScriptFailure> {
        caught(ctx, set_numbers(ctx, state.number, state.iteration.get().of_user))?;
        let Some(function) = self.functions.get(exec) else {
            return Err(ScriptFailure::of_message(format!("no function '{exec}'")));
        };
        let result: Value<'js> = caught(ctx, function.call((self.setup_data.clone(),)))?;
        let settled = self.settle(ctx, state, result);
        if settled.is_err() && state.has_late_work.get() {
            let clear: Function<'js> = caught(ctx, Self::import(ctx, &late_work())?.get("clearDue"))?;
            caught(ctx, clear.call::<_, ()>(()))?;
        }
        settled
    }

    fn settle(&self, ctx: &Ctx<'js>, state: &UserState, result: Value<'js>) -> Result<Value<'js>, ScriptFailure> {
        let mut late_work: Option<LateWork<'js>> = None;
        loop {
            let mut jobs = 0_u32;
            // Short ones without end hardly ever meet the interpreter's own interruption.
            while !state.is_over() && ctx.execute_pending_job() {
                jobs = jobs.wrapping_add(1);
                if jobs.is_multiple_of(JOBS_BETWEEN_LOOKS) {
                    state.look_at_turn();
                }
            }
            if state.is_over() {
                return Err(ScriptFailure::default());
            }
            let promise = result.as_promise();
            if let Some(reason) = promise.filter(|promise| promise.state() == PromiseState::Rejected) {
                return caught(ctx, reason.finish::<Value<'js>>());
            }
            let (has_open, has_result) = {
                let exchanges = state.exchanges.borrow();
                let sockets = state.sockets.borrow();
                (exchanges.open > 0 || sockets.is_open(), exchanges.has_result() || sockets.has_event())
            };
            if state.has_late_work.get() && late_work.is_none() {
                late_work = Some(LateWork::of(ctx)?);
            }
            let wait_ms: f64 = match &late_work {
                Some(late_work) => caught(ctx, late_work.due.call(()))?,
                None => -1.0,
            };
            let until = match wait_ms {
                _ if has_result => Nanos::ZERO,
                wait_ms if wait_ms >= 0.0 => state.now.get() + Nanos((wait_ms * 1e6) as u64),
                _ => Nanos::NEVER,
            };
            if until == Nanos::NEVER && !has_open {
                return match promise {
                    Some(promise) if promise.state() == PromiseState::Pending => {
                        Err(ScriptFailure::of_message("the promise of the function is never settled"))
                    }
                    Some(promise) => caught(ctx, promise.finish()),
                    None => Ok(result),
                };
            }
            if until > state.now.get() {
                caught(ctx, state.pause(ctx, Pause::Await(until), "a promise"))?;
            } else {
                // A timer that is due at once, again and again.
                state.look_at_turn();
            }
            match &late_work {
                // Promises of requests that have ended, then a timer.
                Some(late_work) => caught(ctx, late_work.run.call::<_, bool>(()))?,
                None => {
                    state.exchanges.borrow_mut().forget_results();
                    false
                }
            };
        }
    }
}

/// Name of the module of what is done after the function of an iteration.
fn late_work() -> String {
    format!("{}{}", modules::OWN_IMPORT, modules::LATE_WORK)
}

/// What is done after the function of an iteration.
struct LateWork<'js> {
    /// Milliseconds until the first timer; -1 without one.
    due: Function<'js>,
    /// Settles promises of requests that have ended, and calls the first timer that is due.
    run: Function<'js>,
}

impl<'js> LateWork<'js> {
    fn of(ctx: &Ctx<'js>) -> Result<Self, ScriptFailure> {
        let module = LoadedScript::import(ctx, &late_work())?;
        Ok(Self { due: caught(ctx, module.get("deadline"))?, run: caught(ctx, module.get("runDue"))? })
    }
}
