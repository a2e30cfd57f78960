//! Modules `weir:core`, for those of weir that most scripts need, `weir:execution` and `k6`.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::convert::Coerced;
use rquickjs::function::Opt;
use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{Ctx, Exception, FromJs as _, Function, Object, Result, Value};

use super::checks::{check, group};
use super::context;
use super::http::{finished, sleep};
use super::request_arguments::text;
use super::samples::{metric, sample, set_tags};
use super::user_of;

/// Module `weir:core`.
pub(super) struct Core;

const CORE_NAMES: &[&str] =
    &["arrayGet", "arrayMake", "dropResult", "finished", "hasLateWork", "load", "log", "metric", "now", "sample"];

impl ModuleDef for Core {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        CORE_NAMES.iter().try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        exports.export("arrayGet", Function::new(ctx.clone(), context::array_get)?)?;
        exports.export("arrayMake", Function::new(ctx.clone(), context::array_make)?)?;
        exports.export("dropResult", Function::new(ctx.clone(), drop_result)?)?;
        exports.export("finished", Function::new(ctx.clone(), finished)?)?;
        exports.export("hasLateWork", Function::new(ctx.clone(), has_late_work)?)?;
        exports.export("load", Function::new(ctx.clone(), context::load)?)?;
        exports.export("log", Function::new(ctx.clone(), context::log)?)?;
        exports.export("metric", Function::new(ctx.clone(), metric)?)?;
        exports.export("now", Function::new(ctx.clone(), context::now)?)?;
        exports.export("sample", Function::new(ctx.clone(), sample)?)?;
        Ok(())
    }
}

/// Module `weir:execution`.
pub(super) struct ExecutionFacts;

const EXECUTION_NAMES: [&str; 5] = ["abort", "facts", "failTest", "options", "setTags"];

impl ModuleDef for ExecutionFacts {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        EXECUTION_NAMES.iter().try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        exports.export("abort", Function::new(ctx.clone(), context::abort)?)?;
        exports.export("facts", Function::new(ctx.clone(), context::facts)?)?;
        exports.export("failTest", Function::new(ctx.clone(), context::fail_test)?)?;
        exports.export("options", Function::new(ctx.clone(), context::options)?)?;
        exports.export("setTags", Function::new(ctx.clone(), set_tags)?)?;
        Ok(())
    }
}

/// Module `k6`.
pub(super) struct K6Module;

const K6_NAMES: [&str; 5] = ["check", "fail", "group", "randomSeed", "sleep"];

impl ModuleDef for K6Module {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        K6_NAMES.iter().chain(&["default"]).try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let all = Object::new(ctx.clone())?;
        let functions = [
            Function::new(ctx.clone(), check)?,
            Function::new(ctx.clone(), fail)?,
            Function::new(ctx.clone(), group)?,
            Function::new(ctx.clone(), random_seed)?,
            Function::new(ctx.clone(), sleep)?,
        ];
        for (name, function) in K6_NAMES.into_iter().zip(functions) {
            exports.export(name, function.clone())?;
            all.set(name, function)?;
        }
        exports.export("default", all).map(drop)
    }
}

/// Takes note of a timer, or of a promise of a request, which is settled after the function of the iteration.
fn has_late_work(ctx: Ctx<'_>) -> Result<()> {
    user_of(&ctx)?.has_late_work.set(true);
    Ok(())
}

/// Forgets the result of a request that nothing awaits: `dropResult(key)`.
fn drop_result(ctx: Ctx<'_>, key: u32) -> Result<()> {
    let _ = user_of(&ctx)?.exchanges.borrow_mut().take(key);
    Ok(())
}

/// Throws an error: `fail(reason)`.
fn fail<'js>(ctx: Ctx<'js>, reason: Opt<Value<'js>>) -> Result<()> {
    let reason = match reason.0.filter(|reason| !reason.is_undefined()) {
        Some(reason) => text(&ctx, reason)?,
        None => "fail() was called".to_owned(),
    };
    Err(Exception::throw_message(&ctx, &reason))
}

/// Begins the random numbers anew: `randomSeed(number)`.
fn random_seed<'js>(ctx: Ctx<'js>, number: Opt<Value<'js>>) -> Result<()> {
    let number = match number.0 {
        Some(number) => Coerced::<f64>::from_js(&ctx, number)?.0,
        None => f64::NAN,
    };
    context::seed(ctx, number)
}
