//! Files, environment, log, options and facts of the run.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use std::sync::atomic::Ordering;

use rquickjs::context::EvalOptions;
use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Function, IntoJs as _, Module, Object, Result, Value};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::clock;

use super::state::{Phase, uncatchable};
use super::{UserState, user_of};
use crate::engine::module_files::beside;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("abort", Function::new(ctx.clone(), abort)?)?;
    exports.export("arrayGet", Function::new(ctx.clone(), array_get)?)?;
    exports.export("arrayMake", Function::new(ctx.clone(), array_make)?)?;
    exports.export("collectionInput", Function::new(ctx.clone(), collection_input)?)?;
    exports.export("compile", Function::new(ctx.clone(), compile)?)?;
    exports.export("environment", Function::new(ctx.clone(), environment)?)?;
    exports.export("failTest", Function::new(ctx.clone(), fail_test)?)?;
    exports.export("facts", Function::new(ctx.clone(), facts)?)?;
    exports.export("require", Function::new(ctx.clone(), require)?)?;
    exports.export("load", Function::new(ctx.clone(), load)?)?;
    exports.export("log", Function::new(ctx.clone(), log)?)?;
    exports.export("now", Function::new(ctx.clone(), now)?)?;
    exports.export("open", Function::new(ctx.clone(), open)?)?;
    exports.export("options", Function::new(ctx.clone(), options)?)?;
    exports.export("random", Function::new(ctx.clone(), random)?)?;
    exports.export("seed", Function::new(ctx.clone(), seed)?)?;
    Ok(())
}

/// Ends the run with a reason: `abort(reason)`.
pub(super) fn abort(ctx: Ctx<'_>, reason: String) -> Result<()> {
    let user = user_of(&ctx)?;
    *user.abort.borrow_mut() = Some(reason.clone());
    Err(uncatchable(&ctx, &reason))
}

/// Lets the run fail at its end, with a reason: `failTest(reason)`.
pub(super) fn fail_test(ctx: Ctx<'_>, reason: String) -> Result<()> {
    *weir_machine::lock::lock(&user_of(&ctx)?.script.file.failure) = Some(reason);
    Ok(())
}

/// Variables and rows of a collection of Postman, as JSON.
fn collection_input(ctx: Ctx<'_>) -> Result<String> {
    let input = &user_of(&ctx)?.script.file.collection_input;
    Ok(if input.is_empty() { "{}".to_owned() } else { input.clone() })
}

/// Value of a text that is not strict, whose place in errors is `name`.
fn compile<'js>(ctx: Ctx<'js>, text: String, name: String) -> Result<Value<'js>> {
    let mut options = EvalOptions::default();
    (options.strict, options.filename) = (false, Some(name));
    ctx.eval_with_options(text, options)
}

/// Variables of the environment, as an object.
pub(super) fn environment(ctx: Ctx<'_>) -> Result<Object<'_>> {
    let variables = Object::new(ctx.clone())?;
    let user = user_of(&ctx)?;
    let of_scenario = &user.script.scenario(user.iteration.get().scenario).environment;
    for (name, value) in user.script.file.environment.iter().chain(of_scenario) {
        variables.set(name, value)?;
    }
    Ok(variables)
}

/// Runs a module of weir, unless it has run: `load(name)`.
pub(super) fn load(ctx: Ctx<'_>, name: String) -> Result<()> {
    // It runs now; its promise is for what it awaits, which is nothing.
    Module::import(&ctx, name).map(drop)
}

/// Writes a line of the script's log to stderr.
pub(super) fn log(ctx: Ctx<'_>, level: String, text: String) -> Result<()> {
    let user = user_of(&ctx)?;
    user.script.file.log(&level, &text);
    Ok(())
}

/// Milliseconds since an arbitrary time.
pub(super) fn now() -> f64 {
    clock::monotonic().0 as f64 / 1e6
}

/// Contents of a file, in the init context: `open(path, mode, module)`.
pub(super) fn open<'js>(ctx: Ctx<'js>, path: String, mode: Opt<Option<String>>) -> Result<Value<'js>> {
    let user = user_of(&ctx)?;
    let thrown = |why: String| Exception::throw_type(&ctx, &why);
    if user.phase.get() != Phase::Init {
        return Err(thrown(format!("open('{path}') is for the init context: call it outside of functions")));
    }
    let full = beside(&user.script.file.main, &path);
    let bytes = user.script.file.files.read(&full).map_err(|error| thrown(format!("cannot open '{path}': {error}")))?;
    match mode.0.flatten().as_deref() {
        None | Some("" | "t") => String::from_utf8_lossy(&bytes).into_owned().into_js(&ctx),
        Some("b") => ArrayBuffer::new(ctx.clone(), bytes).map(ArrayBuffer::into_value),
        Some(other) => Err(thrown(format!("open(): invalid mode '{other}'; write 'b' for bytes, or leave it out"))),
    }
}

/// Options of the script as JSON; those that the command line has replaced are as they are used.
pub(super) fn options(ctx: Ctx<'_>) -> Result<String> {
    Ok(user_of(&ctx)?.script.options_json.clone())
}

/// Exports of a module, as `require` of CommonJS has them. Paths are those of the script's folder.
pub(super) fn require<'js>(ctx: Ctx<'js>, name: String) -> Result<Value<'js>> {
    let user = user_of(&ctx)?;
    if user.phase.get() != Phase::Init {
        return Err(Exception::throw_type(&ctx, "require() is for the init context: call it outside of functions"));
    }
    let files = user.script.file.modules.files();
    let resolved = files.resolve(&user.script.file.main, &name);
    let resolved = resolved.map_err(|why| Exception::throw_reference(&ctx, &why))?;
    let exports: Object<'js> = Module::import(&ctx, resolved)?.finish()?;
    match exports.get::<_, Option<bool>>("__commonJs")? {
        Some(true) => exports.get("default"),
        _ => Ok(exports.into_value()),
    }
}

/// Random number from 0 to below 1.
pub(super) fn random(ctx: Ctx<'_>) -> Result<f64> {
    Ok(user_of(&ctx)?.rng.borrow_mut().unit())
}

/// Begins the random numbers anew: `seed(number)`.
pub(super) fn seed(ctx: Ctx<'_>, seed: f64) -> Result<()> {
    *user_of(&ctx)?.rng.borrow_mut() = SeededRng::new(seed.to_bits(), UserState::RANDOM_SALT);
    Ok(())
}

/// Element of a shared array as JSON, or `undefined`.
pub(super) fn array_get<'js>(ctx: Ctx<'js>, array: usize, index: usize) -> Result<Value<'js>> {
    let user = user_of(&ctx)?;
    match user.script.file.arrays.element(array, index) {
        Some(json) => json.into_js(&ctx),
        None => Ok(Value::new_undefined(ctx)),
    }
}

/// Number and length of a shared array: `arrayMake(name, make)`, where `make()` returns the elements as JSON.
pub(super) fn array_make<'js>(ctx: Ctx<'js>, name: String, make: Function<'js>) -> Result<Array<'js>> {
    let user = user_of(&ctx)?;
    if user.phase.get() != Phase::Init {
        return Err(Exception::throw_type(
            &ctx,
            "new SharedArray() is for the init context: call it outside of functions",
        ));
    }
    let arrays = &user.script.file.arrays;
    let (number, length) = match arrays.find(&name) {
        Some(known) => known,
        None => arrays.add(&name, make.call::<_, Vec<String>>(())?),
    };
    let array = Array::new(ctx.clone())?;
    array.set(0, number)?;
    array.set(1, length)?;
    Ok(array)
}

/// Facts of the user and the run as an array: number of the user, iteration of the user in its scenario and in all,
/// iteration of the scenario, name, executor and start of the scenario in milliseconds, share of it that is over, time of
/// the run in milliseconds, users, whether the file itself runs, iterations that have ended, that were cut off, that run.
pub(super) fn facts(ctx: Ctx<'_>) -> Result<Array<'_>> {
    let user = user_of(&ctx)?;
    let iteration = user.iteration.get();
    let script = &user.script;
    let scenario = script.scenario(iteration.scenario);
    let array = Array::new(ctx.clone())?;
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    array.set(0, user.number)?;
    array.set(1, iteration.of_user)?;
    array.set(2, iteration.in_scenario)?;
    array.set(3, scenario.name.as_str())?;
    array.set(4, scenario.executor_name())?;
    array.set(5, ms(scenario.start))?;
    array.set(6, scenario.progress(user.now.get(), iteration.in_scenario))?;
    array.set(7, ms(user.now.get()))?;
    array.set(8, script.users())?;
    array.set(9, user.phase.get() == Phase::Init)?;
    let ended = &script.file.iterations;
    array.set(10, ended.completed.load(Ordering::Relaxed))?;
    array.set(11, ended.interrupted.load(Ordering::Relaxed))?;
    array.set(12, ended.active.load(Ordering::Relaxed))?;
    Ok(array)
}
