//! Names that every script finds: `console`, `__ENV`, `open`, `require`, timers, `crypto`, `Math.random`.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::convert::Coerced;
use rquickjs::function::{Opt, Rest};
use rquickjs::object::Accessor;
use rquickjs::{Ctx, Function, Object, Result, Value};

use super::context;
use super::own_modules::{call_exported, exported};
use super::request_arguments::text;
use super::user_of;
use crate::modules::LATE_WORK;

/// Levels of the log by the methods of `console`.
const LEVELS: [(&str, &str); 5] =
    [("log", "info"), ("info", "info"), ("debug", "debug"), ("warn", "warning"), ("error", "error")];
/// Functions of timers, which are those of a module.
const TIMERS: [&str; 4] = ["setTimeout", "setInterval", "clearTimeout", "clearInterval"];

/// Sets the global names of an interpreter.
///
/// # Errors
/// If there is no memory.
pub(crate) fn define_globals(ctx: &Ctx<'_>) -> Result<()> {
    let globals = ctx.globals();
    let console = Object::new(ctx.clone())?;
    for (name, level) in LEVELS {
        console.set(name, Function::new(ctx.clone(), move |ctx, values| log(ctx, level, values))?)?;
    }
    globals.set("console", console)?;
    globals.set("global", globals.clone())?;
    globals.set("open", Function::new(ctx.clone(), open)?)?;
    globals.set("require", Function::new(ctx.clone(), require)?)?;
    for name in TIMERS {
        globals.set(name, Function::new(ctx.clone(), move |ctx, values| timer(ctx, name, values))?)?;
    }
    let math: Object<'_> = globals.get("Math")?;
    math.set("random", Function::new(ctx.clone(), context::random)?)?;
    // These are made when they are read: few scripts do.
    globals.prop("__ENV", Accessor::new(environment, set_environment).configurable().enumerable())?;
    globals.prop("crypto", Accessor::new(crypto, set_crypto).configurable().enumerable())
}

/// Sets the numbers of the user and its iteration.
///
/// # Errors
/// If there is no memory.
pub(crate) fn set_numbers(ctx: &Ctx<'_>, user: u64, iteration: u64) -> Result<()> {
    let globals = ctx.globals();
    globals.set("__VU", user)?;
    globals.set("__ITER", iteration)
}

/// Text of a value as JSON.
///
/// # Errors
/// The exception of a method that it has for this.
pub(crate) fn json_text<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    match ctx.json_stringify(value)? {
        Some(json) => json.to_string(),
        None => Ok("null".to_owned()),
    }
}

fn log<'js>(ctx: Ctx<'js>, level: &'static str, values: Rest<Value<'js>>) -> Result<()> {
    let texts: Vec<String> = values.0.into_iter().map(|value| shown(&ctx, value)).collect::<Result<_>>()?;
    user_of(&ctx)?.script.file.log(level, &texts.join(" "));
    Ok(())
}

/// A value as the log shows it.
fn shown<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    if let Some(symbol) = value.as_symbol() {
        let Coerced(description) = symbol.description()?.get::<Coerced<String>>()?;
        return Ok(format!("Symbol({description})"));
    }
    let Some(object) = value.as_object().filter(|_| !value.is_function()) else { return text(ctx, value) };
    if value.is_error() {
        let stack: Value<'js> = object.get("stack")?;
        let whole = text(ctx, value.clone())?;
        return Ok(match stack.as_string() {
            Some(stack) => format!("{whole}\n{}", stack.to_string()?),
            None => whole,
        });
    }
    match ctx.json_stringify(value.clone()) {
        Ok(Some(json)) => json.to_string(),
        Ok(None) => text(ctx, value),
        Err(_) => {
            // What refers to itself has no JSON.
            let _ = ctx.catch();
            text(ctx, value)
        }
    }
}

fn open<'js>(ctx: Ctx<'js>, path: Coerced<String>, mode: Opt<Option<String>>) -> Result<Value<'js>> {
    context::open(ctx, path.0, mode)
}

fn require<'js>(ctx: Ctx<'js>, name: Coerced<String>) -> Result<Value<'js>> {
    context::require(ctx, name.0)
}

fn timer<'js>(ctx: Ctx<'js>, name: &'static str, values: Rest<Value<'js>>) -> Result<Value<'js>> {
    call_exported(&ctx, (LATE_WORK, name), values.0)
}

fn environment(ctx: Ctx<'_>) -> Result<Object<'_>> {
    let variables = context::environment(ctx.clone())?;
    define(&ctx, "__ENV", variables.clone().into_value())?;
    Ok(variables)
}

fn set_environment<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<()> {
    define(&ctx, "__ENV", value)
}

fn crypto<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    let crypto = exported(&ctx, "k6/experimental/webcrypto", "crypto")?;
    define(&ctx, "crypto", crypto.clone())?;
    Ok(crypto)
}

fn set_crypto<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<()> {
    define(&ctx, "crypto", value)
}

/// Replaces a global name by a value.
fn define<'js>(ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> Result<()> {
    let property = rquickjs::object::Property::from(value).configurable().enumerable().writable();
    ctx.globals().prop(name, property)
}
